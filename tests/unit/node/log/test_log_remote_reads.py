"""What lies in a bucket: which reads are answered later, and with what."""

import pytest

from barnabas.node.log.results import DeferredRead, FoundOffset, ReadResult
from barnabas.node.loop.promise import Promise
from barnabas.protocol.errors import ErrorCode
from support.logs import LOG_DIR, LogBench
from support.remote_log import Bucket, fill_partly_remote


@pytest.fixture
def bench() -> LogBench:
    return LogBench()


@pytest.fixture
def bucket(bench: LogBench) -> Bucket:
    """The log is a b c | d e, and what comes before d is remote."""
    return fill_partly_remote(bench, ["a", "b", "c"], ["d", "e"])


@pytest.mark.parametrize(
    ("offset", "later", "error", "next_offset"),
    [
        (-1, False, ErrorCode.OFFSET_OUT_OF_RANGE, -1),
        (0, True, ErrorCode.NONE, 1),
        (2, True, ErrorCode.NONE, 3),
        (3, False, ErrorCode.NONE, 4),
        (4, False, ErrorCode.NONE, 5),
        (5, False, ErrorCode.NONE, 5),
        (6, False, ErrorCode.OFFSET_OUT_OF_RANGE, 6),
    ],
)
def test_what_is_not_local_is_read_later(
    bench: LogBench,
    bucket: Bucket,
    offset: int,
    later: bool,
    error: ErrorCode,
    next_offset: int,
) -> None:
    found = bench.log.read(offset, 1 << 20, max_offset=5)
    assert isinstance(found, DeferredRead) is later
    if isinstance(found, DeferredRead):
        assert not found.is_settled
        bucket.arrive()
        found = found.value
    assert (found.error, found.next_offset) == (error, next_offset)
    local = bench.log.read_local(offset, 1 << 20, max_offset=5)
    assert local.error == (ErrorCode.OFFSET_OUT_OF_RANGE if later else error)
    assert bucket.asked == 0


def test_no_remote_read_goes_beyond_what_may_be_seen(bench: LogBench, bucket: Bucket) -> None:
    assert isinstance(bench.log.read(1, 1 << 20, max_offset=1), ReadResult)
    assert bucket.asked == 0


@pytest.mark.parametrize(
    ("age_ms", "offset"), [(50, 0), (30, 2), (20, 3), (10, 4), (0, None)], ids=str
)
def test_a_time_is_looked_up_in_the_bucket_first(
    bench: LogBench, bucket: Bucket, age_ms: int, offset: int | None
) -> None:
    timestamp = bench.clock.time_ms - age_ms + 1
    found = bench.log.offset_for_timestamp(timestamp, 5)
    assert isinstance(found, Promise)
    bucket.arrive()
    told = found.value
    assert (told.offset if isinstance(told, FoundOffset) else told) == offset


def test_a_look_up_that_fails_says_so(bench: LogBench, bucket: Bucket) -> None:
    lost = bench.log.offset_for_timestamp(0, 5)
    assert isinstance(lost, Promise)
    bucket.error = ErrorCode.UNKNOWN_SERVER_ERROR
    bucket.arrive()
    assert lost.value is ErrorCode.UNKNOWN_SERVER_ERROR
    bucket.error = ErrorCode.NONE
    local = bench.log.offset_for_timestamp(bench.clock.time_ms, 5)
    assert isinstance(local, Promise)
    bench.disk.fail("read", below=LOG_DIR)
    bench.directory.fail(OSError("gone"))
    bucket.arrive()
    assert local.value is ErrorCode.KAFKA_STORAGE_ERROR


def test_without_a_bucket_all_is_local() -> None:
    bench = LogBench()
    bench.fill("a")
    assert bench.log.local_start_offset == bench.log.log_start_offset == 0
    assert isinstance(bench.log.read(0, 1 << 20, max_offset=1), ReadResult)


def test_who_has_the_records_abandons_nothing() -> None:
    abandoned: list[bool] = []
    reads = [DeferredRead(lambda: abandoned.append(True)) for _ in range(2)]
    bucket = Bucket(LogBench().log)
    settled = bucket.read(0, 1, 0, True)
    bucket.arrive()
    settled.abandon()
    reads[0].abandon()
    reads[0].abandon()
    assert (len(abandoned), bucket.abandoned) == (1, 0)
