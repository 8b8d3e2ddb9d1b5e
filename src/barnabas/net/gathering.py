"""Receiving the requests of a busy producer a few at a time.

A producer that pipelines writes requests faster than one by one is cheap: each wakes the broker,
is written by itself, and its answer wakes the producer. Several that are received at once share
all of that. So, once a connection has shown that it has several requests in flight and sends many
each millisecond, the operating system is asked to tell of its data only when about three quarters
of what it has in flight is there (SO_RCVLOWAT). The rest keeps the pipeline full: of five requests,
one is on its way while four are handled, which takes the broker about as long.

Nobody waits long: after a tick without a receive, what lies there is let in, and the next few too
(a client may have come to ask one thing after the other). Where that happens too often, it ends,
and more has to be shown before it begins again. A client that waits for each of its answers never
gets here, since its requests do not arrive together. Nor does a transactional producer, which does
so at the end of each transaction: the service says for whom it is (`Connection.may_gather`).

`python -m bench.request_cost --at-once 4` shows what a request costs that is received so.
"""

from collections.abc import Callable

from barnabas.base.clock import Clock, Timer

DEPTH_MIN = 3
"""Requests received at once, at the least, that show that a client pipelines."""
PATIENCE_MS = 1
"""A request waits for those behind it for up to two of these."""
FRAMES_LET_IN = 16
"""Received at once after a tick without a receive."""
PAUSE_MAX_MS = 20
"""A producer that takes longer over these has to show again how it sends."""
WANTED_MAX = 8
"""Requests waited for; more would save little more."""
THRESHOLD_MAX_BYTES = 96 * 1024
"""Requests of which not even two fit in have little to gain."""
FRAMES_PER_MS_MIN = 2
FRAMES_NEEDED_MIN = 64
FRAMES_NEEDED_MAX = 2048
"""Received at that rate, in a row, before it begins."""
TICKS_PER_LATE_MIN = 32
"""Ticks with a receive, at the least, for each without one at which something lay there."""


class Gathering:
    """How one connection is received."""

    __slots__ = (
        "_clock",
        "_depth",
        "_frames",
        "_frames_needed",
        "_is_judged",
        "_late",
        "_let_in_ms",
        "_since_ms",
        "_threshold",
        "_ticks",
        "_timer",
        "_wake_at",
    )

    def __init__(self, clock: Clock, wake_at: Callable[[int], bool]) -> None:
        """`wake_at` is the transport's."""
        self._clock = clock
        self._wake_at = wake_at
        self._timer: Timer | None = None
        self._threshold = 0
        """Bytes to wait for; 0 until it begins."""
        self._let_in_ms = 0
        """While it goes on without a timer: since when anything is received at once."""
        self._is_judged = True
        """Whether it is known if something lay there then."""
        self._ticks = self._late = 0
        """Since it began: with a receive, and without one though something lay there."""
        self._frames = 0
        """Since `_since_ms`; while it goes on, since the last tick, or since all is let in."""
        self._since_ms = clock.monotonic_ms()
        self._depth = 0
        """Most requests received at once since then."""
        self._frames_needed = FRAMES_NEEDED_MIN

    @property
    def is_on(self) -> bool:
        """Whether requests are waited for, or will be after the next."""
        return self._threshold > 0

    def received(self, count: int, size_bytes: int) -> None:
        """`count` requests were received at once, with `size_bytes`."""
        self._frames += count
        if self._timer is not None:
            return
        if self._threshold:
            self._go_on()
        elif count >= DEPTH_MIN:
            self._consider(count, size_bytes // count)

    def _consider(self, count: int, size_bytes: int) -> None:
        """Begin, if enough requests came in the time."""
        now_ms = self._clock.monotonic_ms()
        self._depth = max(self._depth, count)
        if self._frames < (now_ms - self._since_ms) * FRAMES_PER_MS_MIN:
            self._restart(now_ms)
        elif self._frames >= self._frames_needed:
            share = (3 * self._depth + 2) // 4
            wanted = min(share, WANTED_MAX, THRESHOLD_MAX_BYTES // size_bytes)
            threshold = wanted * size_bytes - size_bytes // 2  # they are not all of one size
            if wanted > 1 and self._wake_at(threshold):
                self._threshold = threshold
                self._ticks = self._late = 0
                self._wait()
            else:
                self._restart(now_ms)

    def _wait(self) -> None:
        self._frames = 0
        self._timer = self._clock.call_later(PATIENCE_MS, self._tick)

    def _tick(self) -> None:
        if self._frames:
            self._ticks += 1
            self._wait()
            return
        self._timer = None
        self._wake_at(1)
        self._let_in_ms = self._clock.monotonic_ms()
        self._is_judged = False

    def _go_on(self) -> None:
        """Something was received after all: wait again, let in more, or end."""
        if self._is_judged and self._frames < FRAMES_LET_IN:
            return
        now_ms = self._clock.monotonic_ms()
        pause_ms = now_ms - self._let_in_ms
        if not self._is_judged:
            self._is_judged = True
            if pause_ms <= PATIENCE_MS:
                self._late += 1
        late_max = self._ticks // TICKS_PER_LATE_MIN
        if self._late > 1 + late_max or pause_ms > PAUSE_MAX_MS:
            self._end(now_ms, is_to_blame=self._late > late_max)
        elif self._frames >= FRAMES_LET_IN:
            self._wake_at(self._threshold)
            self._wait()

    def _end(self, now_ms: int, *, is_to_blame: bool) -> None:
        self._threshold = 0
        self._frames_needed = (
            min(self._frames_needed * 2, FRAMES_NEEDED_MAX) if is_to_blame else FRAMES_NEEDED_MIN
        )
        self._restart(now_ms)

    def _restart(self, now_ms: int) -> None:
        self._frames = self._depth = 0
        self._since_ms = now_ms

    def stop(self) -> None:
        """The connection has gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
