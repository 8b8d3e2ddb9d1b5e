"""Removal of members of a consumer group, for good or for a while.

Source: Kafka's GroupMetadataManager (consumerGroupFenceMembers and what calls it).
"""

from dataclasses import replace

from barnabas.node.coordinator.group.consumer.group import ConsumerGroup, names_of
from barnabas.node.coordinator.group.consumer.member import ConsumerMember
from barnabas.node.coordinator.group.consumer.migration import (
    downgrade_without,
    may_downgrade_without,
)
from barnabas.node.coordinator.group.consumer.records import (
    current_record,
    epoch_record,
    regex_tombstone,
)
from barnabas.node.coordinator.group.modern.member import STATIC_LEAVING_EPOCH
from barnabas.node.coordinator.group.registry import GroupRegistry
from barnabas.node.coordinator.group.step import Step


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
        step.records += group.records.member_tombstones(group.group_id, member.member_id)
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
