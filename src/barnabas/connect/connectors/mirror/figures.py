"""What MirrorMaker's metrics count: records, bytes and times, by partition.

Tasks note what they read and write where that happens, and the driver adds it up. Minima, maxima,
means and rates are of the last minute. Source: MirrorSourceMetrics, MirrorCheckpointMetrics (Kafka
4.3).
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from barnabas.connect.connectors.base import Figure, TopicPartition
from barnabas.connect.connectors.mirror.records import Checkpoint

_SPAN_SECONDS: Final = 30.0
_SPANS: Final = 2
_SOURCE: Final = "mirror_mirrorsourceconnector"
_CHECKPOINT: Final = "mirror_mirrorcheckpointconnector"
Clock = Callable[[], float]
Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Spread:
    """Values in milliseconds, as far as figures need them; picklable."""

    count: int = 0
    total: float = 0.0
    least: float = math.inf
    most: float = -math.inf
    last: float = math.nan

    def add(self, value: float) -> None:
        """Take a value."""
        self.count += 1
        self.total += value
        self.last = value
        if value < self.least:
            self.least = value
        if value > self.most:
            self.most = value

    def merge(self, other: Spread) -> None:
        """Take later values."""
        if other.count:
            self.count += other.count
            self.total += other.total
            self.least = min(self.least, other.least)
            self.most = max(self.most, other.most)
            self.last = other.last


@dataclass(slots=True)
class Tally:
    """What a split has read and written of one partition; picklable."""

    records: int = 0
    size_bytes: int = 0
    age_ms: Spread = field(default_factory=Spread)
    latency_ms: Spread = field(default_factory=Spread)


@dataclass(slots=True)
class _Span:
    began_s: float
    records: int = 0
    size_bytes: int = 0
    age_ms: Spread = field(default_factory=Spread)
    latency_ms: Spread = field(default_factory=Spread)


class _PartitionCounts:
    """One partition's, or one partition's of a group."""

    def __init__(self, now_s: float) -> None:
        self.records = 0
        self.size_bytes = 0
        self._age = math.nan
        self._latency = math.nan
        self._spans: deque[_Span] = deque([_Span(now_s)], maxlen=_SPANS)

    def add(self, tally: Tally, now_s: float) -> None:
        self.records += tally.records
        self.size_bytes += tally.size_bytes
        if now_s - self._spans[-1].began_s >= _SPAN_SECONDS:
            self._spans.append(_Span(now_s))
        span = self._spans[-1]
        span.records += tally.records
        span.size_bytes += tally.size_bytes
        span.age_ms.merge(tally.age_ms)
        span.latency_ms.merge(tally.latency_ms)
        self._age = tally.age_ms.last if tally.age_ms.count else self._age
        self._latency = tally.latency_ms.last if tally.latency_ms.count else self._latency

    def _recent(self, now_s: float) -> list[_Span]:
        return [one for one in self._spans if now_s - one.began_s < _SPANS * _SPAN_SECONDS]

    def rates(self, now_s: float) -> tuple[float, float]:
        """Return records and bytes per second."""
        recent = self._recent(now_s)
        if not recent:
            return 0.0, 0.0
        # As Kafka's rates: what is new counts as if it had taken a whole span.
        gone_s = max(now_s - recent[0].began_s, _SPAN_SECONDS)
        records = sum(one.records for one in recent)
        return records / gone_s, sum(one.size_bytes for one in recent) / gone_s

    def age(self, name: str, now_s: float) -> Iterator[tuple[str, float]]:
        return _times(name, self._age, [one.age_ms for one in self._recent(now_s)])

    def latency(self, name: str, now_s: float) -> Iterator[tuple[str, float]]:
        return _times(name, self._latency, [one.latency_ms for one in self._recent(now_s)])


def _times(name: str, last: float, spreads: Sequence[Spread]) -> Iterator[tuple[str, float]]:
    whole = Spread()
    for one in spreads:
        whole.merge(one)
    yield name, last
    yield f"{name}-max", whole.most if whole.count else math.nan
    yield f"{name}-min", whole.least if whole.count else math.nan
    yield f"{name}-avg", whole.total / whole.count if whole.count else math.nan


class SourceFigures:
    """Of a task that mirrors topics; from its thread, read from any."""

    def __init__(self, source: str, target: str, clock: Clock = time.monotonic) -> None:
        self._flow: Labels = (("source", source), ("target", target))
        self._clock = clock
        self._lock = Lock()
        self._places: dict[TopicPartition, _PartitionCounts] = {}

    def add(self, place: TopicPartition, tally: Tally) -> None:
        """Add what was written of a partition of the target."""
        with self._lock:
            now_s = self._clock()
            counts = self._places.get(place)
            if counts is None:
                counts = self._places[place] = _PartitionCounts(now_s)
            counts.add(tally, now_s)

    def seen(self) -> list[Figure]:
        """Return all figures."""
        with self._lock:
            now_s = self._clock()
            return [
                (f"{_SOURCE}_{name}", (*self._flow, *_labels(place)), value)
                for place, one in self._places.items()
                for name, value in self._of(one, now_s)
            ]

    def _of(self, one: _PartitionCounts, now_s: float) -> Iterator[tuple[str, float]]:
        records_s, bytes_s = one.rates(now_s)
        yield "record-count", one.records
        yield "record-rate", records_s
        yield "byte-count", one.size_bytes
        yield "byte-rate", bytes_s
        yield from one.age("record-age-ms", now_s)
        yield from one.latency("replication-latency-ms", now_s)


class CheckpointFigures:
    """Of a task that translates group offsets; from its thread, read from any."""

    def __init__(self, source: str, target: str, clock: Clock = time.monotonic) -> None:
        self._flow: Labels = (("source", source), ("target", target))
        self._clock = clock
        self._lock = Lock()
        self._groups: dict[tuple[str, TopicPartition], _PartitionCounts] = {}

    def written(self, checkpoint: Checkpoint, latency_ms: float) -> None:
        """A checkpoint is written, so long after it was found."""
        tally = Tally(records=1)
        tally.latency_ms.add(latency_ms)
        with self._lock:
            now_s = self._clock()
            key = checkpoint.group, checkpoint.place
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = _PartitionCounts(now_s)
            group.add(tally, now_s)

    def seen(self) -> list[Figure]:
        """Return all figures."""
        with self._lock:
            now_s = self._clock()
            return [
                (
                    f"{_CHECKPOINT}_{name}",
                    (*self._flow, ("group", group), *_labels(place)),
                    value,
                )
                for (group, place), one in self._groups.items()
                for name, value in one.latency("checkpoint-latency-ms", now_s)
            ]


def _labels(place: TopicPartition) -> Labels:
    return ("topic", place[0]), ("partition", str(place[1]))
