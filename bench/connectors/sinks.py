"""Rows of a topic into what a sink writes to: the topic's rows, and how fast they arrive there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from confluent_kafka import Producer

from bench.connectors.workers import JSON, LOOK_SECONDS, MEMORY_SECONDS, Running

FIELDS: Final = (
    ("id", "int64", False),
    ("station", "string", False),
    ("kwh", "double", False),
    ("note", "string", True),
)
CONVERTERS: Final = {"key.converter": JSON, "value.converter": JSON}
"""JSON with schemas: what JDBC's sinks take without a registry."""
Row = tuple[bytes, bytes]


def rows_of(first: int, count: int) -> list[Row]:
    """Keys and values of rows with numbers from `first` on, with their schemas."""
    key, value = _envelope("Key", FIELDS[:1]), _envelope("Charge", FIELDS)
    return [
        (
            key % json.dumps({"id": number}).encode(),
            value % json.dumps(_charge(number)).encode(),
        )
        for number in range(first, first + count)
    ]


def _charge(number: int) -> dict[str, Any]:
    station = f"station-{number % 500}"
    return {"id": number, "station": station, "kwh": number / 7, "note": "x" * 40}


def _envelope(name: str, fields: Sequence[tuple[str, str, bool]]) -> bytes:
    listed = [
        {"type": kind, "optional": is_optional, "field": field}
        for field, kind, is_optional in fields
    ]
    schema = {"type": "struct", "fields": listed, "optional": False, "name": name}
    return b'{"schema":%s,"payload":%%s}' % json.dumps(schema).encode()


def sink_rate(
    running: Running,
    servers: str,
    topic: str,
    count: int,
    written: Callable[[], int],
    timeout_s: float,
) -> float:
    """Rows a second, from the first that is produced to the last that `written` tells of.

    One row goes ahead, so that the table is there and the sink at work. What is committed at
    intervals is not seen as it grows: so the clock begins with the rows' way into the topic.
    """
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "enable.idempotence": True})
    ahead, rest = rows_of(0, 1), rows_of(1, count)
    _produce(producer, topic, ahead)
    _wait(running, written, 1, timeout_s)
    began = time.monotonic()
    _produce(producer, topic, rest)
    _wait(running, written, count + 1, timeout_s)
    return count / (time.monotonic() - began)


def _produce(producer: Producer, topic: str, rows: Sequence[Row]) -> None:
    for key, value in rows:
        while True:
            try:
                producer.produce(topic, value, key, partition=0)
                break
            except BufferError:
                producer.poll(0.01)
    producer.flush()


def _wait(running: Running, written: Callable[[], int], wanted: int, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    looked_s = 0.0
    while (count := written()) < wanted:
        running.check_alive()
        now = time.monotonic()
        if now - looked_s > MEMORY_SECONDS:
            looked_s = now
            running.look_at_memory()
        if now > deadline:
            raise RuntimeError(f"{count} of {wanted} within {timeout_s:g} s\n{running.log_end()}")
        time.sleep(LOOK_SECONDS)
    if count > wanted:
        log = running.log.name
        raise RuntimeError(f"{log}: {count} rows where {wanted} were produced")
    running.look_at_memory()
