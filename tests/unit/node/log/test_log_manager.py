"""The logs of a node: loading, checkpoints, several directories, and directories that fail."""

import asyncio
import errno
import logging
from random import Random

import pytest

from barnabas.base.clock import Clock
from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.base.local_disk import LocalDisk
from barnabas.node.log.config import LogConfig
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.manager import LogManager
from barnabas.node.log.partition_log import PartitionLog
from sim.fake_disk import FakeDisk
from sim.manual_clock import ManualClock
from support.logs import NOW_MS, TOPIC_ID, make_batch, read_values

A = TopicPartition("with-dashes-and.dots", 0)
B = TopicPartition("b", 12)
OTHER_ID = Uuid(bytes(15) + b"\x09")


class Managed:
    """A manager over directories in memory; `start` is a node's start."""

    def __init__(self, *dirs: str) -> None:
        self.dirs = dirs or ("/one",)
        self.disk = FakeDisk()
        self.clock = ManualClock(NOW_MS)
        self.offline: list[str] = []
        for path in self.dirs:
            self.disk.make_dirs(path)
        self.disk.sync_dir("/")
        self.start()

    def start(self) -> LogManager:
        self.logs = LogManager(
            self.disk, self.dirs, self.clock, LogConfig(), on_directory_offline=self.offline.append
        )
        self.reports = self.logs.load()
        return self.logs

    def create(self, topic_partition: TopicPartition = A) -> PartitionLog:
        return self.logs.create(topic_partition, TOPIC_ID, LogConfig())

    def get(self, topic_partition: TopicPartition = A) -> PartitionLog:
        log = self.logs.get(topic_partition)
        assert log is not None
        return log

    def text(self, path: str) -> str:
        return self.disk.read(path).decode()


def append(log: PartitionLog, *values: str) -> None:
    for value in values:
        result = log.append_as_leader(make_batch(value), leader_epoch=0, now_ms=NOW_MS)
        assert not result.error
    log.high_watermark = log.log_end_offset


def test_clean_shutdown_and_start() -> None:
    managed = Managed()
    append(managed.create(), "a", "b")
    append(managed.create(B), "c")
    managed.logs.shutdown(17)
    assert managed.text("/one/.kafka_cleanshutdown") == '{"version":0,"brokerEpoch":17}'
    assert managed.text("/one/recovery-point-offset-checkpoint") == (
        "0\n2\nwith-dashes-and.dots 0 2\nb 12 1\n"
    )
    assert managed.text("/one/replication-offset-checkpoint") == (
        "0\n2\nwith-dashes-and.dots 0 2\nb 12 1\n"
    )
    assert managed.text("/one/log-start-offset-checkpoint") == "0\n0\n"
    managed.start()
    assert managed.logs.previous_broker_epochs == {"/one": 17}
    assert not managed.disk.exists("/one/.kafka_cleanshutdown")
    assert [report.segments_scanned for report in managed.reports] == [0, 0]
    assert read_values(managed.get()) == ["a", "b"]
    assert managed.get().high_watermark == 2
    assert managed.get(B).topic_id == TOPIC_ID


@pytest.mark.parametrize("damage", ["cut", "flip", "gone"])
def test_what_was_closed_cleanly_and_damaged_since_is_not_clean(damage: str) -> None:
    managed = Managed()
    append(managed.create(), "a", "b", "c")
    managed.create(B)
    managed.logs.shutdown(broker_epoch=17)
    path = f"/one/{A.topic}-{A.partition}"
    file = managed.disk.open(f"{path}/{0:020d}.log")
    if damage == "gone":
        managed.disk.remove_tree(path)
    elif damage == "cut":
        file.truncate(file.size() - 1)
    else:
        file.pwrite(b"\x07", 16)  # of the first batch's magic byte
        managed.disk.remove(f"{path}/{0:020d}.index")
    managed.start()
    assert managed.logs.previous_broker_epochs == {}


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("size_left", [0, 30], ids=["whole batches", "a torn batch"])
def test_a_gap_is_found_and_filled_by_whoever_leads(is_clean: bool, size_left: int) -> None:
    managed = Managed()
    log = managed.logs.create(A, TOPIC_ID, LogConfig(segment_bytes=100))
    append(log, *"abcd")
    log.flush_now()
    managed.logs.checkpoint_step()
    if is_clean:
        managed.logs.shutdown(broker_epoch=17)
    managed.disk.open(f"{log.directory}/{1:020d}.log").truncate(size_left)
    managed.start()
    assert managed.logs.previous_broker_epochs == {}
    log = managed.get()
    assert (log.gap_offset, log.log_end_offset) == (1, 4)
    assert read_values(log) == ["a", "c", "d"]
    log.truncate_to(1)
    assert (log.gap_offset, log.log_end_offset) == (None, 1)
    append(log, "x")
    assert read_values(log) == ["a", "x"]


def test_killed_node_recovers_everything() -> None:
    managed = Managed()
    append(managed.create(), "a", "b")
    managed.start()
    assert managed.logs.previous_broker_epochs == {}
    assert [report.segments_scanned for report in managed.reports] == [1]
    assert read_values(managed.get()) == ["a", "b"]
    # Killed while it was loading: that is no clean start either.
    managed.logs.shutdown(1)
    managed.disk.fail("list", "/one/")
    managed.start()
    managed.disk.fault = None
    managed.start()
    assert [report.segments_scanned for report in managed.reports] == [1]


def test_unclean_end_is_told_only_where_there_are_logs(caplog: pytest.LogCaptureFixture) -> None:
    managed = Managed()
    managed.disk.make_dirs("/one/__cluster_metadata-0")
    managed.start()
    assert "not shut down cleanly" not in caplog.text
    managed.create()
    managed.start()
    assert "/one was not shut down cleanly" in caplog.text


def test_start_offset_and_high_watermark_are_checkpointed() -> None:
    managed = Managed()
    log = managed.create()
    append(log, "a", "b", "c", "d")
    log.high_watermark = 3
    log.delete_records_before(2)
    managed.logs.checkpoint_step()
    assert managed.text("/one/log-start-offset-checkpoint") == "0\n1\nwith-dashes-and.dots 0 2\n"
    managed.start()
    log = managed.get()
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (2, 3, 4)


@pytest.mark.parametrize(
    "name", ["recovery-point-offset", "log-start-offset", "replication-offset"]
)
@pytest.mark.parametrize("content", [b"", b"0\n", b"0\n5\na 0 1\n", b"x\n1\n", b"0\n1\na b c d\n"])
def test_damaged_checkpoints_cost_a_recovery_at_most(name: str, content: bytes) -> None:
    managed = Managed()
    append(managed.create(), "a", "b")
    managed.logs.checkpoint_step()
    managed.disk.write_atomic(f"/one/{name}-checkpoint", content)
    managed.start()
    assert read_values(managed.get()) == ["a", "b"]
    assert managed.get().log_start_offset == 0


def test_new_topic_of_an_old_name_inherits_nothing() -> None:
    managed = Managed()
    log = managed.create()
    append(log, *map(str, range(20)))
    log.flush_now()
    log.delete_records_before(15)
    managed.logs.checkpoint_step()
    managed.logs.delete(A)
    append(managed.create(), "fresh")
    managed.start()
    assert read_values(managed.get()) == ["fresh"]
    # The same when the node was killed in between.
    managed.get().flush_now()
    managed.logs.checkpoint_step()
    managed.logs.delete(A)
    managed.start()
    append(managed.create(), "newer")
    managed.start()
    assert read_values(managed.get()) == ["newer"]


def test_checkpoint_never_says_more_than_a_truncated_log_holds() -> None:
    managed = Managed()
    log = managed.create()
    append(log, *map(str, range(8)))
    log.flush_now()
    managed.logs.checkpoint_step()
    log.truncate_to(3)
    assert managed.text("/one/recovery-point-offset-checkpoint").endswith(" 0 3\n")


def test_log_that_is_set_aside_keeps_its_records(caplog: pytest.LogCaptureFixture) -> None:
    managed = Managed()
    log = managed.create()
    append(log, "a", "b")
    log.flush_now()
    kept = managed.disk.read(f"{log.directory}/{0:020d}.log")
    assert kept
    managed.create(B)
    managed.logs.set_aside(A)
    managed.logs.set_aside(B)
    assert managed.logs.get(A) is None
    assert managed.logs.get(B) is None
    managed.logs.delete_step(NOW_MS + 60_000)
    (name,) = managed.disk.list("/one")
    assert name.startswith("with-dashes-and.dots-0.")
    assert name.endswith("-stray")
    assert managed.disk.read(f"/one/{name}/{0:020d}.log") == kept
    assert f"/one/{name}" in caplog.text
    assert len(managed.start()) == 0


def test_deleted_log_is_renamed_and_removed_later() -> None:
    managed = Managed()
    append(managed.create(), "a")
    managed.logs.delete(A)
    managed.logs.delete(A)
    assert managed.logs.get(A) is None
    (name,) = managed.disk.list("/one")
    assert name.startswith("with-dashes-and.dots-0.")
    assert name.endswith("-delete")
    assert len(name) == len("with-dashes-and.dots-0.") + 32 + len("-delete")
    assert managed.logs.delete_step(NOW_MS + 59_999) == 0
    assert managed.logs.delete_step(NOW_MS + 60_000) == 1
    assert managed.disk.list("/one") == []


def test_deletion_goes_on_after_a_restart() -> None:
    managed = Managed()
    append(managed.create(), "a")
    managed.logs.delete(A)
    managed.start()
    assert len(managed.logs) == 0
    assert managed.logs.delete_step(NOW_MS) == 1
    assert not [name for name in managed.disk.list("/one") if name.endswith("-delete")]


def test_long_names_are_cut_when_marked() -> None:
    managed = Managed()
    longest = TopicPartition("t" * 249, 3)
    managed.create(longest)
    managed.logs.delete(longest)
    (name,) = managed.disk.list("/one")
    assert len(name) == 255


def test_what_is_no_log_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    managed = Managed()
    for name in ("__cluster_metadata-0", "lost+found", "a-0.abc-stray", "no-number-x", "-1"):
        managed.disk.make_dirs(f"/one/{name}")
    managed.disk.write_atomic("/one/meta.properties", b"directory.id=AAAAAAAAAAAAAAAAAAAACQ\n")
    with caplog.at_level(logging.WARNING):
        managed.start()
    assert len(managed.logs) == 0
    assert managed.logs.directory_ids == {"/one": OTHER_ID}
    assert any("stray" in record.message for record in caplog.records)


def test_new_logs_go_where_the_fewest_are_or_where_they_are_told() -> None:
    managed = Managed("/one", "/two", "/three")
    places = [managed.create(TopicPartition("t", number)).log_dir for number in range(6)]
    assert places == ["/one", "/two", "/three"] * 2
    managed.logs.directory_ids["/two"] = OTHER_ID
    log = managed.logs.create(B, TOPIC_ID, LogConfig(), directory_id=OTHER_ID)
    assert log.log_dir == "/two"
    for log in managed.logs:
        append(log, str(log.topic_partition))
    managed.logs.shutdown()
    managed.start()
    assert len(managed.logs) == 7
    for log in managed.logs:
        assert read_values(log) == [str(log.topic_partition)]


def test_log_in_two_directories_is_taken_once(caplog: pytest.LogCaptureFixture) -> None:
    managed = Managed("/one", "/two")
    append(managed.create(), "a")
    managed.disk.make_dirs(f"/two/{A.topic}-0")
    with caplog.at_level(logging.ERROR):
        managed.start()
    assert read_values(managed.get()) == ["a"]
    assert any("ignoring the latter" in record.message for record in caplog.records)


def test_steps_look_after_every_log() -> None:
    managed = Managed()
    config = LogConfig(retention_ms=1000, flush_ms=0)
    log = managed.logs.create(A, TOPIC_ID, config)
    append(log, "a")

    async def flush() -> None:
        assert managed.logs.flush_step(NOW_MS) == 1
        assert managed.logs.flush_step(NOW_MS) in (0, 1)
        await log.flush()

    asyncio.run(flush())
    assert log.flushed_offset == 1
    assert managed.logs.retention_step(NOW_MS + 1001) == 1
    assert log.log_start_offset == 1


# Failing directories


FAILURES = {
    "append": errno.ENOSPC,
    "pread": errno.EIO,
    "open": errno.EIO,
    "fsync": errno.EIO,
    "rename": errno.EROFS,
}


def with_two() -> tuple[Managed, PartitionLog, PartitionLog]:
    managed = Managed("/one", "/two")
    bad, good = managed.create(A), managed.create(B)
    append(bad, "a")
    append(good, "b")
    assert (bad.log_dir, good.log_dir) == ("/one", "/two")
    return managed, bad, good


def touch(log: PartitionLog, managed: Managed, operation: str) -> None:
    """Do something that needs `operation`."""
    if operation == "append":
        log.append_as_leader(make_batch("x"), leader_epoch=0, now_ms=NOW_MS)
    elif operation in ("pread", "open"):
        log.tail.clear()
        log.log_directory.files.forget_below(log.directory)
        log.read(0, 100, max_offset=1)
    elif operation == "fsync":
        asyncio.run(log.flush())
    else:
        managed.logs.delete(log.topic_partition)


@pytest.mark.parametrize("operation", FAILURES)
def test_directory_goes_offline_and_the_node_lives(operation: str) -> None:
    managed, bad, good = with_two()
    managed.disk.fail(operation, "/one", FAILURES[operation])
    with pytest.raises(LogDirFailure) as failure:
        touch(bad, managed, operation)
    assert failure.value.directory == "/one"
    assert failure.value.cause is not None
    assert managed.offline == ["/one"]
    assert managed.logs.offline_dirs == {"/one"}
    assert bad.is_offline
    # Everything on it is refused from now on, even if the disk should come back.
    managed.disk.fault = None
    with pytest.raises(LogDirFailure):
        bad.append_as_leader(make_batch("x"), leader_epoch=0, now_ms=NOW_MS)
    with pytest.raises(LogDirFailure):
        bad.flush_now()
    assert managed.offline == ["/one"]
    # The other directory serves on, and takes what is created.
    append(good, "c")
    assert read_values(good) == ["b", "c"]
    assert managed.create(TopicPartition("new", 0)).log_dir == "/two"
    managed.logs.retention_step(NOW_MS)
    managed.logs.checkpoint_step()
    managed.logs.delete_step(NOW_MS)
    managed.logs.shutdown(3)
    assert managed.disk.exists("/two/.kafka_cleanshutdown")
    assert not managed.disk.exists("/one/.kafka_cleanshutdown")


def test_full_disk_leaves_no_torn_batch() -> None:
    managed = Managed()
    log = managed.create()
    append(log, "a", "b")
    managed.disk.capacity_bytes = managed.disk.total_bytes("/") - managed.disk.free_bytes("/")
    used = log.size_bytes
    managed.disk.capacity_bytes = 0
    with pytest.raises(LogDirFailure):
        log.append_as_leader(make_batch("c" * 5000), leader_epoch=0, now_ms=NOW_MS)
    assert (log.log_end_offset, log.size_bytes) == (2, used)
    managed.disk.capacity_bytes = None
    managed.start()
    assert not any(report.is_loss for report in managed.reports)
    assert read_values(managed.get()) == ["a", "b"]


def test_flush_that_fails_tells_every_waiter() -> None:
    managed = Managed()
    log = managed.create()
    append(log, "a")

    async def flush() -> list[BaseException | None]:
        managed.disk.fail("fsync")
        waiters = [log.flush() for _ in range(3)]
        return list(await asyncio.gather(*waiters, return_exceptions=True))

    assert [type(result) for result in asyncio.run(flush())] == [LogDirFailure] * 3
    assert log.flushed_offset == 0


def test_failing_flush_step_is_told_and_survived(caplog: pytest.LogCaptureFixture) -> None:
    managed = Managed()
    log = managed.logs.create(A, TOPIC_ID, LogConfig(flush_ms=0))
    append(log, "a")

    async def step() -> None:
        managed.disk.fail("fsync")
        managed.logs.flush_step(NOW_MS)
        for _ in range(5):
            await asyncio.sleep(0)

    asyncio.run(step())
    assert managed.offline == ["/one"]
    assert any("was not flushed" in record.message for record in caplog.records)


@pytest.mark.parametrize("operation", ["list", "read", "make_dirs", "open"])
def test_directory_that_fails_while_loading(operation: str) -> None:
    managed, _, _ = with_two()
    managed.disk.fail(operation, "/one")
    managed.start()
    managed.disk.fault = None
    assert managed.logs.offline_dirs == {"/one"}
    assert managed.offline == ["/one"]
    assert read_values(managed.get(B)) == ["b"]


def test_no_directory_left() -> None:
    managed = Managed()
    managed.disk.fail("make_dirs")
    with pytest.raises(LogDirFailure):
        managed.create()
    with pytest.raises(LogDirFailure):
        managed.create(B)


def test_volume() -> None:
    managed = Managed()
    managed.disk.capacity_bytes = 1000
    assert managed.logs.volume_bytes("/one") == (1000, 1000)


@pytest.mark.parametrize("seed", range(30))
def test_nodes_survive_power_cuts(seed: int) -> None:
    """Records acknowledged after a flush are never lost; others may be."""
    random = Random(seed)
    managed = Managed("/one", "/two")
    kept: dict[TopicPartition, list[str]] = {}
    count = 0
    for _ in range(6):
        for number in range(4):
            topic_partition = TopicPartition("t", number)
            log = managed.logs.get(topic_partition) or managed.create(topic_partition)
            if log.topic_id == ZERO_UUID:
                # Created but never flushed: the cluster's metadata knows the id.
                assert topic_partition not in kept
                log.assign_topic_id(TOPIC_ID)
            for _ in range(random.randint(0, 4)):
                count += 1
                append(log, str(count))
            if random.random() < 0.5:
                log.flush_now()
                kept[topic_partition] = read_values(log)
        if random.random() < 0.5:
            managed.logs.checkpoint_step()
        managed.disk.cut_power(random)
        managed.start()
        for topic_partition, values in kept.items():
            assert read_values(managed.get(topic_partition))[: len(values)] == values
            assert managed.get(topic_partition).topic_id == TOPIC_ID


def test_on_real_files(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = str(tmp_path_factory.mktemp("logs"))
    disk = LocalDisk()
    clock: Clock = ManualClock(NOW_MS)
    logs = LogManager(disk, [path], clock, LogConfig(segment_bytes=500), open_files_max=2)
    logs.load()
    for number in range(4):
        log = logs.create(TopicPartition("t", number), TOPIC_ID, LogConfig(segment_bytes=500))
        append(log, *(str(value) for value in range(30)))
    asyncio.run(flush_all(logs))
    for log in logs:
        assert read_values(log, max_bytes=200) == [str(value) for value in range(30)]
        log.tail.clear()
        assert read_values(log, max_bytes=200) == [str(value) for value in range(30)]
    total, usable = logs.volume_bytes(path)
    assert total >= usable > 0
    logs.shutdown()
    logs.load()
    assert [read_values(log) for log in logs] == [[str(value) for value in range(30)]] * 4
    logs.shutdown()
    disk.close()


async def flush_all(logs: LogManager) -> None:
    await asyncio.gather(*(log.flush() for log in logs))
    assert all(log.flushed_offset == 30 for log in logs)


def test_deletion_under_a_flush_fails_nobody() -> None:
    managed = Managed()
    log = managed.create()
    append(log, "a")

    async def delete_while_flushing() -> None:
        managed.disk.held = asyncio.Event()
        flush = asyncio.ensure_future(log.flush())
        for _ in range(3):
            await asyncio.sleep(0)
        managed.logs.delete(A)
        managed.disk.held.set()
        with pytest.raises(LogDirFailure):
            await flush

    asyncio.run(delete_while_flushing())
    assert log.is_offline
    assert managed.offline == []
    for attempt in (log.flush_now, log.roll, lambda: log.read(0, 1, max_offset=1)):
        with pytest.raises(LogDirFailure):
            attempt()
    assert managed.offline == []
    append(managed.create(), "b")


def test_partition_that_may_lie_in_an_offline_directory_is_not_begun_anew() -> None:
    managed, _, _ = with_two()
    managed.disk.fail("list", "/one")
    managed.start()
    managed.disk.fault = None
    with pytest.raises(LogDirFailure):
        managed.logs.create(A, TOPIC_ID, LogConfig(), is_new=False)
    assert managed.logs.create(A, TOPIC_ID, LogConfig()).log_dir == "/two"
