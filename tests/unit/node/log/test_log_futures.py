"""Future logs: what passes from a log to the copy that takes its place, and what may go wrong."""

import asyncio
import errno

import pytest
from test_log_manager import A, B, Managed, append

from barnabas.base.ids import TopicPartition
from barnabas.node.log.config import LogConfig
from barnabas.node.log.copying import CopyError, copy_some, is_caught_up
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.partition_log import PartitionLog
from barnabas.protocol.errors import ErrorCode
from support.logs import NOW_MS, TOPIC_ID, make_batch, read_values

CHUNK = 1 << 20


class Moved(Managed):
    """A log in /one, and its copy in /two."""

    def __init__(self, topic_partition: TopicPartition = A) -> None:
        super().__init__("/one", "/two")
        self.topic_partition = topic_partition
        self.log = self.create(topic_partition)
        assert self.log.log_dir == "/one"

    def begin(self) -> PartitionLog:
        return self.logs.futures.create(self.log, self.logs.directory("/two"))

    def copy(self) -> PartitionLog:
        future = self.logs.futures.get(self.topic_partition) or self.begin()
        while True:
            copy_some(self.log, future, CHUNK)
            if is_caught_up(self.log, future):
                return future

    def replace(self) -> PartitionLog:
        self.logs.futures.prepare(self.log, self.copy())
        return self.logs.futures.replace(self.topic_partition)


def produced(sequence: int, *, transactional: bool = False) -> bytearray:
    return make_batch(f"v{sequence}", producer=(7, 0, sequence), transactional=transactional)


def send(log: PartitionLog, batch: bytearray) -> tuple[ErrorCode, int, bool]:
    result = log.append_as_leader(batch, leader_epoch=3, now_ms=NOW_MS)
    return result.error, result.first_offset, result.is_duplicate


def test_what_is_known_of_producers_passes_over() -> None:
    moved = Moved()
    for sequence in range(6):
        send(moved.log, produced(sequence))
    moved.log.high_watermark = 6
    verification = moved.log.producers.verify(8, 0, 0, NOW_MS, is_version_2=True)
    # Of this one no batch is left: only memory tells.
    moved.log.roll()
    moved.log.delete_records_before(6)
    moved.log.apply_retention(NOW_MS)
    log = moved.replace()
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (6, 6, 6)
    assert send(log, produced(5)) == (ErrorCode.NONE, 5, True)
    assert send(log, produced(7))[0] is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, produced(6)) == (ErrorCode.NONE, 6, False)
    assert log.producers.verifications[8] is verification


def test_an_open_transaction_stays_open() -> None:
    moved = Moved()
    append(moved.log, "a")
    send(moved.log, produced(0, transactional=True))
    moved.log.high_watermark = 2
    log = moved.replace()
    assert log.last_stable_offset == 1
    moved.start()
    assert moved.get().producers.first_unstable_offset(2) == 1


def test_an_epoch_in_which_nothing_was_written_passes_over() -> None:
    moved = Moved()
    append(moved.log, "a")
    moved.log.start_leader_epoch(9)
    log = moved.replace()
    assert log.epochs.entries == [(0, 0), (9, 1)]


def test_an_empty_log_moves() -> None:
    moved = Moved()
    log = moved.replace()
    append(log, "a")
    log.flush_now()
    moved.start()
    assert (moved.get().log_dir, read_values(moved.get())) == ("/two", ["a"])


def test_what_was_there_before_is_removed_later() -> None:
    moved = Moved()
    append(moved.log, "a")
    moved.replace()
    assert moved.logs.get(A) is not moved.log
    [left] = [name for name in moved.disk.list("/one") if name.startswith(A.topic)]
    assert left.endswith("-delete")
    moved.clock.time_ms += moved.log.config.file_delete_delay_ms
    assert moved.logs.delete_step(moved.clock.time_ms) == 1
    assert not [name for name in moved.disk.list("/one") if name.startswith(A.topic)]
    with pytest.raises(LogDirFailure):
        moved.log.read(0, 1, max_offset=1)
    assert moved.offline == []


def test_files_that_wait_to_be_removed_move_along() -> None:
    moved = Moved()
    moved.log.config = LogConfig(segment_bytes=100, file_delete_delay_ms=1000)
    append(moved.log, *"abcdef")
    future = moved.copy()
    future.delete_records_before(4)
    future.apply_retention(NOW_MS)
    log = moved.replace()
    deleted = [name for name in moved.disk.list(log.directory) if name.endswith(".deleted")]
    assert deleted
    moved.logs.delete_step(moved.clock.time_ms + 1000)
    assert not [name for name in moved.disk.list(log.directory) if name.endswith(".deleted")]


async def test_who_waits_for_a_flush_gets_it() -> None:
    moved = Moved()
    append(moved.log, "a")
    moved.disk.held = asyncio.Event()
    first = asyncio.ensure_future(moved.log.flush())
    await asyncio.sleep(0)
    append(moved.log, "b")
    second = asyncio.ensure_future(moved.log.flush())
    await asyncio.sleep(0)
    log = moved.replace()
    moved.disk.held.set()
    await asyncio.gather(first, second)
    assert log.flushed_offset == 2
    assert moved.offline == []


@pytest.mark.parametrize("number", [1, 2])
def test_a_directory_that_fails_as_they_change_places(number: int) -> None:
    """Whichever rename fails, one of the two logs is there."""
    moved = Moved()
    append(moved.log, "a", "b")
    future = moved.copy()
    moved.logs.futures.prepare(moved.log, future)
    renames = 0

    def fault(operation: str, path: str) -> None:
        nonlocal renames
        if operation == "rename" and A.topic in path:
            renames += 1
            if renames == number:
                raise OSError(errno.EIO, "I/O error", path)

    moved.disk.fault = fault
    with pytest.raises(LogDirFailure):
        moved.logs.futures.replace(A)
    assert moved.offline == [["/one"], ["/two"]][number - 1]
    assert moved.logs.get(A) is moved.log
    assert not moved.log.is_closed
    if number == 2:
        append(moved.log, "c")
        moved.log.flush_now()
    moved.disk.fault = None
    moved.offline.clear()
    moved.start()
    assert read_values(moved.get()) == ["a", "b", "c"][: number + 1]
    assert moved.get().log_dir == "/one"


def test_a_damaged_batch_is_not_copied() -> None:
    moved = Moved()
    append(moved.log, "a", "b")
    file = moved.disk.open(f"{moved.log.directory}/{0:020d}.log")
    file.pwrite(b"\xff", file.size() - 1)
    moved.log.tail.clear()
    future = moved.begin()
    with pytest.raises(CopyError, match="CRC"):
        moved.copy()
    assert future.log_end_offset < 2
    assert moved.offline == []


def test_of_two_copies_the_second_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    managed = Managed("/one", "/two", "/three")
    log = managed.create()
    append(log, "a")
    for path in ("/two", "/three"):
        copy_some(log, managed.logs.futures.create(log, managed.logs.directory(path)), CHUNK)
        managed.logs.futures.forget(A)
    managed.start()
    [future] = managed.logs.futures
    assert future.log_dir == "/two"
    assert "ignoring the latter" in caplog.text
    assert any(name.endswith("-future") for name in managed.disk.list("/three"))


def test_a_copy_is_closed_and_opened_cleanly() -> None:
    moved = Moved()
    append(moved.log, "a", "b")
    moved.copy()
    moved.create(B)
    moved.logs.shutdown(5)
    assert f"{A.topic} 0 2" in moved.text("/two/recovery-point-offset-checkpoint")
    moved.start()
    assert moved.logs.previous_broker_epochs == {"/one": 5, "/two": 5}
    assert not any(report.segments_scanned for report in moved.reports)
    [future] = moved.logs.futures
    assert (future.log_end_offset, future.recovery_point) == (2, 2)
    assert moved.get().log_dir == "/one"


def test_a_log_that_was_compacted_is_known_as_such() -> None:
    moved = Moved()
    append(moved.log, "a", "b")
    moved.log.cleaned_offset = 1
    future = moved.begin()
    assert future.cleaned_offset == 1
    assert (moved.log.is_moving, future.is_moving) == (False, True)
    log = moved.replace()
    assert not log.is_moving
    assert moved.text("/two/cleaner-offset-checkpoint") == f"0\n1\n{A.topic} 0 1\n"


def test_a_first_round_that_ends_meanwhile_counts_for_nothing() -> None:
    moved = Moved()
    append(moved.log, "a", "b")
    future = moved.begin()
    assert future.cleaned_offset is None
    moved.log.cleaned_offset = 2
    log = moved.replace()
    assert log.cleaned_offset == 0
    assert moved.text("/two/cleaner-offset-checkpoint") == f"0\n1\n{A.topic} 0 0\n"


def test_a_topic_id_is_kept() -> None:
    moved = Moved()
    append(moved.log, "a")
    moved.replace()
    moved.start()
    assert moved.get().topic_id == TOPIC_ID


@pytest.mark.parametrize("is_replaced", [True, False])
def test_gaps_of_compaction_are_copied_and_outlive_a_crash(is_replaced: bool) -> None:
    moved = Moved()
    moved.log.config = LogConfig(segment_bytes=150, cleanup_policy=frozenset({"compact"}))
    offsets = [0, 4, 5, 9, 20, 21, 40]
    for offset in offsets:
        batch = make_batch(str(offset), key="k", base_offset=offset, leader_epoch=offset // 5)
        assert not moved.log.append_as_follower(batch).error
    moved.log.high_watermark = 41
    moved.log.cleaned_offset = 30
    moved.logs.directory("/one").renew_checkpoint()
    assert len(moved.log.segments) > 3
    future = moved.copy()
    if is_replaced:
        moved.replace()
    future.flush_now()
    moved.start()
    if not is_replaced:
        assert read_values(moved.get()) == list(map(str, offsets))
        [future] = moved.logs.futures
    else:
        future = moved.get()
        assert future.log_dir == "/two"
    assert future.gap_offset is None
    assert (future.log_start_offset, future.log_end_offset) == (0, 41)
    assert read_values(future) == list(map(str, offsets))
    assert future.epochs.entries == [(0, 0), (1, 5), (4, 20), (8, 40)]
