"""Assignors of consumer groups: `range` and `uniform`.

`range` gives each member consecutive partitions of each topic. Topics with equal numbers of
partitions are co-partitioned: members with equal subscriptions get the same partition numbers.
Static members come first, in the order of their instance ids, so that their ranges stay when they
return under another member id.

`uniform` spreads partitions evenly over members, and leaves them in place where it can. If all
members subscribe to the same topics, each gets the same number of partitions or one more. Members
keep what they have up to this quota; the extra partitions stay with members that already have
more. Otherwise each partition without an owner goes to the least loaded subscriber, topics with
many partitions per subscriber first. Then single partitions move from the most to the least loaded
of a topic's subscribers while that evens them out.

Source: Kafka's RangeAssignor, and UniformAssignor with its two builders.
"""

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.group.consumer.records import Target

Assignment = dict[str, Target]
"""Partitions by member and topic; each member of the group is there."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member: the topics that it subscribes to, and what it was assigned last."""

    topic_ids: frozenset[Uuid]
    target: Target
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """Members by id, and the number of partitions of each topic that one of them subscribes to."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[Uuid, int]

    @property
    def is_homogeneous(self) -> bool:
        """True if all members subscribe to the same topics."""
        subscriptions = {member.topic_ids for member in self.members.values()}
        return len(subscriptions) <= 1


def assign_ranges(spec: GroupSpec) -> Assignment:
    """Assign every partition of every topic."""
    order = sorted(
        spec.members,
        key=lambda member_id: (
            (instance_id := spec.members[member_id].instance_id) is None,
            instance_id or member_id,
        ),
    )
    subscribers: dict[Uuid, list[str]] = {topic_id: [] for topic_id in spec.partition_counts}
    for member_id in order:
        for topic_id in spec.members[member_id].topic_ids:
            subscribers[topic_id].append(member_id)
    targets: dict[str, dict[Uuid, tuple[int, ...]]] = {member_id: {} for member_id in spec.members}
    for topic_id, member_ids in subscribers.items():
        if not member_ids:
            continue
        least, extra = divmod(spec.partition_counts[topic_id], len(member_ids))
        start = 0
        for position, member_id in enumerate(member_ids):
            end = start + least + (position < extra)
            if start < end:
                targets[member_id][topic_id] = tuple(range(start, end))
            start = end
    return dict(targets)


BALANCE_ROUNDS_MAX = 16
"""Topics with shared subscribers unbalance each other; Kafka stops there too."""

_Draft = dict[str, dict[Uuid, set[int]]]


def assign_uniformly(spec: GroupSpec) -> Assignment:
    """Assign every partition of every topic that has a subscriber."""
    if not spec.members:
        return {}
    draft = _assign_alike(spec) if spec.is_homogeneous else _assign_unlike(spec)
    return {
        member_id: _kept_or_new(spec.members[member_id].target, topics)
        for member_id, topics in draft.items()
    }


def _assign_alike(spec: GroupSpec) -> _Draft:
    counts = spec.partition_counts
    least, extra_left = divmod(sum(counts.values()), len(spec.members))
    draft = _Draft()
    free = _unassigned(spec)
    rooms: list[tuple[str, int]] = []
    for index, (member_id, member) in enumerate(spec.members.items()):
        quota = least + (extra_left > 0)
        has_extra = extra_left > 0
        kept: dict[Uuid, set[int]] = {}
        for topic_id, numbers in member.target.items():
            if topic_id not in counts:
                continue
            existing = [number for number in numbers if number < counts[topic_id]]
            stays = existing[:quota]
            quota -= len(stays)
            if stays:
                kept[topic_id] = set(stays)
            free += ((topic_id, number) for number in existing[len(stays) :])
        # Who does not fill its quota leaves the extra partition to a later member, which may
        # have it already, as long as enough of them are left.
        if quota > 0 and has_extra and len(spec.members) - index > extra_left:
            quota -= 1
            has_extra = False
        extra_left -= has_extra
        if quota > 0:
            rooms.append((member_id, quota))
        draft[member_id] = kept
    left = iter(free)
    for member_id, room in rooms:
        # The range comes first: zip must not take a partition that it cannot pair.
        for _, (topic_id, number) in zip(range(room), left, strict=False):
            draft[member_id].setdefault(topic_id, set()).add(number)
    return draft


def _unassigned(spec: GroupSpec) -> list[tuple[Uuid, int]]:
    """Partitions that no member has in its target, by topic and number."""
    taken: dict[Uuid, set[int]] = {topic_id: set() for topic_id in spec.partition_counts}
    for member in spec.members.values():
        for topic_id, numbers in member.target.items():
            if topic_id in taken:
                taken[topic_id].update(numbers)
    return [
        (topic_id, number)
        for topic_id, count in spec.partition_counts.items()
        for number in range(count)
        if number not in taken[topic_id]
    ]


def _assign_unlike(spec: GroupSpec) -> _Draft:
    counts = spec.partition_counts
    order = {member_id: index for index, member_id in enumerate(spec.members)}
    subscribers: dict[Uuid, list[str]] = {}
    owners: dict[Uuid, dict[int, str]] = {}
    loads = dict.fromkeys(spec.members, 0)
    draft: _Draft = {member_id: {} for member_id in spec.members}
    for member_id, member in spec.members.items():
        for topic_id in sorted(member.topic_ids):
            subscribers.setdefault(topic_id, []).append(member_id)
        for topic_id, numbers in member.target.items():
            if topic_id in member.topic_ids:
                for number in numbers:
                    if number < counts[topic_id]:
                        owners.setdefault(topic_id, {})[number] = member_id
                        draft[member_id].setdefault(topic_id, set()).add(number)
                        loads[member_id] += 1

    def urgency(topic_id: Uuid) -> tuple[float, int, Uuid]:
        count = len(subscribers[topic_id])
        return -counts[topic_id] / count, count, topic_id

    topics = sorted(subscribers, key=urgency)
    for topic_id in topics:
        owner_of = owners.setdefault(topic_id, {})
        missing = [number for number in range(counts[topic_id]) if number not in owner_of]
        if not missing:
            continue
        heap = [
            (loads[member_id], order[member_id], member_id) for member_id in subscribers[topic_id]
        ]
        heapq.heapify(heap)
        for number in missing:
            load, index, member_id = heap[0]
            heapq.heapreplace(heap, (load + 1, index, member_id))
            loads[member_id] += 1
            owner_of[number] = member_id
            draft[member_id].setdefault(topic_id, set()).add(number)
    shared = [topic_id for topic_id in topics if len(subscribers[topic_id]) > 1]
    for _ in range(BALANCE_ROUNDS_MAX):
        if not sum(_balance(topic_id, subscribers, loads, order, draft) for topic_id in shared):
            break
    return draft


def _balance(
    topic_id: Uuid,
    subscribers: dict[Uuid, list[str]],
    loads: dict[str, int],
    order: dict[str, int],
    draft: _Draft,
) -> int:
    """Move partitions of one topic while that evens its subscribers out; returns how many."""
    members = subscribers[topic_id]
    light = [(loads[member_id], order[member_id], member_id) for member_id in members]
    heavy = [
        (-loads[member_id], -order[member_id], member_id)
        for member_id in members
        if draft[member_id].get(topic_id)
    ]
    heapq.heapify(light)
    heapq.heapify(heavy)
    moved = 0
    while heavy:
        load, _, giver = heavy[0]
        if -load != loads[giver]:
            heapq.heapreplace(heavy, (-loads[giver], -order[giver], giver))
            continue
        while light[0][0] != loads[light[0][2]]:
            taker = light[0][2]
            heapq.heapreplace(light, (loads[taker], order[taker], taker))
        taker = light[0][2]
        if loads[giver] - loads[taker] <= 1:
            break
        numbers = draft[giver][topic_id]
        number = max(numbers)
        numbers.remove(number)
        if not numbers:
            del draft[giver][topic_id]
            heapq.heappop(heavy)
        draft[taker].setdefault(topic_id, set()).add(number)
        loads[giver] -= 1
        loads[taker] += 1
        moved += 1
    return moved


def _kept_or_new(old: Target, topics: dict[Uuid, set[int]]) -> Target:
    """The assignment in the order of topics of the old one, so that equal ones stay equal."""
    return {
        topic_id: tuple(sorted(topics[topic_id]))
        for topic_id in _in_order(old, topics)
        if topics.get(topic_id)
    }


def _in_order(old: Iterable[Uuid], new: Iterable[Uuid]) -> Iterable[Uuid]:
    return dict.fromkeys((*(key for key in old), *new))


ASSIGNORS: Final[Mapping[str, Callable[[GroupSpec], Assignment]]] = {
    "uniform": assign_uniformly,
    "range": assign_ranges,
}
"""By the name in requests and in `group.consumer.assignors`."""
