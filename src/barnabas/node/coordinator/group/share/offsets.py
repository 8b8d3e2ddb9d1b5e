"""Admin requests on the offsets of share groups: alter and delete.

The offsets themselves are the share coordinators'. Here stands which partitions have any; the
service beside the persister (`node/coordinator/share/share_group_service.py`) keeps the two in
step.
Source: Kafka's GroupMetadataManager (alterShareGroupOffsets and what follows it).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.group.registry import GroupRegistry
from barnabas.node.coordinator.group.share.group import ShareGroup
from barnabas.node.coordinator.group.share.heartbeat import Initialization, begin, find_or_create
from barnabas.node.coordinator.group.share.records import state_record
from barnabas.node.coordinator.group.share.state import (
    RequestTimes,
    StateMetadata,
    TopicState,
    joined,
)
from barnabas.node.coordinator.group.step import Refusal, Step
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponseTopic,
)

NOT_EMPTY = Refusal(ErrorCode.NON_EMPTY_GROUP, ErrorCode.NON_EMPTY_GROUP.message)
NOTHING_TO_DELETE = "There is no offset information to delete."


@dataclass(frozen=True, slots=True)
class Alteration:
    """The answer so far, and the share-partitions to reinitialize."""

    response: AlterShareGroupOffsetsResponse
    initialization: Initialization


@dataclass(frozen=True, slots=True)
class Deletion:
    """Topics that cannot be deleted, and the share-partitions of those that can."""

    errors: list[DeleteShareGroupOffsetsResponseTopic] = field(default_factory=list)
    partitions: dict[Uuid, tuple[int, ...]] = field(default_factory=dict)


def alter(
    step: Step, groups: GroupRegistry, times: RequestTimes, request: AlterShareGroupOffsetsRequest
) -> Alteration | Refusal:
    """AlterShareGroupOffsets: only groups without members can be moved."""
    group = find_or_create(groups, request.group_id)
    if isinstance(group, Refusal):
        return group
    if not group.is_empty:
        return NOT_EMPTY
    response = AlterShareGroupOffsetsResponse()
    offsets: dict[Uuid, dict[int, int]] = {}
    begun: dict[Uuid, TopicState] = {}
    for asked in request.topics:
        topic = step.metadata.topics.by_name.get(asked.topic_name)
        count = 0 if topic is None else len(topic.partitions)
        answer = AlterShareGroupOffsetsResponseTopic(topic_name=asked.topic_name)
        response.responses.append(answer)
        for partition in asked.partitions:
            result = AlterShareGroupOffsetsResponsePartition(
                partition_index=partition.partition_index
            )
            answer.partitions.append(result)
            if topic is not None and partition.partition_index < count:
                of_topic = offsets.setdefault(topic.id, {})
                of_topic[partition.partition_index] = partition.start_offset
            else:
                result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                result.error_message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.message
        if topic is not None:
            answer.topic_id = topic.id
            numbers = offsets.get(topic.id, {})
            begun[topic.id] = TopicState(topic.name, tuple(sorted(numbers)))
    if begun:
        begin(step, times, group, group.state_metadata.begun(begun), begun)
    return Alteration(response, Initialization(group.group_id, group.epoch, offsets))


def begin_deletion(
    step: Step, groups: GroupRegistry, request: DeleteShareGroupOffsetsRequest
) -> Deletion | Refusal:
    """DeleteShareGroupOffsets: what is to be deleted is assigned to nobody from here on."""
    if groups.get(request.group_id) is None:
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    group = groups.find(ShareGroup, request.group_id)
    if isinstance(group, Refusal):
        return group
    if not group.is_empty:
        return NOT_EMPTY
    state = group.state_metadata
    deletion = Deletion()
    initialized, deleting = dict(state.initialized), dict(state.deleting)
    for asked in request.topics:
        topic = step.metadata.topics.by_name.get(asked.topic_name)
        if topic is None:
            deletion.errors.append(
                _error(asked.topic_name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.message)
            )
        elif topic.id in initialized:
            deletion.partitions[topic.id] = initialized.pop(topic.id).partitions
            deleting[topic.id] = topic.name
        elif topic.id in deleting:  # a deletion before this one did not come to its end
            deletion.partitions[topic.id] = tuple(range(len(topic.partitions)))
        else:
            deletion.errors.append(_error(asked.topic_name, NOTHING_TO_DELETE))
    if deletion.partitions:
        changed = StateMetadata(state.initializing, initialized, deleting)
        step.records.append(state_record(group.group_id, changed))
    return deletion


def _error(name: str, message: str) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message=message,
    )


def end_deletion(step: Step, group: ShareGroup, topic_ids: Iterable[Uuid]) -> None:
    """The share coordinators have forgotten `topic_ids`."""
    state, gone = group.state_metadata, frozenset(topic_ids)
    left = {key: name for key, name in state.deleting.items() if key not in gone}
    if left != state.deleting:
        changed = StateMetadata(state.initializing, state.initialized, left)
        step.records.append(state_record(group.group_id, changed))


def begin_group_deletion(step: Step, group: ShareGroup) -> dict[Uuid, tuple[int, ...]]:
    """All that the share coordinators know of the group, which is marked as to be deleted."""
    state = group.state_metadata
    doomed = joined(state.initialized, state.initializing)
    for topic_id in state.deleting:
        topic = step.metadata.topics.by_id.get(topic_id)
        if topic is not None:
            numbers = tuple(range(len(topic.partitions)))
            doomed = joined(doomed, {topic_id: TopicState(topic.name, numbers)})
    if doomed or state != StateMetadata():
        names = {topic_id: topic.name for topic_id, topic in doomed.items()}
        step.records.append(state_record(group.group_id, StateMetadata(deleting=names)))
    return {topic_id: topic.partitions for topic_id, topic in doomed.items()}


def initialized(step: Step, group: ShareGroup, partitions: Mapping[Uuid, Iterable[int]]) -> None:
    """The share coordinators have initialised `partitions`: they may be assigned."""
    by_id = step.metadata.topics.by_id
    names = {topic_id: by_id[topic_id].name for topic_id in partitions if topic_id in by_id}
    state = group.state_metadata.done(partitions, names)
    step.records.append(state_record(group.group_id, state))


def given_up(step: Step, group: ShareGroup, partitions: Mapping[Uuid, Iterable[int]]) -> None:
    """The share coordinators could not initialise `partitions`."""
    state = group.state_metadata
    if state.initializing and partitions:
        step.records.append(state_record(group.group_id, state.given_up(partitions)))
