"""Micro-batches of several topics that are slices of time.

A query that catches up with several topics takes them in micro-batches of limited size. Each slice
ends at one time in all of them, so that a stream's records do not come before the rows of a table
that are older: within a micro-batch records are in the order of their timestamps. Kafka Streams
takes the record with the smallest timestamp next (KIP-353, KIP-695); here that is so for slices.

    a partition's part of a slice: from its start to the first record that is later than the slice

The brokers find that record (ListOffsets by timestamp). In a partition whose timestamps are out of
order, it may be before the start, which then is the end, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import OffsetSpec

from barnabas.kafka.admin import Admin, Listed

Place = tuple[str, int]
"""A topic and a partition."""
OffsetsAfter = Callable[[int, Collection[Place]], Listed]
"""By partition, the offset of the first record later than a time in ms; -1 if there is none."""
_NEVER: Final = -2
"""Before all timestamps: those of records without one are -1."""
_FOREVER: Final = 2**63 - 1
_FIRST_STEP_MS: Final = 2**40
_ENOUGH: Final = 0.5
"""A slice that takes so much of a limit is not made greater."""
_WANTED: Final = 0.75


@dataclass(frozen=True, slots=True)
class Source:
    """The offsets of a topic that are not read yet; a micro-batch may take `limit` of them.

    A partition that is not among `starts` begins at 0.
    """

    starts: Listed
    ends: Listed
    limit: int

    def until(self, found: Mapping[Place, int]) -> Listed:
        """The ends of a slice, by the first offsets that are later."""
        return {
            place: end
            if end <= (start := self.starts.get(place, 0)) or (later := found.get(place, -1)) < 0
            else min(end, max(start, later))
            for place, end in self.ends.items()
        }

    def sizes(self, ends: Listed) -> Listed:
        """The number of offsets before these ends, without partitions that have none."""
        return {
            place: size
            for place, end in ends.items()
            if (size := end - self.starts.get(place, 0)) > 0
        }

    def limited(self, ends: Listed) -> Listed:
        """These ends, or earlier ones if there are too many offsets before them: partitions share
        the limit by their sizes."""
        sizes = self.sizes(ends)
        total = sum(sizes.values())
        limit = max(1, self.limit)
        if total <= limit:
            return ends
        parts = {place: limit * size // total for place, size in sizes.items()}
        left = limit - sum(parts.values())
        for place in sorted(parts, key=lambda place: parts[place] - sizes[place])[:left]:
            parts[place] += 1
        limits = {place: self.starts.get(place, 0) + part for place, part in parts.items()}
        return {**ends, **limits}


@dataclass(frozen=True, slots=True)
class _Slice:
    time_ms: int
    ends: list[Listed]
    fill: float
    """Its part of a topic's limit, the greatest among the topics; above 1 it takes too much."""


class TimeSlices:
    """The slices of one query. It remembers where the last one ended, to find the next sooner."""

    def __init__(self) -> None:
        self._last_ms = _NEVER
        self._step_ms = _FIRST_STEP_MS

    def ends(self, sources: Sequence[Source], offsets_after: OffsetsAfter) -> list[Listed]:
        """Where the next micro-batch ends, for each source. Raises what `offsets_after` raises.

        Nothing is looked up if no source has more than its limit. Otherwise the slice takes at
        least half of a limit, or all milliseconds that fit. If not even the first millisecond
        fits, it is cut at the limits.
        """
        high = _slice_of(sources, _FOREVER, {})
        if high.fill <= 1:
            return high.ends
        places = {place for source in sources for place in source.sizes(source.ends)}
        low = _slice_of(sources, _NEVER, dict.fromkeys(places, 0))
        step_ms, is_measured = self._step_ms, True
        while high.time_ms - low.time_ms > 1 and low.fill < _ENOUGH:
            if high.time_ms == _FOREVER:
                time_ms = max(low.time_ms, self._last_ms) + step_ms
                step_ms *= 2
            else:
                time_ms = self._between(low, high, is_measured=is_measured)
                is_measured = not is_measured
            time_ms = min(max(time_ms, low.time_ms + 1), high.time_ms - 1)
            tried = _slice_of(sources, time_ms, offsets_after(time_ms, places))
            if tried.fill > 1:
                high = tried
            else:
                low = tried
        self._remember(low, high)
        if low.fill > 0:
            return low.ends
        return [source.limited(ends) for source, ends in zip(sources, high.ends, strict=True)]

    def _between(self, low: _Slice, high: _Slice, *, is_measured: bool) -> int:
        """A time between these: by how much they take if something is known of that, or the
        middle."""
        first_ms = low.time_ms
        if first_ms < self._last_ms < high.time_ms:
            first_ms = self._last_ms
        width_ms = high.time_ms - first_ms
        if is_measured and (low.fill or first_ms > low.time_ms):
            return first_ms + int(width_ms * (_WANTED - low.fill) / (high.fill - low.fill))
        return first_ms + width_ms // 2

    def _remember(self, low: _Slice, high: _Slice) -> None:
        if high.time_ms < _FOREVER:
            width_ms, fill = high.time_ms - low.time_ms, high.fill - low.fill
        else:
            width_ms, fill = low.time_ms - self._last_ms, low.fill
        if fill > 0:
            self._step_ms = min(max(1, int(width_ms * _WANTED / fill)), _FIRST_STEP_MS)
        self._last_ms = low.time_ms


def _slice_of(sources: Sequence[Source], time_ms: int, found: Mapping[Place, int]) -> _Slice:
    ends = [source.until(found) for source in sources]
    fills = [
        sum(source.sizes(of).values()) / max(1, source.limit)
        for source, of in zip(sources, ends, strict=True)
    ]
    return _Slice(time_ms, ends, max(fills, default=0))


class TopicTimes:
    """Looks up records by their timestamps."""

    def __init__(self, admin: Admin, timeout_s: float, *, is_committed_only: bool) -> None:
        self._admin = admin
        self._timeout_s = timeout_s
        self._isolation = (
            IsolationLevel.READ_COMMITTED if is_committed_only else IsolationLevel.READ_UNCOMMITTED
        )

    def offsets_after(self, time_ms: int, places: Collection[Place]) -> Listed:
        """By partition, the offset of the first later record; -1 if there is none.

        Raises KafkaException.
        """
        later = OffsetSpec.for_timestamp(time_ms + 1)
        asked = {TopicPartition(*place): later for place in places}
        return self._admin.offsets(asked, self._timeout_s, self._isolation)
