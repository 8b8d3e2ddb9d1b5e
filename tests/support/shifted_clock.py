"""A clock that a test sets forward, so that what ends with time ends at once."""

from __future__ import annotations

from barnabas.base.clock import SystemClock


class ShiftedClock(SystemClock):
    """The machine's clock, and so much more; the length of timers is unchanged."""

    __slots__ = ("shift_ms",)

    def __init__(self) -> None:
        self.shift_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.shift_ms

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self.shift_ms
