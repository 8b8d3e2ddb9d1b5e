"""Watching the event loop of a node: how late its timers run, and how busy it is."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from barnabas.node.loop.histogram import Histogram
from barnabas.node.net.request_times import TICK_MS, WINDOW_TICKS

TICKS_PER_LOOK: Final = 50
"""Of how busy it is: once a second."""


class LoopWatch:
    """From `start` to `close`, on the running event loop."""

    def __init__(self, on_tick: Callable[[], None] | None = None) -> None:
        """`on_tick` is called every TICK_MS."""
        self._on_tick = on_tick
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._ticks = 0
        self._looked: tuple[float, float] = (0.0, 0.0)
        self.lag = Histogram()
        """In microseconds: the time by which a timer was late."""
        self.idle_share = 1.0
        """Of the last second, the share in which the loop's thread did nothing."""

    def start(self) -> None:
        """Begin to watch."""
        self._looked = (time.perf_counter(), time.thread_time())
        self._arm(asyncio.get_running_loop())

    def close(self) -> None:
        """Watch no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due = loop.time() + TICK_MS / 1000
        self._timer = loop.call_at(self._due, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self.lag.add(int((loop.time() - self._due) * 1_000_000))
        self._ticks += 1
        if self._ticks % TICKS_PER_LOOK == 0:
            before, busy_before = self._looked
            now, busy = self._looked = (time.perf_counter(), time.thread_time())
            self.idle_share = max(0.0, 1 - (busy - busy_before) / max(now - before, 1e-9))
        if self._ticks % WINDOW_TICKS == 0:
            self.lag.turn()
        if self._on_tick is not None:
            self._on_tick()
        self._arm(loop)
