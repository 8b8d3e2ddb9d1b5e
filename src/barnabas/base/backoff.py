"""Times that grow with every failure. Source: Kafka's ExponentialBackoff."""

import math
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Number = TypeVar("_Number", int, float)

_DOUBLINGS_MAX = 62
JITTER = 0.2
"""The share by which a time is made shorter or longer, at most."""


def doubled(first: _Number, longest: _Number, times: int) -> _Number:
    """`first`, doubled so many times; never more than `longest`. Units are the caller's."""
    grown: _Number = first * 2 ** min(times, _DOUBLINGS_MAX)
    return min(grown, longest)


class Doubling:
    """A time that starts at `first` and doubles each time it is asked for, up to `longest`."""

    __slots__ = ("_asked", "_first", "_longest")

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._asked = 0

    def next(self) -> float:
        """Return the time, and double it for the next call."""
        time = doubled(self._first, self._longest, self._asked)
        self._asked += 1
        return time

    def reset(self) -> None:
        """Start at `first` again."""
        self._asked = 0


class Pauses(Generic[_Key]):
    """Keys that failed, each left out for a time, which doubles with every failure in a row.

    Times are in the unit of the `now` that the caller gives.
    """

    __slots__ = ("_first", "_left_out", "_longest")

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._left_out: dict[_Key, tuple[float, int]] = {}
        """By key the end of its pause, and the number of failures."""

    def __contains__(self, key: _Key) -> bool:
        """Return whether it has failed, and not succeeded since."""
        return key in self._left_out

    def is_over(self, key: _Key, now: float) -> bool:
        """Return whether a key may be tried."""
        return key not in self._left_out or self._left_out[key][0] <= now

    def failed(self, key: _Key, now: float) -> tuple[float, int]:
        """Leave a key out. Returns for how long, and how often it had failed before."""
        _, failures = self._left_out.get(key, (0.0, 0))
        pause = doubled(self._first, self._longest, failures)
        self._left_out[key] = now + pause, failures + 1
        return pause, failures

    def succeeded(self, key: _Key) -> None:
        """Forget its failures."""
        self._left_out.pop(key, None)


class RandomSource(Protocol):
    """`random.Random` and `random.SystemRandom` are such sources."""

    def randrange(self, stop: int, /) -> int:
        """An integer in [0, stop)."""


class ExponentialBackoff:
    """`first_ms`, doubled with each failure up to `max_ms`, times a random factor around 1.

    Where `max_ms` is not above `first_ms`, every time is `max_ms`, and nothing is drawn.
    """

    __slots__ = ("_doublings_max", "_first_ms", "_max_ms", "_random")

    def __init__(self, first_ms: int, max_ms: int, random: RandomSource) -> None:
        self._first_ms = min(first_ms, max_ms)
        self._max_ms = max_ms
        self._random = random
        self._doublings_max = math.log2(max_ms / max(first_ms, 1)) if max_ms > first_ms else 0.0

    def after(self, failures: int) -> int:
        """Milliseconds after so many failures in a row; never more than `max_ms`."""
        if not self._doublings_max:
            return self._first_ms
        grown_ms: float = self._first_ms * 2 ** min(failures, self._doublings_max)
        least_ms = int((1 - JITTER) * grown_ms)
        spread_ms = int(2 * JITTER * grown_ms)
        return min(least_ms + self._random.randrange(spread_ms + 1), self._max_ms)
