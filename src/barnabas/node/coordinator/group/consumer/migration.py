"""From the classic protocol to the consumer protocol and back, while members go on reading.

A classic group of consumers is converted when the first member of the new protocol joins it;
its members stay, and are served by `classic_members.py` until they are replaced. When the last
member of the new protocol goes, what is left becomes a classic group again, and rebalances.
`group.consumer.migration.policy` says which way is open. Source: Kafka's GroupMetadataManager
(convertToConsumerGroup, convertToClassicGroup), ConsumerGroup.fromClassicGroup and
ClassicGroup.fromConsumerGroup.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass

from barnabas.node.coordinator.group.classic.group import ClassicGroup
from barnabas.node.coordinator.group.classic.member import CONSUMER_PROTOCOL_TYPE, Member
from barnabas.node.coordinator.group.classic.rebalance import prepare_rebalance, reset_session
from barnabas.node.coordinator.group.classic.records import group_record
from barnabas.node.coordinator.group.classic.responses import join_error
from barnabas.node.coordinator.group.classic.states import GroupState
from barnabas.node.coordinator.group.consumer.embedded import (
    assigned_by_id,
    decode_assignment,
    decode_subscription,
    embedded_version,
    encode_assignment,
)
from barnabas.node.coordinator.group.consumer.group import ConsumerGroup
from barnabas.node.coordinator.group.consumer.member import ConsumerMember
from barnabas.node.coordinator.group.modern.timing import reset_session as reset_member_session
from barnabas.node.coordinator.group.modern.timing import start_timers
from barnabas.node.coordinator.group.registry import GroupRegistry
from barnabas.node.coordinator.group.step import Refusal, Step
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages.group_records import ClassicMemberMetadata, ClassicProtocol
from barnabas.protocol.messages.groups import SyncGroupResponse

telemetry = logging.getLogger(__name__)


@dataclass(slots=True)
class Downgraded:
    """Continuation: the records by which a consumer group became a classic one."""

    former: ConsumerGroup
    group: ClassicGroup

    def stored(
        self, step: Step, groups: GroupRegistry, error: ErrorCode, is_appended: bool
    ) -> None:
        """Put the consumer group back where the log will never have the change."""
        group_id = self.group.group_id
        if error and not is_appended and groups.get(group_id) is self.group:
            groups.drop(group_id)
            groups.put(self.former)
            start_timers(step, self.former)


def upgrade(step: Step, classic: ClassicGroup) -> ConsumerGroup | Refusal:
    """The consumer group that takes the place of a classic one, with the records to say so.

    Members that wait in a rebalance get an error, join again and find the new group.
    """
    refusal = _check_upgrade(step, classic)
    if refusal is not None:
        return refusal
    group = ConsumerGroup(classic.group_id)
    group.epoch = group.assignment_epoch = classic.generation_id
    for member in classic.members.values():
        converted = _converted(step, group, classic, member)
        if isinstance(converted, Refusal):
            return converted
        group.put_member(converted)
    group.metadata_hash = step.metadata.subscription_hash(group.subscribed_names)
    for member in classic.members.values():
        again = ErrorCode.REBALANCE_IN_PROGRESS
        step.answer(member.join_waiter, join_error(again, member.member_id))
        classic.set_join_waiter(member, None)
        step.answer(member.sync_waiter, SyncGroupResponse(error_code=again))
        member.sync_waiter = None
    step.records += classic.tombstones()
    step.records += group.creation_records()
    for converted in group.members.values():
        reset_member_session(step, group, converted)
    telemetry.info("group %s changes to the consumer protocol", group.group_id)
    return group


def may_downgrade_without(
    step: Step, group: ConsumerGroup, leaving: Collection[ConsumerMember]
) -> bool:
    """Return whether only classic members are left without `leaving`, and the group may change."""
    left_count = len(group.members) - len(leaving)
    classic_left_count = group.classic_count - sum(member.is_classic for member in leaving)
    return (
        left_count > 0
        and classic_left_count == left_count
        and step.config.migration_policy.allows_downgrade
        and left_count <= step.config.size_max
    )


def may_downgrade_replacing(step: Step, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
    """Return whether a classic member in place of `replaced` leaves only classic ones."""
    return (
        not replaced.is_classic
        and group.classic_count == len(group.members) - 1
        and step.config.migration_policy.allows_downgrade
        and len(group.members) <= step.config.size_max
    )


def downgrade_without(
    step: Step, groups: GroupRegistry, group: ConsumerGroup, leaving: Collection[ConsumerMember]
) -> None:
    """Change to the classic protocol as members leave, and rebalance without them."""
    gone = {member.member_id for member in leaving}
    sources = {key: member for key, member in group.members.items() if key not in gone}
    step.records += group.tombstones()
    classic = _downgrade(step, groups, group, sources)
    prepare_rebalance(step, classic, "the last member of the consumer protocol has left")


def downgrade_replacing(
    step: Step,
    groups: GroupRegistry,
    group: ConsumerGroup,
    joining: ConsumerMember,
    *,
    must_rebalance: bool,
) -> None:
    """Change to the classic protocol as a classic member takes the place of a static one."""
    replaced = group.static_member(joining.instance_id)
    assert replaced is not None
    sources = {
        key: joining if key == replaced.member_id else member
        for key, member in group.members.items()
    }
    step.records += group.tombstones({replaced.member_id: joining.member_id})
    classic = _downgrade(step, groups, group, sources)
    if must_rebalance:
        prepare_rebalance(step, classic, "the group changed protocols with an old assignment")


def _check_upgrade(step: Step, classic: ClassicGroup) -> Refusal | None:
    reason = ""
    if not step.config.migration_policy.allows_upgrade:
        reason = "online upgrade is disabled"
    elif not classic.uses_consumer_protocol:
        reason = "the group does not use the consumer embedded protocol"
    elif len(classic.members) > step.config.consumer.size_max:
        reason = "the group size exceeds the consumer group maximum size"
    return _no_upgrade(classic, f"because {reason}.") if reason else None


def _no_upgrade(classic: ClassicGroup, why: str) -> Refusal:
    message = f"Cannot upgrade classic group {classic.group_id} to consumer group {why}"
    telemetry.info("%s", message)
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _converted(
    step: Step, group: ConsumerGroup, classic: ClassicGroup, member: Member
) -> ConsumerMember | Refusal:
    """A classic member as one of the new group; its target becomes what it has."""
    metadata = member.metadata(classic.protocol_name or "")
    if metadata is None:
        # It came after the generation began, or there has been none yet.
        metadata = member.protocols[0][1] if member.protocols else b""
    try:
        subscription = decode_subscription(metadata)
        target = {}
        if member.assignment:
            assignment = decode_assignment(member.assignment)
            if assignment.user_data:
                return _no_upgrade(
                    classic,
                    "because an unsupported custom assignor is in use. Please refer to the "
                    "documentation or switch to a default assignor before re-attempting the "
                    "upgrade.",
                )
            target = assigned_by_id(assignment, step.metadata)
    except DecodeError:
        return _no_upgrade(classic, "because the embedded consumer protocol is malformed.")
    epoch = classic.generation_id
    group.target[member.member_id] = target
    return ConsumerMember(
        member.member_id,
        member_epoch=epoch,
        previous_member_epoch=epoch,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=frozenset(subscription.topics),
        assigned={topic_id: dict.fromkeys(numbers, epoch) for topic_id, numbers in target.items()},
        classic=ClassicMemberMetadata(
            session_timeout_ms=member.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=name, metadata=data) for name, data in member.protocols
            ],
        ),
    )


def _downgrade(
    step: Step, groups: GroupRegistry, group: ConsumerGroup, sources: dict[str, ConsumerMember]
) -> ClassicGroup:
    """Put a classic group in place of the consumer group.

    `sources` are its members by the ids under which the consumer group has their targets. The
    group's own state is ahead of its records from here on, as that of classic groups is.
    """
    classic = ClassicGroup(
        group.group_id,
        state=GroupState.STABLE,
        state_timestamp_ms=step.now.wall_ms,
        generation_id=group.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
    )
    for member in sources.values():
        assert member.classic is not None
        classic.add(
            Member(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                session_timeout_ms=member.classic.session_timeout_ms,
                protocol_type=CONSUMER_PROTOCOL_TYPE,
                protocols=[
                    (protocol.name, protocol.metadata)
                    for protocol in member.classic.supported_protocols
                ],
            )
        )
    classic.protocol_name = classic.select_protocol()
    classic.refresh_subscribed_topics()
    for key, member in sources.items():
        # Each classic member could join because all of them support one protocol.
        entry = classic.members[member.member_id]
        version = _version_of(entry.metadata(classic.protocol_name) or b"")
        entry.assignment = encode_assignment(group.target.get(key, {}), step.metadata, version)
    assignments = {member.member_id: member.assignment for member in classic.members.values()}
    step.records.append(group_record(classic, assignments))
    step.continuation = Downgraded(group, classic)
    step.replays = False
    groups.drop(group.group_id)
    groups.put(classic)
    for entry in classic.members.values():
        reset_session(step, classic, entry)
    telemetry.info("group %s changes to the classic protocol", group.group_id)
    return classic


def _version_of(metadata: bytes) -> int:
    try:
        return embedded_version(metadata)
    except DecodeError:
        return 0
