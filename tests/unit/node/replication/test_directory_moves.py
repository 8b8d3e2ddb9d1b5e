"""Moves between directories as the clock and the controller have it."""

import asyncio
from collections.abc import Callable

import pytest

from barnabas.app.local_nodes import standalone_properties
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.node.config.definitions import MOVE_RATE_KEY
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.log.config import LogConfig
from barnabas.node.log.manager import LogManager
from barnabas.node.replication.directory_moves import REST_MS, RETRY_MS, ReplicaMoves
from barnabas.node.replication.leadership import ReplicaContext
from barnabas.node.replication.partition import Partition
from barnabas.node.replication.throttle import ReplicationQuota
from barnabas.protocol.errors import ErrorCode
from sim.fake_disk import FakeDisk
from sim.manual_clock import ManualClock
from support.logs import NOW_MS, TOPIC_ID, make_batch, read_values

ONE, TWO = "/one", "/two"
IDS = {ONE: Uuid(bytes(15) + b"\x01"), TWO: Uuid(bytes(15) + b"\x02")}
SAMPLES, SAMPLE_MS = 11, 1000


class Moving:
    """A node's moves. `answers` are what the controller says next; then NONE."""

    def __init__(self) -> None:
        self.disk = FakeDisk()
        self.clock = ManualClock(NOW_MS)
        self.logs = LogManager(
            self.disk, (ONE, TWO), self.clock, LogConfig(), on_directory_offline=self._offline
        )
        self.logs.load()
        self.logs.directory_ids.update(IDS)
        quota = ReplicationQuota(self.clock, SAMPLES, SAMPLE_MS)
        self.moves = ReplicaMoves(self.logs, self.clock, quota)
        self.moves.assign = self._assign
        self.told: list[tuple[str, int]] = []
        self.answers: list[ErrorCode] = []
        self.held: asyncio.Event | None = None

    def _offline(self, path: str) -> None:
        self.moves.directory_failed(path)

    async def _assign(self, directory_id: Uuid, topic_id: Uuid, index: int) -> ErrorCode:
        assert topic_id == TOPIC_ID
        path = next(path for path, each in IDS.items() if each == directory_id)
        self.told.append((path, index))
        if self.held is not None:
            await self.held.wait()
        return self.answers.pop(0) if self.answers else ErrorCode.NONE

    def partition(self, index: int, *values: str) -> Partition:
        """A partition in the first directory."""
        topic_partition = TopicPartition("topic", index)
        log = self.logs.create(topic_partition, TOPIC_ID, LogConfig(), directory_id=IDS[ONE])
        context = ReplicaContext(node_id=1, clock=self.clock)
        partition = Partition(topic_partition, TOPIC_ID, log, context)
        append(partition, *values)
        return partition

    async def run(self, until: Callable[[], bool], within_ms: int = 60_000) -> int:
        """Let time pass until it is so; returns how long it took."""
        for passed_ms in range(within_ms):
            for _ in range(5):
                await asyncio.sleep(0)
            if until():
                return passed_ms
            self.clock.advance(1)
        raise AssertionError(f"not within {within_ms} ms")


def append(partition: Partition, *values: str) -> None:
    for value in values:
        result = partition.log.append_as_leader(make_batch(value), leader_epoch=0, now_ms=NOW_MS)
        assert not result.error
    partition.log.high_watermark = partition.log.log_end_offset


async def test_a_move_from_beginning_to_end() -> None:
    world = Moving()
    partition = world.partition(0, "a", "b")
    old = partition.log
    world.moves.request(partition, TWO)
    assert world.moves.directory_of(partition) == ONE
    world.held = asyncio.Event()
    await world.run(lambda: world.told == [(TWO, 0)])
    assert world.moves.directory_of(partition) == TWO
    append(partition, "c")
    await world.run(lambda: world.clock.time_ms >= NOW_MS + 500)
    assert partition.log is old, "the controller has not agreed yet"
    append(partition, "d")
    world.held.set()
    await world.run(lambda: partition.log is not old)
    assert read_values(partition.log) == ["a", "b", "c", "d"]
    assert (len(world.moves), len(world.logs.futures)) == (0, 0)
    assert world.told == [(TWO, 0)]
    await world.moves.close()


async def test_the_controller_is_asked_again() -> None:
    world = Moving()
    partition = world.partition(0, "a")
    world.answers = [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.STALE_BROKER_EPOCH]
    world.moves.request(partition, TWO)
    took_ms = await world.run(lambda: partition.log.log_dir == TWO)
    assert 2 * RETRY_MS <= took_ms < 2 * (RETRY_MS + 2 * REST_MS)
    assert world.told == [(TWO, 0)] * 3
    await world.moves.close()


async def test_a_cluster_without_directories_need_not_agree() -> None:
    world = Moving()
    partition = world.partition(0, "a")
    world.answers = [ErrorCode.UNSUPPORTED_VERSION]
    world.moves.request(partition, TWO)
    assert await world.run(lambda: partition.log.log_dir == TWO) < RETRY_MS
    await world.moves.close()


async def test_who_calls_it_off_late_tells_the_controller() -> None:
    world = Moving()
    partition = world.partition(0, "a")
    world.held = asyncio.Event()
    world.moves.request(partition, TWO)
    await world.run(lambda: world.told == [(TWO, 0)])
    world.moves.request(partition, ONE)
    assert len(world.logs.futures) == 0
    assert world.moves.directory_of(partition) == ONE
    world.answers = [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT]
    world.held.set()
    await world.run(lambda: world.told == [(TWO, 0), (ONE, 0), (ONE, 0)])
    assert partition.log.log_dir == ONE
    await world.moves.close()


async def test_who_calls_it_off_early_tells_nobody() -> None:
    world = Moving()
    partition = world.partition(0, "a")
    world.moves.request(partition, TWO)
    world.moves.request(partition, ONE)
    await world.run(lambda: world.clock.time_ms > NOW_MS + 300)
    assert world.told == []
    assert not partition.log.is_moving
    await world.moves.close()


async def test_one_after_the_other() -> None:
    world = Moving()
    partitions = [world.partition(index, *("x" * 400_000 for _ in range(9))) for index in range(3)]
    for partition in partitions:
        world.moves.request(partition, TWO)
    moved: list[int] = []

    def note() -> bool:
        for index, partition in enumerate(partitions):
            if partition.log.log_dir == TWO and index not in moved:
                moved.append(index)
        behind = [f.log_end_offset for f in world.logs.futures if 0 < f.log_end_offset < 9]
        assert len(behind) <= 1
        return len(moved) == 3

    await world.run(note)
    assert moved == [0, 1, 2]
    await world.moves.close()


@pytest.mark.parametrize("rate", [20_000, 200_000])
async def test_the_rate_is_kept(rate: int) -> None:
    world = Moving()
    partition = world.partition(0, *("x" * 2_000 for _ in range(rate * 30 // 2_000)))
    properties = standalone_properties("/data")
    world.moves.configure(
        NodeConfig.from_properties(properties).with_dynamic({MOVE_RATE_KEY: str(rate)})
    )
    world.moves.request(partition, TWO)
    took_ms = await world.run(lambda: partition.log.log_dir == TWO, 90_000)
    # The first window may be used up at once.
    assert 15_000 < took_ms < 33_000
    await world.moves.close()


async def test_a_log_that_cannot_be_read_stays(caplog: pytest.LogCaptureFixture) -> None:
    world = Moving()
    partition = world.partition(0, "a", "b")
    file = world.disk.open(f"{partition.log.directory}/{0:020d}.log")
    file.pwrite(b"\xff", file.size() - 1)
    partition.log.tail.clear()
    world.moves.request(partition, TWO)
    await world.run(lambda: not len(world.moves))
    assert partition.log.log_dir == ONE
    assert len(world.logs.futures) == 0
    assert "cannot move topic-0 to /two" in caplog.text
    await world.moves.close()


async def test_closing_leaves_the_copy_as_it_is() -> None:
    world = Moving()
    partition = world.partition(0, *("x" * 400_000 for _ in range(9)))
    world.moves.request(partition, TWO)
    await world.run(lambda: any(each.log_end_offset for each in world.logs.futures))
    await world.moves.close()
    [future] = world.logs.futures
    end_offset = future.log_end_offset
    world.clock.advance(10_000)
    await asyncio.sleep(0)
    assert future.log_end_offset == end_offset < 9
