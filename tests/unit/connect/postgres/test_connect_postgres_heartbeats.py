"""Heartbeats while the begin of a transaction is read, and its changes are not."""

from __future__ import annotations

import struct

import pytest

from barnabas.connect.cdc.changes import LogSplit
from barnabas.connect.connectors.base import TaskContext
from barnabas.connect.connectors.postgres import reader as reader_module
from barnabas.connect.connectors.postgres.reader import PostgresReader
from barnabas.connect.connectors.postgres.stream import Received

GIVEN = {
    "topic.prefix": "p",
    "database.hostname": "nowhere.invalid",
    "database.user": "u",
    "database.dbname": "d",
    "snapshot.mode": "no_data",
    "heartbeat.interval.ms": "1",
}
BEGIN = struct.pack(">cQqI", b"B", 200, 5, 700)
COMMIT = struct.pack(">cBQQq", b"C", 0, 200, 240, 5)


class FakeStream:
    """Gives one message after the other, None for none; `confirmed` is what it was told."""

    def __init__(self, *received: Received | None) -> None:
        self._received = list(received)
        self.confirmed = 0

    def take(self, count_max: int, wait_s: float) -> list[Received]:
        one = self._received.pop(0) if self._received else None
        return [] if one is None else [one]

    def confirm(self, lsn: int) -> None:
        self.confirmed = lsn


class FakeTime:
    """A second passes with each look."""

    now_s = 0

    def monotonic(self) -> float:
        self.now_s += 1
        return self.now_s

    def time_ns(self) -> int:
        return self.now_s * 1_000_000_000


def test_no_micro_batch_ends_where_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody runs or commits such a one: the log would stop there."""
    stream = FakeStream(None, None, (100, BEGIN), None, None, None, (200, COMMIT))
    monkeypatch.setattr(reader_module, "time", FakeTime())
    reader = PostgresReader(TaskContext("source", 0, GIVEN))
    monkeypatch.setattr(reader, "_prepare", lambda: None)
    monkeypatch.setattr(reader, "_stream", stream)
    start, beats = reader.initialOffset(), 0
    for _ in range(20):
        end = reader.latestOffset()
        splits = reader.partitions(start, end)
        if end == start:
            assert not splits
            continue
        for split in splits:
            assert isinstance(split, LogSplit)
            beats += sum(record.topic.startswith("__") for record in reader.read(split))
        reader.commit(end)
        start = end
    assert stream.confirmed == 240
    assert beats > 2
