"""ShareGroupHeartbeat: joining, staying, following the assignment, leaving.

A heartbeat does four things, as far as they are due: it writes what has changed about the member
(which may raise the group epoch), has the target assignment made for a new group epoch, gives the
member its target, and finds partitions whose state has to be initialised before anybody may have
them. Source: Kafka's GroupMetadataManager.shareGroupHeartbeat.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.group.modern.heartbeat import (
    blank_field,
    check_epoch,
    check_size,
    find_for_member,
    find_member,
    write_target,
)
from barnabas.node.coordinator.group.modern.member import JOINING_EPOCH, LEAVING_EPOCH
from barnabas.node.coordinator.group.modern.timing import (
    assigns_in_ms,
    heartbeat_interval_ms,
    reset_session,
)
from barnabas.node.coordinator.group.registry import GroupRegistry
from barnabas.node.coordinator.group.share.assignor import NAME, assign
from barnabas.node.coordinator.group.share.group import ShareGroup
from barnabas.node.coordinator.group.share.member import ShareMember, Target
from barnabas.node.coordinator.group.share.records import (
    current_record,
    epoch_record,
    member_record,
    state_record,
    target_record,
)
from barnabas.node.coordinator.group.share.state import RequestTimes, StateMetadata, TopicState
from barnabas.node.coordinator.group.step import Client, Refusal, Step
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_groups import (
    ShareGroupHeartbeatAssignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    ShareGroupHeartbeatTopicPartitions,
)

telemetry = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Initialization:
    """Share-partitions whose state the share coordinators have to initialise."""

    group_id: str
    state_epoch: int
    start_offsets: dict[Uuid, dict[int, int]]
    """By topic and partition; -1 where the group's configuration decides."""

    @property
    def partitions(self) -> dict[Uuid, tuple[int, ...]]:
        """Partitions by topic."""
        return {topic_id: tuple(offsets) for topic_id, offsets in self.start_offsets.items()}


@dataclass(frozen=True, slots=True)
class Heard:
    """The outcome of a heartbeat: its answer, and what is to be initialised beside it."""

    response: ShareGroupHeartbeatResponse
    initialization: Initialization | None = None
    assigns_in_ms: int | None = None
    """When an assignment that is due may be made; None if none is, or was made just now."""


@dataclass(slots=True)
class Draft:
    """A group with one member as it is about to be, and the epoch that comes of it."""

    group: ShareGroup
    former: ShareMember
    member: ShareMember
    epoch: int
    is_raised: bool = False
    names: frozenset[str] = field(default_factory=frozenset)
    assigns_in_ms: int | None = None

    def members(self) -> list[ShareMember]:
        """All members of the draft."""
        return list({**self.group.members, self.member.member_id: self.member}.values())


def check_request(request: ShareGroupHeartbeatRequest) -> Refusal | None:
    """The errors of a request that are visible without its group."""
    message = _invalid(request)
    return Refusal(ErrorCode.INVALID_REQUEST, message) if message else None


def _invalid(request: ShareGroupHeartbeatRequest) -> str:
    blank = blank_field(request.member_id, request.group_id, request.rack_id)
    if blank:
        return blank
    if request.member_epoch == JOINING_EPOCH and not request.subscribed_topic_names:
        return "SubscribedTopicNames must be set in first request."
    if request.member_epoch < LEAVING_EPOCH:
        return "MemberEpoch is invalid."
    return ""


def heartbeat(
    step: Step,
    groups: GroupRegistry,
    times: RequestTimes,
    request: ShareGroupHeartbeatRequest,
    client: Client,
) -> Heard | Refusal:
    """Handle a heartbeat that `check_request` lets pass."""
    if request.member_epoch == LEAVING_EPOCH:
        return _leave(step, groups, request)
    is_joining = request.member_epoch == JOINING_EPOCH
    group = (
        find_or_create(groups, request.group_id)
        if is_joining
        else find_for_member(groups, ShareGroup, request.group_id)
    )
    if isinstance(group, Refusal):
        return group
    if request.member_id not in group.members:
        refusal = check_size(step, group)
        if refusal is not None:
            return refusal
    former = find_member(group, request.member_id)
    if isinstance(former, Refusal):
        if not is_joining:
            return former
        former = ShareMember(request.member_id)
    # Partitions are shared, so it has none that it should not have.
    refusal = check_epoch(group, former, request.member_epoch, lambda: True)
    if refusal is not None:
        return refusal
    draft = Draft(group, former, _updated(former, request, client), group.epoch)
    _update_member(step, draft)
    member = _follow_target(step, draft)
    initialization = _initialize(step, times, draft)
    reset_session(step, group, member)
    response = ShareGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms(
            step.config, step.metadata, group.group_type, group.group_id
        ),
    )
    is_full = is_joining or request.subscribed_topic_names is not None
    # Not as in Kafka: who still has an earlier epoch may have missed the answer with this one.
    is_behind = request.member_epoch != member.member_epoch
    if is_full or is_behind or member.assigned != former.assigned:
        response.assignment = ShareGroupHeartbeatAssignment(
            topic_partitions=[
                ShareGroupHeartbeatTopicPartitions(topic_id=topic_id, partitions=list(numbers))
                for topic_id, numbers in member.assigned.items()
            ]
        )
    return Heard(response, initialization, draft.assigns_in_ms)


def find_or_create(groups: GroupRegistry, group_id: str) -> ShareGroup | Refusal:
    """The share group; a new one where there is no group."""
    if groups.get(group_id) is None:
        return ShareGroup(group_id)
    return groups.find(ShareGroup, group_id)


def fence(step: Step, group: ShareGroup, member: ShareMember) -> None:
    """Remove a member and assign its partitions again."""
    step.records += group.records.member_tombstones(group.group_id, member.member_id)
    left = _names_of(other for other in group.members.values() if other is not member)
    metadata_hash = step.metadata.subscription_hash(left)
    step.records.append(epoch_record(group.group_id, group.epoch + 1, metadata_hash))


def _leave(
    step: Step, groups: GroupRegistry, request: ShareGroupHeartbeatRequest
) -> Heard | Refusal:
    group = groups.find(ShareGroup, request.group_id)
    if isinstance(group, Refusal):
        return group
    member = find_member(group, request.member_id)
    if isinstance(member, Refusal):
        return member
    telemetry.info("group %s: %s leaves", group.group_id, member.member_id)
    fence(step, group, member)
    return Heard(
        ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    )


def _updated(
    member: ShareMember, request: ShareGroupHeartbeatRequest, client: Client
) -> ShareMember:
    """The member, updated from the request."""
    names = request.subscribed_topic_names
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        topic_names=member.topic_names if names is None else frozenset(names),
        client_id=client.client_id,
        client_host=client.host,
    )


def _update_member(step: Step, draft: Draft) -> None:
    """Write what has changed about the member, and raise the group epoch if that matters."""
    group, member = draft.group, draft.member
    if member != draft.former:
        step.records.append(member_record(group.group_id, member))
    is_raised = member.topic_names != draft.former.topic_names
    if group.assignment_epoch >= group.epoch:
        is_raised |= group.awaits_assignment
    draft.names = _names_of(draft.members())
    if group.has_checked(step.metadata.topics) and not is_raised:
        return
    metadata_hash = step.metadata.subscription_hash(draft.names)
    draft.is_raised = is_raised or metadata_hash != group.metadata_hash
    if draft.is_raised:
        draft.epoch += 1
        step.records.append(epoch_record(group.group_id, draft.epoch, metadata_hash))
        telemetry.info("group %s: epoch %d", group.group_id, draft.epoch)
    group.checked_topics = (step.metadata.topics, draft.epoch)


def _follow_target(step: Step, draft: Draft) -> ShareMember:
    """Make the target assignment if that is due, and give the member its part."""
    group, member = draft.group, draft.member
    epoch, target = _update_target(step, draft)
    if member.member_epoch == epoch and not draft.is_raised:
        return member
    subscribed = step.metadata.topic_ids(member.topic_names)
    reconciled = replace(
        member,
        assigned={key: numbers for key, numbers in target.items() if key in subscribed},
    )
    if member.member_epoch != epoch:
        reconciled = replace(
            reconciled, member_epoch=epoch, previous_member_epoch=member.member_epoch
        )
    if reconciled != member:
        step.records.append(current_record(group.group_id, reconciled))
    return reconciled


def _update_target(step: Step, draft: Draft) -> tuple[int, Target]:
    group, member = draft.group, draft.member
    if group.assignment_epoch >= draft.epoch:
        return group.assignment_epoch, group.target.get(member.member_id, {})
    draft.assigns_in_ms = assigns_in_ms(step, group) or None
    if draft.assigns_in_ms is not None:
        return group.assignment_epoch, group.target.get(member.member_id, {})
    metadata = step.metadata
    subscriptions = {
        other.member_id: metadata.topic_ids(other.topic_names) for other in draft.members()
    }
    existing = metadata.topic_ids(draft.names)
    assignable = {
        topic_id: topic.partitions
        for topic_id, topic in group.state_metadata.initialized.items()
        if topic_id in existing
    }
    telemetry.info("group %s: %s assigns for epoch %d", group.group_id, NAME, draft.epoch)
    targets = assign(subscriptions, group.target, assignable)
    write_target(step, group, draft.epoch, targets, target_record)
    return draft.epoch, targets[member.member_id]


def _initialize(step: Step, times: RequestTimes, draft: Draft) -> Initialization | None:
    """Have partitions initialised that members subscribe to and nobody has asked for.

    Requests that got no answer for long are sent again.
    """
    group, metadata = draft.group, step.metadata
    state, now_ms = group.state_metadata, step.now.wall_ms
    retry_ms = step.config.share_initialize_retry_interval_ms
    topics: dict[Uuid, TopicState] = {}
    for name in sorted(draft.names):
        topic = metadata.topics.by_name.get(name)
        if topic is None:
            continue
        known = set(state.initialized[topic.id].partitions if topic.id in state.initialized else ())
        is_fresh = now_ms - times.since_ms(group.group_id, topic.id) < retry_ms
        if is_fresh and topic.id in state.initializing:
            known.update(state.initializing[topic.id].partitions)
        missing = tuple(index for index in range(len(topic.partitions)) if index not in known)
        if missing:
            topics[topic.id] = TopicState(name, missing)
    if not topics:
        return None
    begin(step, times, group, state.begun(topics), topics)
    return Initialization(
        group.group_id,
        draft.epoch,
        {topic_id: dict.fromkeys(topic.partitions, -1) for topic_id, topic in topics.items()},
    )


def begin(
    step: Step, times: RequestTimes, group: ShareGroup, state: StateMetadata, topics: Iterable[Uuid]
) -> None:
    """Write that `topics` are being initialised, as of now."""
    step.records.append(state_record(group.group_id, state))
    times.asked(group.group_id, topics, state.initializing, step.now.wall_ms)


def _names_of(members: Iterable[ShareMember]) -> frozenset[str]:
    return frozenset().union(*(member.topic_names for member in members))
