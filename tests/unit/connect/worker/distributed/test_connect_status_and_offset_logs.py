"""Records of the status and offset topics, as Kafka's workers write and read them."""

import pytest

from barnabas.connect.tasks.base import TaskId
from barnabas.connect.worker.distributed.offset_log import OffsetLog
from barnabas.connect.worker.distributed.status_log import (
    StatusLog,
    status_record,
    topic_record,
    topic_removal,
)
from barnabas.connect.worker.state import Status, TopicStatus
from barnabas.schemas.data.errors import DataError

RUNNING = Status("RUNNING", "one:8083", 3, version="4.3.1")


def test_states_are_written_as_kafka_writes_them() -> None:
    assert status_record("a", RUNNING) == (
        "status-connector-a",
        b'{"state":"RUNNING","trace":null,"worker_id":"one:8083","generation":3,"version":"4.3.1"}',
    )
    failed = Status("FAILED", "one:8083", 3, "it\nbroke")
    assert status_record(TaskId("a", 1), failed) == (
        "status-task-a-1",
        b'{"state":"FAILED","trace":"it\\nbroke","worker_id":"one:8083","generation":3,"version":null}',
    )
    assert status_record("a", Status("DESTROYED", "w", 1)) == ("status-connector-a", None)
    assert topic_record(TopicStatus("t", "a", 0, 1234)) == (
        "status-topic-t:connector-a",
        b'{"topic":{"name":"t","connector":"a","task":0,"discoverTimestamp":1234}}',
    )


def test_states_come_back_and_go() -> None:
    log = StatusLog()
    task = TaskId("a-b", 1)
    log.apply(*status_record("a-b", RUNNING))
    log.apply(*status_record(task, RUNNING))
    log.apply(*topic_record(TopicStatus("t", "a-b", 1, 5)))
    assert log.get("a-b") == log.get(task) == RUNNING
    assert log.topics_of("a-b") == {"t": TopicStatus("t", "a-b", 1, 5)}
    log.apply(*topic_removal("a-b", "t"))
    assert not log.topics_of("a-b")
    log.apply(*status_record("a-b", Status("DESTROYED", "w", 4)))
    assert log.get("a-b") is None
    assert log.get(task) is None


def test_a_late_unassigned_does_not_hide_who_runs_it() -> None:
    log = StatusLog()
    task = TaskId("a", 0)
    log.apply(*status_record(task, RUNNING))
    log.apply(*status_record(task, Status("UNASSIGNED", "two:8083", 3)))
    assert log.get(task) == RUNNING
    log.apply(*status_record(task, Status("UNASSIGNED", "two:8083", 4)))
    assert log.get(task) == Status("UNASSIGNED", "two:8083", 4)


def test_safe_writes_yield_to_newer_workers() -> None:
    log = StatusLog()
    log.apply(*status_record("a", RUNNING))
    assert log.can_write_safely("a", Status("UNASSIGNED", "one:8083", 2))
    assert log.can_write_safely("a", Status("UNASSIGNED", "two:8083", 3))
    assert not log.can_write_safely("a", Status("UNASSIGNED", "two:8083", 2))
    assert log.can_write_safely("b", Status("UNASSIGNED", "two:8083", 2))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("status-connector-", b"{}"),
        ("status-connector-a", b"[]"),
        ("status-connector-a", b'{"state":"ODD","worker_id":"w","generation":1}'),
        ("status-task-a", b'{"state":"RUNNING","worker_id":"w","generation":1}'),
        ("status-topic-t", b"{}"),
        ("status-topic-t:connector-a", b'{"topic":7}'),
        ("what", b"{}"),
        (None, None),
    ],
)
def test_odd_states_are_left_out(
    key: str | None, value: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    log = StatusLog()
    log.apply(key, value)
    assert caplog.records
    assert not any((log.connectors, log.tasks, log.topics))


def test_offsets_are_written_as_kafka_writes_them() -> None:
    log = OffsetLog()
    assert log.record("a", {"filename": "/x"}, {"position": 7}) == (
        b'["a",{"filename":"/x"}]',
        b'{"position":7}',
    )
    assert log.record("a", {"filename": "/x"}, None) == (b'["a",{"filename":"/x"}]', None)


def test_offsets_are_kept_by_partition_whatever_the_order_of_fields() -> None:
    log = OffsetLog()
    log.apply(b'["a",{"y":1,"x":"2"}]', b'{"o":1}')
    assert log.offset("a", {"x": "2", "y": 1}) == {"o": 1}
    assert log.record("a", {"x": "2", "y": 1}, {"o": 2})[0] == b'["a",{"y":1,"x":"2"}]'
    log.apply(b'["b",{"y":1,"x":"2"}]', b'{"o":3}')
    assert log.all("a") == [({"x": "2", "y": 1}, {"o": 1})]
    assert sorted(log.connectors()) == ["a", "b"]
    log.apply(b'["a",{"x":"2","y":1}]', None)
    assert log.all("a") == []


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, b"{}"), (b"{", b"{}"), (b'["a"]', b"{}"), (b"[1,{}]", b"{}"), (b'["a",{}]', b"3")],
)
def test_odd_offsets_are_left_out(
    key: bytes | None, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    log = OffsetLog()
    log.apply(key, value)
    assert caplog.records
    assert not log.connectors()


def test_offsets_hold_primitive_values_only() -> None:
    log = OffsetLog()
    with pytest.raises(DataError, match="field x contains ARRAY"):
        log.record("a", {"x": []}, {})
    with pytest.raises(DataError, match="field x contains MAP"):
        log.record("a", {}, {"x": {}})
