"""How members leave: by themselves, by silence, or because they did not give partitions up.

Source: Kafka's GroupMetadataManager (consumerGroupFenceMembers and what calls it).
"""

import logging
from dataclasses import replace

from barnabas.coordinator.group.consumer.group import ConsumerGroup, names_of
from barnabas.coordinator.group.consumer.member import (
    STATIC_LEAVING_EPOCH,
    ConsumerMember,
    MemberState,
)
from barnabas.coordinator.group.consumer.migration import downgrade_without, may_downgrade_without
from barnabas.coordinator.group.consumer.records import (
    current_record,
    epoch_record,
    member_tombstones,
    regex_tombstone,
)
from barnabas.coordinator.group.registry import GroupRegistry
from barnabas.coordinator.group.step import Step, TimerKey, TimerKind

telemetry = logging.getLogger(__name__)


def fence(
    step: Step, groups: GroupRegistry, group: ConsumerGroup, members: list[ConsumerMember]
) -> None:
    """Take members out; the group becomes a classic one where only classic members are left."""
    if not members:
        return
    if may_downgrade_without(step, group, members):
        downgrade_without(step, groups, group, members)
        return
    gone = {member.member_id for member in members}
    for member in members:
        step.records += member_tombstones(group.group_id, member.member_id)
    left = [member for key, member in group.members.items() if key not in gone]
    regexes = {member.topic_regex for member in left if member.topic_regex}
    resolved = dict(group.resolved_regexes)
    for regex in group.resolved_regexes:
        if regex not in regexes:
            step.records.append(regex_tombstone(group.group_id, regex))
            del resolved[regex]
    metadata_hash = step.metadata.subscription_hash(names_of(left, resolved))
    step.records.append(epoch_record(group.group_id, group.epoch + 1, metadata_hash))


def leave_for_a_while(step: Step, group: ConsumerGroup, member: ConsumerMember) -> None:
    """A static member leaves its place free, with all that it owns, for its next self."""
    zeroed = {topic: dict.fromkeys(numbers, 0) for topic, numbers in member.assigned.items()}
    left = replace(
        member, member_epoch=STATIC_LEAVING_EPOCH, assigned=zeroed, pending_revocation={}
    )
    step.records.append(current_record(group.group_id, left))


def timer_is_up(step: Step, groups: GroupRegistry, key: TimerKey) -> None:
    """A timer of a member is due."""
    group = groups.get(key.group_id)
    if not isinstance(group, ConsumerGroup):
        return
    member = group.members.get(key.member_id)
    if member is None:
        return
    if key.kind is TimerKind.REVOCATION and (
        member.state is not MemberState.UNREVOKED_PARTITIONS or member.has_left
    ):
        return
    telemetry.info("group %s: %s is fenced: %s", key.group_id, key.member_id, _REASONS[key.kind])
    fence(step, groups, group, [member])


_REASONS = {
    TimerKind.MEMBER_SESSION: "it was silent for its session time-out",
    TimerKind.REVOCATION: "it did not give its partitions up in time",
    TimerKind.REJOIN: "it did not join again in time",
    TimerKind.RESYNC: "it did not ask for its assignment in time",
}
