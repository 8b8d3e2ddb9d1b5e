"""Ranges of offsets beside sets of offsets."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.ids import Uuid
from barnabas.spark.datasource.share_ranges import (
    Delivery,
    Partition,
    Ranges,
    common,
    normal,
    size,
    split,
    subtract,
)

PARTITION = Partition(Uuid(bytes(16)), 0)
offsets = st.sets(st.integers(0, 40))


def ranges_of(members: set[int]) -> Ranges:
    return normal((offset, offset) for offset in members)


def offsets_of(ranges: Ranges) -> set[int]:
    return {offset for first, last in ranges for offset in range(first, last + 1)}


@given(offsets)
def test_normal_ranges_neither_overlap_nor_touch(members: set[int]) -> None:
    ranges = ranges_of(members)
    assert offsets_of(ranges) == members
    assert size(ranges) == len(members)
    assert all(a[1] + 1 < b[0] for a, b in itertools.pairwise(ranges))


@given(offsets, offsets)
def test_subtract_and_common_are_those_of_sets(one: set[int], other: set[int]) -> None:
    assert offsets_of(subtract(ranges_of(one), ranges_of(other))) == one - other
    assert offsets_of(common(ranges_of(one), ranges_of(other))) == one & other


@given(st.lists(st.integers(1, 9), max_size=8), st.integers(1, 12))
def test_split_gives_everything_once_in_parts_of_the_same_size(
    sizes: list[int], parts_max: int
) -> None:
    deliveries, first = [], 0
    for attempt, length in enumerate(sizes, 1):
        deliveries.append(Delivery(PARTITION, first, first + length - 1, attempt))
        first += length + 1
    parts = split(deliveries, parts_max)
    given_out = [(d.attempt, o) for p in parts for d in p for o in range(d.first, d.last + 1)]
    assert given_out == [(d.attempt, o) for d in deliveries for o in range(d.first, d.last + 1)]
    counts = [sum(d.size for d in part) for part in parts]
    assert len(parts) == min(parts_max, sum(sizes))
    assert not counts or (min(counts) > 0 and max(counts) - min(counts) <= 1)
