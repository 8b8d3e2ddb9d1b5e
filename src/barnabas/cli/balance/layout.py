"""A placement that can be changed step by step, with the counts that decide the next step."""

import heapq
from collections.abc import Iterator, Sequence

from barnabas.cli.balance.model import Broker, Partition, Standing

_Candidates = tuple[list[tuple[int, int, int]], dict[str, list[tuple[int, int]]]]
"""Heaps: the preference of each topic's first partition, and (size, partition) by topic."""


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
