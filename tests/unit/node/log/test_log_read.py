"""Reading: from any offset, within limits, from memory and from files; look-ups by time."""

import pytest

from barnabas.base.disk import FileRange
from barnabas.node.log.config import LogConfig
from barnabas.node.log.results import DeferredRead, ReadResult
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import Codec, read_header
from support.logs import NOW_MS, LogBench, make_batch, read_values

HOUR_MS = 3_600_000


def bench_of(*sizes: int, tail_bytes_max: int = 1 << 20, segment_bytes: int = 1 << 30) -> LogBench:
    """A log of batches with that many records each; every value is its offset."""
    bench = LogBench(
        config=LogConfig(segment_bytes=segment_bytes, index_interval_bytes=200),
        tail_bytes_max=tail_bytes_max,
    )
    for size in sizes:
        end = bench.log.log_end_offset
        assert not bench.append(make_batch(*map(str, range(end, end + size)))).error
    return bench


def joined(result: ReadResult | DeferredRead) -> bytes:
    assert isinstance(result, ReadResult)
    assert not result.error
    return b"".join(
        part.read() if isinstance(part, FileRange) else bytes(part) for part in result.parts
    )


@pytest.mark.parametrize("tail_bytes_max", [1 << 20, 0, 400], ids=["memory", "files", "both"])
@pytest.mark.parametrize("segment_bytes", [1 << 30, 300])
class TestReads:
    def bench(self, tail_bytes_max: int, segment_bytes: int) -> LogBench:
        return bench_of(3, 1, 2, 4, 1, 1, 5, 2, 1, 1, tail_bytes_max=tail_bytes_max,
                        segment_bytes=segment_bytes)  # fmt: skip

    def test_from_every_offset(self, tail_bytes_max: int, segment_bytes: int) -> None:
        log = self.bench(tail_bytes_max, segment_bytes).log
        starts = [0, 3, 4, 6, 10, 11, 12, 17, 19, 20, 21]
        for offset in range(21):
            result = log.read(offset, 1 << 20, max_offset=21)
            assert read_header(joined(result)).base_offset == max(
                start for start in starts if start <= offset
            )
            assert read_values(log, offset) == [str(value) for value in range(offset, 21)]

    def test_never_beyond_max_offset(self, tail_bytes_max: int, segment_bytes: int) -> None:
        log = self.bench(tail_bytes_max, segment_bytes).log
        for end in (0, 3, 4, 6, 10, 20):
            offset = 0
            while True:
                result = log.read(offset, 1 << 20, max_offset=end)
                assert result.next_offset <= end
                if not result.size_bytes:
                    break
                offset = result.next_offset
            assert offset == end

    def test_max_offset_inside_a_batch(self, tail_bytes_max: int, segment_bytes: int) -> None:
        log = self.bench(tail_bytes_max, segment_bytes).log
        assert log.read(6, 1 << 20, max_offset=8).size_bytes == 0
        assert log.read(4, 1 << 20, max_offset=8).next_offset == 6

    def test_within_max_bytes(self, tail_bytes_max: int, segment_bytes: int) -> None:
        log = self.bench(tail_bytes_max, segment_bytes).log
        for max_bytes in (0, 1, 70, 100, 150, 250, 1000):
            for offset in range(21):
                result = log.read(offset, max_bytes, max_offset=21, min_one_batch=False)
                assert result.size_bytes <= max_bytes
                assert len(joined(result)) == result.size_bytes
                assert (result.next_offset > offset) == (result.size_bytes > 0)

    def test_one_batch_at_least(self, tail_bytes_max: int, segment_bytes: int) -> None:
        log = self.bench(tail_bytes_max, segment_bytes).log
        for max_bytes in (0, 1, 60):
            result = log.read(7, max_bytes, max_offset=21)
            assert (read_header(joined(result)).base_offset, result.next_offset) == (6, 10)

    def test_at_the_end(self, tail_bytes_max: int, segment_bytes: int) -> None:
        log = self.bench(tail_bytes_max, segment_bytes).log
        result = log.read(21, 1000, max_offset=21)
        assert (result.error, result.size_bytes, result.next_offset) == (ErrorCode.NONE, 0, 21)

    def test_out_of_range(self, tail_bytes_max: int, segment_bytes: int) -> None:
        log = self.bench(tail_bytes_max, segment_bytes).log
        log.high_watermark = 21
        log.delete_records_before(5)
        assert log.read(4, 1000, max_offset=21).error is ErrorCode.OFFSET_OUT_OF_RANGE
        assert log.read(22, 1000, max_offset=21).error is ErrorCode.OFFSET_OUT_OF_RANGE
        assert log.read(-1, 1000, max_offset=21).error is ErrorCode.OFFSET_OUT_OF_RANGE
        assert log.read(5, 1000, max_offset=21).next_offset > 5


def test_tail_comes_from_memory_and_the_rest_as_file_ranges() -> None:
    bench = LogBench(tail_bytes_max=20_000)
    for number in range(10):
        bench.append(make_batch(str(number) + "x" * 6000))
    operations: list[str] = []
    bench.disk.fault = lambda operation, path: operations.append(operation)
    assert bench.log.read(9, 1 << 20, max_offset=10).next_offset == 10
    assert bench.log.read(8, 1 << 20, max_offset=10).next_offset == 10
    assert operations == []
    result = bench.log.read(0, 1 << 20, max_offset=10)
    assert [type(part) for part in result.parts] == [FileRange]
    assert result.next_offset == 10


def test_reader_who_goes_on_needs_no_index() -> None:
    bench = bench_of(*[1] * 200, tail_bytes_max=0)
    offset = bench.log.read(0, 1000, max_offset=200).next_offset
    opened: list[str] = []
    bench.directory.files.forget_below("/data")
    bench.disk.fault = lambda operation, path: opened.append(path.rpartition(".")[2])
    bench.log.read(offset, 1 << 30, max_offset=200)
    assert set(opened) == {"log"}


def test_hint_is_of_no_use_after_a_truncation() -> None:
    bench = bench_of(*[1] * 50, tail_bytes_max=0)
    offset = bench.log.read(0, 1000, max_offset=50).next_offset
    bench.log.truncate_to(offset - 3)
    bench.append(make_batch(*"abcdefgh"))
    assert read_values(bench.log, offset)[0] == "d"


def test_offset_that_lost_a_bit_leads_nobody_astray() -> None:
    """No CRC covers it. What follows is found; what it hides is refused, not passed over."""
    bench, data, place = _bench_and_place_of(5)
    intact = bytes(data)
    for bit in range(64):
        data[:] = intact
        data[place + 7 - bit // 8] ^= 1 << bit % 8
        lie = read_header(bytes(data), place).base_offset
        assert bench.log.read(5, 1, max_offset=20).error is ErrorCode.CORRUPT_MESSAGE, bit
        for offset in range(6, 20):
            end = offset + 1 if offset + 1 != lie else offset + 2
            if offset != lie:
                bench.log.read_hints.clear()
                result = bench.log.read(offset, 1 << 20, max_offset=end)
                assert read_header(joined(result)).base_offset == offset, bit
                assert result.next_offset == end, bit


def test_offset_at_the_end_that_is_ahead_is_refused() -> None:
    bench, data, place = _bench_and_place_of(19)
    data[place + 3] ^= 1
    assert bench.log.read(19, 1, max_offset=20).error is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("end", [5, 6, 12])
def test_truncation_keeps_what_comes_after_an_offset_that_is_ahead(end: int) -> None:
    bench, data, place = _bench_and_place_of(5)
    found = bench.log.active.locate(end)
    assert found is not None
    data[place + 3] ^= 1
    bench.log.truncate_to(end)
    assert bench.log.active.size_bytes == found[0]


def _bench_and_place_of(offset: int) -> tuple[LogBench, bytearray, int]:
    """A log of twenty records that is read from its file, that, and where `offset` lies in it."""
    bench = LogBench(tail_bytes_max=0)
    bench.fill(*map(str, range(20)))
    found = bench.log.active.locate(offset)
    assert found is not None
    return bench, bench.disk.inode(bench.log.active.files.log_path).data, found[0]


# By time


def times(bench: LogBench, *stamps: list[int], codec: Codec = Codec.NONE) -> None:
    for batch in stamps:
        values = [str(stamp) for stamp in batch]
        result = bench.append(
            make_batch(*values, timestamps=[NOW_MS - HOUR_MS + stamp for stamp in batch],
                       codec=codec)
        )  # fmt: skip
        assert not result.error


@pytest.mark.parametrize("segment_bytes", [1 << 30, 250])
@pytest.mark.parametrize("codec", list(Codec))
def test_first_record_at_or_after_a_time(codec: Codec, segment_bytes: int) -> None:
    bench = LogBench(config=LogConfig(segment_bytes=segment_bytes, index_interval_bytes=100))
    times(bench, [10, 20, 30], [40], [40, 35, 60], [5, 5], [70, 50, 70], codec=codec)
    stamps = [10, 20, 30, 40, 40, 35, 60, 5, 5, 70, 50, 70]
    for wanted in range(75):
        found = bench.log.offset_for_timestamp(NOW_MS - HOUR_MS + wanted, 12)
        expected = next((offset for offset, stamp in enumerate(stamps) if stamp >= wanted), None)
        assert (None if found is None else found.offset) == expected, wanted
        if found is not None:
            assert found.timestamp == NOW_MS - HOUR_MS + stamps[found.offset]
            assert found.leader_epoch == 0


def test_only_below_the_end_and_not_below_the_start() -> None:
    bench = LogBench()
    times(bench, [10, 20], [30, 40], [50])
    log = bench.log
    base = NOW_MS - HOUR_MS
    assert log.offset_for_timestamp(base + 50, 4) is None
    assert log.max_timestamp_offset(4) is None
    log.high_watermark = 5
    log.delete_records_before(3)
    found = log.offset_for_timestamp(base, 5)
    assert found is not None
    assert (found.offset, found.timestamp) == (3, base + 40)


def test_greatest_timestamp_is_the_first_that_has_it() -> None:
    bench = LogBench(config=LogConfig(segment_bytes=200))
    assert bench.log.max_timestamp_offset(0) is None
    times(bench, [10, 90, 90], [20], [90], [30])
    found = bench.log.max_timestamp_offset(6)
    assert found is not None
    assert (found.offset, found.timestamp) == (1, NOW_MS - HOUR_MS + 90)


def test_records_without_timestamps_are_not_found() -> None:
    bench = LogBench()
    bench.append(make_batch("a", timestamp=-1))
    assert bench.log.offset_for_timestamp(0, 1) is None
    assert bench.log.max_timestamp_offset(1) is None


def test_epochs_of_offsets() -> None:
    bench = LogBench()
    assert bench.log.epoch_of(0) == -1
    bench.fill("a", "b", epoch=2)
    bench.fill("c", epoch=5)
    log = bench.log
    assert [log.epoch_of(offset) for offset in range(4)] == [2, 2, 5, 5]
    cases = {-1: (-1, -1), 0: (0, 0), 2: (2, 2), 3: (2, 2), 5: (5, 3), 6: (-1, -1)}
    assert {epoch: log.end_offset_for_epoch(epoch) for epoch in cases} == cases
    log.start_leader_epoch(9)
    assert log.end_offset_for_epoch(5) == (5, 3)
    assert log.end_offset_for_epoch(9) == (9, 3)
