"""Damage on the medium, met while a log is read, cut, appended to or opened: each has a name here.

`test_log_damage.py` among the properties looks for more.
"""

import struct
from collections.abc import Callable

import pytest

from barnabas.base.disk import FileRange
from barnabas.base.ids import TopicPartition
from barnabas.node.log.checkpoints import read_epochs, read_offsets, take_clean_shutdown
from barnabas.node.log.config import LogConfig
from barnabas.node.log.errors import CorruptCheckpointError
from barnabas.node.log.loader import open_log
from barnabas.node.log.names import CLEAN_SHUTDOWN_FILE, LEADER_EPOCH_FILE
from barnabas.node.log.partition_log import AppendOrigin
from barnabas.node.log.segment import Segment
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import CorruptBatchError, iterate_headers, read_header
from barnabas.protocol.records.control import encode_end_txn
from support.logs import LOG_DIR, NOW_MS, TOPIC_PARTITION, LogBench, make_batch, read_values

BATCHES = 40
RECORDS = 5
"""In each batch."""
END = BATCHES * RECORDS


def bench_of_batches(segment_bytes: int = 1 << 20) -> LogBench:
    """Batches of five records whose values are their offsets, read from files and closed once."""
    bench = LogBench(
        config=LogConfig(segment_bytes=segment_bytes, index_interval_bytes=300), tail_bytes_max=0
    )
    for batch in range(BATCHES):
        first = batch * RECORDS
        values = [str(offset) for offset in range(first, first + RECORDS)]
        stamps = [NOW_MS + offset for offset in range(first, first + RECORDS)]
        assert not bench.append(make_batch(*values, timestamps=stamps)).error
    bench.close()
    bench.reopen(is_clean=True)
    return bench


def log_bytes(bench: LogBench, segment: int = 0) -> bytearray:
    return bench.disk.inode(bench.log.segments[segment].files.log_path).data


def index_bytes(bench: LogBench) -> bytearray:
    return bench.disk.inode(bench.log.segments[0].files.index_paths[0]).data


def place_of(bench: LogBench, offset: int, segment: int = 0) -> int:
    """Return the position of the batch that holds `offset` in its file."""
    for place, header in iterate_headers(bytes(log_bytes(bench, segment))):
        if header.base_offset <= offset < header.next_offset:
            return place
    raise AssertionError(offset)


def set_base_offset(bench: LogBench, offset: int, to: int, segment: int = 0) -> None:
    place = place_of(bench, offset, segment)
    struct.pack_into(">q", log_bytes(bench, segment), place, to)


def offsets_read(bench: LogBench, offset: int, max_bytes: int = 1 << 20) -> list[int]:
    """The base offsets of the batches that one read gives."""
    result = bench.log.read(offset, max_bytes, max_offset=bench.log.log_end_offset)
    assert not result.error
    data = b"".join(
        part.read() if isinstance(part, FileRange) else bytes(part) for part in result.parts
    )
    assert len(data) == result.size_bytes
    return [header.base_offset for _, header in iterate_headers(data)]


def error_at(bench: LogBench, offset: int) -> ErrorCode:
    return bench.log.read(offset, 1 << 20, max_offset=bench.log.log_end_offset).error


# Indexes


@pytest.mark.parametrize("bit", range(64))
def test_no_flipped_bit_of_an_index_entry_hides_a_record(bit: int) -> None:
    bench = bench_of_batches()
    entries = len(index_bytes(bench)) // 8
    assert entries > 6
    for entry in (0, entries // 2, entries - 2):
        intact = bytes(index_bytes(bench))
        index_bytes(bench)[entry * 8 + bit // 8] ^= 1 << bit % 8
        for offset in range(0, END, 3):
            bench.log.read_hints.clear()
            assert read_values(bench.log, offset) == [str(value) for value in range(offset, END)]
            assert offsets_read(bench, offset, 700)[0] == offset - offset % RECORDS
        assert not bench.offline
        index_bytes(bench)[:] = intact


def test_an_append_goes_on_where_the_index_was_cut_off() -> None:
    bench = bench_of_batches()
    bench.log.truncate_to(150)
    time_index = bench.disk.inode(bench.log.segments[0].files.index_paths[1]).data
    del time_index[-5:]
    for number in range(20):
        bench.fill(f"more-{number}")
    bench.close()
    bench.reopen(is_clean=True)
    assert read_values(bench.log, 150) == [f"more-{number}" for number in range(20)]


def test_an_index_that_is_of_no_use_is_not_rebuilt_at_every_look_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = bench_of_batches()
    log_bytes(bench)[place_of(bench, 100) + 16] = 9  # no magic
    assert error_at(bench, 100) is ErrorCode.CORRUPT_MESSAGE
    walks: list[int] = []
    monkeypatch.setattr(Segment, "rebuild_indexes", lambda *_: walks.append(1))
    for _ in range(5):
        assert error_at(bench, 100) is ErrorCode.CORRUPT_MESSAGE
    assert not walks


@pytest.mark.parametrize("bit", [31, 32, 40, 62, 63])
def test_indexes_are_rebuilt_around_an_offset_that_is_far_off(bit: int) -> None:
    """A relative offset has 32 bits in an index."""
    for misplaced in (95, 100, 105, 110):  # one of them has an entry
        bench = bench_of_batches()
        to = misplaced ^ (1 << bit) if bit < 63 else misplaced - 2**63
        set_base_offset(bench, misplaced, to)
        bench.log.segments[0].rebuild_indexes(300)
        assert error_at(bench, misplaced) is ErrorCode.CORRUPT_MESSAGE
        for offset in (0, 50, 94, 115, 150, END - 1):
            bench.log.read_hints.clear()
            assert offsets_read(bench, offset, 1)[0] == offset - offset % RECORDS
        found = bench.log.offset_for_timestamp(NOW_MS + 150, END)
        assert found is not None
        assert found.offset == 150


# Reads


def test_a_batch_that_claims_the_next_ones_offsets_is_not_taken_for_it() -> None:
    bench = bench_of_batches()
    set_base_offset(bench, 100, 102)
    assert offsets_read(bench, 105, 1) == [105]
    assert offsets_read(bench, 106, 1) == [105]
    for offset in range(100, 105):
        assert error_at(bench, offset) is ErrorCode.CORRUPT_MESSAGE
    assert offsets_read(bench, 95, 1) == [95]


def test_a_batch_that_steps_back_does_not_hide_the_one_before() -> None:
    bench = bench_of_batches()
    size = place_of(bench, 100) - place_of(bench, 95)
    set_base_offset(bench, 100, 36)
    assert offsets_read(bench, 95, size + 1) == [95]
    assert error_at(bench, 100) is ErrorCode.CORRUPT_MESSAGE
    assert error_at(bench, 104) is ErrorCode.CORRUPT_MESSAGE
    assert offsets_read(bench, 105, 1) == [105]
    assert offsets_read(bench, 36, 1) == [35]


def test_a_range_ends_before_a_batch_that_is_misplaced_at_its_end() -> None:
    """A reader that continues from there is refused, instead of skipping the missing records."""
    bench = bench_of_batches()
    first, misplaced = place_of(bench, 80), place_of(bench, 100)
    size = place_of(bench, 105) - first
    set_base_offset(bench, 100, 100 + 2**20)
    for max_bytes in range(misplaced - first + 1, size + 20, 7):
        bench.log.read_hints.clear()
        if max_bytes < size + 1:
            assert offsets_read(bench, 80, max_bytes)[-1] == 95
        assert error_at(bench, 100) is ErrorCode.CORRUPT_MESSAGE


def test_a_segment_that_ends_with_a_misplaced_batch_is_read_up_to_there() -> None:
    """That is how a follower would take a gap for granted, and lose what lies in it."""
    bench = bench_of_batches(segment_bytes=1000)
    end = bench.log.segments[1].base_offset
    set_base_offset(bench, end - 1, end + 500, segment=0)
    assert offsets_read(bench, 0)[-1] == end - 2 * RECORDS
    assert error_at(bench, end - RECORDS) is ErrorCode.CORRUPT_MESSAGE
    assert offsets_read(bench, end)[0] == end


def test_a_length_that_reaches_over_the_end_does_not_lead_to_the_next_segment() -> None:
    bench = bench_of_batches(segment_bytes=1000)
    place = place_of(bench, RECORDS)
    log_bytes(bench)[place + 9] ^= 1
    assert error_at(bench, RECORDS) is ErrorCode.CORRUPT_MESSAGE
    assert error_at(bench, RECORDS + 1) is ErrorCode.CORRUPT_MESSAGE


def test_what_lies_before_damage_is_read_by_whoever_asks_for_more() -> None:
    bench = bench_of_batches()
    place = place_of(bench, 100)
    log_bytes(bench)[place + 16] = 9  # no magic
    for max_bytes in (place, place + 1, place + 70):
        assert offsets_read(bench, 0, max_bytes) == list(range(0, 100, RECORDS))
    assert error_at(bench, 100) is ErrorCode.CORRUPT_MESSAGE


def test_a_file_that_was_cut_off_while_it_was_open_gives_no_short_answer() -> None:
    bench = bench_of_batches()
    del log_bytes(bench)[-20:]
    result = bench.log.read(END - 1, 1000, max_offset=END)
    assert result.error is ErrorCode.CORRUPT_MESSAGE
    assert not result.parts


def test_a_record_is_not_found_by_time_in_a_batch_that_fails_its_crc() -> None:
    bench = bench_of_batches()
    log_bytes(bench)[place_of(bench, 100) + 70] ^= 1
    assert bench.log.offset_for_timestamp(NOW_MS + 101, END) is None
    found = bench.log.offset_for_timestamp(NOW_MS + 99, END)
    assert found is not None
    assert found.offset == 99


def test_what_is_aborted_is_not_guessed() -> None:
    bench = transactional_bench()
    path = bench.log.segments[0].files.txn_index_path
    del bench.disk.inode(path).data[-1:]
    with pytest.raises(CorruptBatchError, match="txnindex"):
        bench.log.aborted_transactions(0, bench.log.log_end_offset)
    bench.log.truncate_to(bench.log.log_end_offset - 1)
    assert not bench.log.aborted_transactions(0, bench.log.log_end_offset)


def transactional_bench(transactions: int = 1) -> LogBench:
    """Transactions of producer 5, all of them aborted."""
    bench = LogBench(config=LogConfig(index_interval_bytes=100), tail_bytes_max=0)
    for number in range(transactions):
        batch = make_batch(*"abc", producer=(5, 0, 3 * number), transactional=True)
        assert not bench.append(batch).error
        marker = encode_end_txn(
            is_commit=False, coordinator_epoch=0, producer_id=5, producer_epoch=0,
            timestamp_ms=NOW_MS,
        )  # fmt: skip
        bench.log.append_as_leader(
            marker, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
        )
    return bench


# Truncation


@pytest.mark.parametrize("at", [8, 16], ids=["length", "magic"])
def test_truncation_behind_damage_cuts_there(at: int) -> None:
    """A follower fetches what it lacks; it must not end in the middle of its work."""
    bench = bench_of_batches()
    log_bytes(bench)[place_of(bench, 100) + at] ^= 0x40
    del index_bytes(bench)[:]
    bench.log.segments[0].files._offset_index = None
    bench.log.truncate_to(150)
    assert bench.log.log_end_offset == 100
    assert bench.log.recovery_point <= 100
    bench.fill("after")
    assert read_values(bench.log, 95) == ["95", "96", "97", "98", "99", "after"]


def test_truncation_with_an_index_that_was_cut_off() -> None:
    bench = bench_of_batches()
    assert offsets_read(bench, 50, 1) == [50]  # it was whole when it was looked at first
    del index_bytes(bench)[-3:]
    bench.log.truncate_to(150)
    bench.fill("after")
    assert read_values(bench.log, 149) == ["149", "after"]


# Followers


def batches(bench: LogBench, first: int, end: int) -> bytearray:
    return bytearray(log_bytes(bench)[place_of(bench, first) : place_of(bench, end)])


def follower() -> LogBench:
    return LogBench(tail_bytes_max=0)


def test_a_follower_takes_what_comes_before_a_batch_that_fails_its_crc() -> None:
    data = batches(bench_of_batches(), 0, 50)
    data[-1] ^= 1
    replica = follower()
    assert not replica.log.append_as_follower(data, leader_epoch=0, leader_high_watermark=END).error
    assert replica.log.log_end_offset == 45
    again = data[place_of(bench_of_batches(), 45) :]
    result = replica.log.append_as_follower(again, leader_epoch=0, leader_high_watermark=END)
    assert result.error is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(("to", "end"), [(24, 20), (120, 20), (3, 20)])
def test_a_follower_takes_nothing_that_may_be_misplaced(to: int, end: int) -> None:
    leader = bench_of_batches()
    set_base_offset(leader, 20, to)
    data = bytearray(log_bytes(leader)[: place_of(leader, 50)])
    replica = follower()
    assert not replica.log.append_as_follower(data, leader_epoch=0, leader_high_watermark=END).error
    assert replica.log.log_end_offset == end
    assert read_values(replica.log) == [str(offset) for offset in range(end)]


# Producers


def test_a_misplaced_batch_hides_no_producer_that_wrote_after_it() -> None:
    """Its sequence numbers would be taken for new, and a batch be stored twice."""
    bench = LogBench(config=LogConfig(index_interval_bytes=100), tail_bytes_max=0)
    for number in range(8):
        assert not bench.append(make_batch(*"ab", producer=(number % 2, 0, number // 2 * 2))).error
    bench.close()
    for name in bench.names():
        if name.endswith(".snapshot"):
            bench.disk.write_atomic(bench.path(name), b"damaged")
    set_base_offset(bench, 2, 2 + 2**20)
    bench.reopen(is_clean=True)
    for producer in (0, 1):
        entry = bench.log.producers.producers[producer]
        assert (entry.last_sequence, entry.last_offset) == (7, 13 + 2 * producer)
        again = bench.append(make_batch(*"ab", producer=(producer, 0, 6)))
        assert again.is_duplicate
        assert again.first_offset == 12 + 2 * producer


# Opening


def test_an_offset_at_the_end_of_a_closed_log_is_held_against_its_checkpoint() -> None:
    bench = bench_of_batches()
    bench.close()
    set_base_offset(bench, END - 1, END - RECORDS + 2**33)
    report = bench.reopen(is_clean=True, recovery_point=END)
    assert bench.log.log_end_offset == END - RECORDS
    assert report.flushed_lost == RECORDS
    assert read_values(bench.log) == [str(offset) for offset in range(END - RECORDS)]


def test_a_checkpoint_that_is_too_low_costs_no_record() -> None:
    bench = bench_of_batches()
    bench.close()
    bench.reopen(is_clean=True, recovery_point=END - 3)
    assert bench.log.log_end_offset == END
    assert len(read_values(bench.log)) == END


def test_an_offset_that_steps_back_at_the_end_of_a_closed_log_is_not_the_end() -> None:
    bench = bench_of_batches()
    bench.close()
    set_base_offset(bench, END - 1, 3)
    bench.reopen(is_clean=True, recovery_point=END)
    assert bench.log.log_end_offset == END - RECORDS


def test_a_start_beyond_the_end_of_a_whole_log_is_not_believed() -> None:
    """All of it would be dropped, as if it had been lost."""
    bench = bench_of_batches()
    bench.close()
    bench.reopen(is_clean=True, recovery_point=END, log_start_offset=END + 800)
    assert (bench.log.log_start_offset, bench.log.log_end_offset) == (0, END)
    assert len(read_values(bench.log)) == END


@pytest.mark.parametrize("may_have_gaps", [False, True])
def test_a_gap_at_the_end_is_damage_of_a_log_that_has_none(may_have_gaps: bool) -> None:
    """That of the metadata; in others compaction may have left it."""
    bench = bench_of_batches()
    set_base_offset(bench, END - 1, END + 100)
    log, _ = open_log(
        bench.directory,
        TOPIC_PARTITION,
        bench.config,
        is_clean=False,
        may_have_gaps=may_have_gaps,
    )
    assert log.log_end_offset == (END + 105 if may_have_gaps else END - RECORDS)


@pytest.mark.parametrize("content", [b"", b"0\n1\n5 0\n", b"0\n2\n0 0\n3 190\n"])
def test_epochs_that_no_batch_has_are_read_from_the_batches(content: bytes) -> None:
    """A follower that asks by them is never answered."""
    bench = bench_of_batches()
    bench.close()
    bench.disk.write_atomic(bench.path(LEADER_EPOCH_FILE), content)
    bench.reopen(is_clean=True, recovery_point=END)
    assert bench.log.epochs.entries == [(0, 0)]
    assert bench.log.log_end_offset == END


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe", b'{"version":0,"brokerEpoch":1e999}', b"", b"[]", bytes(4096)],
    ids=["no-text", "infinite", "empty", "list", "zeros"],
)
def test_a_marker_of_a_clean_end_that_is_garbled_tells_no_epoch(content: bytes) -> None:
    bench = LogBench()
    bench.disk.write_atomic(f"{LOG_DIR}/{CLEAN_SHUTDOWN_FILE}", content)
    assert take_clean_shutdown(bench.disk, LOG_DIR) == -1
    assert take_clean_shutdown(bench.disk, LOG_DIR) is None


READERS: list[tuple[Callable[[LogBench, bytes], object], bytes]] = [
    (lambda bench, entry: _offsets(bench, entry), b"topic 0 -5"),
    (lambda bench, entry: _offsets(bench, entry), b"topic 0 99999999999999999999"),
    (lambda bench, entry: _offsets(bench, entry), b"topic 0 1_0"),
    (lambda bench, entry: _offsets(bench, entry), "topic 0 ٣".encode()),
    (lambda bench, entry: _epochs(bench, entry), b"1 -5"),
    (lambda bench, entry: _epochs(bench, entry), b"99999999999 5"),
    (lambda bench, entry: _epochs(bench, entry), b"0 0\n0 5"),
    (lambda bench, entry: _epochs(bench, entry), b"0 7\n1 5"),
    (lambda bench, entry: _epochs(bench, entry), b"3 0\n1 5"),
]


def _offsets(bench: LogBench, entries: bytes) -> dict[TopicPartition, int]:
    path = f"{LOG_DIR}/some-checkpoint"
    bench.disk.write_atomic(path, b"0\n%d\n%s\n" % (entries.count(b"\n") + 1, entries))
    return read_offsets(bench.disk, path)


def _epochs(bench: LogBench, entries: bytes) -> list[tuple[int, int]]:
    path = bench.path(LEADER_EPOCH_FILE)
    bench.disk.write_atomic(path, b"0\n%d\n%s\n" % (entries.count(b"\n") + 1, entries))
    return read_epochs(bench.disk, bench.log.directory)


@pytest.mark.parametrize(("read", "entry"), READERS)
def test_entries_that_cannot_be_are_damage(
    read: Callable[[LogBench, bytes], object], entry: bytes
) -> None:
    with pytest.raises(CorruptCheckpointError, match="checkpoint"):
        read(LogBench(), entry)


def test_entries_that_can_be_are_read() -> None:
    assert _offsets(LogBench(), b"topic 0 5") == {TOPIC_PARTITION: 5}
    assert _epochs(LogBench(), b"0 0\n4 17") == [(0, 0), (4, 17)]


def test_header_of_the_helper() -> None:
    """`place_of` is what most of the above stands on."""
    bench = bench_of_batches()
    place = place_of(bench, 103)
    assert read_header(bytes(log_bytes(bench)), place).base_offset == 100
