"""OffsetFetch (key 9), versions 1-10: KIP-88, 320, 447, 516, 709, 848.

Needs DESCRIBE of the group and of each topic; whoever asks for all topics is told of those that it
may DESCRIBE. One group up to version 7, several from version 8. Versions before 2 have no error of
the whole, so that every partition carries it.
"""

from collections.abc import Awaitable
from operator import attrgetter

from barnabas.base.ids import Uuid
from barnabas.node.broker.apis.groups.requests import allowed_topics, find_topic
from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.in_parts import Each
from barnabas.node.broker.services import BrokerServices
from barnabas.node.loop.promise import Promise, then
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offsets import (
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


def _ask_more(group: OffsetFetchRequestGroup, again: OffsetFetchRequestGroup) -> None:
    """Ask for the topics of a group that is named twice; None are all topics."""
    if group.topics is None or again.topics is None:
        group.topics = None
    else:
        group.topics += again.topics


EACH_GROUP = Each("groups", "groups", attrgetter("group_id"), _ask_more)


def handle_offset_fetch(
    services: BrokerServices, context: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse | Awaitable[OffsetFetchResponse]:
    """Read the committed offsets of groups."""
    version = context.api_version
    if version < GROUPS_FROM_VERSION:
        group = _single_group(request)
        return then(
            _fetch(services, context, group, request.require_stable, by_id=False),
            lambda fetched: _single_response(group, fetched, version),
        )
    by_id = version >= TOPIC_IDS_FROM_VERSION
    fetched = [
        _fetch(services, context, group, request.require_stable, by_id=by_id)
        for group in request.groups
    ]
    if any(isinstance(part, Promise) for part in fetched):
        return _wait(fetched)
    return OffsetFetchResponse(groups=[part for part in fetched if not isinstance(part, Promise)])


async def _wait(
    parts: list[OffsetFetchResponseGroup | Promise[OffsetFetchResponseGroup]],
) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        groups=[await part if isinstance(part, Promise) else part for part in parts]
    )


def _fetch(
    services: BrokerServices,
    context: RequestContext,
    group: OffsetFetchRequestGroup,
    require_stable: bool,
    *,
    by_id: bool,
) -> OffsetFetchResponseGroup | Promise[OffsetFetchResponseGroup]:
    """One group; with topic ids, unknown ones are answered and names looked up."""
    if not may(services, context, Operation.DESCRIBE, ResourceType.GROUP, group.group_id):
        error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error)
    if group.topics is not None:
        group.topics = _once(group.topics)
    refused: list[OffsetFetchResponseTopics] = []
    if by_id and group.topics is not None:
        known = []
        for topic in group.topics:
            image = find_topic(services, "", topic.topic_id, by_id=True)
            if image is None:
                refused.append(_refused(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            else:
                topic.name = image.name
                known.append(topic)
        group.topics = known
    if services.authorizer.is_enabled and group.topics is not None:
        names = [topic.name for topic in group.topics]
        visible = allowed_topics(services, context, Operation.DESCRIBE, names)
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        refused += [_refused(topic, error) for topic in group.topics if topic.name not in visible]
        visible_topics = [topic for topic in group.topics if topic.name in visible]
        group = OffsetFetchRequestGroup(
            group_id=group.group_id,
            member_id=group.member_id,
            member_epoch=group.member_epoch,
            topics=visible_topics,
        )

    def finish(response: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
        if group.topics is None:
            _keep_visible(services, context, response)
        if by_id and group.topics is None:
            response.topics = [topic for topic in response.topics if _name_to_id(services, topic)]
        if not response.error_code:
            response.topics += refused
        return response

    return then(services.groups.offset_fetch(group, require_stable=require_stable), finish)


def _once(topics: list[OffsetFetchRequestTopics]) -> list[OffsetFetchRequestTopics]:
    """Each topic once, and each of its partitions: metadata may be a thousand times their size."""
    indexes: dict[tuple[str, Uuid], dict[int, None]] = {}
    for topic in topics:
        asked = indexes.setdefault((topic.name, topic.topic_id), {})
        asked.update(dict.fromkeys(topic.partition_indexes))
    return [
        OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=list(asked))
        for (name, topic_id), asked in indexes.items()
    ]


def _keep_visible(
    services: BrokerServices, context: RequestContext, response: OffsetFetchResponseGroup
) -> None:
    """Leave out topics of which the sender may not know."""
    if services.authorizer.is_enabled:
        names = [topic.name for topic in response.topics]
        visible = allowed_topics(services, context, Operation.DESCRIBE, names)
        response.topics = [topic for topic in response.topics if topic.name in visible]


def _name_to_id(services: BrokerServices, topic: OffsetFetchResponseTopics) -> bool:
    """Give a topic its present id; false for one that is gone or was made anew."""
    image = services.image.topics.by_name.get(topic.name)
    if image is None:
        return False
    topic.topic_id = image.id
    return True


def _refused(topic: OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=NO_OFFSET,
                metadata="",
                error_code=error,
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
