"""The small parts: indexes, epochs, names, caches."""

import errno
import os

import pytest

from barnabas.base.disk import DiskFile
from barnabas.base.ids import TopicPartition
from barnabas.base.local_disk import LocalDisk
from barnabas.node.log.errors import CorruptIndexError
from barnabas.node.log.file_cache import FileCache
from barnabas.node.log.index.entries import BLOCK_ENTRIES
from barnabas.node.log.index.offset_index import OffsetIndex
from barnabas.node.log.index.time_index import TimeIndex
from barnabas.node.log.leader_epochs import LeaderEpochs
from barnabas.node.log.names import marked_directory_name, parse_directory_name, parse_offset
from barnabas.node.log.tail_cache import ENTRY_OVERHEAD_BYTES, TailBudget, TailCache
from sim.fake_disk import FakeDisk

# Indexes


def offset_index(count: int, *, written: bool) -> OffsetIndex:
    """Entries (1000 + 10 n, 100 n) for n = 1 … count."""
    index = OffsetIndex(FileCache(FakeDisk()), "/i.index", 1000, is_new=True)
    for number in range(1, count + 1):
        index.append(1000 + 10 * number, 100 * number)
    if written:
        index.write_pending()
    return index


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("count", [0, 1, 2, 50, BLOCK_ENTRIES, BLOCK_ENTRIES + 1, 1100])
def test_offset_index_look_ups(count: int, written: bool) -> None:
    index = offset_index(count, written=written)
    assert index.count == count
    for offset in [1000, 1009, 1010, 1011, 1500, 1000 + 10 * count, 1000 + 10 * count + 7]:
        number = min(count, (offset - 1000) // 10)
        expected = (1000 + 10 * number, 100 * number)
        assert index.lookup(offset) == expected
        assert index.lookup_position(100 * number + 5) == expected
    assert index.last() == (1000 + 10 * count, 100 * count)


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("offset", [999, 1000, 1010, 1015, 1250, 5000])
def test_offset_index_truncation(offset: int, written: bool) -> None:
    index = offset_index(600, written=written)
    index.truncate_to(offset)
    kept = [number for number in range(1, 601) if 1000 + 10 * number < offset]
    assert index.count == len(kept)
    index.append(9000, 70_000)
    index.write_pending()
    assert index.lookup(8000) == ((1000 + 10 * len(kept), 100 * len(kept)))
    assert index.last() == (9000, 70_000)


@pytest.mark.parametrize(
    "data",
    [b"x", bytes(16), b"\xff\xff\xff\xff\0\0\0\1", b"\0\0\0\1\x7f\0\0\0", b"\0\0\0\1\xff\0\0\0"],
    ids=["ragged", "zeros", "below the base", "beyond the segment", "negative"],
)
def test_offset_index_damage_is_found(data: bytes) -> None:
    disk = FakeDisk()
    disk.write_atomic("/i.index", data)
    with pytest.raises(CorruptIndexError):
        OffsetIndex(FileCache(disk), "/i.index", 1000).check(500)


def test_time_index() -> None:
    disk = FakeDisk()
    index = TimeIndex(FileCache(disk), "/i.timeindex", 1000, is_new=True)
    assert index.last() == (-1, 1000)
    for timestamp, offset in [(50, 1010), (50, 1020), (40, 1030), (60, 1040), (90, 1050)]:
        index.maybe_append(timestamp, offset)
    index.write_pending()
    found = {timestamp: index.lookup(timestamp) for timestamp in (0, 49, 50, 59, 60, 89, 90, 99)}
    assert found == {
        0: (-1, 1000), 49: (-1, 1000), 50: (50, 1010), 59: (50, 1010),
        60: (60, 1040), 89: (60, 1040), 90: (90, 1050), 99: (90, 1050),
    }  # fmt: skip
    index.truncate_to(1041)
    assert index.last() == (60, 1040)
    again = TimeIndex(FileCache(disk), "/i.timeindex", 1000)
    again.maybe_append(55, 1060)
    again.maybe_append(70, 1060)
    assert again.last() == (70, 1060)
    assert again.count == 3


def test_file_that_shrinks_behind_an_index() -> None:
    disk = FakeDisk()
    index = OffsetIndex(FileCache(disk), "/i.index", 0, is_new=True)
    for number in range(1, 2000):
        index.append(number, number)
    index.write_pending()
    disk.inode("/i.index").data.clear()
    with pytest.raises(CorruptIndexError):
        index.lookup(1500)
    with pytest.raises(CorruptIndexError):
        index.last()


# Epochs


def test_epochs() -> None:
    epochs = LeaderEpochs()
    assert epochs.latest_epoch == -1
    epochs.assign(0, 0)
    epochs.assign(0, 5)  # goes on
    epochs.assign(2, 10)
    epochs.assign(5, 10)  # an epoch without data gives way
    assert epochs.entries == [(0, 0), (5, 10)]
    assert epochs.is_dirty
    epochs.assign(3, 8)  # what contradicts it goes
    assert epochs.entries == [(0, 0), (3, 8)]
    assert epochs.latest_epoch == 3
    epochs.truncate_from_start(8)
    assert epochs.entries == [(3, 8)]
    epochs.truncate_from_start(12)
    assert epochs.entries == [(3, 12)]
    epochs.truncate_from_end(12)
    assert epochs.entries == []
    assert epochs.end_offset_for(0, 12) == (-1, -1)


# Names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("topic-0", TopicPartition("topic", 0)),
        ("a-b-c-17", TopicPartition("a-b-c", 17)),
        ("a.b-1.0123abc-delete", TopicPartition("a.b", 1)),
        ("a-1.x-stray", TopicPartition("a", 1)),
        ("a-1.x-future", TopicPartition("a", 1)),
        ("a-delete", None),
        ("-0", None),
        ("a-", None),
        ("a-x", None),
        ("a-١", None),
        ("plain", None),
        ("meta.properties", None),
    ],
)
def test_directory_names(name: str, expected: TopicPartition | None) -> None:
    assert parse_directory_name(name) == expected


def test_marked_names_come_back() -> None:
    name = marked_directory_name(TopicPartition("a-b", 3), "f" * 32, "-delete")
    assert parse_directory_name(name) == TopicPartition("a-b", 3)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("00000000000000000042.log", 42),
        ("42.log", None),
        ("0000000000000000004x.log", None),
        ("00000000000000000042.log.deleted", None),
        ("00000000000000000042.index", None),
    ],
)
def test_offsets_in_names(name: str, expected: int | None) -> None:
    assert parse_offset(name, ".log") == expected


# Caches


def test_tail_is_bounded_per_log_and_in_all() -> None:
    entry = 100 + ENTRY_OVERHEAD_BYTES
    budget = TailBudget(total_bytes_max=10 * entry, log_bytes_max=4 * entry)
    first, second, third = (TailCache(budget, 0) for _ in range(3))
    for offset in range(10):
        first.append(bytes(100), offset + 1)
    assert (first.size_bytes, first.start_offset) == (4 * entry, 6)
    for tail in (second, third):
        for offset in range(4):
            tail.append(bytes(100), offset + 1)
    # The one that was appended to longest ago gave everything.
    assert (first.size_bytes, first.start_offset) == (0, 10)
    assert budget.used_bytes == 8 * entry
    first.append(bytes(4 * entry + 1), 20)
    assert (first.size_bytes, first.start_offset) == (0, 20)
    second.clear(2)
    assert budget.used_bytes == 4 * entry
    assert second.read(2, 100, 9, True) == ([], 0, 2)


def test_tail_stays_right_over_many_appends() -> None:
    log_bytes_max = 500 * (10 + ENTRY_OVERHEAD_BYTES)
    budget = TailBudget(2 * log_bytes_max, log_bytes_max)
    tail = TailCache(budget, 0)
    for offset in range(2000):
        tail.append(offset.to_bytes(10, "big"), offset + 1)
    assert tail.start_offset == 1500
    for offset in range(1500, 2000):
        parts, size, next_offset = tail.read(offset, 35, 2000, True)
        assert [int.from_bytes(part, "big") for part in parts] == list(
            range(offset, min(offset + 3, 2000))
        )
        assert (size, next_offset) == (10 * len(parts), offset + len(parts))


def test_tail_pins_no_frame_that_is_much_larger() -> None:
    budget = TailBudget()
    tail = TailCache(budget, 0)
    frame = bytearray(100_000)
    tail.append(memoryview(frame)[:200], 1)
    tail.append(memoryview(frame)[100:], 2)
    small, large = tail.read(0, 1 << 20, 2, True)[0]
    assert type(small) is bytes
    assert type(large) is memoryview


def test_file_cache_is_bounded_and_lets_readers_finish() -> None:
    disk = FakeDisk()
    files = FileCache(disk, 3)
    for number in range(10):
        files.get(f"/{number}", create=True).append((b"x",))
    assert len(files) == 3
    files.forget("/9")
    assert len(files) == 2


def test_evicted_file_is_closed_when_nobody_reads_it(tmp_path: object) -> None:
    disk = LocalDisk()
    files = FileCache(disk, 1)
    file: DiskFile | None = files.get(f"{tmp_path}/a", create=True)
    assert file is not None
    file.append((b"abc",))
    fd = file.fileno()
    files.get(f"{tmp_path}/b", create=True)
    assert file.pread(3, 0) == b"abc"
    file = None
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    disk.close()


def test_too_many_open_files_is_no_fault_of_the_disk() -> None:
    disk = FakeDisk()
    files = FileCache(disk, 100)
    for number in range(10):
        files.get(f"/{number}", create=True)
    refusals = 1

    def fault(operation: str, path: str) -> None:
        nonlocal refusals
        if operation == "open" and refusals:
            refusals -= 1
            raise OSError(errno.EMFILE, "too many open files", path)

    disk.fault = fault
    files.get("/x", create=True)
    assert len(files) == 6
