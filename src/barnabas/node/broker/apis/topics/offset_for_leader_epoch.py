"""OffsetForLeaderEpoch (key 23), versions 2-4: KIP-101, 279, 320.

Followers ask, and consumers since KIP-320.
"""

from barnabas.node.broker.authorization import allowed, may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.in_parts import Each
from barnabas.node.broker.services import BrokerServices
from barnabas.node.replication.partition import Partition
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    OffsetForLeaderEpochEpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

EACH_EPOCH = Each("topics", "topics", id)
"""Of one partition several epochs may be asked."""


def handle_offset_for_leader_epoch(
    services: BrokerServices, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Say where each leader epoch ends in our log."""
    visible = {topic.topic for topic in request.topics}
    if not may(
        services, context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, logs_denial=False
    ):
        visible = allowed(services, context, Operation.DESCRIBE, ResourceType.TOPIC, visible)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _look_up(services, topic.topic, entry)
                    if topic.topic in visible
                    else OffsetForLeaderEpochEpochEndOffset(
                        partition=entry.partition,
                        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                    )
                    for entry in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _look_up(
    services: BrokerServices, topic: str, entry: OffsetForLeaderPartition
) -> OffsetForLeaderEpochEpochEndOffset:
    partition = services.replicas.find(topic, entry.partition)
    if not isinstance(partition, Partition):
        return OffsetForLeaderEpochEpochEndOffset(partition=entry.partition, error_code=partition)
    error = partition.check_epoch(entry.current_leader_epoch)
    if not error and not partition.is_leader:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    if error:
        return OffsetForLeaderEpochEpochEndOffset(partition=entry.partition, error_code=error)
    leader_epoch, end_offset = partition.log.end_offset_for_epoch(entry.leader_epoch)
    return OffsetForLeaderEpochEpochEndOffset(
        partition=entry.partition, leader_epoch=leader_epoch, end_offset=end_offset
    )
