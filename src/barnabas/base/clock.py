"""Time as an argument: the one interface through which the platform reads a clock.

Production uses `SystemClock` over the running event loop; the simulator passes a virtual one.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A callback that is due later."""

    def cancel(self) -> None:
        """Forget the callback; harmless when it has already run."""


class Clock(Protocol):
    """Wall time, monotonic time and timers, all in milliseconds."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch; may step when the machine's clock is set."""

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back; for time-outs and durations."""

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` on the event loop once, `delay_ms` from now."""


def now_ms() -> int:
    """Milliseconds since 1970, as in timestamps of records, for code that needs no `Clock`."""
    return time.time_ns() // 1_000_000


class SystemClock:
    """The machine's clock, with timers on the running asyncio event loop."""

    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay_ms / 1000, callback)
