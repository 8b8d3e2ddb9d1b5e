"""The transactions of an exactly-once source in the worker's process.

A transaction may span micro-batches, or end within one. Offsets of records that were sent wait for
its end and are committed with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum, StrEnum, auto
from threading import Event, Lock
from typing import Any, Final, Protocol

from barnabas.connect.config.values import invalid
from barnabas.connect.connectors.base import SourceConnector, SourceReader
from barnabas.connect.record import JsonMap, SourceRecord
from barnabas.connect.tasks.chain import Settings
from barnabas.connect.tasks.flow import SourceFlow
from barnabas.connect.tasks.jobs import (
    SplitDone,
    merged_offsets,
    partition_key,
    run_split,
    settle,
)
from barnabas.connect.tasks.transport import BatchAbortedError, Offsets, TransactionalOutput
from barnabas.schemas.data.errors import (
    ConfigError,
    ConnectError,
    IllegalStateError,
    RetriableError,
)

# Transaction boundaries of an exactly-once source: `transaction.boundary` (KIP-618).
#
#     poll        with each micro-batch
#     interval    with the first micro-batch after `transaction.boundary.interval.ms`
#     connector   where the connector says so, through the TransactionContext of its task
#
# Source: ExactlyOnceWorkerSourceTask, WorkerTransactionContext (Kafka 4.3).

SETTING: Final = "transaction.boundary"
INTERVAL: Final = "transaction.boundary.interval.ms"
_WORKER_INTERVAL: Final = "offset.flush.interval.ms"
_DEFAULT_INTERVAL_MS: Final = 60_000


class BoundaryKind(StrEnum):
    """Values of `transaction.boundary`."""

    POLL = "poll"
    INTERVAL = "interval"
    CONNECTOR = "connector"


class Verdict(Enum):
    """The outcome of a transaction."""

    GO_ON = auto()
    COMMIT = auto()
    ABORT = auto()
    """Its records are taken back; offsets are stored nevertheless, so that none is read again."""


class Boundary(Protocol):
    """Says when transactions end."""

    def after_record(self, record: SourceRecord) -> Verdict:
        """A record was sent, or left out."""

    def after_batch(self) -> Verdict:
        """A micro-batch was sent, or there was nothing to read."""

    def at_end(self) -> Verdict:
        """The task ends or pauses."""


class EachBatch:
    """Each micro-batch is one."""

    def after_record(self, record: SourceRecord) -> Verdict:
        """Go on."""
        return Verdict.GO_ON

    def after_batch(self) -> Verdict:
        """Commit."""
        return Verdict.COMMIT

    def at_end(self) -> Verdict:
        """Commit."""
        return Verdict.COMMIT


class Interval:
    """Micro-batches of so many milliseconds are one."""

    def __init__(self, interval_ms: int, now_ms: Callable[[], float]) -> None:
        self._interval_ms = interval_ms
        self._now_ms = now_ms
        self._last_ms = now_ms()

    def after_record(self, record: SourceRecord) -> Verdict:
        """Go on."""
        return Verdict.GO_ON

    def after_batch(self) -> Verdict:
        """Commit when it is time."""
        now_ms = self._now_ms()
        if now_ms < self._last_ms + self._interval_ms:
            return Verdict.GO_ON
        self._last_ms = now_ms
        return Verdict.COMMIT

    def at_end(self) -> Verdict:
        """Commit."""
        self._last_ms = self._now_ms()
        return Verdict.COMMIT


class ConnectorsOwn:
    """Where the connector says so; a Boundary, and the TransactionContext of the task.

    Records are told apart by identity. It stays the same object however a reader is copied.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._commit: list[SourceRecord | None] = []
        self._abort: list[SourceRecord | None] = []

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """Commit behind a record, or behind the micro-batch."""
        with self._lock:
            self._commit.append(record)

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Abort behind a record, or behind the micro-batch."""
        with self._lock:
            self._abort.append(record)

    def after_record(self, record: SourceRecord) -> Verdict:
        """Return what was wished for a record. Raises IllegalStateError."""
        return self._taken(record)

    def after_batch(self) -> Verdict:
        """Return what was wished for the micro-batch. Raises IllegalStateError."""
        return self._taken(None)

    def at_end(self) -> Verdict:
        """As behind a micro-batch: what the connector leaves open is nobody else's to commit."""
        return self._taken(None)

    def _taken(self, wanted: SourceRecord | None) -> Verdict:
        if not self._commit and not self._abort:
            return Verdict.GO_ON
        with self._lock:
            commits = any(one is wanted for one in self._commit)
            aborts = any(one is wanted for one in self._abort)
            self._commit = [one for one in self._commit if one is not wanted]
            self._abort = [one for one in self._abort if one is not wanted]
        if commits and aborts:
            raise IllegalStateError(
                "Connector requested both commit and abort of same transaction"
                if wanted is None
                else "Connector requested both commit and abort of same record against "
                f"topic/partition {wanted.topic}/{wanted.partition}"
            )
        if aborts:
            return Verdict.ABORT
        return Verdict.COMMIT if commits else Verdict.GO_ON

    def __deepcopy__(self, memo: Any) -> ConnectorsOwn:
        """Return itself."""
        return self

    def __reduce__(self) -> Any:
        """Refuse: what is asked of a copy in another process would be heard by nobody."""
        raise TypeError("the context of a task's transactions exists only in the worker's process")


def kind_of(settings: Settings) -> BoundaryKind:
    """Return the kind that a connector's configuration names. Raises ConfigError."""
    given = settings.get(SETTING, BoundaryKind.POLL).strip().lower()
    try:
        return BoundaryKind(given)
    except ValueError:
        raise invalid(SETTING, given, "it is poll, interval or connector") from None


def interval_ms(settings: Settings, worker: Settings) -> int:
    """Return that of `interval`, by default the worker's for offsets. Raises ConfigError."""
    name = INTERVAL if settings.get(INTERVAL) else _WORKER_INTERVAL
    given = settings.get(INTERVAL) or worker.get(_WORKER_INTERVAL) or str(_DEFAULT_INTERVAL_MS)
    if not given.strip().isdecimal():
        raise invalid(name, given, "Not a number")
    return int(given)


def open_ms(settings: Settings, worker: Settings) -> int:
    """Return how long transactions stay open on purpose. Raises ConfigError."""
    is_timed = kind_of(settings) is BoundaryKind.INTERVAL
    return interval_ms(settings, worker) if is_timed else 0


def make_boundary(connector: SourceConnector, settings: Settings, worker: Settings) -> Boundary:
    """Return what a connector's configuration asks for. Raises ConfigError."""
    match kind_of(settings):
        case BoundaryKind.POLL:
            return EachBatch()
        case BoundaryKind.INTERVAL:
            return Interval(interval_ms(settings, worker), lambda: time.monotonic() * 1000)
        case BoundaryKind.CONNECTOR:
            if not connector.can_define_transaction_boundaries(settings):
                raise ConfigError(
                    "The connector does not support connector-defined transaction boundaries with "
                    "the given configuration. Please reconfigure it to use a different transaction "
                    "boundary definition."
                )
            return ConnectorsOwn()


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
        """True if a transaction has ended within the micro-batch that runs."""

    @property
    def is_open(self) -> bool:
        """True if anything waits for the end of its transaction."""
        return self._has_records or bool(self._offsets)

    def run(
        self, reader: SourceReader, splits: Sequence[Any], more: Offsets
    ) -> Sequence[SplitDone]:
        """Send a micro-batch, and end the transaction where it is to end.

        Raises BatchAbortedError or RetriableError if nothing of the open transaction is written,
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
            offsets[partition_key(partition)] = partition, record.source_offset
            verdict = self._boundary.after_record(record)
            if verdict is not Verdict.GO_ON:
                self._note(offsets.values())
                self._finish(verdict)
                self._commit(verdict)
                self._is_cut = True

    def _note(self, offsets: Iterable[Pair]) -> None:
        for pair in offsets:
            key = partition_key(pair[0])
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
