"""One step of a member towards its target: revoke first, then move to the new epoch.

    STABLE ── it has what it must give up ──────────► UNREVOKED_PARTITIONS (its epoch stays)
      │                                                    │ it no longer reports them
      ▼                                                    ▼
    to the target's epoch: STABLE, or UNRELEASED_PARTITIONS while others still have some of its
    new partitions; those come one by one as they are released.

A member is at no time given a partition that another still has, which is what keeps two members
from reading the same records. Source: Kafka's CurrentAssignmentBuilder.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.group.consumer.group import ConsumerGroup
from barnabas.node.coordinator.group.consumer.member import ConsumerMember, MemberState, Partitions
from barnabas.node.coordinator.group.consumer.records import Target
from barnabas.node.coordinator.group.step import Refusal
from barnabas.protocol.errors import ErrorCode

Owned = Mapping[Uuid, Collection[int]]
"""The assignment that a member reports."""


@dataclass(slots=True)
class Goal:
    """A member's target, and the partitions that it reports as its own (None: it does not report
    them).
    """

    epoch: int
    target: Target
    subscribed_ids: frozenset[Uuid]
    owned: Owned | None
    has_subscription_changed: bool = False


def reconcile(group: ConsumerGroup, member: ConsumerMember, goal: Goal) -> ConsumerMember | Refusal:
    """The member after the step; the same object where there is nothing to do."""
    if not goal.has_subscription_changed and member.is_reconciled_to(goal.epoch):
        return member
    match member.state:
        case MemberState.STABLE:
            if member.member_epoch != goal.epoch:
                return _advance(group, member, goal, member.member_epoch)
        case MemberState.UNREVOKED_PARTITIONS:
            if not _owns_any(goal.owned, member.pending_revocation):
                return _advance(group, member, goal, member.member_epoch)
        case MemberState.UNRELEASED_PARTITIONS:
            return _advance(group, member, goal, member.member_epoch)
        case MemberState.UNKNOWN:
            if goal.owned is None or any(goal.owned.values()):
                return Refusal(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The consumer group member is in a unknown state. "
                    "The member must abandon all its partitions and rejoin.",
                )
            return _advance(group, member, goal, goal.epoch)
    return _drop_unsubscribed(member, goal) if goal.has_subscription_changed else member


def _advance(
    group: ConsumerGroup, member: ConsumerMember, goal: Goal, epoch: int
) -> ConsumerMember:
    kept: dict[Uuid, dict[int, int]] = {}
    to_revoke: dict[Uuid, dict[int, int]] = {}
    to_assign: dict[Uuid, list[int]] = {}
    is_waiting = False
    for topic_id in dict.fromkeys((*goal.target, *member.assigned)):
        has = member.assigned.get(topic_id, {})
        wanted = goal.target.get(topic_id, ()) if topic_id in goal.subscribed_ids else ()
        wanted_set = frozenset(wanted)
        if stays := {number: since for number, since in has.items() if number in wanted_set}:
            kept[topic_id] = stays
        if goes := {number: since for number, since in has.items() if number not in wanted_set}:
            to_revoke[topic_id] = goes
        own_pending = member.pending_revocation.get(topic_id, {})
        for number in wanted:
            if number in has:
                continue
            if group.owner_epoch(topic_id, number) is not None and number not in own_pending:
                is_waiting = True
            else:
                to_assign.setdefault(topic_id, []).append(number)
    if to_revoke and _owns_any(goal.owned, to_revoke):
        return replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            member_epoch=epoch,
            previous_member_epoch=member.member_epoch,
            assigned=kept,
            pending_revocation=to_revoke,
        )
    for topic_id, numbers in to_assign.items():
        kept[topic_id] = dict(
            sorted({**kept.get(topic_id, {}), **dict.fromkeys(numbers, goal.epoch)}.items())
        )
    return replace(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE,
        member_epoch=goal.epoch,
        previous_member_epoch=member.member_epoch,
        assigned=kept,
        pending_revocation={},
    )


def _drop_unsubscribed(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    """Take away at once what a member no longer subscribes to, within its epoch.

    The next assignment may be some time off (`group.consumer.assignment.interval.ms`).
    """
    gone = {
        topic_id: numbers
        for topic_id, numbers in member.assigned.items()
        if topic_id not in goal.subscribed_ids
    }
    if not gone:
        return member
    kept = {key: numbers for key, numbers in member.assigned.items() if key not in gone}
    pending = {key: dict(numbers) for key, numbers in member.pending_revocation.items()}
    for topic_id, numbers in gone.items():
        pending.setdefault(topic_id, {}).update(numbers)
    if _owns_any(goal.owned, pending):
        return replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            previous_member_epoch=member.member_epoch,
            assigned=kept,
            pending_revocation=pending,
        )
    return replace(member, previous_member_epoch=member.member_epoch, assigned=kept)


def _owns_any(owned: Owned | None, partitions: Partitions) -> bool:
    """Return whether the member may still have one of `partitions`; if it does not say, it may."""
    if owned is None:
        return True
    return any(
        number in partitions.get(topic_id, {})
        for topic_id, numbers in owned.items()
        for number in numbers
    )
