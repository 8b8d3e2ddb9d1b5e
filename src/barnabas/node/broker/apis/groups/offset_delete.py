"""OffsetDelete (key 47), version 0: KIP-496.

Needs DELETE of the group and READ of each topic. Topics and partitions that do not exist are
answered here. Offsets of deleted topics are gone
already.
"""

from barnabas.node.broker.authorization import allowed_in_turns, may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle_offset_delete(
    services: BrokerServices, context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse:
    """Forget offsets that a group has committed."""
    if not may(services, context, Operation.DELETE, ResourceType.GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    names = [topic.name for topic in request.topics]
    readable = await allowed_in_turns(services, context, Operation.READ, ResourceType.TOPIC, names)
    refused: list[OffsetDeleteResponseTopic] = []
    known: list[OffsetDeleteRequestTopic] = []
    for topic in request.topics:
        if topic.name not in readable:
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            refused.append(_refused(topic.name, topic.partitions, error))
            continue
        image = services.image.topics.by_name.get(topic.name)
        partitions = {} if image is None else image.partitions
        missing = [p for p in topic.partitions if p.partition_index not in partitions]
        present = [p for p in topic.partitions if p.partition_index in partitions]
        if missing:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused.append(_refused(topic.name, missing, error))
        if present:
            known.append(OffsetDeleteRequestTopic(name=topic.name, partitions=present))

    asked = OffsetDeleteRequest(group_id=request.group_id, topics=known)
    deleted = services.groups.offset_delete(asked)
    response = deleted if isinstance(deleted, OffsetDeleteResponse) else await deleted
    if response.error_code:
        return response
    by_name = {topic.name: topic for topic in response.topics}
    for denied in refused:
        if denied.name in by_name:
            by_name[denied.name].partitions += denied.partitions
        else:
            response.topics.append(denied)
    return response


def _refused(
    name: str, partitions: list[OffsetDeleteRequestPartition], error: ErrorCode
) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=name,
        partitions=[
            OffsetDeleteResponsePartition(
                partition_index=partition.partition_index, error_code=error
            )
            for partition in partitions
        ],
    )
