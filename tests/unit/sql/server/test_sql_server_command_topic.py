"""The command topic with several writers, over a node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.app.testing import Kafka
from barnabas.sql.engine.command_log import CommandLogError, OvertakenError
from barnabas.sql.server import kafka_command_log
from barnabas.sql.server.kafka_command_log import KafkaCommandLog


@pytest.fixture
def logs(kafka: Kafka) -> Iterator[list[KafkaCommandLog]]:
    """Two of one service."""
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    service = kafka.name()
    both = [KafkaCommandLog(settings, service) for _ in range(2)]
    yield both
    for log in both:
        log.close()


def written(log: KafkaCommandLog, text: bytes) -> list[bytes]:
    """Write a record, as often as it takes; what others wrote before."""
    found: list[bytes] = []
    for _ in range(3):
        found += [entry.value for entry in log.read_new()]
        try:
            log.append(b"key", text)
        except OvertakenError:
            continue
        return found
    raise AssertionError("overtaken for ever")


def test_writers_take_turns(logs: list[KafkaCommandLog]) -> None:
    first, second = logs
    assert written(first, b"1") == []
    assert written(second, b"2") == [b"1"]
    assert written(first, b"3") == [b"2"]
    assert written(first, b"4") == []
    assert written(second, b"5") == [b"3", b"4"]
    assert [entry.value for entry in first.read_new()] == [b"5"]
    assert second.read_new() == []


def test_nothing_is_written_on_what_was_not_read(logs: list[KafkaCommandLog]) -> None:
    first, second = logs
    first.append(b"key", b"1")
    with pytest.raises(OvertakenError):
        second.append(b"key", b"2")
    assert [entry.value for entry in second.read_new()] == [b"1"]
    second.append(b"key", b"3")
    assert [entry.value for entry in first.read_new()] == [b"3"]


def test_what_was_read_before_a_failure_is_not_lost(
    logs: list[KafkaCommandLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = logs
    first.append(b"key", b"1")
    (end,) = second._log.ends().values()
    monkeypatch.setattr(second._log, "ends", lambda *_, **__: {0: end + 100})
    monkeypatch.setattr(kafka_command_log, "TIMEOUT_S", 1.0)
    with pytest.raises(CommandLogError, match="cannot read"):
        second.read_new()
    monkeypatch.undo()
    assert [entry.value for entry in second.read_new()] == [b"1"]
