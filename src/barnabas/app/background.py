"""Work of a node beside its requests: periodic steps and tasks of their own, never a thread."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from barnabas.base.clock import Clock, Timer

telemetry = logging.getLogger(__name__)


class Background:
    """Runs steps periodically, one timer for each kind, and tasks, until closed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timers: dict[str, Timer] = {}
        self._tasks: set[asyncio.Future[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` beside everything else; `finish` waits for it. A failure is logged."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Future[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            telemetry.error("a background task failed", exc_info=task.exception())

    async def finish(self) -> None:
        """Return once no task is left."""
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
