"""Decides which replicas move where. Pure: brokers and partitions in, moves out.

What holds for every plan: a partition keeps its replication factor, no broker holds it twice,
and nothing goes to a broker that is down or leaving. A rebalance then has these aims, an earlier
one never given up for a later:

1. Replicas of a partition share racks as little as possible (where every broker names a rack).
2. Brokers hold the same number of replicas, give or take one.
3. As few bytes as possible move: only replicas that an aim above asks for, and among those that
   would serve it the ones of topics that are unevenly spread, then the small ones.
4. Brokers lead the same number of partitions, give or take one. This moves no data: only the
   order of replicas changes, of which the first is the preferred leader.

Evening out goes along paths. Where the fullest broker has nothing that the emptiest could take,
a third one may take from the first and give to the last; a breadth-first search finds the
shortest such path. When no path leads from a broker to one with two replicas less, no placement
that moves replicas one for one is more even.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence

from barnabas.cli.balance.model import Broker, Move, Partition, PlanError, Standing
from barnabas.cli.output import first_few

_Candidates = tuple[list[tuple[int, int, int]], dict[str, list[tuple[int, int]]]]
"""Heaps: the preference of each topic's first partition, and (size, partition) by topic."""


def plan_rebalance(brokers: Sequence[Broker], partitions: Sequence[Partition]) -> list[Move]:
    """Spread replicas and leaders over all brokers that live; empty those that are leaving.

    Raises PlanError where a partition has more replicas than there are brokers to take them.
    """
    layout = Layout(brokers, partitions)
    _evacuate(layout)
    _repair_racks(layout)
    _even_replicas(layout)
    _even_leaders(layout, range(len(partitions)))
    return _moves(layout)


def plan_drain(brokers: Sequence[Broker], partitions: Sequence[Partition]) -> list[Move]:
    """Empty the brokers that are leaving, and move nothing else. Raises PlanError."""
    layout = ChangedOnly(brokers, partitions)
    _evacuate(layout)
    _even_replicas(layout)
    changed = [
        number
        for number, partition in enumerate(partitions)
        if tuple(layout.replicas[number]) != partition.replicas
    ]
    _even_leaders(layout, changed)
    return _moves(layout)


def _moves(layout: Layout) -> list[Move]:
    return [
        Move(item.topic, item.index, item.replicas, tuple(placed), item.size_bytes)
        for item, placed in zip(layout.partitions, layout.replicas, strict=True)
        if tuple(placed) != item.replicas
    ]


# -- brokers that leave


def _evacuate(layout: Layout) -> None:
    stuck = []
    for number, partition in enumerate(layout.partitions):
        for broker in partition.replicas:
            if broker in layout.leaving:
                target = _emptiest(layout, number, broker)
                if target is None:
                    stuck.append(partition)
                    break
                layout.replace(number, broker, target)
    if stuck:
        raise PlanError(
            f"no broker is left for replicas of {first_few(stuck)}: add a broker first, or "
            "give them fewer replicas"
        )


def _emptiest(layout: Layout, number: int, old: int) -> int | None:
    """The target that takes over from `old`: the best for racks, then the least loaded."""
    topic = layout.partitions[number].topic
    placed = layout.replicas[number]
    return min(
        (broker for broker in layout.targets if broker not in placed),
        key=lambda broker: (
            layout.rack_cost(number, old, broker),
            layout.count(broker),
            layout.count_of_topic(broker, topic),
            broker,
        ),
        default=None,
    )


# -- racks


def _repair_racks(layout: Layout) -> None:
    if not layout.has_racks:
        return
    targets = set(layout.targets)
    for number in range(len(layout.partitions)):
        while True:
            placed = layout.replicas[number]
            cost, _, _, old, new = min(
                (
                    (
                        layout.rack_cost(number, old, new),
                        -layout.count(old),
                        layout.count(new),
                        old,
                        new,
                    )
                    for old in placed
                    if old in targets
                    for new in layout.targets
                    if new not in placed
                ),
                default=(0, 0, 0, -1, -1),
            )
            if cost >= 0:
                break
            layout.replace(number, old, new)


# -- evenness


def _even_replicas(layout: Layout) -> None:
    """Move replicas from full brokers to empty ones until none has two more than another."""
    while _move_directly(layout) or _move_along_path(layout):
        pass


def _move_directly(layout: Layout) -> bool:
    by_count = sorted(layout.targets, key=lambda broker: (layout.count(broker), broker))
    for full in reversed(by_count):
        for empty in by_count:
            if layout.count(full) - layout.count(empty) < 2:
                break
            number = layout.best(full, empty)
            if number is not None:
                layout.replace(number, full, empty)
                return True
    return False


def _move_along_path(layout: Layout) -> bool:
    path = _shortest_path(layout.targets, layout.count, layout.scan)
    for full, number, empty in path:
        layout.replace(number, full, empty)
    return bool(path)


def _shortest_path(
    brokers: Sequence[int],
    count: Callable[[int], int],
    between: Callable[[int, int], int | None],
) -> list[tuple[int, int, int]]:
    """Steps (from, partition, to) that make a full broker one poorer and an empty one richer.

    `between` names a partition that could go from one broker to another. Empty where the counts
    cannot be made more even.
    """
    fullest_first = sorted(brokers, key=lambda broker: (-count(broker), broker))
    for start in fullest_first:
        if count(start) - count(fullest_first[-1]) < 2:
            return []
        came: dict[int, tuple[int, int]] = {}
        waiting = deque([start])
        while waiting:
            full = waiting.popleft()
            for empty in reversed(fullest_first):
                if empty == start or empty in came:
                    continue
                number = between(full, empty)
                if number is None:
                    continue
                came[empty] = full, number
                if count(start) - count(empty) >= 2:
                    return _walk_back(came, start, empty)
                waiting.append(empty)
    return []


def _walk_back(
    came: dict[int, tuple[int, int]], start: int, end: int
) -> list[tuple[int, int, int]]:
    steps = []
    while end != start:
        full, number = came[end]
        steps.append((full, number, end))
        end = full
    return steps


# -- leaders


class _Leaders:
    """The preferred leader of each partition."""

    def __init__(self, layout: Layout, changeable: Sequence[int]) -> None:
        self._layout = layout
        self._counts = dict.fromkeys(layout.held, 0)
        self._by_topic: dict[tuple[int, str], int] = {}
        self._led: dict[int, dict[int, None]] = {broker: {} for broker in layout.held}
        for number in range(len(layout.partitions)):
            self._count(number, 1)
        for number in changeable:
            if layout.replicas[number]:
                self._led[layout.replicas[number][0]][number] = None

    def _count(self, number: int, by: int) -> None:
        placed = self._layout.replicas[number]
        if placed:
            self._counts[placed[0]] += by
            key = placed[0], self._layout.partitions[number].topic
            self._by_topic[key] = self._by_topic.get(key, 0) + by

    def count(self, broker: int) -> int:
        return self._counts[broker]

    def between(self, old: int, new: int) -> int | None:
        """A partition led by `old` that `new` could lead, of a topic that `old` leads most."""
        replicas, partitions = self._layout.replicas, self._layout.partitions
        fitting = [number for number in self._led[old] if new in replicas[number]]

        def key(number: int) -> tuple[int, int]:
            topic = partitions[number].topic
            ours, theirs = self._by_topic[old, topic], self._by_topic.get((new, topic), 0)
            return theirs - ours, number

        return min(fitting, key=key, default=None)

    def hand_over(self, number: int, old: int, new: int) -> None:
        self._count(number, -1)
        del self._led[old][number]
        placed = self._layout.replicas[number]
        placed.remove(new)
        placed.insert(0, new)
        self._led[new][number] = None
        self._count(number, 1)


def _even_leaders(layout: Layout, changeable: Sequence[int]) -> None:
    leaders = _Leaders(layout, changeable)
    while path := _shortest_path(layout.targets, leaders.count, leaders.between):
        for full, number, empty in path:
            leaders.hand_over(number, full, empty)


def standing_of(broker_id: int, *, is_alive: bool, leaving: Collection[int]) -> Standing:
    """The role of a broker in a plan."""
    if broker_id in leaving:
        return Standing.LEAVING
    return Standing.TARGET if is_alive else Standing.PINNED


class Layout:
    """Which broker holds which partition. Partitions are named by their number in the input."""

    def __init__(self, brokers: Sequence[Broker], partitions: Sequence[Partition]) -> None:
        self.partitions = partitions
        self.targets = [item.id for item in brokers if item.standing is Standing.TARGET]
        self.leaving = {item.id for item in brokers if item.standing is Standing.LEAVING}
        self.replicas = [list(partition.replicas) for partition in partitions]
        self._racks = _racks(brokers)
        known = {broker.id for broker in brokers}
        known.update(broker for placed in self.replicas for broker in placed)
        self.held: dict[int, dict[int, None]] = {broker: {} for broker in sorted(known)}
        """The numbers of the partitions on each broker, as an ordered set."""
        self._by_topic: dict[tuple[int, str], int] = {}
        for number, placed in enumerate(self.replicas):
            for broker in placed:
                self._add(number, broker)
        self._candidates: dict[tuple[int, int], _Candidates] = {}

    def count(self, broker: int) -> int:
        """Replicas on a broker."""
        return len(self.held[broker])

    def count_of_topic(self, broker: int, topic: str) -> int:
        """Replicas of one topic on a broker."""
        return self._by_topic.get((broker, topic), 0)

    def replace(self, number: int, old: int, new: int) -> None:
        """Put the replica on `old` to `new`, at the same place in the order."""
        placed = self.replicas[number]
        placed[placed.index(old)] = new
        del self.held[old][number]
        self._by_topic[old, self.partitions[number].topic] -= 1
        self._add(number, new)

    def _add(self, number: int, broker: int) -> None:
        self.held[broker][number] = None
        key = broker, self.partitions[number].topic
        self._by_topic[key] = self._by_topic.get(key, 0) + 1

    # -- racks

    @property
    def has_racks(self) -> bool:
        """True if racks are a reason to place anything anywhere."""
        return bool(self._racks)

    def rack_cost(self, number: int, old: int, new: int) -> int:
        """Return how many more pairs of replicas share a rack once `new` replaces `old`.

        Negative if that is better than now.
        """
        if not self._racks:
            return 0
        others = [self._racks.get(item) for item in self.replicas[number] if item != old]
        before = self._racks.get(old)
        return others.count(self._racks[new]) - (0 if before is None else others.count(before))

    # -- choosing what to move

    def may_move(self, number: int, old: int, new: int) -> bool:
        """Return whether `new` can replace `old` without a worse spread over racks."""
        placed = self.replicas[number]
        return old in placed and new not in placed and self.rack_cost(number, old, new) <= 0

    def preference(self, number: int, old: int, new: int) -> tuple[int, int, int]:
        """Smaller is better: first what spreads the topic, then what is small."""
        partition = self.partitions[number]
        gain = self.count_of_topic(old, partition.topic) - self.count_of_topic(new, partition.topic)
        return -gain, partition.size_bytes, number

    def best(self, old: int, new: int) -> int | None:
        """A good partition to move, by heaps per pair: quick, and may miss what came later."""
        candidates = self._candidates.get((old, new))
        if candidates is None:
            candidates = self._candidates[old, new] = self._gather(old, new)
        heads, by_topic = candidates
        while heads:
            known = heads[0]
            number = known[2]
            if number not in self.held[old] or not self.may_move(number, old, new):
                rest = by_topic[self.partitions[number].topic]
                heapq.heappop(rest)
                if rest:
                    heapq.heapreplace(heads, self.preference(rest[0][1], old, new))
                else:
                    heapq.heappop(heads)
                continue
            now = self.preference(number, old, new)
            if now <= known or len(heads) == 1 or now <= min(heads[1:3]):
                return number
            heapq.heapreplace(heads, now)
        return None

    def _gather(self, old: int, new: int) -> _Candidates:
        """What `old` holds, by topic: a move changes the order of topics, not that within one."""
        by_topic: dict[str, list[tuple[int, int]]] = {}
        for number in self.movable(old):
            partition = self.partitions[number]
            by_topic.setdefault(partition.topic, []).append((partition.size_bytes, number))
        for rest in by_topic.values():
            heapq.heapify(rest)
        heads = [self.preference(rest[0][1], old, new) for rest in by_topic.values()]
        heapq.heapify(heads)
        return heads, by_topic

    def scan(self, old: int, new: int) -> int | None:
        """The best partition to move, by looking at all."""
        fitting = (number for number in self.movable(old) if self.may_move(number, old, new))
        return min(fitting, key=lambda number: self.preference(number, old, new), default=None)

    def movable(self, broker: int) -> Iterator[int]:
        """Partitions whose replica on `broker` may be moved."""
        return iter(tuple(self.held[broker]))


class ChangedOnly(Layout):
    """A layout in which only what was moved already may be moved again."""

    def movable(self, broker: int) -> Iterator[int]:
        return (
            number
            for number in tuple(self.held[broker])
            if broker not in self.partitions[number].replicas
        )


def _racks(brokers: Sequence[Broker]) -> dict[int, str]:
    """Racks by broker; empty unless every target has one and they differ."""
    targets = [item for item in brokers if item.standing is Standing.TARGET]
    if any(item.rack is None for item in targets) or len({item.rack for item in targets}) < 2:
        return {}
    return {item.id: item.rack for item in brokers if item.rack is not None}
