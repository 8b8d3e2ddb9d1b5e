"""Compaction: the records, tombstones and markers that it keeps, and the batches that it writes."""

import pytest

from barnabas.node.log.compaction.compactor import CompactionSettings
from barnabas.node.log.config import LogConfig
from barnabas.node.log.index.txn_index import AbortedTransaction
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import Codec, TimestampType
from barnabas.protocol.records.records import Record, encode_batch
from support.compaction import CompactionBench, Pair, compact_config
from support.logs import NOW_MS, read_records

RETENTION_MS = 1000
LONG_KEY = "a key of more than thirty bytes, for which a digest stands"


@pytest.mark.parametrize("codec", list(Codec))
def test_the_latest_record_of_each_key_stays(codec: Codec) -> None:
    bench = CompactionBench()
    for number in range(60):
        bench.put(*((f"key-{index}", f"{number}.{index}" * 5) for index in range(4)), codec=codec)
    end = bench.log.log_end_offset
    assert bench.compact() == 1
    assert bench.pairs() == [(236 + index, f"key-{index}", f"59.{index}" * 5) for index in range(4)]
    assert (bench.log.log_start_offset, bench.log.log_end_offset) == (0, end)
    assert bench.log.cleaned_offset == end
    assert bench.checkpoints == [0, end]
    assert {header.codec for header, records in bench.batches() if records} == {codec}


Table = dict[str, tuple[list[list[Pair]], list[tuple[int, str, str | None]]]]

KEPT: Table = {
    "one record": ([[("a", "1")]], [(0, "a", "1")]),
    "superseded": ([[("a", "1")], [("a", "2")]], [(1, "a", "2")]),
    "superseded in its batch": (
        [[("a", "1"), ("b", "1"), ("a", "2")]],
        [(1, "b", "1"), (2, "a", "2")]),
    "other keys": ([[("a", "1")], [("b", "1")]], [(0, "a", "1"), (1, "b", "1")]),
    "an empty key is a key": ([[("", "1")], [("", "2")]], [(1, "", "2")]),
    "an empty value is not a tombstone": ([[("a", "")]], [(0, "a", "")]),
    "long keys": ([[(LONG_KEY, "1"), (LONG_KEY + "!", "1")], [(LONG_KEY, "2")]],
                  [(1, LONG_KEY + "!", "1"), (2, LONG_KEY, "2")]),
    "a tombstone": ([[("a", "1")], [("a", None)]], [(1, "a", None)]),
    "a tombstone that is taken back": ([[("a", "1"), ("a", None)], [("a", "2")]], [(2, "a", "2")]),
    "a hole in the middle of a batch": (
        [[("a", "1"), ("b", "1"), ("c", "1")], [("b", "2")]],
        [(0, "a", "1"), (2, "c", "1"), (3, "b", "2")]),
}  # fmt: skip


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize(("batches", "kept"), KEPT.values(), ids=KEPT)
def test_what_stays(
    batches: list[list[Pair]], kept: list[tuple[int, str, str | None]], codec: Codec
) -> None:
    bench = CompactionBench()
    for pairs in batches:
        bench.put(*pairs, codec=codec)
        bench.seal()
    bench.compact()
    assert bench.pairs() == kept
    bench.reopen()
    assert bench.pairs() == kept


def test_headers_timestamps_and_values_stay_as_they_were() -> None:
    bench = CompactionBench(config=compact_config(segment_bytes=100_000))
    written = [
        Record(offset, NOW_MS + stamp, b"key-%d" % offset, value, [("h", b"v" * size), ("n", None)])
        for offset, (stamp, value, size) in enumerate(
            [(0, b"x" * 300, 0), (5000, None, 70), (-3, b"", 9000), (70_000, b"y" * 20_000, 1)]
        )
    ]
    batch = encode_batch([*written, Record(4, NOW_MS, b"z", b"0"), Record(5, NOW_MS, b"z")])
    assert not bench.append(batch).error
    bench.log.high_watermark = 6
    bench.compact()
    found = read_records(bench.log)
    assert found[:4] == written
    assert [record.offset for record in found] == [0, 1, 2, 3, 5]
    (header, _), *_ = bench.batches()
    assert header.max_timestamp == NOW_MS + 70_000
    assert header.last_offset == 5


def test_log_append_time_stays() -> None:
    bench = CompactionBench(config=compact_config(message_timestamp_type="LogAppendTime"))
    bench.put(("a", "1"), ("b", None), ("a", "2"))
    bench.compact()
    (header, records), *_ = bench.batches()
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [record.timestamp for record in records] == [bench.clock.time_ms] * 2


# Tombstones


def test_a_tombstone_goes_once_its_horizon_has_passed() -> None:
    bench = CompactionBench()
    bench.put(("a", "1"), ("b", "1"))
    bench.put(("a", None))
    bench.compact()
    assert bench.pairs() == [(1, "b", "1"), (2, "a", None)]
    assert [header.delete_horizon_ms for header, _ in bench.batches()] == [
        None,
        bench.clock.time_ms + RETENTION_MS,
    ]
    horizon_ms = bench.clock.time_ms + RETENTION_MS
    for now_ms, is_kept in ((horizon_ms - 1, True), (horizon_ms, False)):
        bench.clock.time_ms = now_ms
        bench.put(("c", str(now_ms)))  # what makes it worth a round
        bench.compact()
        assert ((2, "a", None) in bench.pairs()) is is_kept
    assert [key for _, key, _ in bench.pairs()] == ["b", "c"]


def test_the_horizon_counts_from_the_first_round_that_meets_the_tombstone() -> None:
    bench = CompactionBench()
    bench.put(("a", None))
    bench.clock.advance(10 * RETENTION_MS)  # its age alone is no reason
    bench.compact()
    bench.put(("b", "1"))
    bench.compact()
    assert (0, "a", None) in bench.pairs()


def test_timestamps_survive_a_horizon_in_the_base_timestamps_place() -> None:
    bench = CompactionBench()
    bench.append(
        encode_batch(
            [Record(0, NOW_MS - 5, b"a"), Record(1, NOW_MS + 9, b"b", b"x"), Record(2, 0, b"c")],
            codec=Codec.LZ4,
        )
    )
    bench.log.high_watermark = 3
    bench.compact()
    (header, records), *_ = bench.batches()
    assert header.base_timestamp == bench.clock.time_ms + RETENTION_MS
    assert header.max_timestamp == NOW_MS + 9
    assert [record.timestamp for record in records] == [NOW_MS - 5, NOW_MS + 9, 0]
    bench.put(("b", "y"))
    bench.compact()  # the batch is written again, and the horizon stays
    (again, records), *_ = bench.batches()
    assert again.delete_horizon_ms == header.delete_horizon_ms
    assert [record.timestamp for record in records] == [NOW_MS - 5, 0]
    found = bench.log.offset_for_timestamp(NOW_MS - 5, bench.log.log_end_offset)
    assert found is not None
    assert found.offset == 0


def test_a_tombstone_that_is_past_the_map_only_gets_its_horizon() -> None:
    bench = CompactionBench(settings=CompactionSettings(map_bytes_max=1))
    bench.put(("a", "1"))
    bench.put(("b", None))
    bench.put(("a", None))
    bench.seal()
    chosen = bench.compactor.choose()
    assert chosen is not None
    bench.run(bench.compactor.clean(chosen))
    assert bench.log.cleaned_offset == 1
    assert bench.pairs() == [(0, "a", "1"), (1, "b", None), (2, "a", None)]
    bench.clock.advance(RETENTION_MS)
    bench.compact()
    assert bench.pairs() == []  # "a" was known to be gone when its tombstone went


# Transactions


def test_aborted_data_goes_and_committed_data_stays() -> None:
    bench = CompactionBench()
    bench.put(("a", "old"), ("b", "old"))
    bench.put(("a", "aborted"), producer=(7, 0, 0), transactional=True)
    bench.put(("b", "committed"), producer=(8, 0, 0), transactional=True)
    bench.end_txn(7, is_commit=False)
    bench.end_txn(8, is_commit=True)
    bench.compact()
    assert bench.pairs() == [(0, "a", "old"), (3, "b", "committed")]


def test_markers_stay_until_a_round_saw_no_data_and_their_horizon_has_passed() -> None:
    bench = CompactionBench()
    bench.put(("a", "1"), producer=(7, 0, 0), transactional=True)
    aborted_at = bench.end_txn(7, is_commit=False)
    bench.put(("a", "2"), producer=(7, 0, 1), transactional=True)
    committed_at = bench.end_txn(7, is_commit=True)
    bench.put(("a", "3"), producer=(7, 0, 2))
    bench.compact()

    def markers() -> dict[int, int | None]:
        return {
            header.base_offset: header.delete_horizon_ms
            for header, records in bench.batches()
            if header.is_control and records
        }

    assert markers() == {aborted_at: None, committed_at: None}
    assert bench.log.aborted_transactions(0, 5) == [AbortedTransaction(7, 0, aborted_at, 2)]
    bench.put(("b", "1"))
    bench.compact()  # no data is left: the horizon begins
    horizon_ms = bench.clock.time_ms + RETENTION_MS
    assert markers() == {aborted_at: horizon_ms, committed_at: horizon_ms}
    assert bench.log.aborted_transactions(0, 5) == []
    bench.clock.time_ms = horizon_ms - 1
    bench.put(("b", "2"))
    bench.compact()
    assert len(markers()) == 2
    bench.clock.time_ms = horizon_ms
    bench.put(("b", "3"))
    bench.compact()
    assert markers() == {}


def test_an_open_transaction_is_left_alone_with_all_after_it() -> None:
    bench = CompactionBench()
    bench.put(("a", "1"))
    bench.put(("a", "2"))
    bench.seal()
    first = bench.put(("a", "3"), producer=(7, 0, 0), transactional=True)
    bench.seal()
    bench.put(("a", "4"))
    bench.compact()
    assert [offset for offset, _, _ in bench.pairs()] == [1, 2, 3]
    assert bench.log.cleaned_offset == first
    bench.end_txn(7, is_commit=False)
    bench.compact()
    assert bench.pairs() == [(3, "a", "4")]


def test_an_aborted_transaction_whose_marker_is_in_a_later_segment() -> None:
    bench = CompactionBench()
    bench.put(("a", "1"))
    bench.put(("a", "aborted"), producer=(7, 0, 0), transactional=True)
    bench.seal()
    bench.end_txn(7, is_commit=False)  # in the active segment
    bench.log.flush_now()
    bench.run(bench.rounds())
    assert bench.pairs() == [(0, "a", "1")]


def test_a_reader_of_committed_data_never_meets_aborted_data_without_the_index() -> None:
    bench = CompactionBench()
    bench.put(("a", "1"), producer=(7, 0, 0), transactional=True)
    bench.end_txn(7, is_commit=False)
    bench.put(("b", "1"))
    bench.log.producers.clear()
    for _ in range(4):
        bench.compact()
        bench.clock.advance(2 * RETENTION_MS)
        bench.put(("c", "1"))
    assert bench.log.aborted_transactions(0, 1) == []
    assert "a" not in [key for _, key, _ in bench.pairs(0)]  # nor from memory


# Batches without records


def test_the_last_batch_of_an_active_producer_keeps_its_header() -> None:
    bench = CompactionBench()
    bench.put(("a", "1"), producer=(7, 3, 0))
    bench.put(("a", "2"), ("a", "3"), producer=(7, 3, 1))
    bench.put(("a", "4"), producer=(8, 0, 0))
    bench.put(("b", "4"))
    bench.put(("a", "5"), producer=(8, 0, 1))
    bench.compact()
    assert [(header.producer_id, header.base_offset, header.last_offset, len(records))
            for header, records in bench.batches()] == [
        (7, 1, 2, 0), (-1, 4, 4, 1), (8, 5, 5, 1)]  # fmt: skip
    bench.reopen(recovery_point=0)
    bench.log.high_watermark = bench.log.log_end_offset
    duplicate = bench.append_again(("a", "2"), ("a", "3"), producer=(7, 3, 1))
    assert duplicate.is_duplicate
    assert (duplicate.first_offset, duplicate.last_offset) == (1, 2)
    gap = bench.append_again(("a", "9"), producer=(7, 3, 9))
    assert gap.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    bench.put(("a", "6"), producer=(7, 3, 3))


def test_a_forgotten_producers_header_goes() -> None:
    bench = CompactionBench()
    bench.put(("a", "1"), producer=(7, 3, 0))
    bench.put(("a", "2"))
    bench.log.producers.clear()
    bench.compact()
    assert [header.base_offset for header, _ in bench.batches()] == [1]


def test_a_segment_may_become_empty() -> None:
    bench = CompactionBench(config=compact_config(segment_bytes=300))
    for number in range(40):
        bench.put(("a", str(number) * 50))
    bench.compact()
    assert [segment.size_bytes for segment in bench.log.segments[:5]] == [0] * 5
    assert bench.pairs() == [(39, "a", "39" * 50)]
    bench.reopen(recovery_point=0)
    assert bench.pairs() == [(39, "a", "39" * 50)]
    assert bench.log.log_start_offset == 0


# Reading


def test_reads_in_a_hole_begin_at_what_comes_next() -> None:
    bench = CompactionBench(config=compact_config(segment_bytes=600))
    for number in range(50):
        bench.put(("a" if number % 10 else f"k{number}", str(number)))
    bench.compact()
    survivors = [0, 10, 20, 30, 40, 49]
    for offset in range(50):
        expected = [survivor for survivor in survivors if survivor >= offset]
        found = [record.offset for record in read_records(bench.log, offset, max_bytes=1)]
        assert found == expected, offset
    assert bench.log.read(51, 1, max_offset=50).error is ErrorCode.OFFSET_OUT_OF_RANGE
    found_by_time = bench.log.offset_for_timestamp(bench.clock.time_ms, 50)
    assert found_by_time is not None
    assert found_by_time.offset == 0


def test_who_reads_an_old_file_goes_on_reading_it() -> None:
    bench = CompactionBench()
    bench.tail_bytes_max = 0
    for number in range(200):
        bench.put(("a", str(number) * 20))
    bench.log.tail.clear()
    result = bench.log.read(0, 1 << 20, max_offset=bench.log.log_end_offset)
    (part,) = result.parts
    before = bench.part_bytes(part)
    bench.compact()
    bench.clock.advance(bench.config.file_delete_delay_ms + 1)
    assert bench.directory.delete_step(bench.clock.time_ms)
    assert bench.part_bytes(part) == before


def test_offsets_by_time_are_found_after_compaction() -> None:
    bench = CompactionBench(config=compact_config(segment_bytes=1000, index_interval_bytes=100))
    stamps = {}
    for number in range(100):
        bench.clock.advance(10)
        stamps[bench.put((f"k{number % 7}", str(number)))] = bench.clock.time_ms
    bench.compact()
    offsets = [offset for offset, _, _ in bench.pairs()]
    for offset in offsets:
        found = bench.log.offset_for_timestamp(stamps[offset], 100)
        assert found is not None
        assert (found.offset, found.timestamp) == (offset, stamps[offset])


# Records without keys, of a time when the topic was not compacted


def test_records_without_keys_go() -> None:
    bench = CompactionBench(config=LogConfig())
    bench.append(encode_batch([Record(key=b"a", value=b"1"), Record(value=b"no key")]))
    bench.log.high_watermark = 2
    bench.log.config = bench.config = compact_config()
    bench.compact()
    assert bench.pairs() == [(0, "a", "1")]
    assert bench.compactor.keyless_records == 1


# Rounds


@pytest.mark.parametrize("keys_max", [1, 2, 5])
def test_a_small_map_takes_more_rounds_to_the_same_end(keys_max: int) -> None:
    bench = CompactionBench(config=compact_config(segment_bytes=500))
    bench.limit_keys(keys_max)
    for number in range(60):
        bench.put((f"k{number * 7 % 10}", str(number)), (f"k{number % 3}", str(number)))
    latest = {key: (offset, key, value) for offset, key, value in bench.pairs()}
    rounds = bench.compact()
    assert rounds > 1
    assert bench.pairs() == sorted(latest.values())


def test_segments_are_put_together_as_far_as_they_fit() -> None:
    bench = CompactionBench(config=compact_config(segment_bytes=1000))
    for number in range(100):
        bench.put((f"k{number}", "x" * 20))
    before = len(bench.log.segments)
    bench.compact()
    assert len(bench.log.segments) == before + 1  # nothing could go
    for number in range(90):
        bench.put((f"k{number}", "y"))
    bench.compact()
    before = len(bench.log.segments)
    bench.put(("k0", "z"))
    bench.compact()
    assert len(bench.log.segments) < before - 5
    assert all(segment.size_bytes <= 1000 for segment in bench.log.segments)


def test_a_segment_that_would_not_change_is_not_written() -> None:
    bench = CompactionBench(config=compact_config(segment_bytes=1000))
    for number in range(50):
        bench.put((f"k{number}", "x" * 20))
    inodes = {segment.base_offset: bench.disk.inode(segment.files.log_path)
              for segment in bench.log.segments}  # fmt: skip
    bench.compact()
    assert bench.compactor.bytes_written == 0
    for segment in bench.log.segments[:-1]:
        assert bench.disk.inode(segment.files.log_path) is inodes[segment.base_offset]
    assert not [name for name in bench.names() if name.endswith(".cleaned")]


def test_counters_say_what_was_done() -> None:
    bench = CompactionBench()
    for number in range(30):
        bench.put(("a", str(number)))
    size = bench.log.size_bytes
    bench.compact()
    compactor = bench.compactor
    assert (compactor.rounds, compactor.groups_swapped, compactor.failures) == (1, 1, 0)
    assert (compactor.bytes_mapped, compactor.bytes_read) == (size, size)
    assert (compactor.records_read, compactor.records_written) == (30, 1)
    assert compactor.bytes_written == bench.log.size_bytes
    assert 0 < compactor.last_map_utilization < 1
    assert compactor.last_dirty_ratio_max == 0
