"""Sets of offsets of partitions, as ranges: united, subtracted, cut into parts. Pure.

A share group gives out ranges of offsets; a plan names them, and acknowledgements refer to them.
Ranges are inclusive at both ends, as in the protocol. A `Ranges` is sorted, and its members
neither overlap nor touch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.base.ids import Uuid

Range = tuple[int, int]
Ranges = tuple[Range, ...]


class Partition(NamedTuple):
    """A partition by its topic's id: a topic that is created again under its name is another."""

    topic_id: Uuid
    number: int


class Delivery(NamedTuple):
    """A range of records that were given out together; `attempt` counts how often, from 1."""

    partition: Partition
    first: int
    last: int
    attempt: int

    @property
    def size(self) -> int:
        """Offsets in the range."""
        return self.last - self.first + 1


def normal(ranges: Iterable[Range]) -> Ranges:
    """Sort ranges, and unite those that overlap or touch."""
    united: list[Range] = []
    for first, last in sorted(ranges):
        if united and first <= united[-1][1] + 1:
            if last > united[-1][1]:
                united[-1] = united[-1][0], last
        else:
            united.append((first, last))
    return tuple(united)


def subtract(ranges: Ranges, taken: Ranges) -> Ranges:
    """Return the offsets of `ranges` that are not in `taken`."""
    left: list[Range] = []
    position = 0
    for first, last in ranges:
        while position < len(taken) and taken[position][1] < first:
            position += 1
        at = position
        while at < len(taken) and taken[at][0] <= last:
            if taken[at][0] > first:
                left.append((first, taken[at][0] - 1))
            first = taken[at][1] + 1
            at += 1
        if first <= last:
            left.append((first, last))
    return tuple(left)


def common(ranges: Ranges, others: Ranges) -> Ranges:
    """Return the offsets that both have."""
    return subtract(ranges, subtract(ranges, others))


def size(ranges: Ranges) -> int:
    """Count the offsets."""
    return sum(last - first + 1 for first, last in ranges)


def split(deliveries: Sequence[Delivery], parts_max: int) -> list[list[Delivery]]:
    """Cut deliveries into at most `parts_max` parts of the same number of offsets, in order.

    Sizes differ by at most one. No part is empty.
    """
    total = sum(delivery.size for delivery in deliveries)
    parts_count = min(parts_max, total)
    parts: list[list[Delivery]] = []
    rest = list(reversed(deliveries))
    for index in range(parts_count):
        wanted = total * (index + 1) // parts_count - total * index // parts_count
        part: list[Delivery] = []
        while wanted:
            delivery = rest.pop()
            if delivery.size > wanted:
                cut = delivery.first + wanted
                rest.append(delivery._replace(first=cut))
                delivery = delivery._replace(last=cut - 1)
            part.append(delivery)
            wanted -= delivery.size
        parts.append(part)
    return parts
