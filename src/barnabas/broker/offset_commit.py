"""OffsetCommit (key 8), versions 2-10: KIP-211, 320, 345, 516, 848.

Topics and partitions that do not exist are answered here; the coordinator stores the others, each
with its topic's id.
"""

from collections.abc import Awaitable

from barnabas.broker.context import RequestContext
from barnabas.broker.group_requests import client_of, find_topic
from barnabas.broker.services import BrokerServices
from barnabas.coordinator.promise import then
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

TOPIC_IDS_FROM_VERSION = 10


def handle(
    services: BrokerServices, context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse | Awaitable[OffsetCommitResponse]:
    """Store the offsets of a group."""
    by_id = context.api_version >= TOPIC_IDS_FROM_VERSION
    refused: list[OffsetCommitResponseTopic] = []
    known: list[OffsetCommitRequestTopic] = []
    for topic in request.topics:
        image = find_topic(services, topic.name, topic.topic_id, by_id=by_id)
        if image is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused.append(_refuse(topic, [p.partition_index for p in topic.partitions], error))
            continue
        topic.name, topic.topic_id = image.name, image.id
        missing = [
            partition.partition_index
            for partition in topic.partitions
            if partition.partition_index not in image.partitions
        ]
        if missing:
            refused.append(_refuse(topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            topic.partitions = [
                partition
                for partition in topic.partitions
                if partition.partition_index in image.partitions
            ]
        if topic.partitions:
            known.append(topic)
    if not known:
        return OffsetCommitResponse(topics=refused)
    request.topics = known

    def finish(response: OffsetCommitResponse) -> OffsetCommitResponse:
        return _merge(response, refused)

    return then(services.groups.offset_commit(request, client_of(context)), finish)


def _refuse(
    topic: OffsetCommitRequestTopic, partitions: list[int], error: ErrorCode
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=index, error_code=error)
            for index in partitions
        ],
    )


def _merge(
    response: OffsetCommitResponse, refused: list[OffsetCommitResponseTopic]
) -> OffsetCommitResponse:
    """Each topic once, whether its partitions were stored, refused, or some of each."""
    for topic in refused:
        for stored in response.topics:
            if stored.name == topic.name and topic.name:
                stored.partitions += topic.partitions
                break
        else:
            response.topics.append(topic)
    return response
