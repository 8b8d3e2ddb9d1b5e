"""Which log is cleaned and when, and what happens to those that cannot be."""

import asyncio
import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.node.log.compaction.compactor import CompactionSettings
from barnabas.node.log.compaction.job import CleanJob, GroupCleaned, MapBuilt, Source, Throttle
from barnabas.node.log.compaction.offset_map import (
    FLAGS_PER_OFFSET_MAX,
    OffsetMap,
    entries_max,
    map_bytes,
)
from barnabas.node.log.compaction.selection import group_segments, measure
from barnabas.node.log.compaction.workers import InlineWorker
from barnabas.node.log.config import LogConfig
from barnabas.node.log.segment import RELATIVE_OFFSET_MAX, Segment
from barnabas.protocol.records.batch import iterate_headers
from support.compaction import CompactionBench, compact_config
from support.logs import LOG_DIR

HOUR_MS = 3_600_000
BEYOND = RELATIVE_OFFSET_MAX + 5

# Selection


def dirty(bench: CompactionBench) -> tuple[int, int] | None:
    """The dirty offsets that may be cleaned now."""
    found = measure(bench.log, bench.clock.time_ms)
    return None if found is None else (found.start_offset, found.end_offset)


def three_segments(**config: Any) -> CompactionBench:
    """Offsets 0-9, 10-19 and, in the active segment, 20-29; an hour apart."""
    bench = CompactionBench(config=compact_config(**config))
    for number in range(30):
        if number in (10, 20):
            bench.seal()
            bench.clock.advance(HOUR_MS)
        bench.put((f"k{number % 4}", f"{number:02}"))
    bench.log.flush_now()
    return bench


Change = Callable[[CompactionBench], object]


def set_(name: str, value: object) -> Change:
    return lambda bench: setattr(bench.log, name, value)


RANGES: dict[str, tuple[dict[str, Any], Change, tuple[int, int]]] = {
    "all but the active segment": ({}, lambda bench: None, (0, 20)),
    "sealed": ({}, lambda bench: bench.seal(), (0, 30)),
    "not flushed": ({}, set_("recovery_point", 19), (0, 10)),
    "beyond the high watermark": ({}, set_("high_watermark", 12), (0, 10)),
    "cleaned before": ({}, set_("cleaned_offset", 10), (10, 20)),
    "cleaned into a segment": ({}, set_("cleaned_offset", 5), (5, 20)),
    "below the log start": ({}, set_("log_start_offset", 13), (13, 20)),
    "cleaned below the log start": (
        {}, lambda bench: (set_("cleaned_offset", 3)(bench), set_("log_start_offset", 7)(bench)),
        (7, 20)),
    "cleaned beyond the end": ({}, set_("cleaned_offset", 31), (0, 20)),
    "younger than the lag": ({"min_compaction_lag_ms": HOUR_MS + 1}, lambda bench: None, (0, 10)),
    "as old as the lag": ({"min_compaction_lag_ms": HOUR_MS}, lambda bench: None, (0, 20)),
}  # fmt: skip


@pytest.mark.parametrize(("config", "change", "expected"), RANGES.values(), ids=RANGES)
def test_what_may_be_cleaned(
    config: dict[str, Any], change: Change, expected: tuple[int, int]
) -> None:
    bench = three_segments(**config)
    change(bench)
    assert dirty(bench) == expected


def test_an_empty_log_is_nothing_to_clean() -> None:
    assert dirty(CompactionBench()) is None


@pytest.mark.parametrize(
    ("config", "cleaned_offset", "is_worth_it"),
    [
        ({"min_cleanable_dirty_ratio": 0.5}, 0, True),
        ({"min_cleanable_dirty_ratio": 0.5}, 10, False),
        ({"min_cleanable_dirty_ratio": 0.49}, 10, True),
        ({"min_cleanable_dirty_ratio": 1.0}, 0, False),
        ({"min_cleanable_dirty_ratio": 1.0, "max_compaction_lag_ms": HOUR_MS - 1}, 10, True),
        ({"min_cleanable_dirty_ratio": 1.0, "max_compaction_lag_ms": HOUR_MS}, 10, False),
        ({"min_cleanable_dirty_ratio": 1.0, "max_compaction_lag_ms": 1}, 20, False),
        ({"min_cleanable_dirty_ratio": 0.0, "cleanup_policy": frozenset({"delete"})}, 0, False),
        (
            {"min_cleanable_dirty_ratio": 0.0, "cleanup_policy": frozenset({"compact", "delete"})},
            0,
            True,
        ),
    ],
)
def test_what_is_worth_a_round(
    config: dict[str, Any], cleaned_offset: int, is_worth_it: bool
) -> None:
    bench = three_segments(**config)
    bench.log.cleaned_offset = cleaned_offset
    assert (bench.compactor.choose() is not None) is is_worth_it


def test_the_dirtiest_log_comes_first() -> None:
    benches = [three_segments() for _ in range(3)]
    for bench, cleaned_offset in zip(benches, (20, 0, 10), strict=True):
        bench.log.cleaned_offset = cleaned_offset
    compactor = benches[0].compactor
    compactor._logs = [bench.log for bench in benches]
    chosen = compactor.choose()
    assert chosen is not None
    assert chosen.log is benches[1].log
    assert compactor.last_dirty_ratio_max == 1.0


def segments(*sizes: tuple[int, int]) -> list[Segment]:
    files: Any = None
    return [Segment(files, "/d", base, size_bytes=size, created_ms=0) for base, size in sizes]


@pytest.mark.parametrize(
    ("sizes", "end_offset", "groups"),
    [
        ([(0, 100)], 10, [[0]]),
        ([(0, 50), (10, 50), (20, 1)], 30, [[0, 10], [20]]),
        ([(0, 150), (10, 1)], 20, [[0], [10]]),
        ([(0, 0), (10, 0), (20, 0)], 30, [[0, 10, 20]]),
        ([(0, 1), (10, 1)], RELATIVE_OFFSET_MAX + 1, [[0, 10]]),
        ([(0, 1), (10, 1)], RELATIVE_OFFSET_MAX + 2, [[0], [10]]),
        ([(0, 1), (10, 1), (BEYOND, 1)], 1 << 40, [[0], [10], [BEYOND]]),
    ],
)  # fmt: skip
def test_segments_are_grouped(
    sizes: list[tuple[int, int]], end_offset: int, groups: list[list[int]]
) -> None:
    found = group_segments(segments(*sizes), end_offset, LogConfig(segment_bytes=100))
    assert [[segment.base_offset for segment in group] for group in found] == groups


def test_indexes_bound_a_group_too() -> None:
    config = LogConfig(segment_index_bytes=8 * 15, index_interval_bytes=100)
    sizes = [(number, 300) for number in range(6)]
    found = group_segments(segments(*sizes), 6, config)
    assert [len(group) for group in found] == [3, 3]


# The map


@pytest.mark.parametrize("spread", [1, FLAGS_PER_OFFSET_MAX, 100])
def test_the_map_keeps_to_its_memory(spread: int) -> None:
    import tracemalloc

    bytes_max = 4 << 20
    tracemalloc.start()
    try:
        offset_map = OffsetMap(bytes_max, 1.0)
        count = offset_map.entries_max
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        for start in range(0, count, 100):
            keys = [b"%030d" % number for number in range(start, min(start + 100, count))]
            offset = (1 << 40) + start * spread
            assert offset_map.put_all(keys, range(offset, offset + len(keys)), 30)
        assert offset_map.survivors.is_any_between(1 << 40, 1 << 40)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert len(offset_map) == count
    assert not offset_map.put_all([b"one more"], [1 << 41], 8)
    assert bytes_max * 0.5 < peak < bytes_max * 1.05


def test_a_map_holds_at_least_one_key() -> None:
    assert OffsetMap(0, 0.1).entries_max == 1
    assert all(entries_max(map_bytes(count)) == count for count in (1, 5, 100, 12_345))


def test_a_full_map_says_how_far_it_got() -> None:
    offset_map = OffsetMap(map_bytes(2), 1.0)
    assert not offset_map.put_all([b"a", b"b", b"c"], [4, 6, 9], 1)
    assert (offset_map.latest_offset, len(offset_map)) == (6, 2)


@pytest.mark.parametrize("spread", [1, 3, FLAGS_PER_OFFSET_MAX + 1])
def test_which_offsets_are_in_a_map(spread: int) -> None:
    offset_map = OffsetMap(1 << 20, 1.0)
    offsets = [1000 + number * spread for number in range(50)]
    assert offset_map.put_all([b"%d" % (number % 40) for number in range(50)], offsets, 2)
    survivors = offset_map.survivors
    for first in range(990, 1000 + 51 * spread, 7):
        for last in range(980, first + 60 * spread, 11):
            wanted = [offset for offset in offsets[10:] if first <= offset <= last]
            assert list(survivors.between(first, last)) == wanted
            assert survivors.is_any_between(first, last) == bool(wanted)


def test_a_throttle_keeps_to_its_rate() -> None:
    throttle = Throttle(1000, 0.0)
    now_s = 0.0
    for _ in range(100):
        now_s += throttle.delay_s(100, now_s)
    assert now_s == pytest.approx(10, rel=0.05)
    assert Throttle(float("inf"), 0.0).delay_s(1 << 60, 1.0) == 0
    assert Throttle(1.7976931348623157e308, 0.0).delay_s(1 << 40, 0.1) == 0


# Rounds that cannot be finished


class Interrupted(InlineWorker):
    """Has something happen before a step."""

    def __init__(self, bench: CompactionBench, step: str, event: Callable[[], object]) -> None:
        super().__init__(bench.disk, bench.clock)
        self._step = step
        self._event = event

    async def build_map(self, job: CleanJob) -> MapBuilt:
        if self._step == "before":
            self._event()
        built = await super().build_map(job)
        if self._step == "mapped":
            self._event()
        return built

    async def clean(self, group: list[Source]) -> GroupCleaned:
        cleaned = await super().clean(group)
        if self._step == "cleaned":
            self._event()
        return cleaned


def drop_first_segment(bench: CompactionBench) -> None:
    bench.log.delete_records_before(10)
    bench.log.apply_retention(bench.clock.time_ms)


def delete(bench: CompactionBench) -> None:
    """Close the log and take its directory away."""
    bench.log.close(clean=False)
    bench.disk.rename(bench.log.directory, f"{LOG_DIR}/gone")


EVENTS: dict[str, Callable[[CompactionBench], object]] = {
    "truncated": lambda bench: bench.log.truncate_to(15),
    "truncated at its end": lambda bench: bench.log.truncate_to(29),
    "started anew": lambda bench: bench.log.truncate_fully_and_start_at(100),
    "lost its first segment": drop_first_segment,
    "closed": lambda bench: bench.log.close(clean=False),
    "deleted": delete,
}


@pytest.mark.parametrize("step", ["before", "mapped", "cleaned"])
@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_a_log_that_changes_meanwhile_is_left_as_it_is(
    step: str, event: Callable[[CompactionBench], object]
) -> None:
    bench = three_segments()
    bench.compactor._worker = Interrupted(bench, step, lambda: event(bench))
    chosen = bench.compactor.choose()
    assert chosen is not None
    asyncio.run(bench.compactor.clean(chosen))
    assert bench.offline == []
    assert bench.compactor.uncleanable == {}
    assert bench.compactor.groups_swapped == 0
    assert not bench.log.cleaned_offset
    if bench.disk.exists(bench.log.directory) and not bench.log.is_closed:
        assert not [name for name in bench.names() if name.endswith((".cleaned", ".swap"))]
        expected = [
            offset
            for offset in range(30)
            if bench.log.log_start_offset <= offset < bench.log.log_end_offset
        ]
        assert [offset for offset, _, _ in bench.pairs()] == expected


@pytest.mark.parametrize("at", [100, 3, 7], ids=["record", "offset-far-off", "offset-near"])
@pytest.mark.parametrize("is_last", [False, True])
def test_a_damaged_log_is_remembered_and_left_alone(at: int, is_last: bool) -> None:
    """A batch that claims to be further on would supersede what is newer."""
    bench = three_segments()
    segment = bench.log.segments[0]
    data = bench.disk.inode(segment.files.log_path).data
    places = [place for place, _ in iterate_headers(data)]
    data[(places[-1] if is_last and at < 8 else places[0]) + at] ^= 0x10
    assert asyncio.run(bench.rounds()) == 0
    assert list(bench.compactor.uncleanable) == [bench.log.topic_partition]
    assert bench.compactor.failures == 1
    assert bench.compactor.choose() is None
    assert bench.offline == []
    assert not [name for name in bench.names() if name.endswith(".cleaned")]
    bench.compactor._logs = []
    assert bench.compactor.choose() is None
    assert bench.compactor.uncleanable == {}


def test_a_full_disk_is_waited_for() -> None:
    bench = three_segments()
    bench.disk.fail("append", code=errno.ENOSPC)
    chosen = bench.compactor.choose()
    assert chosen is not None
    assert not asyncio.run(bench.compactor.clean(chosen))
    assert bench.offline == []
    assert not [name for name in bench.names() if name.endswith(".cleaned")]
    bench.disk.fault = None
    assert asyncio.run(bench.rounds()) == 1


@pytest.mark.parametrize("operations", ["pread", "append", "fsync", "rename", "sync_dir"])
def test_a_failing_disk_takes_its_directory_offline(operations: str) -> None:
    bench = three_segments()
    bench.disk.fail(operations)
    chosen = bench.compactor.choose()
    assert chosen is not None
    asyncio.run(bench.compactor.clean(chosen))
    assert bench.offline == [LOG_DIR]
    assert bench.compactor.choose() is None


# Life


async def after_one_round(settings: CompactionSettings) -> CompactionBench:
    bench = three_segments()
    bench.follow(settings)
    bench.compactor.start()
    assert bench.compactor._task is not None
    await bench.compactor._task
    await asyncio.sleep(0)  # the turn in which its end is noticed
    return bench


async def test_it_looks_again_after_its_pause() -> None:
    bench = await after_one_round(CompactionSettings(backoff_ms=500))
    compactor = bench.compactor
    assert compactor.rounds == 1
    bench.put(("k0", "later"))
    bench.seal()
    bench.clock.advance(499)
    await asyncio.sleep(0)
    assert compactor._task is None
    bench.clock.advance(1)
    assert compactor._task is not None
    await compactor._task
    assert compactor.rounds == 2
    await compactor.stop()
    bench.clock.advance(10_000)
    assert compactor._task is None


async def test_a_pause_that_is_made_shorter_ends_sooner() -> None:
    bench = await after_one_round(CompactionSettings(backoff_ms=15_000))
    compactor = bench.compactor
    for _ in range(5):
        bench.clock.advance(1000)
    assert compactor._task is None
    bench.follow(CompactionSettings(backoff_ms=100))
    bench.clock.advance(1000)
    assert compactor._task is not None
    await compactor.stop()


async def test_a_round_may_be_stopped_in_the_middle() -> None:
    bench = three_segments()
    bench.follow(CompactionSettings(bytes_per_second_max=1.0, io_buffer_bytes=0))
    bench.compactor.start()
    for _ in range(10):
        await asyncio.sleep(0)
    await bench.compactor.stop()
    assert bench.compactor.rounds == 0
    assert len(bench.pairs()) == 30


def test_the_rate_is_kept() -> None:
    bench = three_segments()
    size = bench.log.segments[0].size_bytes + bench.log.segments[1].size_bytes
    bench.follow(CompactionSettings(bytes_per_second_max=size / 4))
    started_ms = bench.clock.time_ms

    async def advance() -> None:
        chosen = bench.compactor.choose()
        assert chosen is not None
        round_ = asyncio.ensure_future(bench.compactor.clean(chosen))
        while not round_.done():
            await asyncio.sleep(0)
            bench.clock.advance(10)

    asyncio.run(advance())
    assert bench.compactor.rounds == 1
    # Read twice, and written a little: eight seconds and more.
    assert bench.clock.time_ms - started_ms >= 7000


def test_an_unknown_failure_is_no_end(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        bench = three_segments()
        bench.compactor._worker = Interrupted(bench, "mapped", lambda: os.fspath(object()))  # type: ignore[call-overload]  # that is the failure
        bench.compactor.start()
        assert bench.compactor._task is not None
        await asyncio.wait((bench.compactor._task,))
        await asyncio.sleep(0)
        assert bench.compactor.failures == 1
        await bench.compactor.stop()

    asyncio.run(fail())
    assert "compaction stopped until the next check" in caplog.text
