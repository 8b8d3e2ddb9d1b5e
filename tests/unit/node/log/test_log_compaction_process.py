"""Compaction in a process separate from the node, on a real disk, and across restarts."""

import asyncio
import errno
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from barnabas.base.clock import SystemClock
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.base.local_disk import LocalDisk
from barnabas.node.log.compaction.compactor import CompactionSettings, Compactor, WorkerLostError
from barnabas.node.log.compaction.job import CleanJob, LastRecord, MapBuilt
from barnabas.node.log.compaction.selection import measure, sources_of
from barnabas.node.log.compaction.workers import ProcessWorker
from barnabas.node.log.config import LogConfig
from barnabas.node.log.index.txn_index import AbortedTransaction
from barnabas.node.log.manager import LogManager
from barnabas.node.log.partition_log import PartitionLog
from barnabas.protocol.records.batch import CorruptBatchError
from sim.fake_disk import FakeDisk
from sim.manual_clock import ManualClock
from support.compaction import compact_config, keyed_batch
from support.logs import read_records

TOPIC = TopicPartition("compacted", 0)
TOPIC_ID = Uuid(bytes(range(16)))
CONFIG = compact_config(segment_bytes=20_000)


def fill(log: PartitionLog, count: int = 300) -> None:
    """Three keys, again and again; sealed and flushed."""
    for number in range(count):
        pairs = [(f"k{index}", f"{number}.{index}" * 20) for index in range(3)]
        batch = keyed_batch(pairs, timestamp=SystemClock().now_ms())
        assert not log.append_as_leader(batch, leader_epoch=0, now_ms=SystemClock().now_ms()).error
    log.high_watermark = log.log_end_offset
    log.roll()
    log.flush_now()


def job_of(log: PartitionLog, **changes: object) -> CleanJob:
    chosen = measure(log, SystemClock().now_ms())
    assert chosen is not None
    values: dict[str, object] = {
        "directory": log.directory,
        "start_offset": chosen.start_offset,
        "end_offset": chosen.end_offset,
        "sources": sources_of(chosen.segments),
        "producers": {7: LastRecord(3, 0)},
        "aborted": [AbortedTransaction(9, 1, 2, 3)],
        "now_ms": 0,
        "delete_retention_ms": 0,
        "index_interval_bytes": 4096,
        "map_bytes_max": 1 << 20,
        "map_load_factor": 0.9,
        "io_buffer_bytes": 4096,
        "bytes_per_second_max": float("inf"),
    }
    return CleanJob(**(values | changes))  # type: ignore[arg-type]  # by name


class OnDisk:
    """A log directory with one log, and a compactor with a process."""

    def __init__(self, path: Path) -> None:
        self.disk = LocalDisk()
        self.logs = LogManager(self.disk, [str(path)], SystemClock(), LogConfig())
        self.logs.load()
        self.log = self.logs.create(TOPIC, TOPIC_ID, CONFIG)
        self.worker = ProcessWorker()
        self.compactor = Compactor(
            self.logs,
            SystemClock(),
            self.worker,
            CompactionSettings(),
            checkpoint=self.logs.save_cleaned,
        )


@pytest.fixture
async def on_disk(tmp_path: Path) -> AsyncIterator[OnDisk]:
    world = OnDisk(tmp_path)
    yield world
    await world.compactor.stop()
    world.logs.shutdown()
    world.disk.close()


async def start_slowly(on_disk: OnDisk) -> "asyncio.Future[MapBuilt]":
    """Start a job in the process that would take it minutes."""
    await on_disk.worker.build_map(job_of(on_disk.log))
    slow = job_of(on_disk.log, bytes_per_second_max=1.0)
    call = asyncio.ensure_future(on_disk.worker.build_map(slow))
    await asyncio.sleep(0)
    return call


async def test_a_process_cleans_and_goes(on_disk: OnDisk) -> None:
    fill(on_disk.log)
    last = [record.value for record in read_records(on_disk.log)][-3:]
    on_disk.compactor.start()
    task = on_disk.compactor._task
    assert task is not None
    await task
    assert [record.value for record in read_records(on_disk.log)] == last
    assert on_disk.compactor.rounds == 1
    assert on_disk.worker.process_id is None
    path = f"{on_disk.log.log_dir}/cleaner-offset-checkpoint"
    assert on_disk.disk.read(path) == b"0\n1\ncompacted 0 900\n"


async def test_damage_and_missing_files_are_told_from_a_lost_process(on_disk: OnDisk) -> None:
    fill(on_disk.log)
    path = on_disk.log.segments[0].files.log_path
    file = on_disk.disk.open(path)
    good = file.pread(1, 100)
    file.pwrite(bytes([good[0] ^ 1]), 100)
    with pytest.raises(CorruptBatchError, match="CRC"):
        await on_disk.worker.build_map(job_of(on_disk.log))
    on_disk.disk.rename(path, path + ".away")
    with pytest.raises(FileNotFoundError) as raised:
        await on_disk.worker.build_map(job_of(on_disk.log))
    assert raised.value.errno == errno.ENOENT
    on_disk.disk.rename(path + ".away", path)
    file.pwrite(good, 100)
    built = await on_disk.worker.build_map(job_of(on_disk.log))
    assert (built.end_offset, built.keys) == (900, 3)


async def test_a_killed_process_is_replaced_at_the_next_look(
    on_disk: OnDisk, caplog: pytest.LogCaptureFixture
) -> None:
    fill(on_disk.log)
    call = await start_slowly(on_disk)
    assert on_disk.worker.process_id is not None
    os.kill(on_disk.worker.process_id, signal.SIGKILL)
    with pytest.raises(WorkerLostError):
        await call
    chosen = on_disk.compactor.choose()
    assert chosen is not None
    assert await on_disk.compactor.clean(chosen)
    assert on_disk.compactor.rounds == 1


async def test_a_stop_does_not_wait_for_the_round(on_disk: OnDisk) -> None:
    fill(on_disk.log)
    call = await start_slowly(on_disk)
    await on_disk.compactor.stop()
    with pytest.raises(WorkerLostError):
        await call
    with pytest.raises(WorkerLostError):
        await on_disk.worker.build_map(job_of(on_disk.log))


async def test_the_process_ends_with_its_node(on_disk: OnDisk) -> None:
    fill(on_disk.log)
    call = await start_slowly(on_disk)
    process = on_disk.worker._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()  # as the system does for a process that is killed
    with pytest.raises(WorkerLostError):
        await call
    assert process.wait() == 0


# What is remembered of compaction


class Remembered:
    """A log manager over a disk in memory."""

    def __init__(self) -> None:
        self.disk = FakeDisk()
        self.clock = ManualClock()
        self.open()
        self.log = self.logs.create(TOPIC, TOPIC_ID, CONFIG)

    def open(self) -> None:
        self.logs = LogManager(self.disk, ["/d"], self.clock, LogConfig())
        self.logs.load()

    def checkpoint(self) -> str:
        return self.disk.read("/d/cleaner-offset-checkpoint").decode()


def test_how_far_a_log_is_clean_survives_a_restart() -> None:
    world = Remembered()
    fill(world.log)
    world.log.cleaned_offset = 900
    asyncio.run(world.logs.save_cleaned(world.log))
    world.logs.shutdown()
    world.open()
    log = world.logs.get(TOPIC)
    assert log is not None
    assert log.cleaned_offset == 900
    assert log.config.is_compacted  # gaps are no damage, even before the topic's settings are known


def test_a_truncation_is_remembered_before_anything_is_appended() -> None:
    world = Remembered()
    fill(world.log)
    world.log.cleaned_offset = 900
    asyncio.run(world.logs.save_cleaned(world.log))
    world.log.truncate_to(300)
    assert world.log.cleaned_offset == 300
    assert world.checkpoint() == "0\n1\ncompacted 0 300\n"


def test_a_new_log_of_the_same_name_is_dirty() -> None:
    world = Remembered()
    fill(world.log)
    world.log.cleaned_offset = 900
    asyncio.run(world.logs.save_cleaned(world.log))
    world.logs.delete(TOPIC)
    assert world.logs.create(TOPIC, TOPIC_ID, CONFIG).cleaned_offset is None
    assert world.checkpoint() == "0\n0\n"


def test_who_compacts_nothing_writes_no_checkpoint() -> None:
    world = Remembered()
    world.logs.checkpoint_step()
    assert not world.disk.exists("/d/cleaner-offset-checkpoint")
