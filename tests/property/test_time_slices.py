"""Slices of time of random logs, compared with lists of their timestamps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.kafka.admin import Listed
from barnabas.spark.time_slices import Place, Source, TimeSlices

Logs = Sequence[Sequence[Sequence[int]]]
"""The timestamps of records, by topic and partition."""


@dataclass
class Cluster:
    """Topics that a query reads from `starts` on, with a limit for each topic."""

    logs: Logs
    limits: Sequence[int]
    starts: list[Listed] = field(default_factory=list)
    lookups: list[int] = field(default_factory=list)
    """The times that were looked up since the last slice."""
    slices: TimeSlices = field(default_factory=TimeSlices)

    def __post_init__(self) -> None:
        self.starts = [dict.fromkeys(self.places(topic), 0) for topic in range(len(self.logs))]

    def places(self, topic: int) -> list[Place]:
        return [(f"t{topic}", partition) for partition in range(len(self.logs[topic]))]

    def log(self, place: Place) -> Sequence[int]:
        return self.logs[int(place[0][1:])][place[1]]

    def ends(self) -> list[Listed]:
        return [
            {place: len(self.log(place)) for place in self.places(topic)}
            for topic in range(len(self.logs))
        ]

    def offsets_after(self, time_ms: int, places: Collection[Place]) -> Listed:
        """As brokers answer ListOffsets."""
        self.lookups.append(time_ms)
        return {
            place: next((n for n, at in enumerate(self.log(place)) if at > time_ms), -1)
            for place in places
        }

    def take(self) -> list[Listed]:
        """Take a slice, and return its ends."""
        self.lookups.clear()
        sources = [
            Source(starts, ends, limit)
            for starts, ends, limit in zip(self.starts, self.ends(), self.limits, strict=True)
        ]
        ends = self.slices.ends(sources, self.offsets_after)
        self.starts = ends
        return ends

    @property
    def is_done(self) -> bool:
        return self.starts == self.ends()

    def taken(self, before: Sequence[Listed]) -> list[int]:
        """The number of records that the last slice took, by topic."""
        return [
            sum(ends[place] - starts[place] for place in ends)
            for starts, ends in zip(before, self.starts, strict=True)
        ]

    def records(self, before: Sequence[Listed]) -> list[int]:
        """The timestamps that the last slice took."""
        return [
            at
            for starts, ends in zip(before, self.starts, strict=True)
            for place in ends
            for at in self.log(place)[starts[place] : ends[place]]
        ]

    def left(self) -> list[int]:
        """The timestamps that are not taken."""
        return [
            at
            for starts in self.starts
            for place in starts
            for at in self.log(place)[starts[place] :]
        ]


TIMES = st.one_of(
    st.integers(-1, 30),
    st.integers(1_700_000_000_000, 1_700_000_000_300),
    st.sampled_from([1_700_000_000_000, 4_000_000_000_000, 2**62, 2**63 - 1]),
)
LOGS = st.lists(
    st.lists(st.lists(TIMES, max_size=60), min_size=1, max_size=3), min_size=2, max_size=3
)
LIMITS = st.lists(st.integers(1, 40), min_size=3, max_size=3)


def clusters(logs: Logs, limits: Sequence[int]) -> Cluster:
    return Cluster(logs, limits[: len(logs)])


@given(LOGS, LIMITS)
def test_slices_of_any_logs_take_all_within_the_limits(logs: Logs, limits: Sequence[int]) -> None:
    cluster = clusters(logs, limits)
    while not cluster.is_done:
        before = cluster.starts
        cluster.take()
        taken = cluster.taken(before)
        assert all(size <= limit for size, limit in zip(taken, cluster.limits, strict=True))
        assert any(taken), "no progress"
        for starts, ends in zip(before, cluster.starts, strict=True):
            assert all(starts[place] <= end for place, end in ends.items())


@given(LOGS, LIMITS)
def test_slices_of_ordered_logs_are_in_order(logs: Logs, limits: Sequence[int]) -> None:
    ordered = [[sorted(partition) for partition in topic] for topic in logs]
    cluster = clusters(ordered, limits)
    while not cluster.is_done:
        before = cluster.starts
        cluster.take()
        taken, left = cluster.records(before), cluster.left()
        # Of one millisecond, records may be left to the next slice if there are too many.
        assert max(taken) <= min(left, default=2**63)
        if left and max(taken) == min(left):
            is_cut = min(taken) == max(taken)
            assert is_cut, "a millisecond is cut only if it does not fit"


@given(LOGS, LIMITS)
def test_a_slice_takes_half_of_a_limit_or_all_that_fits(logs: Logs, limits: Sequence[int]) -> None:
    ordered = [[sorted(partition) for partition in topic] for topic in logs]
    cluster = clusters(ordered, limits)
    while not cluster.is_done:
        before = cluster.starts
        cluster.take()
        taken, left = cluster.taken(before), cluster.left()
        halves = zip(taken, cluster.limits, strict=True)
        if not left or any(2 * size >= limit for size, limit in halves):
            continue
        more = [
            size
            + sum(at == min(left) for place in starts for at in cluster.log(place)[starts[place] :])
            for size, starts in zip(taken, cluster.starts, strict=True)
        ]
        assert any(size > limit for size, limit in zip(more, cluster.limits, strict=True))


def test_nothing_is_looked_up_where_nothing_is_behind() -> None:
    cluster = Cluster([[[1, 2, 3]], [[5, 4]]], [3, 2])
    cluster.take()
    assert cluster.is_done
    assert not cluster.lookups


def test_partitions_that_are_new_or_shorter_than_before_do_not_hold_up_others() -> None:
    at = list(range(100))
    cluster = Cluster([[at, at], [at]], [20, 50])
    cluster.starts = [{("t0", 0): 40}, {("t1", 0): 120}]
    cluster.take()
    assert cluster.starts[1] == {("t1", 0): 100}, "the end that there is"
    assert cluster.starts[0][("t0", 0)] == 40
    assert 10 <= cluster.starts[0][("t0", 1)] <= 20


@pytest.mark.parametrize("every_ms", [1, 100, 60_000])
def test_few_times_are_looked_up(every_ms: int) -> None:
    rows = [[1_700_000_000_000 + every_ms * n for n in range(one, 20_000, 2)] for one in (0, 1)]
    stream = [[rows[-1][-1] + every_ms * n for n in range(20_000)]]
    cluster = Cluster([rows, stream], [1_000, 1_000])
    cluster.take()
    assert len(cluster.lookups) <= 50, "it is not known yet when records begin"
    counts = []
    while not cluster.is_done:
        cluster.take()
        counts.append(len(cluster.lookups))
    assert len(counts) < 80
    assert sum(counts) <= 2 * len(counts)


def test_records_without_timestamps_and_bursts_are_cut_at_the_limit() -> None:
    cluster = Cluster([[[-1] * 10, [7] * 30], [[6] * 3]], [10, 10])
    ends = []
    while not cluster.is_done:
        ends.append([list(of.values()) for of in cluster.take()])
    assert ends[0] == [[10, 0], [3]]
    assert ends[1:] == [[[10, 10], [3]], [[10, 20], [3]], [[10, 30], [3]]]
