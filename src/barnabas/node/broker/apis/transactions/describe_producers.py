"""DescribeProducers (key 61), version 0: KIP-664.

The producers that a partition's log knows: who has a transaction under way, and since which
offset. Any replica answers from its own log, as in Kafka.
"""

from operator import attrgetter

from barnabas.node.broker.authorization import allowed
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.in_parts import Each
from barnabas.node.broker.services import BrokerServices
from barnabas.node.replication.partition import Partition
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)


def _ask_more(topic: TopicRequest, again: TopicRequest) -> None:
    topic.partition_indexes += again.partition_indexes


EACH_TOPIC = Each("topics", "topics", attrgetter("name"), _ask_more)


def handle_describe_producers(
    services: BrokerServices, context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Describe the producers of partitions that have a replica here."""
    names = [topic.name for topic in request.topics]
    readable = allowed(services, context, Operation.READ, ResourceType.TOPIC, names)
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _describe(services, topic.name, index)
                    if topic.name in readable
                    else _failure(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                    for index in dict.fromkeys(topic.partition_indexes)
                ],
            )
            for topic in request.topics
        ]
    )


def _describe(services: BrokerServices, topic: str, index: int) -> PartitionResponse:
    found = services.replicas.find(topic, index)
    if not isinstance(found, Partition):
        return _failure(index, found)
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=entry.producer_id,
                producer_epoch=entry.epoch,
                last_sequence=entry.last_sequence,
                last_timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=entry.txn_first_offset,
            )
            for entry in found.log.producers.producers.values()
        ],
    )


def _failure(index: int, error: ErrorCode) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=error, error_message=error.message)
