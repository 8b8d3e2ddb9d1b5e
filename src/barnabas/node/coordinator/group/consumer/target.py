"""The target assignment: who shall read what, for a group epoch.

Source: Kafka's TargetAssignmentBuilder and GroupMetadataManager.maybeUpdateTargetAssignment.
"""

import logging
from collections import Counter

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.group.consumer.assignors import ASSIGNORS, GroupSpec, MemberSpec
from barnabas.node.coordinator.group.consumer.member import ConsumerMember
from barnabas.node.coordinator.group.consumer.records import Target, target_record
from barnabas.node.coordinator.group.consumer.subscriptions import Draft
from barnabas.node.coordinator.group.modern.heartbeat import write_target
from barnabas.node.coordinator.group.modern.timing import assigns_in_ms
from barnabas.node.coordinator.group.step import Step

telemetry = logging.getLogger(__name__)


def update_target(step: Step, draft: Draft) -> tuple[int, Target]:
    """The member's target and its epoch, recomputed if the group has moved on."""
    group, member = draft.group, draft.member
    if draft.epoch <= group.assignment_epoch or assigns_in_ms(step, group):
        static = group.static_member(member.instance_id)
        known_as = (
            member.member_id if member.instance_id is None or static is None else static.member_id
        )
        return group.assignment_epoch, group.target.get(known_as, {})
    targets = _assign(step, draft)
    write_target(step, group, draft.epoch, targets, target_record)
    return draft.epoch, targets[member.member_id]


def _assign(step: Step, draft: Draft) -> dict[str, Target]:
    group, metadata = draft.group, step.metadata
    ids_of: dict[tuple[frozenset[str], str | None], frozenset[Uuid]] = {}
    members: dict[str, MemberSpec] = {}
    topic_ids: set[Uuid] = set()
    for member in draft.members():
        subscription = member.topic_names, member.topic_regex
        ids = ids_of.get(subscription)
        if ids is None:
            ids = ids_of[subscription] = metadata.topic_ids(draft.names_of(member))
            topic_ids |= ids
        target = group.target.get(member.member_id)
        if target is None:
            # A static member that takes the place of its former self takes over its partitions.
            former = group.static_member(member.instance_id)
            target = {} if former is None else group.target.get(former.member_id, {})
        members[member.member_id] = MemberSpec(ids, target, member.instance_id)
    counts = {topic_id: metadata.partition_count(topic_id) for topic_id in sorted(topic_ids)}
    name = preferred_assignor(draft.members(), step.config.consumer_assignors)
    telemetry.info("group %s: %s assigns for epoch %d", group.group_id, name, draft.epoch)
    return ASSIGNORS[name](GroupSpec(members, counts))


def preferred_assignor(members: list[ConsumerMember], assignors: tuple[str, ...]) -> str:
    """The assignor that most members ask for; the first of the configuration if none does."""
    votes = Counter(member.assignor for member in members if member.assignor in assignors)
    return max(assignors, key=lambda name: votes[name])
