"""ConsumerGroupHeartbeat: joining, staying, following the assignment, leaving.

A heartbeat does three things, as far as they are due: it writes what has changed about the
member (which may raise the group epoch), has the target assignment made for a new group epoch,
and takes the member one step towards its target.
Source: Kafka's GroupMetadataManager.consumerGroupHeartbeat.
"""

import logging
from dataclasses import replace

from barnabas.base.ids import Uuid
from barnabas.coordinator.group.classic.group import ClassicGroup
from barnabas.coordinator.group.classic.records import group_tombstone
from barnabas.coordinator.group.consumer.fencing import fence, leave_for_a_while
from barnabas.coordinator.group.consumer.group import ConsumerGroup
from barnabas.coordinator.group.consumer.member import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    STATIC_LEAVING_EPOCH,
    ConsumerMember,
)
from barnabas.coordinator.group.consumer.migration import upgrade
from barnabas.coordinator.group.consumer.reconcile import Goal, Owned, reconcile
from barnabas.coordinator.group.consumer.records import (
    current_record,
    member_record,
    member_tombstones,
    target_record,
)
from barnabas.coordinator.group.consumer.subscriptions import Draft, update_member
from barnabas.coordinator.group.consumer.target import update_target
from barnabas.coordinator.group.consumer.timing import (
    next_heartbeat_ms,
    reset_member_session,
    schedule_revocation,
)
from barnabas.coordinator.group.refusal import Refusal
from barnabas.coordinator.group.registry import GroupRegistry
from barnabas.coordinator.group.step import Client, Step
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

OWN_MEMBER_ID_FROM_VERSION = 1
"""Clients make up their member ids from this version on (KIP-1082)."""

telemetry = logging.getLogger(__name__)


def check_request(
    request: ConsumerGroupHeartbeatRequest, version: int, assignors: tuple[str, ...]
) -> Refusal | None:
    """What can be said against a request without looking at its group."""
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
    if needs_member_id and not request.member_id.strip():
        return "MemberId can't be empty."
    if not request.group_id.strip():
        return "GroupId can't be empty."
    if request.instance_id is not None and not request.instance_id.strip():
        return "InstanceId can't be empty."
    if request.rack_id is not None and not request.rack_id.strip():
        return "RackId can't be empty."
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
    refusal = check_size(step, group, request.member_id)
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
    reset_member_session(step, group.group_id, member)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=next_heartbeat_ms(
            step, group.group_id, is_settled=member.is_reconciled_to(draft.epoch)
        ),
    )
    if _is_full(request) or member.assigned != former.assigned:
        response.assignment = _assignment(member)
    return response


def check_size(step: Step, group: ConsumerGroup, member_id: str) -> Refusal | None:
    """Whether the group has room for a member that is not in it yet."""
    size_max = step.config.consumer_size_max
    if len(group.members) < size_max or member_id in group.members:
        return None
    return Refusal(
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        f"The consumer group has reached its maximum capacity of {size_max} members.",
    )


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
        schedule_revocation(step, group.group_id, reconciled)
    return reconciled


def replace_static(
    step: Step, group: ConsumerGroup, former: ConsumerMember, member_id: str
) -> ConsumerMember:
    """Give a static member's place, with all that it owns, to its next self."""
    member = replace(former, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    step.records += [
        *member_tombstones(group.group_id, former.member_id),
        member_record(group.group_id, member),
        target_record(group.group_id, member_id, group.target.get(former.member_id, {})),
        current_record(group.group_id, member),
    ]
    return member


def unknown_member(group: ConsumerGroup, member_id: str) -> Refusal:
    """Nobody in the group has that id."""
    return Refusal(
        ErrorCode.UNKNOWN_MEMBER_ID,
        f"Member {member_id} is not a member of group {group.group_id}.",
    )


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
    group = groups.get(request.group_id)
    if group is None:
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    if not isinstance(group, ConsumerGroup):
        return _not_a_consumer_group(request.group_id)
    instance_id, member_id = request.instance_id, request.member_id
    if instance_id is None:
        member = group.members.get(member_id) or unknown_member(group, member_id)
    else:
        member = check_static(group.static_member(instance_id), instance_id, member_id)
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
    group = groups.get(group_id)
    is_joining = request.member_epoch == JOINING_EPOCH
    if isinstance(group, ConsumerGroup):
        return group
    if group is None:
        if is_joining:
            return ConsumerGroup(group_id)
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
    if is_joining and isinstance(group, ClassicGroup):
        if group.is_empty:
            step.records.append(group_tombstone(group_id))
            return ConsumerGroup(group_id)
        return upgrade(step, group)
    return _not_a_consumer_group(group_id)


def _not_a_consumer_group(group_id: str) -> Refusal:
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def _find_or_subscribe(
    step: Step, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, member_id: str
) -> ConsumerMember | Refusal:
    """The member; one that joins may be new, or take the place of its former self."""
    is_joining = request.member_epoch == JOINING_EPOCH
    instance_id = request.instance_id
    member: ConsumerMember | Refusal | None
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            return ConsumerMember(member_id) if is_joining else unknown_member(group, member_id)
        return _check_epoch(member, request) or member
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
    if isinstance(member, Refusal):
        return member
    return _check_epoch(member, request) or member


def _check_epoch(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest) -> Refusal | None:
    """Whether the epoch that a member names is its own.

    The one before is taken too where the member has no partition that it should not have: the
    response that told it of the new one may have been lost.
    """
    epoch = request.member_epoch
    if epoch in (JOINING_EPOCH, member.member_epoch):
        return None
    if epoch > member.member_epoch:
        relation = "greater"
    else:
        owned = _owned(request)
        is_behind = epoch == member.previous_member_epoch and owned is not None
        if is_behind and all(
            topic_id in member.assigned and set(numbers) <= member.assigned[topic_id].keys()
            for topic_id, numbers in (owned or {}).items()
        ):
            return None
        relation = "smaller"
    return Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {relation} member epoch ({epoch}) than the one known "
        f"by the group coordinator ({member.member_epoch}). The member must abandon all its "
        "partitions and rejoin.",
    )


def _updated(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: Client
) -> ConsumerMember:
    """The member with what the request says anew; the same object where it says nothing."""
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
    """Whether the member has said everything, as it does when it joins and after errors."""
    return request.member_epoch == JOINING_EPOCH or (
        request.rebalance_timeout_ms != -1
        and request.topic_partitions is not None
        and (
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        )
    )


def _assignment(member: ConsumerMember) -> Assignment:
    return Assignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(
                topic_id=topic_id, partitions=list(numbers)
            )
            for topic_id, numbers in member.assigned.items()
        ]
    )
