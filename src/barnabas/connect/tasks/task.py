"""A task of the engine: a thread that does one micro-batch after another until it is to end."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from threading import Condition, Event, Lock, Thread
from time import sleep
from typing import Any, Final

from barnabas.connect.connectors.base import Figure, OffsetReader, TaskContext, TransactionContext
from barnabas.connect.errors.tolerance import ErrorCounts, StoppedError, retry_delay_ms
from barnabas.connect.tasks.base import TaskListener, TaskPlan
from barnabas.connect.tasks.jobs import RangeDone, SplitDone

# Figures of one task, under the names of Kafka's metrics (connector-task-metrics and the like).
#
# Source: ConnectMetricsRegistry (Kafka 4.3). `sink-record-lag` is ours: records of the task's
# partitions that wait.

_WINDOW_SECONDS: Final = 30.0


class TaskMetrics:
    """Counts for one task; from its threads, read from any."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[str, float] = {}
        self._samples: dict[str, deque[tuple[float, float]]] = {}
        self.errors = ErrorCounts()

    def add(self, name: str, value: float = 1) -> None:
        """Count."""
        with self._lock:
            self._values[name] = self._values.get(name, 0) + value

    def put(self, name: str, value: float) -> None:
        """Set a figure."""
        with self._lock:
            self._values[name] = value

    def top(self, name: str, value: float) -> None:
        """Set a figure if it is the highest so far."""
        with self._lock:
            self._values[name] = max(self._values.get(name, 0), value)

    def batch_of_source(self, done: Sequence[SplitDone], seconds: float) -> None:
        """Count a micro-batch."""
        polled, written = sum(one.polled for one in done), sum(one.written for one in done)
        self._rated("source-record-poll", polled)
        self._rated("source-record-write", written)
        self._batch("poll-batch", polled, sum(one.seconds for one in done))
        self._commit(seconds)
        for one in done:
            self.errors.add(one.counts)

    def batch_of_sink(self, done: Sequence[RangeDone], seconds: float) -> None:
        """Count a micro-batch."""
        self._rated("sink-record-read", sum(one.read for one in done))
        self._rated("sink-record-send", sum(one.sent for one in done))
        self._batch("put-batch", sum(one.sent for one in done), sum(one.seconds for one in done))
        self._commit(seconds)
        for one in done:
            self.errors.add(one.counts)

    def seen(self) -> dict[str, float]:
        """Return all figures."""
        with self._lock:
            values = dict(self._values)
            now = time.monotonic()
            for name, samples in self._samples.items():
                first_time, first = samples[0]
                gone = now - first_time
                rate = (values[f"{name}-total"] - first) / gone if gone > 0 else 0.0
                values[f"{name}-rate"] = rate
        return {**values, **self.errors.as_metrics()}

    def _rated(self, name: str, count: int) -> None:
        self.add(f"{name}-total", count)
        now = time.monotonic()
        with self._lock:
            samples = self._samples.setdefault(name, deque([(now, 0.0)]))
            samples.append((now, self._values[f"{name}-total"]))
            while len(samples) > 2 and samples[1][0] < now - _WINDOW_SECONDS:
                samples.popleft()

    def _batch(self, name: str, records: int, seconds: float) -> None:
        self.top(f"{name}-max-time-ms", seconds * 1000)
        self.top("batch-size-max", records)
        with self._lock:
            number = self._values["batches"] = self._values.get("batches", 0) + 1
            for what, value in (
                (f"{name}-avg-time-ms", seconds * 1000),
                ("batch-size-avg", records),
            ):
                mean = self._values.get(what, 0.0)
                self._values[what] = mean + (value - mean) / number

    def _commit(self, seconds: float) -> None:
        self.add("offset-commit-completion-total")
        self.top("offset-commit-max-time-ms", seconds * 1000)


_log = logging.getLogger(__name__)
IDLE_SECONDS: Final = 0.1
IDLE_SECONDS_MAX: Final = 0.5


class BatchTask(ABC):
    """The common base of source and sink tasks; a RunningTask."""

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
        """True if it holds still, or will soon."""
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
            spark,
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
        """Wait until a request arrives or the time is over."""
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
        except StoppedError:
            self.listener.stopped()
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
