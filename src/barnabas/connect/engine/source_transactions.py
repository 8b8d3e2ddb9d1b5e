"""The transactions of an exactly-once source in the worker's process.

A transaction may span micro-batches, or end within one. Offsets of records that were sent wait for
its end and are committed with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from threading import Event
from typing import Any

from barnabas.connect.connectors.base import SourceReader
from barnabas.connect.engine.boundaries import Boundary, ConnectorsOwn, Verdict
from barnabas.connect.engine.flow import SourceFlow
from barnabas.connect.engine.jobs import SplitDone, merged_offsets, run_split, settle
from barnabas.connect.engine.transport import BatchAbortedError, Offsets, TransactionalOutput
from barnabas.connect.record import JsonMap, SourceRecord
from barnabas.schemas.data.errors import ConnectError, RetriableError

Pair = tuple[JsonMap, JsonMap]


class SourceTransactions:
    """Those of one task."""

    def __init__(
        self,
        connector: str,
        output: TransactionalOutput,
        flow: SourceFlow,
        boundary: Boundary,
        stopping: Event,
    ) -> None:
        self._connector = connector
        self._output = output
        output.heed(stopping)
        self._flow = flow
        self._boundary = boundary
        self._stopping = stopping
        self._is_watched = isinstance(boundary, ConnectorsOwn)
        self._has_records = False
        self._offsets: dict[str, Pair] = {}
        """Of what was sent and is not committed, by source partition."""
        self._committed: dict[str, Pair] = {}
        self._is_cut = False
        """Whether a transaction has ended within the micro-batch that runs."""

    @property
    def is_open(self) -> bool:
        """Whether anything waits for the end of its transaction."""
        return self._has_records or bool(self._offsets)

    def run(
        self, reader: SourceReader, splits: Sequence[Any], more: Offsets
    ) -> Sequence[SplitDone]:
        """Send a micro-batch, and end the transaction where it is to end.

        Raises BatchAbortedError or RetriableError where nothing of the open transaction is written,
        ConnectError.
        """
        self._is_cut = False
        try:
            self._has_records = self._has_records or not self._is_watched
            # Not kept as an attribute: a cycle would keep the producer until garbage is collected.
            watch = self._watched if self._is_watched else None
            done = [run_split(reader, split, self._flow, self._output, watch) for split in splits]
            self._note(merged_offsets(done, more))
            verdict = self._boundary.after_batch()
            self._finish(verdict)
        except BaseException as error:
            self._take_back()
            if self._is_cut and isinstance(error, RetriableError | BatchAbortedError):
                raise ConnectError(f"a part of a micro-batch is committed: {error}") from error
            raise
        self._commit(verdict)
        return done

    def end(self, *, is_last: bool = False) -> None:
        """There is nothing to read, or the task ends or pauses: commit if it is time."""
        verdict = self._boundary.at_end() if is_last else self._boundary.after_batch()
        self._finish(verdict)
        self._commit(verdict)

    def commit(self) -> None:
        """Commit now."""
        self._finish(Verdict.COMMIT)
        self._commit(Verdict.COMMIT)

    def close(self) -> None:
        """Take back what is open, and close the output. Raises ConnectError."""
        try:
            if self.is_open:
                self._take_back()
        finally:
            self._output.close()

    def _watched(self, records: Iterable[SourceRecord]) -> Iterator[SourceRecord]:
        """Yield records, and see after each whether the connector ends the transaction there."""
        offsets: dict[str, Pair] = {}
        for record in records:
            self._has_records = True
            yield record
            partition = record.source_partition
            offsets[_key(partition)] = partition, record.source_offset
            verdict = self._boundary.after_record(record)
            if verdict is not Verdict.GO_ON:
                self._note(offsets.values())
                self._finish(verdict)
                self._commit(verdict)
                self._is_cut = True

    def _note(self, offsets: Iterable[Pair]) -> None:
        for pair in offsets:
            key = _key(pair[0])
            if self._committed.get(key) != pair:
                self._offsets[key] = pair

    def _finish(self, verdict: Verdict) -> None:
        """Wait until all is acknowledged, or take it back."""
        if verdict is Verdict.COMMIT:
            settle(self._output, self._flow, self._stopping, is_transaction=True)
        elif verdict is Verdict.ABORT:
            self._output.abort()

    def _commit(self, verdict: Verdict) -> None:
        if verdict is Verdict.GO_ON or not self.is_open:
            return
        while True:
            try:
                self._output.commit(self._connector, list(self._offsets.values()))
                break
            except BatchAbortedError:
                self._forget()
                raise
            except RetriableError:
                if self._stopping.is_set():
                    raise
        self._committed |= self._offsets
        self._forget()

    def _take_back(self) -> None:
        self._forget()
        self._output.abort()

    def _forget(self) -> None:
        self._has_records = False
        self._offsets = {}


def _key(partition: JsonMap) -> str:
    return repr(sorted(partition.items()))
