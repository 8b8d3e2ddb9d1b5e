"""Drives a source's reader without a worker: micro-batches, offsets as they would be stored."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from barnabas.connect.connectors.base import SourceConnector, TaskContext
from barnabas.connect.record import JsonMap, SourceRecord
from barnabas.schemas.data.errors import RetriableError
from support.patience import PATIENCE_S


class StoredOffsets:
    """An OffsetReader on a list."""

    def __init__(self) -> None:
        self.pairs: list[tuple[JsonMap, JsonMap]] = []

    def offset(self, partition: JsonMap) -> JsonMap | None:
        return next((offset for known, offset in self.pairs if known == partition), None)

    def all(self) -> Sequence[tuple[JsonMap, JsonMap]]:
        return self.pairs

    def store(self, partition: JsonMap, offset: JsonMap) -> None:
        self.pairs = [pair for pair in self.pairs if pair[0] != partition]
        self.pairs.append((partition, offset))


class SourceDriver:
    """One task of a connector: `batch` runs a micro-batch, `until` several."""

    def __init__(
        self,
        connector: SourceConnector,
        settings: Mapping[str, str],
        offsets: StoredOffsets | None = None,
    ) -> None:
        self.offsets = StoredOffsets() if offsets is None else offsets
        self.records: list[SourceRecord] = []
        context = TaskContext("source", 0, settings, self.offsets)
        self.reader = connector.reader(context)
        self._start = self.reader.initialOffset()

    def batch(self, *, is_committed: bool = True) -> list[SourceRecord]:
        """Run one micro-batch; without a commit its offsets are not stored either."""
        end = self.reader.latestOffset()
        if end == self._start:
            return []
        splits = self.reader.partitions(self._start, end)
        on_executor = pickle.loads(pickle.dumps((self.reader, splits)))
        made = [record for split in on_executor[1] for record in on_executor[0].read(split)]
        if is_committed:
            for record in made:
                self.offsets.store(record.source_partition, record.source_offset)
            for partition, offset in self.reader.offsets(end):
                self.offsets.store(partition, offset)
            self.reader.commit(end)
            self._start = end
            self.records += made
        return made

    def until(self, condition: Callable[[list[SourceRecord]], Any]) -> list[SourceRecord]:
        """Run micro-batches until the records so far are enough; returns all of them.

        Runs again after an error that heals, as a worker does: PostgreSQL may take a moment to
        release the slot of a reader that has stopped.
        """
        deadline = time.monotonic() + PATIENCE_S
        problem = "no error"
        while not condition(self.records):
            told = f"only {len(self.records)} records came; {problem}"
            assert time.monotonic() < deadline, told
            try:
                self.batch()
            except RetriableError as error:
                problem = str(error)
        return self.records

    def stop(self) -> None:
        self.reader.stop()
