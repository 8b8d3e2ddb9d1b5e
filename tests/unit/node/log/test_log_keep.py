"""Flushing, retention, deleted records, truncation: what stays and what goes."""

import asyncio
from collections.abc import Coroutine
from random import Random

import pytest

from barnabas.node.log.config import LogConfig
from support.logs import NOW_MS, LogBench, make_batch, read_values

HOUR_MS = 3_600_000
BATCH_BYTES = len(make_batch("0"))


def segments_of(bench: LogBench) -> list[int]:
    return [segment.base_offset for segment in bench.log.segments]


# Flushing


async def test_one_fsync_serves_all_who_wait() -> None:
    bench = LogBench()
    bench.fill("first")
    await bench.log.flush()
    bench.disk.fsync_count = 0
    bench.disk.held = asyncio.Event()
    bench.fill("a")
    early = asyncio.ensure_future(bench.log.flush())
    await turns()
    # The fsync is under way: what comes now shares the next one.
    late = []
    for number in range(50):
        bench.fill(str(number))
        late.append(asyncio.ensure_future(bench.log.flush()))
    await turns()
    assert bench.disk.fsync_count == 0
    bench.disk.held.set()
    await asyncio.gather(early, *late)
    assert bench.log.flushed_offset == 52
    assert bench.disk.fsync_count == 2


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_flush_of_nothing_does_nothing() -> None:
    bench = LogBench()
    await bench.log.flush()
    bench.disk.fsync_count = 0
    await bench.log.flush()
    bench.log.flush_now()
    assert bench.disk.fsync_count == 0


async def test_cancelled_waiter_disturbs_nobody() -> None:
    bench = LogBench()
    bench.disk.held = asyncio.Event()
    bench.fill("a")
    first, second = (asyncio.ensure_future(bench.log.flush()) for _ in range(2))
    await turns()
    first.cancel()
    bench.disk.held.set()
    await second
    assert first.cancelled()
    assert bench.log.flushed_offset == 1


async def test_truncation_during_a_flush_is_not_taken_for_flushed() -> None:
    bench = LogBench()
    bench.fill(*"abc")
    bench.disk.held = asyncio.Event()
    flush = asyncio.ensure_future(bench.log.flush())
    await turns()
    bench.log.truncate_to(1)
    bench.fill("x", "y")
    bench.disk.held.set()
    await flush
    assert bench.log.flushed_offset <= 1
    await bench.log.flush()
    assert bench.log.flushed_offset == 3


def test_flush_messages_says_when() -> None:
    bench = LogBench(config=LogConfig(flush_messages=3))
    wanted = []
    for value in "abcd":
        bench.fill(value)
        wanted.append(bench.log.needs_flush)
    assert wanted == [False, False, True, True]
    bench.log.flush_now()
    assert not bench.log.needs_flush


def test_flush_ms_and_rolls_say_when() -> None:
    bench = LogBench(config=LogConfig(flush_ms=1000))
    flusher = bench.log.flusher
    assert not flusher.is_due(0)
    bench.fill("a")
    assert [flusher.is_due(now) for now in (5000, 5999, 6000)] == [False, False, True]
    bench.log.flush_now()
    assert not flusher.is_due(9000)
    bench.fill("b")
    bench.log.roll()
    assert flusher.is_due(9000)


@pytest.mark.parametrize("seed", range(20))
def test_flushed_data_survives_a_power_cut(seed: int) -> None:
    bench = LogBench(config=LogConfig(segment_bytes=3 * BATCH_BYTES))
    bench.fill(*"abcdefgh")
    run(bench.log.flush())
    bench.fill(*"ijklm")
    bench.disk.cut_power(Random(seed))
    bench.reopen(recovery_point=0)
    values = "".join(read_values(bench.log))
    assert "abcdefghijklm".startswith(values)
    assert len(values) >= 8
    assert bench.log.topic_id.endswith(b"\x07")


def run(work: Coroutine[object, object, None]) -> None:
    asyncio.run(work)


# Retention


def test_by_size_keeps_at_least_that_much() -> None:
    bench = LogBench(
        config=LogConfig(segment_bytes=2 * BATCH_BYTES, retention_bytes=5 * BATCH_BYTES)
    )
    bench.fill(*"0123456789")
    log = bench.log
    assert log.apply_retention(NOW_MS) == 0  # nothing is below the high watermark
    log.high_watermark = 10
    assert log.apply_retention(NOW_MS) == 2
    assert (log.log_start_offset, log.size_bytes) == (4, 6 * BATCH_BYTES)
    assert segments_of(bench) == [4, 6, 8]
    assert log.apply_retention(NOW_MS) == 0
    assert read_values(log) == list("456789")


def test_by_time_by_the_newest_record_of_a_segment() -> None:
    bench = LogBench(config=LogConfig(retention_ms=HOUR_MS, segment_bytes=2 * BATCH_BYTES))
    for age in (5, 0, 5, 4, 3, 2, 1, 0):
        bench.append(make_batch("x", timestamp=NOW_MS - age * HOUR_MS))
    log = bench.log
    log.high_watermark = 8
    assert log.apply_retention(NOW_MS) == 0  # a record of now keeps the first segment
    assert log.apply_retention(NOW_MS + HOUR_MS) == 0
    assert log.apply_retention(NOW_MS + HOUR_MS + 1) == 4
    assert (log.log_start_offset, log.size_bytes) == (8, 0)
    assert segments_of(bench) == [8]
    bench.fill("next")
    assert read_values(log) == ["next"]


def test_by_time_of_the_file_where_records_have_none() -> None:
    bench = LogBench(config=LogConfig(retention_ms=HOUR_MS))
    bench.append(make_batch("x", timestamp=-1))
    bench.log.high_watermark = 1
    assert bench.log.apply_retention(NOW_MS + HOUR_MS) == 0
    assert bench.log.apply_retention(NOW_MS + HOUR_MS + 1) == 1


def test_never_at_or_above_the_high_watermark() -> None:
    bench = LogBench(config=LogConfig(segment_bytes=2 * BATCH_BYTES, retention_ms=0))
    bench.fill(*"0123456789")
    log = bench.log
    log.high_watermark = 5
    assert log.apply_retention(NOW_MS + HOUR_MS) == 2
    assert log.log_start_offset == 4


def test_compacted_topics_keep_all_but_deleted_records() -> None:
    config = LogConfig(
        segment_bytes=2 * BATCH_BYTES + 2, retention_ms=0, cleanup_policy=frozenset({"compact"})
    )
    bench = LogBench(config=config)
    for number in range(6):
        bench.append(make_batch(str(number), key="k"))
    log = bench.log
    log.high_watermark = 6
    assert log.apply_retention(NOW_MS + HOUR_MS) == 0
    log.delete_records_before(5)
    assert log.apply_retention(NOW_MS) == 2
    assert log.log_start_offset == 5


def test_unlimited() -> None:
    config = LogConfig(segment_bytes=2 * BATCH_BYTES, retention_ms=-1, retention_bytes=-1)
    bench = LogBench(config=config)
    bench.fill(*"0123456789")
    bench.log.high_watermark = 10
    assert bench.log.apply_retention(NOW_MS + 10**12) == 0


def test_deleted_records_are_not_read_and_their_segments_go() -> None:
    bench = LogBench(config=LogConfig(segment_bytes=2 * BATCH_BYTES, retention_ms=-1))
    bench.fill(*"0123456789", epoch=1)
    log = bench.log
    log.high_watermark = 8
    with pytest.raises(ValueError, match="beyond"):
        log.delete_records_before(9)
    log.delete_records_before(5)
    log.delete_records_before(3)
    assert log.log_start_offset == 5
    assert read_values(log) == list("56789")
    assert log.epochs.entries == [(1, 5)]
    assert log.apply_retention(NOW_MS) == 2
    assert segments_of(bench) == [4, 6, 8]


def test_files_go_after_their_delay() -> None:
    config = LogConfig(
        segment_bytes=2 * BATCH_BYTES, retention_bytes=2 * BATCH_BYTES, file_delete_delay_ms=1000
    )
    bench = LogBench(config=config)
    bench.fill(*"012345")
    bench.log.high_watermark = 6
    assert bench.log.apply_retention(NOW_MS) == 2
    deleted = [name for name in bench.names() if name.endswith(".deleted")]
    assert len(deleted) == 7  # three files of each segment, and the snapshot of the second
    assert bench.directory.delete_step(NOW_MS + 999) == 0
    assert bench.directory.delete_step(NOW_MS + 1000) == 7
    assert not [name for name in bench.names() if name.endswith(".deleted")]


# Truncation


@pytest.mark.parametrize("tail_bytes_max", [1 << 20, 0])
@pytest.mark.parametrize("offset", range(11))
def test_truncates_to_any_offset(offset: int, tail_bytes_max: int) -> None:
    bench = LogBench(
        config=LogConfig(segment_bytes=3 * BATCH_BYTES, index_interval_bytes=0),
        tail_bytes_max=tail_bytes_max,
    )
    for epoch in range(10):
        bench.fill(str(epoch), epoch=epoch)
    bench.log.flush_now()
    log = bench.log
    log.high_watermark = 10
    log.truncate_to(offset)
    assert log.log_end_offset == offset
    assert log.flushed_offset == log.high_watermark == min(offset, 10)
    assert read_values(log) == [str(value) for value in range(offset)]
    assert [epoch for epoch, _ in log.epochs.entries] == list(range(offset))
    bench.fill("next", epoch=20)
    assert read_values(log, offset) == ["next"]
    bench.reopen(recovery_point=log.recovery_point)
    assert read_values(bench.log) == [*map(str, range(offset)), "next"]


def test_batch_that_holds_the_offset_goes_as_a_whole() -> None:
    bench = LogBench()
    bench.append(make_batch(*"abc"))
    bench.append(make_batch(*"defg"))
    bench.log.truncate_to(5)
    assert bench.log.log_end_offset == 5
    assert read_values(bench.log) == list("abc")
    bench.fill("x")
    assert read_values(bench.log, 3) == ["x"]


def test_greatest_timestamp_follows_a_truncation() -> None:
    bench = LogBench()
    for stamp in (NOW_MS - 50, NOW_MS, NOW_MS - 20):
        bench.append(make_batch("x", timestamp=stamp))
    bench.log.truncate_to(1)
    found = bench.log.max_timestamp_offset(1)
    assert found is not None
    assert found.timestamp == NOW_MS - 50


def test_below_the_first_segment_starts_anew() -> None:
    bench = LogBench()
    bench.log.truncate_fully_and_start_at(100)
    bench.fill("a", "b")
    assert (bench.log.log_start_offset, bench.log.log_end_offset) == (100, 102)
    bench.log.truncate_to(40)
    assert (bench.log.log_start_offset, bench.log.log_end_offset) == (40, 40)
    assert segments_of(bench) == [40]
    bench.fill("c")
    bench.reopen(recovery_point=40)
    assert read_values(bench.log) == ["c"]


def test_starting_anew_at_the_same_offset() -> None:
    bench = LogBench()
    bench.fill("a")
    bench.log.truncate_fully_and_start_at(0)
    bench.fill("b")
    bench.directory.delete_step(NOW_MS * 2)
    bench.reopen(recovery_point=0)
    assert read_values(bench.log) == ["b"]
