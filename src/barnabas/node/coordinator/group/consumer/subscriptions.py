"""Subscriptions of a consumer group, with a member's pending change, and the target they lead to.

Handlers change nothing, so a `Draft` holds a group together with one member as it is about to
be, regular expressions as they are about to be resolved, and the group epoch that comes of it.
Source: Kafka's GroupMetadataManager (maybeUpdateRegularExpressions, updateSubscriptionMetadata,
maybeUpdateTargetAssignment) and TargetAssignmentBuilder.
Not as there: topics are looked up at once, by an engine that takes linear time, and not by an
executor that leaves a new member without its topics for a heartbeat.
"""

import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.group.consumer.assignors import ASSIGNORS, GroupSpec, MemberSpec
from barnabas.node.coordinator.group.consumer.group import ConsumerGroup, names_of
from barnabas.node.coordinator.group.consumer.member import ConsumerMember
from barnabas.node.coordinator.group.consumer.records import (
    ResolvedRegex,
    Target,
    epoch_record,
    member_record,
    partition_metadata_tombstone,
    regex_record,
    regex_tombstone,
    target_record,
)
from barnabas.node.coordinator.group.consumer.regexes import compile_regex, matches
from barnabas.node.coordinator.group.modern.heartbeat import write_target
from barnabas.node.coordinator.group.modern.timing import assigns_in_ms
from barnabas.node.coordinator.group.step import Refusal, Step

REGEX_REFRESH_MS_MIN = 10_000
"""Between two look-ups of a group's regular expressions, however often topics are created."""

telemetry = logging.getLogger(__name__)


@dataclass(slots=True)
class Draft:
    """A group with one member as it is about to be."""

    group: ConsumerGroup
    former: ConsumerMember
    """The member before the request; one without history where it is new."""
    member: ConsumerMember
    epoch: int
    resolved: dict[str, ResolvedRegex]
    has_subscription_changed: bool = False
    _members: list[ConsumerMember] = field(default_factory=list)

    def members(self) -> list[ConsumerMember]:
        """All members of the draft: the changed one, and nobody whom it replaces."""
        if not self._members:
            group, member = self.group, self.member
            replaced = group.static_member(member.instance_id)
            gone = {member.member_id}
            if replaced is not None:
                gone.add(replaced.member_id)
            self._members = [other for key, other in group.members.items() if key not in gone]
            place = len(self._members)
            for index, key in enumerate(group.members):
                if key in gone:
                    place = index
                    break
            # In its place, since an assignor that goes by order would otherwise move partitions.
            self._members.insert(place, member)
        return self._members

    def regexes(self) -> list[str]:
        """The regular expressions by which members of the draft subscribe."""
        regexes = self.group.regex_counts
        old, new = self.former.topic_regex or "", self.member.topic_regex or ""
        if old != new:
            regexes = regexes.copy()
            if old in regexes:
                regexes[old] -= 1
            if new:
                regexes[new] += 1
        return [regex for regex, count in regexes.items() if count > 0]

    def names_of(self, member: ConsumerMember) -> frozenset[str]:
        """The topics that a member subscribes to, whether they exist or not."""
        resolved = self.resolved.get(member.topic_regex or "")
        return member.topic_names if resolved is None else member.topic_names | resolved.topics


def update_member(step: Step, draft: Draft) -> Refusal | None:
    """Write what has changed about the member, and raise the group epoch if that matters."""
    group, member, former = draft.group, draft.member, draft.former
    needs_epoch = False
    if member != former:
        step.records.append(member_record(group.group_id, member))
        needs_epoch = member.topic_names != former.topic_names
    draft.has_subscription_changed = needs_epoch
    if (member.topic_regex or "") != (former.topic_regex or ""):
        refusal = _change_regex(step, draft)
        if refusal is not None:
            return refusal
        draft.has_subscription_changed = needs_epoch = True
    needs_epoch |= _refresh_regexes(step, draft)
    if needs_epoch or not group.has_checked(step.metadata.topics):
        _update_epoch(step, draft, needs_epoch)
    return None


def _change_regex(step: Step, draft: Draft) -> Refusal | None:
    group = draft.group
    old, new = draft.former.topic_regex, draft.member.topic_regex
    if old and group.regex_counts[old] == 1:
        step.records.append(regex_tombstone(group.group_id, old))
        draft.resolved.pop(old, None)
    if not new or new in draft.resolved:
        return None
    pattern = compile_regex(new)
    if isinstance(pattern, Refusal):
        return pattern
    draft.resolved[new] = _resolve(step, pattern)
    step.records.append(regex_record(group.group_id, new, draft.resolved[new]))
    return None


def _refresh_regexes(step: Step, draft: Draft) -> bool:
    """Look topics up again where some were created or much time has passed.

    Returns whether a regular expression fits other topics than before.
    """
    regexes = draft.regexes()
    if not regexes:
        return False
    resolved = [draft.resolved.get(regex) for regex in regexes]
    refreshed_ms = min((known.timestamp_ms for known in resolved if known), default=0)
    if step.now.wall_ms <= refreshed_ms + REGEX_REFRESH_MS_MIN:
        return False
    is_complete = all(known is not None for known in resolved)
    version = min((known.version for known in resolved if known), default=-1)
    is_old = step.now.wall_ms > refreshed_ms + step.config.consumer_regex_refresh_interval_ms
    if is_complete and version >= step.metadata.new_topics_version and not is_old:
        return False
    has_changed = False
    for regex, known in zip(regexes, resolved, strict=True):
        if known is not None and known.timestamp_ms == step.now.wall_ms:
            continue
        pattern = compile_regex(regex)
        if isinstance(pattern, Refusal):
            telemetry.error("group %s: %s", draft.group.group_id, pattern.message)
            continue
        fresh = draft.resolved[regex] = _resolve(step, pattern)
        step.records.append(regex_record(draft.group.group_id, regex, fresh))
        has_changed |= known is None or known.topics != fresh.topics
    return has_changed


def _resolve(step: Step, pattern: Any) -> ResolvedRegex:
    names = [name for name in step.metadata.topics.by_name if matches(pattern, name)]
    return ResolvedRegex(
        # As in Kafka, the rights of the member whose heartbeat has topics looked up count for all
        # members with that expression.
        frozenset(names if step.keep_visible is None else step.keep_visible(names)),
        step.metadata.version,
        step.now.wall_ms,
    )


def _update_epoch(step: Step, draft: Draft, needs_epoch: bool) -> None:
    group = draft.group
    metadata_hash = step.metadata.subscription_hash(names_of(draft.members(), draft.resolved))
    if needs_epoch or metadata_hash != group.metadata_hash:
        draft.epoch += 1
        step.records.append(epoch_record(group.group_id, draft.epoch, metadata_hash))
        telemetry.info("group %s: epoch %d", group.group_id, draft.epoch)
    if group.has_partition_metadata_record:
        step.records.append(partition_metadata_tombstone(group.group_id))
    group.checked_topics = (step.metadata.topics, draft.epoch)


# The target assignment: who shall read what, for a group epoch.


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
