"""Counts and times of the requests that a node's listeners answer, by API.

Every request is counted. Of each API some hundred a second are timed, evenly spread: reading the
clock for each would cost a node at full load more than it may. A run of produce requests, which are
answered together, is one sample.
"""

from collections.abc import Callable, Iterator
from typing import Final

from barnabas.node.loop.histogram import Histogram

SAMPLES_PER_TICK: Final = 4
TICK_MS: Final = 20
"""Interval between calls of `tick`."""
WINDOW_TICKS: Final = 1500
"""Percentiles are of the last 30 to 60 seconds."""
_API_MAX: Final = 256
FETCH_KEY: Final = 1
FOLLOWER_FETCH_KEY: Final = 255
"""Where fetches of followers are counted: no API has this key."""
ERROR_KINDS_MAX: Final = 4096
"""Of (API, error): more kinds are not told apart, as unknown error codes come from nobody."""


class ApiTimes:
    """The requests of one API. Times are in microseconds."""

    __slots__ = (
        "count",
        "left",
        "local",
        "queue",
        "remote",
        "response_queue",
        "send",
        "total",
    )

    def __init__(self) -> None:
        self.count = 0
        self.left = SAMPLES_PER_TICK
        """Samples that may still be taken before the next tick."""
        self.queue = Histogram()
        """From a request's arrival to its beginning."""
        self.local = Histogram()
        """Until its handler has answered, or has left it to wait."""
        self.remote = Histogram()
        """The wait: for other replicas, for records, for other members of a group."""
        self.response_queue = Histogram()
        """From the answer to its turn on the connection."""
        self.send = Histogram()
        """Handing it to the socket."""
        self.total = Histogram()

    def histograms(self) -> "Iterator[Histogram]":
        """All of them."""
        yield self.queue
        yield self.local
        yield self.remote
        yield self.response_queue
        yield self.send
        yield self.total


class Sample:
    """One request that is timed, in nanoseconds of the clock."""

    __slots__ = ("api", "arrived", "begun", "clock_ns", "completed", "handled")

    def __init__(
        self,
        api: ApiTimes,
        arrived: int,
        begun: int,
        handled: int,
        clock_ns: Callable[[], int],
    ) -> None:
        self.api = api
        self.clock_ns = clock_ns
        self.arrived = arrived
        self.begun = begun
        self.handled = handled
        self.completed = handled

    def sent(self, collected: int, now: int) -> None:
        """Its answer was next at `collected`, and had been given to the socket at `now`."""
        api = self.api
        api.queue.add((self.begun - self.arrived) // 1000)
        api.local.add((self.handled - self.begun) // 1000)
        api.remote.add((self.completed - self.handled) // 1000)
        api.response_queue.add((collected - self.completed) // 1000)
        api.send.add((now - collected) // 1000)
        api.total.add((now - self.arrived) // 1000)

    def with_count(self, sample: "Sample") -> None:
        """A request is counted once."""
        raise AssertionError("a request is counted once")

    def lost(self) -> None:
        """Nobody waits for the answer any more: it has no times."""


class RequestTimes:
    """The requests of a node, by the numbers of their APIs."""

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self.clock_ns = clock_ns
        self.by_key: list[ApiTimes | None] = [None] * _API_MAX
        """None: nobody has asked for the API yet."""
        self.errors: dict[tuple[int, int], int] = {}
        """By API and error code."""
        self._ticks = 0

    def of(self, frame: bytearray, *, is_follower: bool = False) -> ApiTimes:
        """The API of a request that was served, so its key is below 256."""
        key = frame[1]
        if is_follower and key == FETCH_KEY:
            key = FOLLOWER_FETCH_KEY
        return self.by_key[key] or self._begin(key)

    def _begin(self, key: int) -> ApiTimes:
        times = self.by_key[key] = ApiTimes()
        return times

    def failed(self, api_key: int, error: int) -> None:
        """A request was answered with an error, in whole or in part."""
        errors, kind = self.errors, (api_key, error)
        if kind in errors or len(errors) < ERROR_KINDS_MAX:
            errors[kind] = errors.get(kind, 0) + 1

    def items(self) -> Iterator[tuple[int, ApiTimes]]:
        """The APIs that were asked for, by their keys."""
        for key, times in enumerate(self.by_key):
            if times is not None:
                yield key, times

    def tick(self) -> None:
        """Let each API take further samples; from time to time a window ends."""
        self._ticks += 1
        is_window_over = self._ticks % WINDOW_TICKS == 0
        for times in self.by_key:
            if times is not None:
                times.left = SAMPLES_PER_TICK
                if is_window_over:
                    for histogram in times.histograms():
                        histogram.turn()
