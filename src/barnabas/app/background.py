"""Work that a node does from time to time: one timer for each kind of it, never a thread."""

import logging
from collections.abc import Callable

from barnabas.base.clock import Clock, Timer

telemetry = logging.getLogger(__name__)


class Background:
    """Runs steps periodically until closed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timers: dict[str, Timer] = {}

    def every(self, period_ms: int, name: str, step: Callable[[], object]) -> None:
        """Run `step` every `period_ms`, first after that time; a failing step is logged."""

        def run() -> None:
            try:
                step()
            except Exception:  # noqa: BLE001  # our own fault: it is logged, and the node serves on
                telemetry.exception("%s failed", name)
            self._timers[name] = self._clock.call_later(period_ms, run)

        self._timers[name] = self._clock.call_later(period_ms, run)

    def close(self) -> None:
        """Run nothing any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
