"""DeleteTopics (API 20, versions 1-6; by id since KIP-516)."""

from collections import Counter

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.metadata.controller.decision import (
    QUOTA_EXCEEDED,
    ControllerState,
    Decision,
    Failure,
)
from barnabas.node.metadata.image import TopicImage
from barnabas.node.metadata.records import MetadataRecord
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata_records import RemoveTopicRecord
from barnabas.protocol.messages.topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)


def delete_topics(
    state: ControllerState, request: DeleteTopicsRequest
) -> Decision[DeleteTopicsResponse]:
    """Decide each topic of the request; those that exist and are named once go."""
    wanted = [DeleteTopicState(name=name) for name in request.topic_names] + list(request.topics)
    disabled = not state.config.get_bool("delete.topic.enable")
    times_named = Counter((topic.name, topic.topic_id) for topic in wanted)
    decision = Decision(DeleteTopicsResponse())
    removed: set[Uuid] = set()
    for topic in wanted:
        times = times_named.pop((topic.name, topic.topic_id), 0)
        if times == 0:
            continue
        if disabled:
            outcome: TopicImage | Failure = Failure(
                ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled."
            )
        else:
            outcome = _find(state, topic, times)
            if isinstance(outcome, TopicImage) and not state.mutations.spend(
                len(outcome.partitions)
            ):
                outcome = QUOTA_EXCEEDED
        if isinstance(outcome, Failure):
            result = DeletableTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                error_code=outcome.code,
                error_message=outcome.message,
            )
        else:
            result = DeletableTopicResult(name=outcome.name, topic_id=outcome.id)
            if outcome.id not in removed:
                removed.add(outcome.id)
                decision.records.append(MetadataRecord(RemoveTopicRecord(topic_id=outcome.id)))
        decision.response.responses.append(result)
    return decision


def _find(
    state: ControllerState, topic: DeleteTopicState, times_named: int
) -> TopicImage | Failure:
    topics = state.image.topics
    if topic.name is None:
        if topic.topic_id == ZERO_UUID:
            return Failure(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
        if times_named > 1:
            return Failure(ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
        return topics.by_id.get(topic.topic_id) or _unknown(ErrorCode.UNKNOWN_TOPIC_ID)
    if topic.topic_id != ZERO_UUID:
        return Failure(
            ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
        )
    if times_named > 1:
        return Failure(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    return topics.by_name.get(topic.name) or _unknown(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _unknown(code: ErrorCode) -> Failure:
    return Failure(code, code.message)
