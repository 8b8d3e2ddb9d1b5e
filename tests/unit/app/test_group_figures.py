"""Lag of groups: ends of partitions that are elsewhere, and the times of records."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.app.metrics import group_figures
from barnabas.app.metrics.group_figures import RecordTimes, RemoteEnds
from barnabas.base.ids import TopicPartition
from barnabas.protocol.errors import ErrorCode
from sim.manual_clock import ManualClock

PLACE = TopicPartition("orders", 0)


class Leaders:
    """Other nodes, and what they were asked for."""

    def __init__(self) -> None:
        self.ends: dict[TopicPartition, int | ErrorCode] = {}
        self.asked: list[list[TopicPartition]] = []

    async def find(self, places: list[TopicPartition]) -> dict[TopicPartition, int | ErrorCode]:
        self.asked.append(places)
        return {place: self.ends[place] for place in places}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def remote(leaders: Leaders, clock: ManualClock) -> RemoteEnds:
    broker: Any = SimpleNamespace(ends=leaders)
    return RemoteEnds(broker, clock)


async def test_ends_are_asked_for_once_they_are_wanted(clock: ManualClock) -> None:
    leaders = Leaders()
    leaders.ends[PLACE] = 10
    ends = remote(leaders, clock)
    assert ends.end(PLACE) is None
    await ends.refresh()
    assert ends.end(PLACE) == 10
    leaders.ends[PLACE] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    await ends.refresh()
    assert ends.end(PLACE) == 10


async def test_the_age_of_a_record_is_that_of_the_first_end_behind_it(clock: ManualClock) -> None:
    leaders = Leaders()
    ends = remote(leaders, clock)
    ends.end(PLACE)
    for end in (10, 20, 30):
        leaders.ends[PLACE] = end
        await ends.refresh()
        clock.advance(10_000)
    assert ends.age_s(PLACE, 5) == 30
    assert ends.age_s(PLACE, 10) == 20
    assert ends.age_s(PLACE, 29) == 10
    assert ends.age_s(PLACE, 30) is None


async def test_what_nobody_wants_is_forgotten(clock: ManualClock) -> None:
    leaders = Leaders()
    leaders.ends[PLACE] = 10
    ends = remote(leaders, clock)
    ends.end(PLACE)
    await ends.refresh()
    clock.advance(group_figures.FORGOTTEN_MS + 1)
    await ends.refresh()
    assert leaders.asked == [[PLACE]]


async def test_what_is_wanted_is_bounded(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_figures, "REMOTE_MAX", 3)
    monkeypatch.setattr(group_figures, "ASKED_AT_ONCE", 2)
    leaders = Leaders()
    ends = remote(leaders, clock)
    for index in range(10):
        place = TopicPartition("orders", index)
        leaders.ends[place] = index
        ends.end(place)
    await ends.refresh()
    assert [len(places) for places in leaders.asked] == [2, 1]


def log_of(*batches: tuple[int, int, int]) -> Any:
    """A log of batches: first offset, first and last timestamp; each of ten records."""
    reads: list[int] = []

    def locate(offset: int) -> tuple[int, Any] | None:
        reads.append(offset)
        for base, first_ms, last_ms in batches:
            if offset < base + 10:
                header = SimpleNamespace(
                    base_offset=base, base_timestamp=first_ms, max_timestamp=last_ms
                )
                return 0, header
        return None

    return SimpleNamespace(
        topic_partition=PLACE,
        log_start_offset=batches[0][0],
        is_offline=False,
        segments=[SimpleNamespace(locate=locate)],
        segment_index=lambda _: 0,
        reads=reads,
    )


def test_the_time_of_a_record_is_that_of_its_batch_and_read_once() -> None:
    log = log_of((100, 1000, 1900), (110, 2000, 2900))
    times = RecordTimes()
    times.begin()
    assert times.of(log, 110) == 2000
    assert times.of(log, 115) == 2900
    assert times.of(log, 7) == 1000, "what retention has deleted is not waited for"
    assert times.of(log, 120) is None
    assert times.of(log, 110) == 2000
    assert log.reads == [110, 115, 100, 120]


def test_a_scrape_looks_up_a_bounded_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_figures, "LOOKUPS_MAX", 2)
    log, times = log_of((0, 1, 2)), RecordTimes()
    times.begin()
    assert [times.of(log, offset) for offset in range(4)] == [1, 2, None, None]
    times.begin()
    assert [times.of(log, offset) for offset in range(4)] == [1, 2, 2, 2]
