"""Look-ups by time in steps find what a look at every decoded record finds."""

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas.node.log import timestamp_lookup
from barnabas.node.log.config import LogConfig
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.log.results import FoundOffset, LookedUp
from barnabas.node.log.timestamp_lookup import find_by_timestamp, find_max_timestamp
from barnabas.node.log.turns import run_at_once
from barnabas.protocol.records.batch import (
    HEADER_SIZE_BYTES,
    Codec,
    CorruptBatchError,
    read_header,
    set_crc,
)
from barnabas.protocol.records.decompressing import PIECE_SIZE_BYTES
from barnabas.protocol.records.record_finder import RecordFinder
from barnabas.protocol.records.records import Record, decode_records, encode_batch
from support.effort import examples
from support.logs import NOW_MS, LogBench

VALUES = bytes(range(256)) * 400
stamps = st.integers(-5, 5)
batches = st.lists(
    st.tuples(
        st.lists(
            st.tuples(stamps, st.integers(0, 40) | st.integers(30_000, 100_000)),
            min_size=1,
            max_size=8,
        ),
        st.sampled_from(list(Codec)),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=6,
)
"""Of each batch: its records' timestamps and sizes, codec, and how far its header exaggerates."""
kinds = st.sampled_from(["CreateTime", "LogAppendTime"])


def append(bench: LogBench, found: list[tuple[list[tuple[int, int]], Codec, int]]) -> None:
    for records, codec, claimed in found:
        batch = encode_batch(
            [
                Record(timestamp=NOW_MS + stamp, value=VALUES[stamp + 5 : stamp + 5 + size])
                for stamp, size in records
            ],
            codec=codec,
        )
        greatest = read_header(batch).max_timestamp
        batch[35:43] = (greatest + claimed).to_bytes(8, "big")
        set_crc(batch, 0)
        assert not bench.append(batch).error
        bench.clock.time_ms += 1


def decoded(log: PartitionLog) -> Iterator[tuple[int, list[FoundOffset]]]:
    """Every batch: its header's greatest timestamp, and its records."""
    for segment in log.segments:
        for place, header, _ in segment.walk_from(0):
            data = segment.file().pread(header.size_bytes, place)
            yield (
                header.max_timestamp,
                [
                    FoundOffset(record.timestamp, record.offset, header.partition_leader_epoch)
                    for record in decode_records(data)
                ],
            )


def expected(log: PartitionLog, timestamp: int, end_offset: int) -> LookedUp:
    for _, records in decoded(log):
        for record in records:
            if record.timestamp >= timestamp and record.offset >= log.log_start_offset:
                return record if record.offset < end_offset else None
    return None


@settings(max_examples=examples(15))
@example([([(0, 40)] * 3, Codec.ZSTD, 3), ([(2, 100_000)], Codec.SNAPPY, 0)], "CreateTime", 0, 6)
@given(batches, kinds, st.integers(0, 3), st.integers(1, 50))
def test_any_log(
    found: list[tuple[list[tuple[int, int]], Codec, int]], kind: str, start: int, end: int
) -> None:
    bench = LogBench(config=LogConfig(message_timestamp_type=kind, segment_bytes=900_000))
    bench.clock.time_ms = NOW_MS
    append(bench, found)
    log = bench.log
    log.high_watermark = log.log_end_offset
    log.delete_records_before(min(start, log.log_end_offset))
    end = min(end, log.log_end_offset)
    for timestamp in range(NOW_MS - 6, NOW_MS + 10):
        assert log.offset_for_timestamp(timestamp, end) == expected(log, timestamp, end)
    greatest = max(greatest for greatest, _ in decoded(log))
    assert log.max_timestamp_offset(end) == expected(log, greatest, end)


@settings(max_examples=examples(18))
@given(
    st.lists(st.tuples(stamps, st.integers(0, 300)), min_size=1, max_size=20),
    st.lists(st.floats(0, 1), max_size=6),
    stamps,
    st.integers(0, 20),
    st.integers(-1, 1),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=1),
)
def test_any_cut_of_any_records(
    found: list[tuple[int, int]],
    cuts: list[float],
    stamp: int,
    offset: int,
    off: int,
    damage: list[tuple[float, int]],
) -> None:
    batch = encode_batch([Record(timestamp=at, value=VALUES[:size]) for at, size in found])
    batch[57:61] = (len(found) + off).to_bytes(4, "big")
    for place, byte in damage:
        batch[HEADER_SIZE_BYTES + int(place * (len(batch) - HEADER_SIZE_BYTES))] = byte
    data, header = bytes(batch[HEADER_SIZE_BYTES:]), read_header(batch)
    finder = RecordFinder(
        header.record_count, timestamp_min=stamp - header.base_timestamp, offset_min=offset
    )
    places = sorted(int(cut * len(data)) for cut in cuts)
    try:
        records = decode_records(batch)
    except CorruptBatchError:
        return  # such records are in no log, unless another implementation wrote it
    match = next((one for one in records if one.timestamp >= stamp and one.offset >= offset), None)
    for start, end in itertools.pairwise([0, *places, len(data)]):
        got = finder.feed(data[start:end])
        if got is not None:
            break
    else:
        finder.finish()
    assert (None if got is None else (got.timestamp_delta + header.base_timestamp, got[1])) == (
        None if match is None else (match.timestamp, match.offset)
    )


@pytest.mark.parametrize("off", [-1, 1])
def test_records_that_are_more_or_fewer_than_the_header_says(off: int) -> None:
    batch = encode_batch([Record(timestamp=0, value=b"v")] * 3)
    finder = RecordFinder(3 + off, timestamp_min=1, offset_min=0)

    def search() -> None:
        for byte in batch[HEADER_SIZE_BYTES:]:
            finder.feed(bytes((byte,)))
        finder.finish()

    with pytest.raises(CorruptBatchError):
        search()


class Paused:
    """A look-up that has paused in the second of three batches, which has 300 KB.

    Their offsets: 0, 1 to 4, and 5; the records 4 and 5 are late enough.
    """

    def __init__(self) -> None:
        self.bench = LogBench(config=LogConfig(segment_bytes=1000))
        self.bench.clock.time_ms = NOW_MS
        large = [(0, 100_000)] * 3 + [(4, 1)]
        for records in [(-5, 1)], large, [(3, 1)]:
            append(self.bench, [(records, Codec.ZSTD, 0)])
            self.log.roll()
        self.log.high_watermark = self.log.log_end_offset
        self.steps = find_by_timestamp(self.log, NOW_MS + 1, 100)
        assert next(self.steps) is None

    @property
    def log(self) -> PartitionLog:
        return self.bench.log

    def found(self) -> int | None:
        found = run_at_once(self.steps)
        return None if found is None else found.offset


def test_nothing_happens_meanwhile() -> None:
    assert Paused().found() == 4


def test_records_are_appended_meanwhile() -> None:
    paused = Paused()
    append(paused.bench, [([(9, 1)], Codec.NONE, 0)])
    paused.log.roll()
    assert paused.found() == 4


def test_records_are_deleted_meanwhile() -> None:
    paused = Paused()
    paused.log.delete_records_before(5)
    assert paused.found() == 5


def test_the_log_is_truncated_meanwhile() -> None:
    paused = Paused()
    paused.log.truncate_to(1)
    assert paused.found() is None
    paused = Paused()
    paused.log.truncate_to(1)
    append(paused.bench, [([(1, 1)], Codec.NONE, 0)])
    assert paused.found() == 1


def test_the_log_begins_anew_meanwhile() -> None:
    paused = Paused()
    paused.log.truncate_fully_and_start_at(2)
    append(paused.bench, [([(1, 1), (2, 2)], Codec.NONE, 0)])
    assert paused.found() == 2


def test_the_log_is_closed_meanwhile() -> None:
    """Its directory stays online."""
    paused = Paused()
    paused.log.close()
    with pytest.raises(LogDirFailure):
        paused.found()
    assert not paused.bench.offline


def test_a_greatest_timestamp_is_looked_for_again_if_it_is_deleted() -> None:
    paused = Paused()
    paused.steps = find_max_timestamp(paused.log, 100)
    assert next(paused.steps) is None
    paused.log.delete_records_before(5)
    paused.log.apply_retention(NOW_MS)
    assert paused.found() == 5


def test_headers_that_lie_are_passed_in_steps() -> None:
    """Neither many batches nor their headers are looked at without a pause."""
    bench = LogBench()
    bench.clock.time_ms = NOW_MS
    append(bench, [([(0, 1)], Codec.NONE, 1000), *[([(0, 1)], Codec.NONE, 3)] * 2000])
    for timestamp in NOW_MS + 1, NOW_MS + 500:
        pauses = sum(1 for _ in find_by_timestamp(bench.log, timestamp, 5000))
        assert pauses >= 2000 * timestamp_lookup.HEADER_COST_BYTES // PIECE_SIZE_BYTES
