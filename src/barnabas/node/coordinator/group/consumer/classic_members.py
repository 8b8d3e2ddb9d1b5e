"""Members of a consumer group that still speak the classic protocol.

They join, ask for their assignment and send heartbeats as usual, and never lead: the broker has
assigned. Each JoinGroup takes the member a step towards its target, so one that must give
partitions up joins twice: once to learn of it, once without them. Their generation is their
member epoch. Source: Kafka's GroupMetadataManager (classicGroupJoinToConsumerGroup, …Sync…, …).
"""

from dataclasses import replace

from barnabas.node.coordinator.group.classic.join import MEMBER_ID_REQUIRED_FROM_VERSION, Join
from barnabas.node.coordinator.group.classic.member import CONSUMER_PROTOCOL_TYPE
from barnabas.node.coordinator.group.classic.responses import join_error
from barnabas.node.coordinator.group.consumer.embedded import (
    decode_subscription,
    embedded_version,
    encode_assignment,
    owned_by_id,
)
from barnabas.node.coordinator.group.consumer.fencing import fence
from barnabas.node.coordinator.group.consumer.group import ConsumerGroup
from barnabas.node.coordinator.group.consumer.heartbeat import (
    check_static,
    follow_target,
    replace_static,
    schedule_once,
)
from barnabas.node.coordinator.group.consumer.member import ConsumerMember, MemberState
from barnabas.node.coordinator.group.consumer.migration import (
    downgrade_replacing,
    may_downgrade_replacing,
)
from barnabas.node.coordinator.group.consumer.reconcile import Goal, Owned, reconcile
from barnabas.node.coordinator.group.consumer.records import current_record
from barnabas.node.coordinator.group.consumer.subscriptions import Draft, update_member
from barnabas.node.coordinator.group.modern.heartbeat import check_size, find_member
from barnabas.node.coordinator.group.modern.timing import reset_session
from barnabas.node.coordinator.group.registry import GroupRegistry
from barnabas.node.coordinator.group.step import Refusal, Step, TimerKey, TimerKind
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages.group_records import ClassicMemberMetadata, ClassicProtocol
from barnabas.protocol.messages.groups import (
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)


def join(
    step: Step, groups: GroupRegistry, group: ConsumerGroup, request: Join
) -> JoinGroupResponse | ErrorCode:
    """JoinGroup into a consumer group that has members; the answer comes at once."""
    message = request.request
    refusal = _check_join(step, group, request)
    if refusal:
        return refusal
    if (
        not message.member_id
        and message.group_instance_id is None
        and request.client.api_version >= MEMBER_ID_REQUIRED_FROM_VERSION
    ):
        return join_error(ErrorCode.MEMBER_ID_REQUIRED, request.id_suffix)
    try:
        subscription = decode_subscription(message.protocols[0].metadata)
    except DecodeError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    replaced = group.static_member(message.group_instance_id)
    former = _find_or_subscribe(step, group, request)
    if isinstance(former, Refusal):
        return former.error
    draft = Draft(
        group,
        former,
        _updated(former, request, subscription),
        group.epoch,
        dict(group.resolved_regexes),
    )
    failed = update_member(step, draft)
    if failed is not None:
        return failed.error
    owned = owned_by_id(subscription, step.metadata)
    if replaced is not None and may_downgrade_replacing(step, group, replaced):
        member = _join_and_downgrade(step, groups, draft, owned, replaced)
    else:
        followed = follow_target(step, draft, owned)
        if isinstance(followed, Refusal):
            return followed.error
        member = followed
        step.timers.cancel(TimerKey(TimerKind.REJOIN, group.group_id, member.member_id))
        reset_session(step, group, member)
        key = TimerKey(TimerKind.RESYNC, group.group_id, member.member_id)
        step.schedule(key, request.rebalance_timeout_ms)
    return JoinGroupResponse(
        generation_id=member.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=_protocol_name(member),
        member_id=member.member_id,
    )


def sync(step: Step, group: ConsumerGroup, request: SyncGroupRequest) -> SyncGroupResponse:
    """SyncGroup: what the member has been assigned."""
    member = _find(group, request.member_id, request.group_instance_id)
    error = _check_sync(step, group, member, request)
    if error:
        return SyncGroupResponse(error_code=error)
    assert isinstance(member, ConsumerMember)
    assert member.classic is not None
    step.timers.cancel(TimerKey(TimerKind.RESYNC, group.group_id, member.member_id))
    reset_session(step, group, member)
    target = {topic_id: tuple(numbers) for topic_id, numbers in member.assigned.items()}
    version = embedded_version(member.classic.supported_protocols[0].metadata)
    return SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=encode_assignment(target, step.metadata, version),
    )


def heartbeat(step: Step, group: ConsumerGroup, request: HeartbeatRequest) -> HeartbeatResponse:
    """Heartbeat; the answer tells the member to join where there is something to follow."""
    member = _find(group, request.member_id, request.group_instance_id)
    if isinstance(member, Refusal):
        return HeartbeatResponse(error_code=member.error)
    if not member.is_classic:
        return HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    if member.member_epoch != request.generation_id:
        return HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION)
    reset_session(step, group, member)
    is_released = member.state is MemberState.UNRELEASED_PARTITIONS and not group.awaits_others(
        member
    )
    if (
        member.member_epoch < group.assignment_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or is_released
    ):
        schedule_once(step, TimerKind.REJOIN, group.group_id, member)
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return HeartbeatResponse()


def leave(
    step: Step, groups: GroupRegistry, group: ConsumerGroup, leaving: list[MemberIdentity]
) -> LeaveGroupResponse:
    """LeaveGroup; administrators take static members out by it too, of either protocol."""
    response = LeaveGroupResponse()
    members: dict[str, ConsumerMember] = {}
    for identity in leaving:
        instance_id = identity.group_instance_id
        member: ConsumerMember | Refusal | None
        if instance_id is None:
            member = group.members.get(identity.member_id)
        else:
            member = group.static_member(instance_id)
            if identity.member_id:
                member = check_static(member, instance_id, identity.member_id)
        error = ErrorCode.NONE
        if member is None:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        elif isinstance(member, Refusal):
            error = member.error
        else:
            members[member.member_id] = member
        response.members.append(
            MemberResponse(
                member_id=identity.member_id, group_instance_id=instance_id, error_code=error
            )
        )
    fence(step, groups, group, list(members.values()))
    return response


def _check_join(step: Step, group: ConsumerGroup, request: Join) -> ErrorCode:
    message = request.request
    if not step.config.migration_policy.allows_classic_members:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if message.member_id not in group.members and check_size(step, group) is not None:
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if message.protocol_type != CONSUMER_PROTOCOL_TYPE or not message.protocols:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    supported = [
        {protocol.name for protocol in member.classic.supported_protocols}
        for member in group.members.values()
        if member.classic is not None
    ]
    if any(all(name in names for names in supported) for name, _ in request.protocols):
        return ErrorCode.NONE
    return ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def _find_or_subscribe(step: Step, group: ConsumerGroup, request: Join) -> ConsumerMember | Refusal:
    message = request.request
    member_id = message.member_id or request.id_suffix
    instance_id = message.group_instance_id
    if instance_id is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    static = group.static_member(instance_id)
    if message.member_id:
        return check_static(static, instance_id, member_id)
    return (
        ConsumerMember(member_id)
        if static is None
        else replace_static(step, group, static, member_id)
    )


def _updated(
    member: ConsumerMember, request: Join, subscription: ConsumerProtocolSubscription
) -> ConsumerMember:
    message = request.request
    return replace(
        member,
        instance_id=message.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topic_names=frozenset(subscription.topics),
        topic_regex="",
        client_id=request.client.client_id,
        client_host=request.client.host,
        classic=ClassicMemberMetadata(
            session_timeout_ms=message.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=name, metadata=data) for name, data in request.protocols
            ],
        ),
    )


def _join_and_downgrade(
    step: Step,
    groups: GroupRegistry,
    draft: Draft,
    owned: Owned,
    replaced: ConsumerMember,
) -> ConsumerMember:
    """The last member of the consumer protocol is replaced: the group changes as a whole."""
    group, member = draft.group, draft.member
    must_rebalance = group.assignment_epoch < draft.epoch
    if not must_rebalance:
        target = group.target.get(replaced.member_id, {})
        ids = step.metadata.topic_ids(draft.names_of(member))
        goal = Goal(group.assignment_epoch, target, ids, owned, draft.has_subscription_changed)
        reconciled = reconcile(group, member, goal)
        if isinstance(reconciled, ConsumerMember) and reconciled != member:
            member = reconciled
            step.records.append(current_record(group.group_id, member))
    downgrade_replacing(step, groups, group, member, must_rebalance=must_rebalance)
    return member


def _find(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> ConsumerMember | Refusal:
    if instance_id is None:
        return find_member(group, member_id)
    return check_static(group.static_member(instance_id), instance_id, member_id)


def _check_sync(
    step: Step,
    group: ConsumerGroup,
    member: ConsumerMember | Refusal,
    request: SyncGroupRequest,
) -> ErrorCode:
    if isinstance(member, Refusal):
        return member.error
    if not member.is_classic:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member.member_epoch != request.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or request.protocol_name not in (
        None,
        _protocol_name(member),
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if (
        group.assignment_epoch > member.member_epoch
        and member.state is not MemberState.UNREVOKED_PARTITIONS
    ):
        schedule_once(step, TimerKind.REJOIN, group.group_id, member)
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _protocol_name(member: ConsumerMember) -> str:
    assert member.classic is not None
    return member.classic.supported_protocols[0].name
