"""Ranges that are read while leaders move, retention deletes and brokers break off."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from barnabas.base.errors import ConfigError
from barnabas.kafka.wire import AccessError, Brokers, LoginError, WireError
from barnabas.kafka.wire_reader import (
    FETCH_SIZE_BYTES_MAX,
    FETCH_SIZE_BYTES_MIN,
    ReadError,
    WireReader,
)
from barnabas.protocol.apis import FETCH, LIST_OFFSETS, METADATA
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    PartitionData,
)
from barnabas.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.records.records import Record, decode_records, encode_batch
from barnabas.protocol.well_known import EARLIEST, LATEST

Fault = ErrorCode | Exception | None


def batch(offset: int, count: int, **more: Any) -> bytes:
    records = [Record(offset + n, 0, None, b"%d" % (offset + n)) for n in range(count)]
    return bytes(encode_batch(records, base_offset=offset, **more))


class Log(Brokers):
    """A cluster with one partition, of topic `t`; leads the node that was told last.

    `faults` come first, one for each fetch; None is none.
    """

    def __init__(self, batches: Sequence[bytes], faults: Sequence[Fault] = ()) -> None:
        self.batches = list(batches)
        self.faults = list(faults)
        self.start, self.end = 0, 10**9
        self.leader = 1
        self.stale: tuple[int, int] | None = None
        """A node that still takes itself for the leader, and where its log ends."""
        self.aborted: list[AbortedTransaction] = []
        self.asked: list[Any] = []
        self.lookups = 0
        """Requests for metadata."""
        self.closed = 0
        self.is_idle_closed = False
        self.throttle_ms = 0
        self.answer_bytes_max: int | None = None
        self.metadata_error = ErrorCode.NONE
        self.cut = 0

    def any(self) -> Any:
        return _Node(self, 0)

    def at(self, host: str, port: int) -> Any:
        return _Node(self, port)

    def close(self) -> None:
        self.closed += 1
        self.is_idle_closed = False

    def fetch(self, offset: int, size_max: int) -> bytes:
        """Whole batches, the first in any case, and the beginning of the one behind."""
        found = b""
        for one in self.batches:
            last = int.from_bytes(one[:8], "big") + int.from_bytes(one[23:27], "big")
            if last < offset:
                continue
            if found and len(found) + len(one) > size_max:
                return found + one[: size_max - len(found)]
            found += one
        return found


class _Node:
    def __init__(self, log: Log, number: int) -> None:
        self.log, self.number = log, number

    @property
    def is_over(self) -> bool:
        return self.log.is_idle_closed

    @property
    def end(self) -> int:
        stale = self.log.stale
        return self.log.end if stale is None or stale[0] != self.number else stale[1]

    def call(self, api: Any, request: Any, version_max: int | None = None) -> Any:
        log = self.log
        if api is METADATA:
            assert not request.allow_auto_topic_creation
            log.lookups += 1
            partition = MetadataResponsePartition(partition_index=0, leader_id=log.leader)
            topic = MetadataResponseTopic(
                error_code=log.metadata_error, name="t", partitions=[partition]
            )
            brokers = [MetadataResponseBroker(node_id=n, host="h", port=n) for n in (1, 2)]
            return MetadataResponse(brokers=brokers, topics=[topic])
        if api is LIST_OFFSETS:
            (asked,) = request.topics[0].partitions
            offset = {EARLIEST: log.start, LATEST: self.end}[asked.timestamp]
            one: Any = ListOffsetsPartitionResponse(offset=offset)
            return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(partitions=[one])])
        assert api is FETCH
        assert version_max == 12  # topics by their names
        assert not self.log.is_idle_closed
        log.asked.append(request)
        (asked,) = request.topics[0].partitions
        fault = log.faults.pop(0) if log.faults else None
        if isinstance(fault, Exception):
            raise fault
        error = ErrorCode.NONE if fault is None else fault
        is_stale = log.stale is not None and log.stale[0] == self.number
        if self.number != log.leader and not is_stale:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if error == ErrorCode.NONE and not log.start <= asked.fetch_offset <= self.end:
            error = ErrorCode.OFFSET_OUT_OF_RANGE
        records = None
        if error == ErrorCode.NONE and not log.throttle_ms and asked.fetch_offset < self.end:
            records = log.fetch(asked.fetch_offset, request.max_bytes)
        answer = PartitionData(error_code=error, records=records, aborted_transactions=log.aborted)
        throttle_ms, log.throttle_ms = log.throttle_ms, 0
        topics = [FetchableTopicResponse(topic="t", partitions=[answer])]
        return FetchResponse(responses=topics, throttle_time_ms=throttle_ms)


def reader_of(log: Log, **more: Any) -> WireReader:
    return WireReader({}, brokers=log, **{"patience_seconds": 0.2, **more})


def offsets_of(fetched: Iterator[Any]) -> list[int]:
    found = []
    for one in fetched:
        position = 0
        data = bytes(one.batches)
        while position + 61 <= len(data):
            size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
            if position + size > len(data):
                break
            found += [record.offset for record in decode_records(data, position)]
            position += size
    return found


TEN = [batch(offset, 2) for offset in range(0, 10, 2)]


def test_a_range_is_fetched_in_as_many_answers_as_it_takes() -> None:
    log = Log(TEN)
    reader = reader_of(log, fetch_size_bytes_max=2 * len(TEN[0]) + 30)
    assert offsets_of(reader.read("t", 0, 0, 9)) == list(range(10))
    asked = [request.topics[0].partitions[0].fetch_offset for request in log.asked]
    assert asked == [0, 4, 8]
    assert {request.isolation_level for request in log.asked} == {0}
    assert {request.session_epoch for request in log.asked} == {-1}


def test_a_range_that_is_covered_asks_no_more() -> None:
    log = Log(TEN)
    assert offsets_of(reader_of(log).read("t", 0, 3, 3)) == []
    assert not log.asked
    assert offsets_of(reader_of(log, fetch_size_bytes_max=1).read("t", 0, 3, 5)) == [2, 3, 4, 5]
    assert len(log.asked) == 2


@pytest.mark.parametrize(
    ("until", "size_bytes"),
    [(2, FETCH_SIZE_BYTES_MIN), (1_000, 1_000 * 1024), (10**6, FETCH_SIZE_BYTES_MAX)],
)
def test_a_short_range_asks_for_a_short_answer(until: int, size_bytes: int) -> None:
    log = Log([batch(0, 2)])
    next(iter(reader_of(log).read("t", 0, 0, until)))
    assert log.asked[0].max_bytes == size_bytes
    assert log.asked[0].topics[0].partitions[0].partition_max_bytes == size_bytes


def test_a_batch_that_is_longer_than_an_answer_comes_whole() -> None:
    log = Log([batch(0, 500), batch(500, 1)])
    assert offsets_of(reader_of(log, fetch_size_bytes_max=100).read("t", 0, 0, 501)) == [
        *range(501)
    ]


def test_a_range_ends_behind_what_compaction_has_left_of_it() -> None:
    log = Log([batch(0, 2), batch(50, 2)])
    found = offsets_of(reader_of(log).read("t", 0, 0, 20))
    assert found[:2] == [0, 1]
    assert len(log.asked) == 1
    emptied = bytes(encode_batch([], base_offset=2, last_offset_delta=17))
    log = Log([batch(0, 2), emptied])
    assert offsets_of(reader_of(log).read("t", 0, 0, 20)) == [0, 1]


@pytest.mark.parametrize(
    "faults",
    [
        [ErrorCode.NOT_LEADER_OR_FOLLOWER],
        [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH],
        [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        [ErrorCode.OFFSET_NOT_AVAILABLE],
        [WireError("it broke")],
        [None, WireError("it broke"), ErrorCode.KAFKA_STORAGE_ERROR],
    ],
)
def test_what_passes_is_tried_again(faults: list[Fault]) -> None:
    log = Log(TEN, faults)
    reader = reader_of(log, fetch_size_bytes_max=len(TEN[0]), patience_seconds=20)
    assert offsets_of(reader.read("t", 0, 0, 10)) == list(range(10))
    assert not log.faults


def test_a_leader_that_moves_is_followed() -> None:
    log = Log(TEN)
    reader = reader_of(log, fetch_size_bytes_max=len(TEN[0]), patience_seconds=20)
    found = []
    for number, one in enumerate(reader.read("t", 0, 0, 10)):
        found += offsets_of(iter([one]))
        log.leader = 1 + number % 2
    assert found == list(range(10))


@pytest.mark.parametrize("end", [2, 4])
def test_records_are_not_lost_to_a_node_that_led_before(
    end: int, caplog: pytest.LogCaptureFixture
) -> None:
    """It is cut off from the others, so its log ends where it did, and it sends no error."""
    log = Log(TEN)
    reader = reader_of(log, fetch_size_bytes_max=len(TEN[0]))
    fetched = reader.read("t", 0, 0, 10)
    found = offsets_of(iter([next(fetched), next(fetched)]))
    log.leader, log.stale = 2, (1, end)
    assert found + offsets_of(fetched) == list(range(10))
    assert not caplog.records


def test_a_connection_that_was_closed_as_idle_is_made_again() -> None:
    log = Log(TEN)
    reader = reader_of(log)
    assert offsets_of(reader.read("t", 0, 0, 2))
    log.is_idle_closed = True
    assert offsets_of(reader.read("t", 0, 2, 4))
    assert log.closed == 1


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (4, 10, [4, 5, 6, 7, 8, 9]),  # retention was faster
        (20, 30, []),  # all of it was deleted
        (0, 2, []),  # the topic was made again, or cut off
    ],
)
def test_what_is_not_there_any_more_is_passed_over(
    start: int, end: int, expected: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    log = Log(TEN[start // 2 :])
    log.start, log.end = start, end
    first = 3
    with caplog.at_level(logging.WARNING):
        found = offsets_of(reader_of(log).read("t", 0, first, 10))
    assert found == expected
    assert "t-0 no longer has offsets 3 to" in caplog.text


def test_what_was_cut_off_right_at_the_range_is_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = Log(TEN[:2])
    log.end = 4
    with caplog.at_level(logging.WARNING):
        assert offsets_of(reader_of(log).read("t", 0, 0, 8)) == [0, 1, 2, 3]
    assert "no longer has offsets 4 to 7" in caplog.text


def test_records_that_do_not_come_fail_the_range() -> None:
    log = Log(TEN[:2])  # and the reported end is far behind them
    with pytest.raises(ReadError, match=r"t-0 at offset 4: timed out after 0\.2 s"):
        offsets_of(reader_of(log).read("t", 0, 0, 8))


def test_a_fault_that_stays_is_named() -> None:
    log = Log(TEN, [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 100)
    with pytest.raises(ReadError, match=r"timed out after .*NOT_LEADER_OR_FOLLOWER"):
        offsets_of(reader_of(log).read("t", 0, 0, 8))


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "TOPIC_AUTHORIZATION_FAILED"),
        (LoginError("the login failed"), "the login failed"),
        (AccessError("no certificate"), "no certificate"),
    ],
)
def test_what_does_not_pass_fails_at_once(fault: Fault, told: str) -> None:
    log = Log(TEN, [fault])
    with pytest.raises(ReadError, match=told):
        offsets_of(reader_of(log, patience_seconds=1_000).read("t", 0, 0, 8))


def test_a_topic_that_may_not_be_seen_fails_at_once() -> None:
    log = Log(TEN)
    log.metadata_error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(ReadError, match="cannot read topic t: TOPIC_AUTHORIZATION_FAILED"):
        offsets_of(reader_of(log, patience_seconds=1_000).read("t", 0, 0, 8))


def test_a_topic_that_was_deleted_does_not_slow_down_the_others() -> None:
    log = Log(TEN)
    reader = reader_of(log, fetch_size_bytes_max=len(TEN[0]))
    with pytest.raises(ReadError, match="gone-0 at offset 0: timed out"):
        offsets_of(reader.read("gone", 0, 0, 10))
    log.lookups = 0
    assert offsets_of(reader.read("t", 0, 0, 10)) == list(range(10))
    assert log.lookups == 1


def test_a_broker_that_throttles_is_waited_for_beyond_the_patience(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Log(TEN)
    log.throttle_ms = 150
    clock = itertools.count(0, 0.001)
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock) + sum(slept))
    assert offsets_of(reader_of(log).read("t", 0, 0, 10)) == list(range(10))
    assert slept[0] == 0.15


@pytest.mark.parametrize(("is_committed_only", "level"), [(False, 0), (True, 1)])
def test_only_a_reader_of_what_is_committed_gets_what_was_aborted(
    is_committed_only: bool, level: int
) -> None:
    log = Log(TEN)
    log.aborted = [AbortedTransaction(producer_id=7, first_offset=2)]
    reader = reader_of(log, is_committed_only=is_committed_only)
    (fetched,) = reader.read("t", 0, 0, 10)
    assert fetched.aborted == (log.aborted if is_committed_only else None)
    assert log.asked[0].isolation_level == level


def test_a_batch_of_an_old_format_is_named() -> None:
    old = bytearray(TEN[0])
    old[16] = 1
    with pytest.raises(ReadError, match="t-0 at offset 0"):
        offsets_of(reader_of(Log([bytes(old)])).read("t", 0, 0, 2))


@pytest.mark.parametrize("login", [{"sasl.mechanism": "GSSAPI", "security.protocol": "SASL_SSL"}])
def test_a_login_that_is_not_supported_is_refused(login: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        WireReader({"bootstrap.servers": "127.0.0.1:9", **login})
