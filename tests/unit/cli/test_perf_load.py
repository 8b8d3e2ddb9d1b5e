"""The time that `barnabas perf produce` waits for acknowledgements."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.cli.connection import Connection
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.records.perf_load import Load, Payloads

TIMEOUT_S = 5.0


class Message:
    """An acknowledged record."""

    def latency(self) -> float:
        return 0.001

    def __len__(self) -> int:
        return 1


class Slow:
    """A producer whose broker acknowledges one record with each look, or none."""

    def __init__(self, answers: bool) -> None:
        self.answers = answers
        self.waiting: list[Callable[[Any, Any], None]] = []
        self.now_s = 0.0

    def produce(self, _: str, __: bytes, on_delivery: Callable[[Any, Any], None]) -> None:
        self.waiting.append(on_delivery)

    def poll(self, wait_s: float) -> None:
        self.now_s += wait_s
        if wait_s and self.answers and self.waiting:
            self.waiting.pop(0)(None, Message())

    flush = poll

    def __len__(self) -> int:
        return len(self.waiting)


def run(monkeypatch: pytest.MonkeyPatch, producer: Slow) -> dict[str, Any]:
    monkeypatch.setattr("confluent_kafka.Producer", lambda _: producer)
    monkeypatch.setattr(time, "perf_counter", lambda: producer.now_s)
    load = Load(
        Connection("none:1", {}, TIMEOUT_S),
        "t",
        transactional_id=None,
        transaction_duration_ms=None,
        report=None,
        interval_ms=1000,
    )
    return load.run(200, Payloads.numbers().next, -1.0, 0)


def test_it_waits_as_long_as_some_come(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = Slow(answers=True)
    assert run(monkeypatch, producer)["records"] == 200
    assert producer.now_s > 2 * TIMEOUT_S


def test_it_ends_when_none_come(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = Slow(answers=False)
    with pytest.raises(CliError, match="t: 200 records not acknowledged") as caught:
        run(monkeypatch, producer)
    assert caught.value.code is ExitCode.UNREACHABLE
    assert TIMEOUT_S < producer.now_s < 2 * TIMEOUT_S
