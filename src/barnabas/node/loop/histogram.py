"""Percentiles of durations, of about the last minute, from buckets of fixed widths.

A bucket is a sixteenth of its octave wide, so a percentile is at most some 6 % too high. What was
added counts for one to two windows: `turn` ends one.
"""

from collections.abc import Iterable, Sequence
from typing import Final

SHARE_BITS: Final = 4
"""An octave has 2 ** 4 buckets."""
VALUE_MAX: Final = (1 << 32) - 1
"""Microseconds: more than an hour is counted as that."""
_FIRST: Final = 1 << SHARE_BITS


class Histogram:
    """Counts whole numbers of at least 0, microseconds mostly."""

    __slots__ = ("_before", "_max_before", "_max_now", "_now", "count", "total")

    def __init__(self) -> None:
        self._now: dict[int, int] = {}
        self._before: dict[int, int] = {}
        self._max_now = self._max_before = 0
        self.count = 0
        """The number of values so far."""
        self.total = 0
        """Their sum."""

    def add(self, value: int) -> None:
        """Count a value; a negative one is 0."""
        if value < _FIRST:
            bucket = value = max(value, 0)
        else:
            value = min(value, VALUE_MAX)
            shift = value.bit_length() - SHARE_BITS - 1
            bucket = (shift << SHARE_BITS) + (value >> shift)
        now = self._now
        now[bucket] = now.get(bucket, 0) + 1
        if value > self._max_now:
            self._max_now = value
        self.count += 1
        self.total += value

    def turn(self) -> None:
        """End a window: what came before the last one is forgotten."""
        self._before, self._now = self._now, {}
        self._max_before, self._max_now = self._max_now, 0

    @property
    def longest(self) -> int:
        """The greatest value of the last windows, 0 without any."""
        return max(self._max_now, self._max_before)

    @property
    def recent(self) -> Iterable[tuple[int, int]]:
        """The last windows' values, as buckets and their counts."""
        yield from self._before.items()
        yield from self._now.items()


def quantiles(histograms: Sequence[Histogram], shares: Sequence[float]) -> list[int]:
    """The value below which each share of all the histograms' last values lies; 0 without any."""
    counts: dict[int, int] = {}
    for histogram in histograms:
        for bucket, count in histogram.recent:
            counts[bucket] = counts.get(bucket, 0) + count
    buckets = sorted(counts.items())
    total = sum(counts.values())
    longest = max((histogram.longest for histogram in histograms), default=0)
    found: list[int] = []
    for share in shares:
        seen = value = 0
        for bucket, count in buckets:
            seen += count
            value = _upper(bucket)
            if seen >= share * total:
                break
        found.append(min(value, longest))
    return found


def _upper(bucket: int) -> int:
    """The greatest value that a bucket holds."""
    if bucket < 2 * _FIRST:
        return bucket
    shift = (bucket >> SHARE_BITS) - 1
    return ((bucket - (shift << SHARE_BITS) + 1) << shift) - 1
