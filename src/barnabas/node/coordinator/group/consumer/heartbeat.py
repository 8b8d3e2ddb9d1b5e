"""ConsumerGroupHeartbeat: joining, staying, following the assignment, leaving.

A heartbeat does three things, as far as they are due: it writes what has changed about the
member (which may raise the group epoch), has the target assignment made for a new group epoch,
and takes the member one step towards its target.
Source: Kafka's GroupMetadataManager.consumerGroupHeartbeat.
"""

import logging
from dataclasses import replace

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.consumer.fencing import fence, leave_for_a_while
from barnabas.node.coordinator.group.consumer.group import ConsumerGroup
from barnabas.node.coordinator.group.consumer.member import ConsumerMember
from barnabas.node.coordinator.group.consumer.migration import upgrade
from barnabas.node.coordinator.group.consumer.reconcile import Goal, Owned, reconcile
from barnabas.node.coordinator.group.consumer.records import (
    current_record,
    member_record,
    target_record,
)
from barnabas.node.coordinator.group.consumer.subscriptions import (
    Draft,
    update_member,
    update_target,
)
from barnabas.node.coordinator.group.modern.heartbeat import (
    blank_field,
    check_epoch,
    check_size,
    find_for_member,
    find_member,
    find_or_create,
)
from barnabas.node.coordinator.group.modern.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    STATIC_LEAVING_EPOCH,
)
from barnabas.node.coordinator.group.modern.timing import (
    heartbeat_interval_ms,
    reset_session,
    schedule_revocation,
)
from barnabas.node.coordinator.group.registry import GroupRegistry
from barnabas.node.coordinator.group.step import Client, Refusal, Step, TimerKey, TimerKind
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatAssignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)

REBALANCE_INTERVAL_MS = 1_000
"""Between heartbeats of a member that does not have yet what it shall have."""


def next_heartbeat_ms(step: Step, group: ConsumerGroup, *, is_settled: bool) -> int:
    """Return when a member shall be heard again.

    One for which an assignment is still to be made, or which waits for others to give partitions
    up, asks more often than those that only show that they live. (Kafka gives it the same
    interval, and so a joining group takes two of them.)
    """
    interval_ms = heartbeat_interval_ms(
        step.config, step.metadata, group.group_type, group.group_id
    )
    return interval_ms if is_settled else min(interval_ms, REBALANCE_INTERVAL_MS)


def schedule_once(step: Step, kind: TimerKind, group_id: str, member: ConsumerMember) -> None:
    """Start a timer of the member's rebalance time-out unless it runs."""
    key = TimerKey(kind, group_id, member.member_id)
    if key not in step.timers:
        step.schedule(key, member.rebalance_timeout_ms)


OWN_MEMBER_ID_FROM_VERSION = 1
"""Clients make up their member ids from this version on (KIP-1082)."""

telemetry = logging.getLogger(__name__)


def check_request(
    request: ConsumerGroupHeartbeatRequest, version: int, assignors: tuple[str, ...]
) -> Refusal | None:
    """The errors of a request that are visible without its group."""
    invalid = _invalid(request, version)
    if invalid:
        return Refusal(ErrorCode.INVALID_REQUEST, invalid)
    assignor = request.server_assignor
    if assignor is not None and assignor not in assignors:
        return Refusal(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )
    return None


def _invalid(request: ConsumerGroupHeartbeatRequest, version: int) -> str:
    epoch = request.member_epoch
    needs_member_id = (
        version >= OWN_MEMBER_ID_FROM_VERSION or epoch > JOINING_EPOCH or epoch == LEAVING_EPOCH
    )
    blank = blank_field(
        request.member_id if needs_member_id else None,
        request.group_id,
        request.rack_id,
        request.instance_id,
    )
    if blank:
        return blank
    if epoch == JOINING_EPOCH:
        if request.rebalance_timeout_ms == -1:
            return "RebalanceTimeoutMs must be provided in first request."
        if request.topic_partitions is None or request.topic_partitions:
            return "TopicPartitions must be empty when (re-)joining."
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            return (
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null "
                "when (re-)joining."
            )
    elif epoch == STATIC_LEAVING_EPOCH:
        if request.instance_id is None:
            return "InstanceId can't be null."
    elif epoch < STATIC_LEAVING_EPOCH:
        return "MemberEpoch is invalid."
    return ""


def heartbeat(
    step: Step,
    groups: GroupRegistry,
    request: ConsumerGroupHeartbeatRequest,
    client: Client,
    new_member_id: str,
) -> ConsumerGroupHeartbeatResponse | Refusal:
    """Handle a heartbeat that `check_request` lets pass."""
    if request.member_epoch < JOINING_EPOCH:
        return _leave(step, groups, request)
    group = _find_or_create(step, groups, request)
    if isinstance(group, Refusal):
        return group
    if request.member_id not in group.members:
        refusal = check_size(step, group)
        if refusal is not None:
            return refusal
    former = _find_or_subscribe(step, group, request, request.member_id or new_member_id)
    if isinstance(former, Refusal):
        return former
    draft = Draft(
        group,
        former,
        _updated(former, request, client),
        group.epoch,
        dict(group.resolved_regexes) if group.resolved_regexes else {},
    )
    refusal = update_member(step, draft)
    if refusal is not None:
        return refusal
    member = follow_target(step, draft, _owned(request))
    if isinstance(member, Refusal):
        return member
    reset_session(step, group, member)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=next_heartbeat_ms(
            step, group, is_settled=member.is_reconciled_to(draft.epoch)
        ),
    )
    if _is_full(request) or member.assigned != former.assigned:
        response.assignment = _assignment(member)
    return response


def follow_target(step: Step, draft: Draft, owned: Owned | None) -> ConsumerMember | Refusal:
    """Make the target assignment if that is due, and take the member a step towards it."""
    epoch, target = update_target(step, draft)
    group, member = draft.group, draft.member
    if not draft.has_subscription_changed and member.is_reconciled_to(epoch):
        return member
    ids = step.metadata.topic_ids(draft.names_of(member))
    goal = Goal(epoch, target, ids, owned, draft.has_subscription_changed)
    reconciled = reconcile(group, member, goal)
    if isinstance(reconciled, Refusal):
        return reconciled
    if reconciled != member:
        step.records.append(current_record(group.group_id, reconciled))
        schedule_revocation(step, group, reconciled)
    return reconciled


def replace_static(
    step: Step, group: ConsumerGroup, former: ConsumerMember, member_id: str
) -> ConsumerMember:
    """Give a static member's place, with all that it owns, to its next self."""
    member = replace(former, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    if member_id != former.member_id:
        step.records += group.records.member_tombstones(group.group_id, former.member_id)
    step.records += [
        member_record(group.group_id, member),
        target_record(group.group_id, member_id, group.target.get(former.member_id, {})),
        current_record(group.group_id, member),
    ]
    return member


def check_static(
    member: ConsumerMember | None, instance_id: str, member_id: str
) -> ConsumerMember | Refusal:
    """The static member, if it is known and goes by `member_id` now."""
    if member is None:
        return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        return Refusal(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} "
            f"was fenced by member {member.member_id}.",
        )
    return member


def _leave(
    step: Step, groups: GroupRegistry, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Refusal:
    group = groups.find(ConsumerGroup, request.group_id)
    if isinstance(group, Refusal):
        return group
    instance_id, member_id = request.instance_id, request.member_id
    member = (
        find_member(group, member_id)
        if instance_id is None
        else check_static(group.static_member(instance_id), instance_id, member_id)
    )
    if isinstance(member, Refusal):
        return member
    telemetry.info("group %s: %s leaves", group.group_id, member.member_id)
    if instance_id is not None and request.member_epoch == STATIC_LEAVING_EPOCH:
        leave_for_a_while(step, group, member)
    else:
        fence(step, groups, group, [member])
    return ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)


def _find_or_create(
    step: Step, groups: GroupRegistry, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroup | Refusal:
    """The group; one that joins may create it, or convert it from the classic protocol."""
    group_id = request.group_id
    if request.member_epoch != JOINING_EPOCH:
        return find_for_member(groups, ConsumerGroup, group_id)
    classic = groups.get_of(ClassicGroup, group_id)
    if classic is not None and not classic.is_empty:
        return upgrade(step, classic)
    return find_or_create(step, groups, ConsumerGroup, group_id)


def _find_or_subscribe(
    step: Step, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, member_id: str
) -> ConsumerMember | Refusal:
    """The member; one that joins may be new, or take the place of its former self."""
    is_joining = request.member_epoch == JOINING_EPOCH
    instance_id = request.instance_id
    if instance_id is None:
        if is_joining:
            return group.members.get(member_id) or ConsumerMember(member_id)
        member = find_member(group, member_id)
        return member if isinstance(member, Refusal) else _checked(group, member, request)
    static = group.static_member(instance_id)
    if is_joining:
        if static is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if not static.is_classic and not static.has_left:
            return Refusal(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group "
                f"because the instance id is owned by {static.member_id} member.",
            )
        return replace_static(step, group, static, member_id)
    member = check_static(static, instance_id, member_id)
    return member if isinstance(member, Refusal) else _checked(group, member, request)


def _checked(
    group: ConsumerGroup, member: ConsumerMember, request: ConsumerGroupHeartbeatRequest
) -> ConsumerMember | Refusal:
    """The member, if it names an epoch that it may name."""

    def has_no_more() -> bool:
        owned = _owned(request)
        return owned is not None and all(
            topic_id in member.assigned and set(numbers) <= member.assigned[topic_id].keys()
            for topic_id, numbers in owned.items()
        )

    return check_epoch(group, member, request.member_epoch, has_no_more) or member


def _updated(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: Client
) -> ConsumerMember:
    """The member, updated from the request; the same object where it says nothing."""
    said: dict[str, object] = {
        "instance_id": request.instance_id,
        "rack_id": request.rack_id,
        "assignor": request.server_assignor,
        "topic_regex": request.subscribed_topic_regex,
    }
    changes = {key: value for key, value in said.items() if value is not None}
    if request.rebalance_timeout_ms != -1:
        changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.subscribed_topic_names is not None:
        changes["topic_names"] = frozenset(request.subscribed_topic_names)
    changes["client_id"] = client.client_id
    changes["client_host"] = client.host
    changes["classic"] = None
    changes = {key: value for key, value in changes.items() if getattr(member, key) != value}
    return replace(member, **changes) if changes else member  # type: ignore[arg-type]  # by name


def _owned(request: ConsumerGroupHeartbeatRequest) -> dict[Uuid, list[int]] | None:
    if request.topic_partitions is None:
        return None
    return {topic.topic_id: topic.partitions for topic in request.topic_partitions}


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether the member has said everything, as it does when it joins and after errors."""
    return request.member_epoch == JOINING_EPOCH or (
        request.rebalance_timeout_ms != -1
        and request.topic_partitions is not None
        and (
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        )
    )


def _assignment(member: ConsumerMember) -> ConsumerGroupHeartbeatAssignment:
    return ConsumerGroupHeartbeatAssignment(
        topic_partitions=[
            ConsumerGroupHeartbeatTopicPartitions(topic_id=topic_id, partitions=list(numbers))
            for topic_id, numbers in member.assigned.items()
        ]
    )
