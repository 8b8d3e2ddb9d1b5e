"""OffsetFetch (key 9), versions 1-10: KIP-88, 320, 447, 516, 709, 848.

One group up to version 7, several from version 8. Versions before 2 have no error of the whole,
so that every partition carries it.
"""

from collections.abc import Awaitable

from barnabas.base.promise import Promise, then
from barnabas.broker.apis.groups.requests import find_topic
from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from barnabas.protocol.records.batch import NO_OFFSET

TOP_LEVEL_ERROR_FROM_VERSION = 2
GROUPS_FROM_VERSION = 8
TOPIC_IDS_FROM_VERSION = 10


def handle_offset_fetch(
    services: BrokerServices, context: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse | Awaitable[OffsetFetchResponse]:
    """Read the committed offsets of groups."""
    version = context.api_version
    if version < GROUPS_FROM_VERSION:
        group = _single_group(request)
        return then(
            services.groups.offset_fetch(group, require_stable=request.require_stable),
            lambda fetched: _single_response(group, fetched, version),
        )
    by_id = version >= TOPIC_IDS_FROM_VERSION
    fetched = [
        _fetch(services, group, request.require_stable, by_id=by_id) for group in request.groups
    ]
    if any(isinstance(part, Promise) for part in fetched):
        return _wait(fetched)
    return OffsetFetchResponse(groups=[part for part in fetched if not isinstance(part, Awaitable)])


async def _wait(
    parts: list[OffsetFetchResponseGroup | Awaitable[OffsetFetchResponseGroup]],
) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        groups=[await part if isinstance(part, Awaitable) else part for part in parts]
    )


def _fetch(
    services: BrokerServices,
    group: OffsetFetchRequestGroup,
    require_stable: bool,
    *,
    by_id: bool,
) -> OffsetFetchResponseGroup | Awaitable[OffsetFetchResponseGroup]:
    """One group; with topic ids, unknown ones are answered and names looked up."""
    unknown: list[OffsetFetchResponseTopics] = []
    if by_id and group.topics is not None:
        known = []
        for topic in group.topics:
            image = find_topic(services, "", topic.topic_id, by_id=True)
            if image is None:
                unknown.append(_unknown(topic))
            else:
                topic.name = image.name
                known.append(topic)
        group.topics = known

    def finish(response: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
        if by_id and group.topics is None:
            response.topics = [topic for topic in response.topics if _name_to_id(services, topic)]
        if not response.error_code:
            response.topics += unknown
        return response

    return then(services.groups.offset_fetch(group, require_stable=require_stable), finish)


def _name_to_id(services: BrokerServices, topic: OffsetFetchResponseTopics) -> bool:
    """Give a topic its present id; false for one that is gone or was made anew."""
    image = services.image.topics.by_name.get(topic.name)
    if image is None:
        return False
    topic.topic_id = image.id
    return True


def _unknown(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=NO_OFFSET,
                metadata="",
                error_code=ErrorCode.UNKNOWN_TOPIC_ID,
            )
            for index in topic.partition_indexes
        ],
    )


def _single_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def _single_response(
    group: OffsetFetchRequestGroup, fetched: OffsetFetchResponseGroup, version: int
) -> OffsetFetchResponse:
    if fetched.error_code and version < TOP_LEVEL_ERROR_FROM_VERSION:
        return OffsetFetchResponse(
            topics=[
                OffsetFetchResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetFetchResponsePartition(
                            partition_index=index,
                            committed_offset=NO_OFFSET,
                            metadata="",
                            error_code=fetched.error_code,
                        )
                        for index in topic.partition_indexes
                    ],
                )
                for topic in group.topics or []
            ]
        )
    return OffsetFetchResponse(
        error_code=fetched.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in fetched.topics
        ],
    )
