"""A task of the engine: a thread that does one micro-batch after another until it is to end."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from threading import Condition, Event, Thread
from time import sleep
from typing import Any, Final

from barnabas.connect.connectors.base import Figure, OffsetReader, TaskContext, TransactionContext
from barnabas.connect.engine.base import TaskListener, TaskPlan
from barnabas.connect.engine.metrics import TaskMetrics
from barnabas.connect.errors.tolerance import retry_delay_ms

_log = logging.getLogger(__name__)
IDLE_SECONDS: Final = 0.1
IDLE_SECONDS_MAX: Final = 0.5


class EngineTask(ABC):
    """What sources and sinks have in common; a RunningTask."""

    def __init__(
        self,
        plan: TaskPlan,
        settings: Mapping[str, str],
        listener: TaskListener,
        stopping: Event,
        *,
        is_paused: bool,
    ) -> None:
        self.plan = plan
        self.settings = settings
        self.listener = listener
        self.figures = TaskMetrics()
        self.stopping = stopping
        self._is_paused = is_paused
        self._changed = Condition()
        self._topics: set[str] = set()
        self._attempt = 0
        self._thread = Thread(target=self._main, name=f"connect-{plan.id}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def pause(self) -> None:
        """Hold still once the micro-batch that runs is done."""
        with self._changed:
            self._is_paused = True
            self._changed.notify_all()

    def resume(self) -> None:
        """Go on."""
        with self._changed:
            self._is_paused = False
            self._changed.notify_all()

    def stop(self) -> None:
        """Begin to end."""
        self.stopping.set()
        with self._changed:
            self._changed.notify_all()

    def join(self, timeout_s: float) -> bool:
        """Wait for the end; whether it came."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def metrics(self) -> Mapping[str, float]:
        """Return figures."""
        return self.figures.seen()

    def own_metrics(self) -> Sequence[Figure]:
        """Return figures of the connector's own; most have none."""
        return ()

    @property
    def is_paused(self) -> bool:
        """Whether it holds still, or will soon."""
        return self._is_paused

    def context(
        self,
        offsets: OffsetReader | None,
        spark: Callable[[], Any] | None,
        transactions: TransactionContext | None = None,
    ) -> TaskContext:
        """Return what readers and writers are made with."""
        return TaskContext(
            self.plan.id.connector,
            self.plan.id.task,
            self.settings,
            offsets,
            None if spark is None else spark(),
            transactions,
            _Wait(self.stopping),
        )

    @abstractmethod
    def run(self) -> None:
        """Run until `stopping`; calls `begun` when it does."""

    def begun(self) -> None:
        """All is open: tell that it runs, or holds still."""
        self.listener.started()
        if self._is_paused:
            self.listener.paused()

    def used(self, topics: set[str]) -> None:
        """Tell of topics."""
        new = topics - self._topics
        if new:
            self._topics |= new
            self.listener.topics_used(sorted(new))

    def idle(self, seconds: float) -> None:
        """Wait, unless something is asked of us meanwhile."""
        with self._changed:
            if not self.stopping.is_set():
                self._changed.wait(seconds)

    def back_off(self, error: BaseException) -> None:
        """Wait before something is tried again."""
        self._attempt += 1
        delay_max_ms = int(self.settings.get("errors.retry.delay.max.ms", "60000"))
        seconds = retry_delay_ms(self._attempt, delay_max_ms) / 1000
        _log.warning("%s: %s; trying again in %.1f s", self.plan.id, error, seconds)
        self.figures.add("retries-total")
        self.hold(seconds)

    def hold(self, seconds: float) -> None:
        """Let time pass before a try; ends early where the task is to end."""
        self.stopping.wait(seconds)

    def went_well(self) -> None:
        """The next pause before a try begins small again."""
        self._attempt = 0

    def _main(self) -> None:
        try:
            self.run()
        except Exception as error:  # noqa: BLE001  # all that connectors raise ends the task
            self.listener.failed(error)
        else:
            self.listener.stopped()


class _Wait:
    """TaskContext's `wait`; a copy on an executor knows of no task: it sleeps."""

    def __init__(self, stopping: Event) -> None:
        self._stopping = stopping

    def __call__(self, seconds: float) -> bool:
        return self._stopping.wait(seconds)

    def __deepcopy__(self, memo: object) -> _Wait:
        return self  # of this process

    def __reduce__(self) -> tuple[Any, ...]:
        return _plain_wait, ()


def _plain_wait() -> Callable[[float], None]:
    return sleep
