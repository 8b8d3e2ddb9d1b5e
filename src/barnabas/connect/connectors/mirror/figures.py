"""What MirrorMaker's metrics count: records, bytes and times, by partition.

Tasks note what they read and write where that happens, and the driver adds it up. Minima, maxima,
means and rates are of the last minute. Source: MirrorSourceMetrics, MirrorCheckpointMetrics (Kafka
4.3).
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
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
    """What was read and written of one partition; picklable."""

    records: int = 0
    size_bytes: int = 0
    age_ms: Spread = field(default_factory=Spread)
    latency_ms: Spread = field(default_factory=Spread)

    def merge(self, other: Tally) -> None:
        """Take what came later."""
        self.records += other.records
        self.size_bytes += other.size_bytes
        self.age_ms.merge(other.age_ms)
        self.latency_ms.merge(other.latency_ms)


class _PartitionCounts:
    """One partition's, or one partition's of a group: since the start, and of the last spans."""

    def __init__(self, now_s: float) -> None:
        self.whole = Tally()
        self._spans = deque([(now_s, Tally())], maxlen=_SPANS)

    def add(self, tally: Tally, now_s: float) -> None:
        self.whole.merge(tally)
        began_s, _ = self._spans[-1]
        if now_s - began_s >= _SPAN_SECONDS:
            self._spans.append((now_s, Tally()))
        self._spans[-1][1].merge(tally)

    def _recent(self, now_s: float) -> list[tuple[float, Tally]]:
        return [one for one in self._spans if now_s - one[0] < _SPANS * _SPAN_SECONDS]

    def rates(self, now_s: float) -> tuple[float, float]:
        """Return records and bytes per second."""
        recent = self._recent(now_s)
        if not recent:
            return 0.0, 0.0
        # As Kafka's rates: what is new counts as if it had taken a whole span.
        gone_s = max(now_s - recent[0][0], _SPAN_SECONDS)
        records = sum(one.records for _, one in recent)
        return records / gone_s, sum(one.size_bytes for _, one in recent) / gone_s

    def age(self, name: str, now_s: float) -> Iterator[tuple[str, float]]:
        recent = [one.age_ms for _, one in self._recent(now_s)]
        return _times(name, self.whole.age_ms.last, recent)

    def latency(self, name: str, now_s: float) -> Iterator[tuple[str, float]]:
        recent = [one.latency_ms for _, one in self._recent(now_s)]
        return _times(name, self.whole.latency_ms.last, recent)


def _times(name: str, last: float, spreads: Sequence[Spread]) -> Iterator[tuple[str, float]]:
    whole = Spread()
    for one in spreads:
        whole.merge(one)
    yield name, last
    yield f"{name}-max", whole.most if whole.count else math.nan
    yield f"{name}-min", whole.least if whole.count else math.nan
    yield f"{name}-avg", whole.total / whole.count if whole.count else math.nan


class _Figures(ABC):
    """What one task counts, by the labels of a partition; from its thread, read from any."""

    def __init__(self, source: str, target: str, clock: Clock = time.monotonic) -> None:
        self._flow: Labels = (("source", source), ("target", target))
        self._clock = clock
        self._lock = Lock()
        self._counts: dict[Labels, _PartitionCounts] = {}

    def _add(self, place: TopicPartition, tally: Tally, more: Labels = ()) -> None:
        labels = (*self._flow, *more, ("topic", place[0]), ("partition", str(place[1])))
        with self._lock:
            now_s = self._clock()
            counts = self._counts.get(labels)
            if counts is None:
                counts = self._counts[labels] = _PartitionCounts(now_s)
            counts.add(tally, now_s)

    def seen(self) -> list[Figure]:
        """Return all figures."""
        with self._lock:
            now_s = self._clock()
            return [
                (name, labels, value)
                for labels, one in self._counts.items()
                for name, value in self._of(one, now_s)
            ]

    @abstractmethod
    def _of(self, one: _PartitionCounts, now_s: float) -> Iterator[tuple[str, float]]:
        """Yield the names and values of one partition."""


class SourceFigures(_Figures):
    """Of a task that mirrors topics."""

    def add(self, place: TopicPartition, tally: Tally) -> None:
        """Add what was written of a partition of the target."""
        self._add(place, tally)

    def _of(self, one: _PartitionCounts, now_s: float) -> Iterator[tuple[str, float]]:
        records_s, bytes_s = one.rates(now_s)
        yield f"{_SOURCE}_record-count", one.whole.records
        yield f"{_SOURCE}_record-rate", records_s
        yield f"{_SOURCE}_byte-count", one.whole.size_bytes
        yield f"{_SOURCE}_byte-rate", bytes_s
        yield from one.age(f"{_SOURCE}_record-age-ms", now_s)
        yield from one.latency(f"{_SOURCE}_replication-latency-ms", now_s)


class CheckpointFigures(_Figures):
    """Of a task that translates group offsets."""

    def written(self, checkpoint: Checkpoint, latency_ms: float) -> None:
        """A checkpoint is written, so long after it was found."""
        tally = Tally(records=1)
        tally.latency_ms.add(latency_ms)
        self._add(checkpoint.place, tally, (("group", checkpoint.group),))

    def _of(self, one: _PartitionCounts, now_s: float) -> Iterator[tuple[str, float]]:
        return one.latency(f"{_CHECKPOINT}_checkpoint-latency-ms", now_s)
