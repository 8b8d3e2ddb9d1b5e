"""Committed offsets.

OffsetCommit (key 8), versions 2-10: KIP-211, 320, 345, 516, 848.

Needs READ of the group and of each topic. Topics and partitions that do not exist, or of which the
sender may not know, are answered here; the coordinator stores the others, each with its topic's id.

OffsetFetch (key 9), versions 1-10: KIP-88, 320, 447, 516, 709, 848.

Needs DESCRIBE of the group and of each topic; a request for all topics gets those that the
requester may DESCRIBE. One group up to version 7, several from version 8. Versions before 2 have no
error of
the whole, so that every partition carries it.

OffsetDelete (key 47), version 0: KIP-496.

Needs DELETE of the group and READ of each topic. Topics and partitions that do not exist are
answered here. Offsets of deleted topics are gone already.
"""

from collections.abc import Awaitable, Collection, Sequence
from operator import attrgetter

from barnabas.base.ids import Uuid
from barnabas.base.network import Part
from barnabas.node.broker.apis.group_requests import (
    allowed_topics,
    client_of,
    find_topic,
    may_read_group,
    merge_topics,
)
from barnabas.node.broker.apis.offset_commit_again import learn
from barnabas.node.broker.authorization import allowed_in_turns, may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.in_parts import Each
from barnabas.node.broker.responses import answer_later, respond
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.group.offset_requests import commit_error
from barnabas.node.loop.promise import Promise, then
from barnabas.node.net.connection import Reply
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
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

TOPIC_IDS_FROM_VERSION = 10


def handle_offset_commit(
    services: BrokerServices, context: RequestContext, frame: bytearray, position: int
) -> Sequence[Part] | Reply:
    """Store the offsets of a group. Raises DecodeError for a malformed request."""
    request, _ = decode_at(OffsetCommitRequest, context.api_version, frame, position)
    generation = services.authorizer.generation
    if not may_read_group(services, context, request.group_id):
        error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return respond(context, commit_error(request, error))
    refused = _refuse_unknown(services, context, request)
    if not request.topics:
        return respond(context, OffsetCommitResponse(topics=refused))
    if not refused:
        learn(services, context, request, frame, position, generation)
    response = then(
        services.groups.offset_commit(request, client_of(context)),
        lambda response: _merge(response, refused),
    )
    if isinstance(response, Promise):
        return answer_later(response, context, respond)
    return respond(context, response)


def _refuse_unknown(
    services: BrokerServices, context: RequestContext, request: OffsetCommitRequest
) -> list[OffsetCommitResponseTopic]:
    """Take out of the request what does not exist, and name the topics of the others."""
    by_id = context.api_version >= TOPIC_IDS_FROM_VERSION
    readable = _readable(services, context, request, by_id=by_id)
    refused: list[OffsetCommitResponseTopic] = []
    known: list[OffsetCommitRequestTopic] = []
    for topic in request.topics:
        image = find_topic(services, topic.name, topic.topic_id, by_id=by_id)
        if readable is not None:
            name = topic.name if image is None else image.name
            if name and name not in readable:  # an unknown id has no name
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                refused.append(_refuse(topic, [p.partition_index for p in topic.partitions], error))
                continue
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
    request.topics = known
    return refused


def _readable(
    services: BrokerServices, context: RequestContext, request: OffsetCommitRequest, *, by_id: bool
) -> Collection[str] | None:
    """The topics whose offsets the sender may commit; None: it may commit all."""
    if not services.authorizer.is_enabled:
        return None
    names = []
    for topic in request.topics:
        image = find_topic(services, topic.name, topic.topic_id, by_id=by_id)
        names.append(topic.name if image is None else image.name)
    return allowed_topics(services, context, Operation.READ, names)


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
    merge_topics(response.topics, refused)
    return response


TOP_LEVEL_ERROR_FROM_VERSION = 2
GROUPS_FROM_VERSION = 8


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
                refused.append(_not_fetched(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            else:
                topic.name = image.name
                known.append(topic)
        group.topics = known
    if services.authorizer.is_enabled and group.topics is not None:
        names = [topic.name for topic in group.topics]
        visible = allowed_topics(services, context, Operation.DESCRIBE, names)
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        refused += [
            _not_fetched(topic, error) for topic in group.topics if topic.name not in visible
        ]
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
    """Give a topic its present id; false for one that was deleted or recreated."""
    image = services.image.topics.by_name.get(topic.name)
    if image is None:
        return False
    topic.topic_id = image.id
    return True


def _not_fetched(topic: OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics:
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
            refused.append(_not_deleted(topic.name, topic.partitions, error))
            continue
        image = services.image.topics.by_name.get(topic.name)
        partitions = {} if image is None else image.partitions
        missing = [p for p in topic.partitions if p.partition_index not in partitions]
        present = [p for p in topic.partitions if p.partition_index in partitions]
        if missing:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused.append(_not_deleted(topic.name, missing, error))
        if present:
            known.append(OffsetDeleteRequestTopic(name=topic.name, partitions=present))

    asked = OffsetDeleteRequest(group_id=request.group_id, topics=known)
    deleted = services.groups.offset_delete(asked)
    response = deleted if isinstance(deleted, OffsetDeleteResponse) else await deleted
    if response.error_code:
        return response
    merge_topics(response.topics, refused)
    return response


def _not_deleted(
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
