"""Opening a log after a crash: what damage costs, what is rebuilt, and what is said about it."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.node.log.config import LogConfig
from barnabas.protocol.records.batch import HEADER_SIZE_BYTES, set_crc
from support.logs import LogBench, make_batch, read_values

BATCH_BYTES = len(make_batch("0"))
SEGMENT = f"{0:020d}"


def filled(count: int = 6, per_segment: int = 100, **config: Any) -> LogBench:
    bench = LogBench(
        config=LogConfig(
            segment_bytes=per_segment * BATCH_BYTES, index_interval_bytes=100, **config
        )
    )
    bench.fill(*(str(number) for number in range(count)), epoch=3)
    return bench


def data_of(bench: LogBench, index: int = 0) -> bytearray:
    return bench.disk.inode(bench.log.segments[index].files.log_path).data


Damage = Callable[[bytearray], None]


def at(number: int, place: int = 0) -> int:
    return number * BATCH_BYTES + place


def cut(size: int) -> Damage:
    def damage(data: bytearray) -> None:
        del data[size:]

    return damage


def put(position: int, replacement: bytes) -> Damage:
    def damage(data: bytearray) -> None:
        data[position : position + len(replacement)] = replacement

    return damage


def grow(tail: bytes) -> Damage:
    def damage(data: bytearray) -> None:
        data += tail

    return damage


def lie_about_offset(data: bytearray) -> None:
    data[at(4) : at(4) + 8] = (2).to_bytes(8, "big")


def offset_at(number: int, offset: int) -> Damage:
    """Another base offset, which no CRC covers."""
    return put(at(number), offset.to_bytes(8, "big"))


def stretch(data: bytearray) -> None:
    data[at(4, 23) : at(4, 27)] = (-5).to_bytes(4, "big", signed=True)
    set_crc(data, at(4))


DAMAGES: dict[str, tuple[Damage, int, str]] = {
    "a torn last batch": (cut(at(6, -1)), 5, "are there"),
    "a torn last header": (cut(at(5, HEADER_SIZE_BYTES - 1)), 5, "too few"),
    "one byte of a batch": (cut(at(5, 1)), 5, "too few"),
    "zeros at the end": (grow(bytes(4096)), 6, "magic 0"),
    "a few zeros at the end": (grow(bytes(7)), 6, "too few"),
    "garbage at the end": (grow(b"\xa5" * 200), 6, "magic"),
    "a flipped bit in a value": (put(at(2, BATCH_BYTES - 2), b"?"), 2, "CRC"),
    "a flipped bit in a CRC": (put(at(2, 17), b"????"), 2, "CRC"),
    "another magic": (put(at(3, 16), b"\1"), 3, "magic 1"),
    "a negative length": (put(at(3, 8), b"\xff\xff\xff\xff"), 3, "length -1"),
    "a length beyond the file": (put(at(3, 8), b"\x7f\0\0\0"), 3, "are there"),
    "a length that is too short": (put(at(3, 8), b"\0\0\0\5"), 3, "below"),
    "the first batch gone": (put(0, bytes(BATCH_BYTES)), 0, "magic 0"),
    "offsets that go back": (lie_about_offset, 4, "offset 2 comes after 3"),
    "an offset that is far ahead": (offset_at(2, 1026), 2, "offset 3 comes after 1026"),
    "an offset that is a little ahead": (offset_at(2, 3), 2, "offset 3 comes after 3"),
    "a first offset that is ahead": (offset_at(0, 64), 0, "offset 1 comes after 64"),
    "an impossible offset delta": (stretch, 4, "delta -5"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_cuts_at_the_first_damage(name: str, caplog: pytest.LogCaptureFixture) -> None:
    damage, kept, reason = DAMAGES[name]
    bench = filled()
    before = len(data_of(bench))
    damage(data_of(bench))
    after = len(data_of(bench))
    with caplog.at_level(logging.WARNING):
        report = bench.reopen(recovery_point=0)
    assert read_values(bench.log) == [str(number) for number in range(kept)]
    assert bench.log.log_end_offset == kept
    assert report.cut_at_offset == kept
    assert report.bytes_cut == after - at(kept)
    assert reason in report.cut_reason
    (line,) = [record.message for record in caplog.records if "cut" in record.message]
    assert f"cut {report.bytes_cut} bytes" in line
    assert f"offset {kept}" in line
    assert before == at(6)
    # The log goes on where it was cut, and a second look finds nothing.
    bench.fill("next")
    report = bench.reopen(recovery_point=0)
    assert not report.is_loss
    assert read_values(bench.log)[-1] == "next"
    assert bench.log.log_end_offset == kept + 1


def test_undamaged_log_loses_nothing() -> None:
    bench = filled()
    report = bench.reopen(recovery_point=0)
    assert not report.is_loss
    assert report.segments_scanned == 1
    assert read_values(bench.log) == list("012345")
    assert bench.log.epochs.entries == [(3, 0)]


def test_damage_in_the_middle_takes_later_segments_with_it() -> None:
    bench = filled(9, per_segment=3)
    assert [segment.base_offset for segment in bench.log.segments] == [0, 3, 6]
    data_of(bench, 1)[at(1, BATCH_BYTES - 1)] ^= 1
    report = bench.reopen(recovery_point=0)
    assert (report.cut_at_offset, report.segments_dropped, report.bytes_cut) == (4, 1, at(5))
    assert read_values(bench.log) == list("0123")
    assert [segment.base_offset for segment in bench.log.segments] == [0, 3]
    assert not any(name.startswith(f"{6:020d}.log") and name.endswith(".log")
                   for name in bench.names())  # fmt: skip


def test_only_what_was_not_flushed_is_scanned() -> None:
    bench = filled(9, per_segment=3)
    data_of(bench, 0)[at(1, BATCH_BYTES - 1)] ^= 1
    report = bench.reopen(recovery_point=7)
    assert (report.segments_scanned, report.is_loss) == (1, False)
    assert bench.log.log_end_offset == 9


def test_clean_log_is_not_scanned() -> None:
    bench = filled()
    bench.log.close()
    data_of(bench)[at(1, BATCH_BYTES - 1)] ^= 1
    report = bench.reopen(is_clean=True)
    assert (report.segments_scanned, report.is_loss) == (0, False)


def test_lost_end_of_an_earlier_segment_takes_the_later_ones() -> None:
    """Of two files that were not synced the later may survive whole."""
    bench = filled(9, per_segment=3)
    del data_of(bench, 1)[at(1) :]
    report = bench.reopen(recovery_point=0)
    assert read_values(bench.log) == list("0123")
    assert "starts at offset 6" in report.cut_reason


def test_gaps_of_compaction_are_left_alone() -> None:
    bench = LogBench(config=LogConfig(cleanup_policy=frozenset({"compact"})))
    for offset in (0, 4, 9):
        bench.log.append_as_follower(make_batch("x", key="k", base_offset=offset))
        bench.log.roll()
    bench.log.append_as_follower(make_batch("y", key="k", base_offset=20))
    report = bench.reopen(recovery_point=0)
    assert report.cut_at_offset is None
    assert read_values(bench.log) == ["x", "x", "x", "y"]


def test_gap_is_left_alone_where_an_offset_steps_back_beyond_it() -> None:
    """It is the offset that steps back which cannot be true then."""
    bench = LogBench(config=LogConfig(cleanup_policy=frozenset({"compact"})))
    for offset in (0, 1, 5, 9):
        bench.log.append_as_follower(make_batch(f"{offset}", key="k", base_offset=offset))
    size = len(make_batch("0", key="k"))
    put(3 * size, (1).to_bytes(8, "big"))(data_of(bench))
    report = bench.reopen(recovery_point=0)
    assert read_values(bench.log) == ["0", "1", "5"]
    assert (report.cut_at_offset, report.bytes_cut) == (6, size)


def test_offset_that_is_ahead_at_the_end_of_a_segment() -> None:
    bench = filled(9, per_segment=3)
    offset_at(2, 5 + 64)(data_of(bench, 1))
    report = bench.reopen(recovery_point=0)
    assert read_values(bench.log) == list("01234")
    assert (report.cut_at_offset, report.segments_dropped, report.bytes_cut) == (5, 1, at(4))
    assert bench.log.log_end_offset == 5


@pytest.mark.parametrize("number", range(5))
def test_no_flipped_bit_of_an_offset_is_believed(number: int) -> None:
    """Of the last batch it may be: nothing comes after that."""
    bench = filled(6, per_segment=3)
    index, place = divmod(number, 3)
    intact = [bytes(data_of(bench, which)) for which in range(2)]
    paths = [segment.files.log_path for segment in bench.log.segments]
    for bit in range(64):
        for path, data in zip(paths, intact, strict=True):
            bench.disk.write_atomic(path, data)
        bench.disk.inode(paths[index]).data[at(place, 7 - bit // 8)] ^= 1 << bit % 8
        report = bench.reopen(recovery_point=0)
        found = read_values(bench.log)
        assert found == [str(kept) for kept in range(number)], (bit, found)
        assert (bench.log.log_end_offset, report.cut_at_offset) == (number, number)


def test_batch_whose_offset_is_ahead_leaves_nothing_behind() -> None:
    """Neither its epoch nor its producer, nor an entry in an index."""
    bench = filled(2)
    bench.append(make_batch("2", producer=(7, 0, 0)), epoch=5)
    bench.fill("3", epoch=5)
    offset_at(2, 2 + 64)(data_of(bench))
    bench.reopen(recovery_point=0)
    assert bench.log.log_end_offset == 2
    assert bench.log.epochs.entries == [(3, 0)]
    assert not bench.log.producers.producers
    assert bench.log.max_timestamp_offset(2) is not None
    assert read_values(bench.log) == ["0", "1"]


def test_segment_that_a_truncation_left_behind_is_dropped() -> None:
    bench = filled(9, per_segment=3)
    stale = bytes(data_of(bench, 2))
    bench.log.truncate_to(2)
    bench.log.config = LogConfig()
    bench.fill(*"abcdef")
    bench.disk.write_atomic(bench.path(f"{6:020d}.log"), stale)
    report = bench.reopen(recovery_point=0)
    assert read_values(bench.log) == ["0", "1", *"abcdef"]
    assert "starts at offset 6" in report.cut_reason


INDEX_DAMAGES: dict[str, Callable[[LogBench, str], object]] = {
    "missing": lambda bench, path: bench.disk.remove(path),
    "empty": lambda bench, path: bench.disk.inode(path).data.clear(),
    "ragged": lambda bench, path: bench.disk.inode(path).data.pop(),
    "preallocated": lambda bench, path: bench.disk.inode(path).data.extend(bytes(240)),
    "all zeros": lambda bench, path: put(0, bytes(24))(bench.disk.inode(path).data),
    "garbage": lambda bench, path: put(0, b"\x13\x57" * 12)(bench.disk.inode(path).data),
    "positions between batches": lambda bench, path: put(7, b"\x41")(bench.disk.inode(path).data),
}


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("name", INDEX_DAMAGES)
def test_index_is_rebuilt(name: str, suffix: str, is_clean: bool) -> None:
    bench = filled(12, per_segment=8)
    bench.log.close()
    expected = {
        path: bytes(bench.disk.inode(path).data)
        for segment in bench.log.segments
        for path in (segment.files.offset_index.path, segment.files.time_index.path)
    }
    for segment in bench.log.segments:
        index = segment.files.offset_index if suffix == ".index" else segment.files.time_index
        INDEX_DAMAGES[name](bench, index.path)
    bench.reopen(is_clean=is_clean, recovery_point=0)
    log = bench.log
    assert log.log_end_offset == 12
    for offset in range(12):
        result = log.read(offset, 1, max_offset=12)
        assert result.next_offset == offset + 1
        assert read_values(log, offset)[0] == str(offset)
    found = log.offset_for_timestamp(bench.clock.time_ms, 12)
    assert found is not None
    assert found.offset == 0
    if name == "missing" or not is_clean:
        bench.log.close()
        for path, data in expected.items():
            assert bytes(bench.disk.inode(path).data) == data


def test_index_that_points_into_nothing_is_rebuilt_when_it_is_used() -> None:
    bench = filled(12)
    bench.log.close()
    index = bench.disk.inode(bench.log.active.files.offset_index.path).data
    for entry in range(0, len(index), 8):
        index[entry + 4 : entry + 8] = (int.from_bytes(index[entry + 4 : entry + 8]) + 3).to_bytes(
            4
        )
    bench.reopen(is_clean=True)
    assert read_values(bench.log, 7) == [str(number) for number in range(7, 12)]


def test_orphans_and_temporary_files_are_removed() -> None:
    bench = filled()
    for name in (
        f"{99:020d}.index",
        f"{99:020d}.timeindex",
        f"{99:020d}.txnindex",
        f"{5:020d}.log.deleted",
        f"{5:020d}.log.cleaned",
        f"{5:020d}.index.cleaned",
    ):
        bench.disk.write_atomic(bench.path(name), b"x" * 24)
    bench.disk.write_atomic(bench.path("00000000000000000003-0000000001.checkpoint.deleted"), b"")
    report = bench.reopen()
    assert len(report.files_removed) == 6
    assert read_values(bench.log) == list("012345")
    assert not [name for name in bench.names() if name.endswith((".cleaned", "d.index"))]
    assert any(name.endswith(".checkpoint.deleted") for name in bench.names())


def test_interrupted_replacement_by_compaction_is_completed() -> None:
    bench = filled(9, per_segment=3)
    bench.log.close()
    kept = make_batch("8", key="k", base_offset=4)
    swapped = bytes(data_of(bench, 0)[: at(1)]) + bytes(kept)
    bench.disk.write_atomic(bench.path(f"{SEGMENT}.log.swap"), swapped)
    bench.disk.write_atomic(bench.path(f"{SEGMENT}.index.swap"), b"")
    bench.disk.write_atomic(bench.path(f"{SEGMENT}.timeindex.swap"), b"")
    bench.reopen(is_clean=True)
    assert read_values(bench.log) == ["0", "8", "6", "7", "8"]
    assert [segment.base_offset for segment in bench.log.segments] == [0, 6]


def test_replacement_that_was_not_complete_is_undone() -> None:
    bench = filled(9, per_segment=3)
    bench.disk.write_atomic(bench.path(f"{SEGMENT}.log.swap"), b"")
    bench.disk.write_atomic(bench.path(f"{SEGMENT}.log.cleaned"), b"")
    bench.reopen(is_clean=False, recovery_point=0)
    assert read_values(bench.log) == list("012345678")


def test_log_without_segments_starts_where_it_was_told() -> None:
    bench = filled()
    for name in bench.names():
        bench.disk.remove(bench.path(name))
    bench.reopen(recovery_point=6, log_start_offset=4)
    assert (bench.log.log_start_offset, bench.log.log_end_offset) == (4, 4)
    bench.fill("next")
    assert read_values(bench.log) == ["next"]


def test_log_that_ends_before_its_start_begins_anew() -> None:
    bench = filled()
    del data_of(bench)[at(3) :]
    bench.reopen(recovery_point=0, log_start_offset=5)
    assert (bench.log.log_start_offset, bench.log.log_end_offset) == (5, 5)
    assert read_values(bench.log) == []
    bench.fill("next")
    bench.reopen(recovery_point=5, log_start_offset=5)
    assert read_values(bench.log) == ["next"]


@pytest.mark.parametrize("content", [b"", b"garbage", b"0\n2\n3 0\n", b"9\n1\n3 0\n", b"0\n1\nx\n"])
def test_damaged_epoch_file_is_read_from_the_batches(content: bytes) -> None:
    bench = filled()
    bench.log.close()
    bench.disk.write_atomic(bench.path("leader-epoch-checkpoint"), content)
    bench.reopen(is_clean=True)
    if content:
        assert bench.log.epochs.entries == [(3, 0)]
    assert read_values(bench.log) == list("012345")


def test_epochs_of_what_was_lost_are_forgotten() -> None:
    bench = LogBench()
    for epoch in range(4):
        bench.fill(str(epoch), epoch=epoch)
    bench.log.flush_now()
    assert bench.log.epochs.entries == [(0, 0), (1, 1), (2, 2), (3, 3)]
    del data_of(bench)[at(2) :]
    bench.reopen(recovery_point=0)
    assert bench.log.epochs.entries == [(0, 0), (1, 1)]


@pytest.mark.parametrize("content", [b"", b"version: 0", b"version: 7\ntopic_id: x", b"\xff\xfe"])
def test_log_without_a_good_topic_id_opens_with_none(content: bytes) -> None:
    bench = filled()
    bench.disk.write_atomic(bench.path("partition.metadata"), content)
    bench.reopen()
    assert bench.log.topic_id == bytes(16)
    assert read_values(bench.log) == list("012345")
