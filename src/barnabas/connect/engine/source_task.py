"""The task of a source: what is new ─▶ splits ─▶ records written ─▶ offsets stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Event
from typing import Any, Final

from barnabas.connect.connectors.base import Figure, OffsetReader, SourceConnector, SourceReader
from barnabas.connect.engine.base import StoreOffsets, TaskListener, TaskPlan
from barnabas.connect.engine.chain import Settings
from barnabas.connect.engine.runner import Runner
from barnabas.connect.engine.task import IDLE_SECONDS, EngineTask
from barnabas.connect.engine.transport import BatchAbortedError
from barnabas.connect.errors.kinds import RetriableError

_PAUSED_SECONDS: Final = 1.0


class SourceTask(EngineTask):
    """Runs a source's reader."""

    def __init__(
        self,
        plan: TaskPlan,
        settings: Settings,
        connector: SourceConnector,
        runner: Runner,
        listener: TaskListener,
        offsets: OffsetReader,
        store_offsets: StoreOffsets,
        stopping: Event,
        *,
        is_paused: bool,
        spark: Callable[[], Any] | None = None,
    ) -> None:
        super().__init__(plan, settings, listener, stopping, is_paused=is_paused)
        self._connector = connector
        self._runner = runner
        self._offsets = offsets
        self._store = store_offsets
        self._spark = spark
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
            reader = self._connector.reader(self.context(self._offsets, self._spark))
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
        while not self.stopping.is_set():
            if self.is_paused != was_paused:
                was_paused = not was_paused
                (self.listener.paused if was_paused else self.listener.resumed)()
            if was_paused:
                self.idle(_PAUSED_SECONDS)
                continue
            try:
                end = reader.latestOffset()
                if end == start:
                    self.idle(IDLE_SECONDS)
                    continue
                self._batch(reader, start, end)
            except (RetriableError, BatchAbortedError) as error:
                self.back_off(error)
                continue
            self.went_well()
            start = end

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
        receipts = [one.receipts for one in done if one.receipts is not None]
        if receipts:
            reader.written(receipts)
        reader.commit(end)
        self.figures.batch_of_source(done, time.monotonic() - began)
