"""The task of a source: what is new ─▶ splits ─▶ records written ─▶ offsets stored."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from threading import Event
from typing import Any, Final

from barnabas.base.backoff import Doubling
from barnabas.connect.connectors.base import (
    Figure,
    OffsetReader,
    SourceConnector,
    SourceReader,
    TransactionContext,
)
from barnabas.connect.errors.tolerance import java_class
from barnabas.connect.tasks.base import StoreOffsets, TaskListener, TaskPlan
from barnabas.connect.tasks.chain import Settings
from barnabas.connect.tasks.runner import BatchRunner
from barnabas.connect.tasks.task import IDLE_SECONDS, BatchTask
from barnabas.connect.tasks.transport import BatchAbortedError
from barnabas.schemas.data.errors import ConnectError, RetriableError

_PAUSED_SECONDS: Final = 1.0
_IDLE_SECONDS_MIN: Final = 0.005
"""Between two looks after a micro-batch: what comes steadily is soon there again."""
_log = logging.getLogger(__name__)


class SourceTask(BatchTask):
    """Runs a source's reader."""

    def __init__(
        self,
        plan: TaskPlan,
        settings: Settings,
        connector: SourceConnector,
        runner: BatchRunner,
        listener: TaskListener,
        offsets: OffsetReader,
        store_offsets: StoreOffsets,
        stopping: Event,
        *,
        is_paused: bool,
        spark: Callable[[], Any] | None = None,
        transactions: TransactionContext | None = None,
    ) -> None:
        super().__init__(plan, settings, listener, stopping, is_paused=is_paused)
        self._connector = connector
        self._runner = runner
        self._offsets = offsets
        self._store = store_offsets
        self._spark = spark
        self._transactions = transactions
        self._sent: dict[str, Any] | None = None
        """The ends of micro-batches that wait for the end of their transaction."""
        self._receipts: list[Any] = []
        self._has_said_each_batch = False
        self._reader: SourceReader | None = None

    def own_metrics(self) -> Sequence[Figure]:
        """Return the reader's figures."""
        reader = self._reader
        return () if reader is None else reader.figures()

    def run(self) -> None:
        """Do micro-batches until it is to end."""
        try:
            # Earlier runs of the task are fenced before its offsets are read.
            self._runner.prepare_source()
            if self.plan.is_exactly_once:
                self.listener.confirm()
            reader = self._connector.reader(
                self.context(self._offsets, self._spark, self._transactions)
            )
            self._reader = reader
            try:
                self._read(reader)
            finally:
                reader.stop()
        finally:
            self._runner.close()

    def _read(self, reader: SourceReader) -> None:
        start = self._first(reader)
        self.begun()
        was_paused = self.is_paused
        idle = Doubling(_IDLE_SECONDS_MIN, IDLE_SECONDS)
        while not self.stopping.is_set():
            if self.is_paused != was_paused:
                was_paused = not was_paused
                if was_paused:
                    self._end_transaction(reader, is_last=True)
                (self.listener.paused if was_paused else self.listener.resumed)()
            if was_paused:
                self.idle(_PAUSED_SECONDS)
                continue
            try:
                looked_s = time.monotonic()
                end = reader.latestOffset()
                if end == start:
                    self._end_transaction(reader)
                    # A reader that waits for news itself has waited already.
                    self.idle(max(0.0, idle.next() - (time.monotonic() - looked_s)))
                    continue
                self._batch(reader, start, end)
            except (RetriableError, BatchAbortedError) as error:
                if self._sent is not None and not self._runner.is_open:
                    raise ConnectError(
                        f"a transaction of several micro-batches was aborted: {error}"
                    ) from error
                self.back_off(error)
                continue
            self.went_well()
            start = end
            idle.reset()
        try:
            self._end_transaction(reader, is_last=True)
        except (RetriableError, BatchAbortedError) as error:  # it is read again
            _log.warning("%s: the last transaction is not committed: %s", self.plan.id, error)

    def _first(self, reader: SourceReader) -> dict[str, Any]:
        while True:
            try:
                return reader.initialOffset()
            except RetriableError as error:
                self.back_off(error)
                if self.stopping.is_set():
                    raise

    def _batch(self, reader: SourceReader, start: dict[str, Any], end: dict[str, Any]) -> None:
        began = time.monotonic()
        splits = reader.partitions(start, end)
        more = reader.offsets(end)
        done, offsets = self._runner.run_source(reader, splits, more)
        if offsets:
            self._store(self.plan.id.connector, offsets)
        self.used(set().union(*(one.topics for one in done)))
        if self._runner.is_open and not reader.sent(end):
            if self._transactions is not None:
                raise ConnectError(
                    f"{java_class(reader)} leaves a transaction open, but waits until it is "
                    "committed"
                )
            self._say_each_batch(reader)
            self._runner.commit_transaction()
        self._sent = end
        self._receipts += [one.receipts for one in done if one.receipts is not None]
        if not self._runner.is_open:
            self._committed(reader)
        self.figures.batch_of_source(done, time.monotonic() - began)

    def _say_each_batch(self, reader: SourceReader) -> None:
        """Log once that this source does not support `transaction.boundary=interval`."""
        if not self._has_said_each_batch:
            self._has_said_each_batch = True
            _log.warning(
                "%s: transactions end with each micro-batch instead of an interval: %s waits "
                "for each commit",
                self.plan.id,
                java_class(reader),
            )

    def _end_transaction(self, reader: SourceReader, *, is_last: bool = False) -> None:
        """Commit what waits, if it is time."""
        if self._sent is None:
            return
        self._runner.end_transaction(is_last=is_last)
        if not self._runner.is_open:
            self._committed(reader)

    def _committed(self, reader: SourceReader) -> None:
        assert self._sent is not None
        end, self._sent = self._sent, None
        receipts, self._receipts = self._receipts, []
        try:
            if receipts:
                reader.written(receipts)
            reader.commit(end)
        except RetriableError as error:  # to do the micro-batch again would write it twice
            raise ConnectError(f"what is written cannot be confirmed: {error}") from error
