"""A machine's clock on virtual time: its wall time may be wrong and may step."""

from collections.abc import Callable

from sim.loop import Handle, SimLoop

EPOCH_MS = 1_700_000_000_000
"""Wall time when a simulation begins."""


class SimClock:
    """See `base.clock.Clock`. `skew_ms` is how far wall time is off."""

    def __init__(self, loop: SimLoop, skew_ms: int = 0) -> None:
        self._loop = loop
        self.skew_ms = skew_ms

    def now_ms(self) -> int:
        return EPOCH_MS + self._loop.now_ms + self.skew_ms

    def monotonic_ms(self) -> int:
        return self._loop.now_ms

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Handle:
        return self._loop.call_later(delay_ms / 1000, callback)
