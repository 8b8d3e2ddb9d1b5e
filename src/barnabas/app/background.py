"""Work of a node beside its requests: periodic steps and tasks of their own, never a thread."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from barnabas.base.clock import Clock, Timer

telemetry = logging.getLogger(__name__)


class Background:
    """Runs steps periodically, one timer for each kind, until `close`, and tasks until `end`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timers: dict[str, Timer] = {}
        self._tasks: set[asyncio.Future[None]] = set()
        self._has_ended = False

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` beside everything else, until `end`. A failure is logged."""
        if self._has_ended:
            work.close()
            return
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Future[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            telemetry.error("a background task failed", exc_info=task.exception())

    async def end(self) -> None:
        """Cancel what is left and take no more: it may wait for a controller that is gone."""
        self._has_ended = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

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
        """Run no more steps."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
