"""The task of a sink: offsets that are new ─▶ ranges written ─▶ offsets committed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from threading import Event
from typing import Any, Final

from barnabas.base.backoff import Doubling
from barnabas.connect.connectors.base import (
    SinkConnector,
    SinkRange,
    SinkWriter,
    TopicPartition,
)
from barnabas.connect.daemon_threads import DaemonThreads
from barnabas.connect.tasks.base import TaskListener, TaskPlan
from barnabas.connect.tasks.chain import Settings
from barnabas.connect.tasks.jobs import RangeDone
from barnabas.connect.tasks.runner import BatchRunner, SinkFailedError
from barnabas.connect.tasks.task import IDLE_SECONDS, IDLE_SECONDS_MAX, BatchTask
from barnabas.connect.tasks.transport import Group, Transport
from barnabas.schemas.data.errors import ConnectError, RetriableError

BATCH_RECORDS_MAX: Final = "barnabas.connect.batch.records.max"
DEFAULT_BATCH_RECORDS_MAX: Final = 10_000
_TICK_SECONDS: Final = 1.0
_BUSY_SECONDS: Final = 0.02
_log = logging.getLogger(__name__)


class SinkTask(BatchTask):
    """Runs a sink's writer. It is a GroupListener."""

    def __init__(
        self,
        plan: TaskPlan,
        settings: Settings,
        connector: SinkConnector,
        runner: BatchRunner,
        transport: Transport,
        listener: TaskListener,
        stopping: Event,
        *,
        is_paused: bool,
        spark: Callable[[], Any] | None = None,
    ) -> None:
        super().__init__(plan, settings, listener, stopping, is_paused=is_paused)
        self._connector = connector
        self._runner = runner
        self._transport = transport
        self._spark = spark
        worker_max = plan.worker_settings.get(BATCH_RECORDS_MAX, str(DEFAULT_BATCH_RECORDS_MAX))
        self._records_max = int(settings.get(BATCH_RECORDS_MAX, worker_max))
        self._next_tick = 0.0
        self._uncommitted: dict[TopicPartition, int] = {}
        self._running: tuple[Future[Sequence[RangeDone]], Sequence[SinkRange], float] | None = None

    def run(self) -> None:
        """Do micro-batches until it is to end."""
        try:
            self._runner.prepare_sink()
            self._writer: SinkWriter = self._connector.writer(self.context(None, self._spark))
            try:
                self._group: Group = self._transport.group(self)
                self._threads = DaemonThreads(1, f"connect-{self.plan.id}-write", lasting=True)
                try:
                    self._write()
                finally:
                    self._leave()
            finally:
                self._writer.stop()
        finally:
            self._runner.close()

    def assigned(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int] | None:
        """Partitions are ours."""
        self.figures.add("partition-count", len(partitions))
        self.used({topic for topic, _ in partitions})
        try:
            return self._writer.open(partitions)
        except RetriableError as error:  # half open is no state to go on in
            raise ConnectError(str(error)) from error

    def revoked(self, partitions: Sequence[TopicPartition], *, is_lost: bool) -> None:
        """Partitions are to be given up: what runs is finished first."""
        self.figures.add("partition-count", -len(partitions))
        try:
            self._complete(commits=not is_lost)
            if not is_lost:
                self._commit(None)
        finally:
            for place in partitions:
                self._uncommitted.pop(place, None)
            self._writer.close(partitions)

    def hold(self, seconds: float) -> None:
        """Stay a member of the group during that time: what others wait for is not held up."""
        deadline = time.monotonic() + seconds
        while not self.stopping.is_set() and (left := deadline - time.monotonic()) > 0:
            try:
                self._group.poll(min(left, IDLE_SECONDS_MAX))
            except RetriableError as error:
                _log.warning("%s: %s", self.plan.id, error)
                self.stopping.wait(min(left, IDLE_SECONDS_MAX))

    def _write(self) -> None:
        self.begun()
        was_paused = self.is_paused
        idle, pauses = IDLE_SECONDS, Doubling(2 * IDLE_SECONDS, IDLE_SECONDS_MAX)
        while not self.stopping.is_set():
            if self.is_paused != was_paused:
                was_paused = not was_paused
                (self.listener.paused if was_paused else self.listener.resumed)()
            try:
                if was_paused:
                    idle, pauses = IDLE_SECONDS, Doubling(2 * IDLE_SECONDS, IDLE_SECONDS_MAX)
                    self._tick(is_paused=True)
                elif self._step():
                    idle, pauses = 0.0, Doubling(_BUSY_SECONDS, IDLE_SECONDS_MAX)
                else:
                    idle = pauses.next()
                self.went_well()
                self._group.poll(idle)
            except RetriableError as error:
                self.back_off(error)

    def _step(self) -> bool:
        """Write what there is; whether there was anything."""
        if self._running is None:
            self._tick()
            ranges = self._group.ranges()
            lag = sum(one.end - one.start for one in ranges)
            self.figures.put("sink-record-lag", lag)
            planned = self._planned(ranges)
            if not planned:
                return False
            submitted = self._threads.submit(self._runner.run_sink, self._writer, planned)
            self._running = submitted, planned, time.monotonic()
        # Else it runs on from a try in which the group could not be asked.
        future = self._running[0]
        while self._running is not None and not future.done():
            # Heartbeats continue; revoked partitions wait for running work.
            self._wait(future)
            self._group.poll(0)
        self._complete(commits=True)
        return True

    @staticmethod
    def _wait(future: Future[Any]) -> None:
        try:
            future.exception(_BUSY_SECONDS * 5)
        except TimeoutError:
            return

    def _planned(self, ranges: Sequence[SinkRange]) -> Sequence[SinkRange]:
        if type(self._writer).plan is not SinkWriter.plan:
            return self._writer.plan(ranges, time.time_ns() // 1_000_000)
        limit = self._records_max
        return [replace(one, end=min(one.end, one.start + limit)) for one in ranges]

    def _complete(self, *, commits: bool) -> None:
        """Wait for the micro-batch that runs, and commit it. Raises ConnectError."""
        if self._running is None:
            return
        future, ranges, began = self._running
        self._running = None
        try:
            done = future.result()
        except SinkFailedError as error:
            self._writer.abort(ranges, error.done)
            cause = error.__cause__
            assert cause is not None
            raise cause  # noqa: B904  # it has a cause of its own
        if not commits:
            self._writer.abort(ranges, [one.message for one in done])
            return
        offsets = self._writer.commit(ranges, [one.message for one in done])
        self._group.advance(ranges)
        self.figures.batch_of_sink(done, time.monotonic() - began)
        if offsets is None:
            offsets = {(one.topic, one.partition): one.end for one in ranges}
        self._commit(offsets)

    def _commit(self, offsets: Mapping[TopicPartition, int] | None) -> None:
        """Commit offsets, and those that could not be committed before.

        A group that deals its partitions out refuses commits for that long. What is written is not
        written again for want of one: it is repeated with each tick.
        """
        self._uncommitted.update(offsets or {})
        if not self._uncommitted:
            return
        self.figures.add("offset-commit-seq-no")
        try:
            self._group.commit(self._uncommitted)
        except RetriableError as error:
            self.figures.add("offset-commit-skip-total")
            _log.warning("%s: %s; the commit is retried later", self.plan.id, error)
        else:
            self._uncommitted.clear()

    def _tick(self, *, is_paused: bool = False) -> None:
        now = time.monotonic()
        if now >= self._next_tick:
            self._next_tick = now + _TICK_SECONDS
            self._commit(None if is_paused else self._writer.tick(time.time_ns() // 1_000_000))

    def _leave(self) -> None:
        try:
            self._complete(commits=True)
        finally:
            self._threads.close()
            self._group.close()
