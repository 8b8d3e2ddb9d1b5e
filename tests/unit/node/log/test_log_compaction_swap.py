"""A crash at any operation of the disk, while a log is cleaned and segments are replaced."""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from barnabas.node.log.compaction.compactor import CompactionSettings, Compactor
from barnabas.node.log.compaction.workers import InlineWorker
from barnabas.node.log.config import LogConfig
from barnabas.node.log.manager import LogManager
from sim.fake_disk import FakeDisk
from sim.manual_clock import ManualClock
from support.compaction import CompactionBench, compact_config, keyed_batch
from support.logs import LOG_DIR, TOPIC_ID, TOPIC_PARTITION, read_values

LATEST = [(101 + index, f"k{index}", f"11.{index}") for index in range(9)]


Work = Callable[[], Coroutine[Any, Any, object]]


class CrashError(BaseException):
    """The process or the machine is no more."""


def written() -> CompactionBench:
    """Several segments, of which groups are made, with an aborted transaction."""
    bench = CompactionBench(config=compact_config(segment_bytes=2000))
    bench.put(("a", "aborted"), producer=(7, 0, 0), transactional=True)
    bench.end_txn(7, is_commit=False)
    for number in range(12):
        bench.put(*((f"k{index}", f"{number}.{index}") for index in range(9)))
        if number % 3 == 0:
            bench.seal()
    bench.seal()
    return bench


def crash_after(bench: CompactionBench, operations: int) -> bool:
    """Clean until so many operations of the disk were done; whether it came to that."""
    return _crash_after(bench.disk, bench.rounds, operations)


def test_it_takes_many_operations() -> None:
    bench = written()
    assert len(bench.log.segments) == 6
    assert not crash_after(bench, 10_000)
    assert bench.pairs() == LATEST
    assert 2 <= len(bench.log.segments) < 6
    assert bench.log.aborted_transactions(0, 2)


@pytest.mark.parametrize(
    "crash",
    [
        pytest.param(lambda bench, seed: None, id="killed"),
        pytest.param(lambda bench, seed: bench.disk.cut_power(Random(seed)), id="power cut"),
    ],
)
def test_nothing_is_lost_at_any_point(crash: Callable[[CompactionBench, int], None]) -> None:
    operations = 0
    is_crash = True
    while is_crash:
        for seed in range(3):
            bench = written()
            end = bench.log.log_end_offset
            is_crash = crash_after(bench, operations)
            crash(bench, seed)
            bench.log.cleaned_offset = bench.checkpoints[-1] if bench.checkpoints else None
            report = bench.reopen()
            assert report.cut_at_offset is None, operations
            assert bench.log.log_end_offset == end
            left = [name for name in bench.names()
                    if name.endswith((".cleaned", ".swap", ".deleted"))]  # fmt: skip
            assert left == []
            pairs = bench.pairs()
            assert pairs == sorted(set(pairs))
            assert [pair for pair in pairs if pair[0] >= LATEST[0][0]] == LATEST
            bench.log.high_watermark = end
            bench.seal()
            bench.run(bench.rounds())
            assert bench.pairs() == LATEST, (operations, seed)
        operations += 1
    assert operations > 60


def test_a_tombstone_does_not_outlive_what_it_deletes_through_a_power_cut() -> None:
    """The checkpoint of what is clean must not be on the medium before the swap is."""
    for seed in range(20):
        bench = CompactionBench()
        bench.put(("a", "1"), ("b", "1"))
        bench.put(("a", None))
        bench.seal()
        bench.run(bench.rounds())
        bench.disk.cut_power(Random(seed))
        bench.log.cleaned_offset = bench.checkpoints[-1]
        bench.reopen()
        bench.log.high_watermark = bench.log.log_end_offset
        for _ in range(3):
            bench.clock.advance(2 * bench.config.delete_retention_ms)
            bench.put(("c", "1"))
            bench.compact()
        assert [key for _, key, _ in bench.pairs()] == ["b", "c"]


@pytest.mark.parametrize("seeds", [(0,), pytest.param((1, 2), marks=pytest.mark.slow)])
def test_gaps_are_no_damage_to_who_does_not_know_the_topic_yet(seeds: tuple[int, ...]) -> None:
    """A node recovers its logs before it knows how their topics are configured."""
    operations = 0
    is_crash = True
    while is_crash:
        for seed in seeds:
            disk, clock = FakeDisk(), ManualClock()
            disk.make_dirs(LOG_DIR)
            disk.sync_dir("/")
            logs = LogManager(disk, [LOG_DIR], clock, LogConfig())
            logs.load()
            log = logs.create(TOPIC_PARTITION, TOPIC_ID, compact_config(segment_bytes=200))
            for number in range(20):
                batch = keyed_batch([("a" if number % 7 else "b", f"{number:02}")], timestamp=1)
                log.append_as_leader(batch, leader_epoch=0, now_ms=clock.time_ms)
            log.high_watermark = log.log_end_offset
            log.roll()
            log.flush_now()
            compactor = Compactor(
                logs,
                clock,
                InlineWorker(disk, clock),
                CompactionSettings(),
                checkpoint=logs.save_cleaned,
            )

            async def clean(compactor: Compactor = compactor) -> None:
                chosen = compactor.choose()
                assert chosen is not None
                await compactor.clean(chosen)

            is_crash = _crash_after(disk, clean, operations)
            disk.cut_power(Random(seed))
            logs = LogManager(disk, [LOG_DIR], clock, LogConfig())
            (report,) = logs.load()
            found = logs.get(TOPIC_PARTITION)
            assert report.cut_at_offset is None, (operations, seed, report)
            assert found is not None
            assert found.log_end_offset == 20
            assert {"14", "19"} <= set(read_values(found))
        operations += 1
    assert operations > 60


def _crash_after(disk: FakeDisk, work: Work, operations: int) -> bool:
    left = operations

    def fault(operation: str, path: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise CrashError

    disk.fault = fault
    try:
        asyncio.run(work())
    except CrashError:
        return True
    finally:
        disk.fault = None
    return False
