"""What a clean end forces to the medium: what has changed, and nothing else."""

from random import Random

import pytest

from barnabas.base.clock import Clock
from barnabas.base.ids import ZERO_UUID, TopicPartition
from barnabas.node.log.config import LogConfig
from barnabas.node.log.manager import LogManager
from barnabas.node.log.partition_log import PartitionLog
from sim.fake_disk import FakeDisk
from sim.manual_clock import ManualClock
from support.logs import NOW_MS, TOPIC_ID, make_batch, read_values

DIRECTORY = "/data"
COUNT = 50


class CountingDisk(FakeDisk):
    """Counts the directories that are synced, too."""

    sync_dir_count = 0

    def sync_dir(self, path: str) -> None:
        super().sync_dir(path)
        self.sync_dir_count += 1

    @property
    def sync_count(self) -> int:
        return self.fsync_count + self.sync_dir_count


class Bench:
    """A manager over a disk that counts; `start` is a node's start."""

    def __init__(self) -> None:
        self.disk = CountingDisk()
        self.clock: Clock = ManualClock(NOW_MS)
        self.disk.make_dirs(DIRECTORY)
        self.disk.sync_dir("/")
        self.start()

    def start(self) -> None:
        self.logs = LogManager(self.disk, [DIRECTORY], self.clock, LogConfig())
        self.reports = self.logs.load()

    async def stop(self) -> int:
        """End cleanly; returns how many syncs that took."""
        before = self.disk.sync_count
        await self.logs.complete()
        self.logs.shutdown(1)
        return self.disk.sync_count - before

    def create(self) -> list[PartitionLog]:
        partitions = [TopicPartition("topic", index) for index in range(COUNT)]
        return [self.logs.create(each, TOPIC_ID, LogConfig()) for each in partitions]


def append(log: PartitionLog, value: str) -> None:
    assert not log.append_as_leader(make_batch(value), leader_epoch=0, now_ms=NOW_MS).error


async def test_logs_without_records_take_nothing_of_their_own() -> None:
    bench = Bench()
    bench.create()
    assert await bench.stop() < COUNT / 2


async def test_unchanged_logs_take_nothing_of_their_own() -> None:
    bench = Bench()
    for log in bench.create():
        append(log, "a")
    assert await bench.stop() > COUNT
    bench.start()
    for log in bench.logs:
        assert read_values(log) == ["a"]
        log.start_leader_epoch(7)
    assert await bench.stop() < COUNT / 2


async def test_only_what_has_changed_is_synced() -> None:
    bench = Bench()
    for log in bench.create():
        append(log, "a")
    few = await bench.stop() / COUNT
    bench.start()
    changed = next(iter(bench.logs))
    append(changed, "b")
    assert await bench.stop() < COUNT / 2 + few


@pytest.mark.parametrize("seed", range(20))
async def test_a_power_cut_after_a_clean_end_takes_nothing(seed: int) -> None:
    random = Random(seed)
    bench = Bench()
    expected = {}
    for log in bench.create():
        values = [str(number) for number in range(random.choice((0, 0, 1, 5)))]
        for value in values:
            append(log, value)
            if random.random() < 0.2:
                log.roll()
            if random.random() < 0.1:
                await log.flush()
        if values and random.random() < 0.2:
            end = random.randrange(len(values))
            log.truncate_to(end)
            del values[end:]
        expected[log.topic_partition] = values
    await bench.stop()
    bench.disk.cut_power(random)
    bench.start()
    assert bench.logs.previous_broker_epochs == {DIRECTORY: 1}
    assert {log.topic_partition: read_values(log) for log in bench.logs} == expected
    assert not any(report.segments_scanned for report in bench.reports)
    for log in bench.logs:
        # Without records the image knows the id; with them the file must.
        assert log.topic_id in (
            (TOPIC_ID,) if expected[log.topic_partition] else (TOPIC_ID, ZERO_UUID)
        )


@pytest.mark.parametrize("seed", range(20))
async def test_a_power_cut_before_the_end_costs_what_was_not_flushed(seed: int) -> None:
    random = Random(seed)
    bench = Bench()
    flushed = {}
    for log in bench.create():
        append(log, "a")
        if random.random() < 0.5:
            await log.flush()
            flushed[log.topic_partition] = ["a"]
        append(log, "b")
    bench.disk.cut_power(random)
    bench.start()
    for topic_partition, values in flushed.items():
        found = bench.logs.get(topic_partition)
        assert found is not None
        assert read_values(found)[: len(values)] == values
        assert log.topic_id == TOPIC_ID


@pytest.mark.parametrize("seed", range(20))
async def test_a_log_that_was_blank_at_a_clean_end_keeps_what_is_flushed_later(seed: int) -> None:
    bench = Bench()
    bench.create()
    await bench.stop()
    bench.start()
    for log in bench.logs:
        append(log, "a")
        await log.flush()
    bench.disk.cut_power(Random(seed))
    bench.start()
    assert [read_values(log) for log in bench.logs] == [["a"]] * COUNT
    assert all(log.topic_id == TOPIC_ID for log in bench.logs)
