"""OffsetCommit (key 8), versions 2-10: KIP-211, 320, 345, 516, 848.

Needs READ of the group and of each topic. Topics and partitions that do not exist, or of which the
sender may not know, are answered here; the coordinator stores the others, each with its topic's id.
"""

from collections.abc import Collection, Sequence

from barnabas.base.network import Part
from barnabas.node.broker.apis.groups.offset_commit_again import learn
from barnabas.node.broker.apis.groups.requests import (
    allowed_topics,
    client_of,
    find_topic,
    may_read_group,
)
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.deferred_reply import answer_later
from barnabas.node.broker.responses import respond
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.group.offset_responses import commit_error
from barnabas.node.loop.promise import Promise, then
from barnabas.node.net.connection import Reply
from barnabas.protocol.acls import Operation
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

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
    """Each topic once, whether its partitions were stored, refused, or some of each."""
    stored = {topic.name: topic for topic in response.topics if topic.name}
    for topic in refused:
        if topic.name in stored:
            stored[topic.name].partitions += topic.partitions
        else:
            response.topics.append(topic)
            if topic.name:  # an unknown id has none
                stored[topic.name] = topic
    return response
