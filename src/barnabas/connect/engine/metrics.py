"""Figures of one task, under the names of Kafka's metrics (connector-task-metrics and the like).

Source: ConnectMetricsRegistry (Kafka 4.3). `sink-record-lag` is ours: records of the task's
partitions that wait.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import Final

from barnabas.connect.engine.jobs import RangeDone, SplitDone
from barnabas.connect.errors.tolerance import ErrorCounts

_WINDOW_SECONDS: Final = 30.0


class TaskMetrics:
    """Counts for one task; from its threads, read from any."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[str, float] = {}
        self._samples: dict[str, deque[tuple[float, float]]] = {}
        self.errors = ErrorCounts()

    def add(self, name: str, value: float = 1) -> None:
        """Count."""
        with self._lock:
            self._values[name] = self._values.get(name, 0) + value

    def put(self, name: str, value: float) -> None:
        """Set a figure."""
        with self._lock:
            self._values[name] = value

    def top(self, name: str, value: float) -> None:
        """Set a figure if it is the highest so far."""
        with self._lock:
            self._values[name] = max(self._values.get(name, 0), value)

    def batch_of_source(self, done: Sequence[SplitDone], seconds: float) -> None:
        """Count a micro-batch."""
        polled, written = sum(one.polled for one in done), sum(one.written for one in done)
        self._rated("source-record-poll", polled)
        self._rated("source-record-write", written)
        self._batch("poll-batch", polled, sum(one.seconds for one in done))
        self._commit(seconds)
        for one in done:
            self.errors.add(one.counts)

    def batch_of_sink(self, done: Sequence[RangeDone], seconds: float) -> None:
        """Count a micro-batch."""
        self._rated("sink-record-read", sum(one.read for one in done))
        self._rated("sink-record-send", sum(one.sent for one in done))
        self._batch("put-batch", sum(one.sent for one in done), sum(one.seconds for one in done))
        self._commit(seconds)
        for one in done:
            self.errors.add(one.counts)

    def seen(self) -> dict[str, float]:
        """Return all figures."""
        with self._lock:
            values = dict(self._values)
            now = time.monotonic()
            for name, samples in self._samples.items():
                first_time, first = samples[0]
                gone = now - first_time
                rate = (values[f"{name}-total"] - first) / gone if gone > 0 else 0.0
                values[f"{name}-rate"] = rate
        return {**values, **self.errors.as_metrics()}

    def _rated(self, name: str, count: int) -> None:
        self.add(f"{name}-total", count)
        now = time.monotonic()
        with self._lock:
            samples = self._samples.setdefault(name, deque([(now, 0.0)]))
            samples.append((now, self._values[f"{name}-total"]))
            while len(samples) > 2 and samples[1][0] < now - _WINDOW_SECONDS:
                samples.popleft()

    def _batch(self, name: str, records: int, seconds: float) -> None:
        self.top(f"{name}-max-time-ms", seconds * 1000)
        self.top("batch-size-max", records)
        with self._lock:
            number = self._values["batches"] = self._values.get("batches", 0) + 1
            for what, value in (
                (f"{name}-avg-time-ms", seconds * 1000),
                ("batch-size-avg", records),
            ):
                mean = self._values.get(what, 0.0)
                self._values[what] = mean + (value - mean) / number

    def _commit(self, seconds: float) -> None:
        self.add("offset-commit-completion-total")
        self.top("offset-commit-max-time-ms", seconds * 1000)
