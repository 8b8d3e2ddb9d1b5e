"""The task: on the driver first the snapshot, then the log, in micro-batches; on executors records.

Connections, slot and snapshot are here; `connect/cdc` plans what is read. The slot's place is
confirmed once the offsets are stored.
"""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Final

import psycopg

from barnabas.connect.cdc.batches import LogBatches
from barnabas.connect.cdc.changes import ChangeRecords, LogSplit
from barnabas.connect.cdc.envelopes import log_left_out
from barnabas.connect.cdc.snapshot import SnapshotSplit
from barnabas.connect.cdc.stored import blocking_of
from barnabas.connect.cdc.transactions import EventCounts
from barnabas.connect.connectors.base import SourceReader, TaskContext
from barnabas.connect.connectors.postgres.catalog import Catalog
from barnabas.connect.connectors.postgres.database import PostgresDatabase
from barnabas.connect.connectors.postgres.log import PostgresLog, PostgresLogState
from barnabas.connect.connectors.postgres.positions import (
    LogPosition,
    is_in_snapshot,
    lsn_text,
    position_of,
)
from barnabas.connect.connectors.postgres.server import connect, failure
from barnabas.connect.connectors.postgres.settings import PostgresSettings
from barnabas.connect.connectors.postgres.slots import (
    check_server,
    check_signals,
    drop_slot,
    make_slot,
    prepare_publication,
    slot_of,
    xmin_of,
)
from barnabas.connect.connectors.postgres.snapshot import HeldSnapshot, SnapshotReader
from barnabas.connect.connectors.postgres.stream import LogStream
from barnabas.connect.connectors.signal_channels import channels_of
from barnabas.connect.record import JsonMap, SourceRecord
from barnabas.schemas.data.errors import ConnectError, RetriableError

_log = logging.getLogger(__name__)
WAIT_S: Final = 0.1
Split = LogSplit | SnapshotSplit
_WITHOUT_SNAPSHOT: Final = ("no_data", "never")


class PostgresReader(SourceReader):
    """Reads one database's changes."""

    def __init__(self, context: TaskContext) -> None:
        self._settings = PostgresSettings.parse(context.settings)
        self._task, self._wait = context.task, context.wait
        stored = context.offsets and context.offsets.offset(self._source_partition)
        self._start: dict[str, Any] = dict(stored or {})
        self._end = self._committed = self._start
        self._planned: Sequence[Split] | None = None
        self._begin = LogPosition()
        self._xmin: int | None = None
        self._xmin_due = 0.0
        self._is_prepared = False
        self._has_taken = False
        self._snapshot: HeldSnapshot | None = None
        self._stream: LogStream | None = None
        self._batches: LogBatches[PostgresLogState] | None = None
        self._connection: psycopg.Connection[Any] | None = None
        self._is_over = False

    def __getstate__(self) -> dict[str, Any]:
        return {"_settings": self._settings, "_task": self._task}

    @property
    def _source_partition(self) -> dict[str, Any]:
        return {"server": self._settings.topic_prefix}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        return self._start

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        if self._is_over:
            return self._end
        try:
            if self._planned is not None:  # it is not committed yet
                if self._snapshot is not None:
                    self._snapshot.check()
                return self._end
            self._prepare()
            if self._batches is not None and self._batches.adhoc.blocking:
                self._begin_blocking(self._batches)
            if self._snapshot is not None:
                self._plan_snapshot()
            if self._snapshot is None and not self._is_over:
                self._plan_log()
        except psycopg.Error as error:
            self._reset()
            raise failure(error) from error
        except ConnectError:
            self._reset()
            raise
        return self._end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Split]:
        return self._planned or ()

    def is_worth_distributing(self, partitions: Sequence[Split]) -> bool:
        """Tables of a snapshot are; the log is one piece, which is here already."""
        return any(isinstance(one, SnapshotSplit) for one in partitions)

    def read(self, partition: Split) -> Iterator[SourceRecord]:
        if isinstance(partition, LogSplit):
            log = PostgresLog(self._settings, time)
            return ChangeRecords(self._settings, self._task, log, time).read(partition)
        return SnapshotReader(self._settings, self._task).read(partition)

    def offsets(self, end: dict[str, Any]) -> Sequence[tuple[JsonMap, JsonMap]]:
        return ((self._source_partition, end),)

    def commit(self, end: dict[str, Any]) -> None:
        self._planned = None
        self._committed = end
        if self._snapshot is not None:
            if not is_in_snapshot(end):
                self._end_snapshot()
        elif self._stream is not None and self._settings["flush.lsn.source"]:
            self._stream.confirm(position_of(end).done)
        if self._batches is not None:
            self._batches.adhoc.stored()

    def stop(self) -> None:
        self._disconnect()
        if self._settings["slot.drop.on.stop"]:
            with contextlib.suppress(ConnectError):
                drop_slot(self._settings)

    # Planning.

    def _prepare(self) -> None:
        """Connect, make what is missing, and see where to begin."""
        if self._is_prepared:
            return
        settings, mode = self._settings, self._settings["snapshot.mode"]
        connection = self._connected()
        check_server(connection)
        tables = Catalog(connection, settings).captured()
        prepare_publication(connection, settings, tables)
        check_signals(connection, settings)
        offset = self._end
        # A blocking one is taken again when the log is read.
        is_interrupted = is_in_snapshot(offset) and not blocking_of(offset)
        slot = slot_of(connection, settings)
        is_lost = False
        if offset and not is_interrupted:
            is_lost = slot is None or slot.is_lost or _is_past(slot.confirmed, offset)
            if is_lost and mode not in ("when_needed", "always"):
                raise ConnectError(_lost(settings, offset, slot is None))
        if slot is not None and slot.is_lost:
            drop_slot(settings)
            slot = None
        log_begin = None
        if slot is None:
            slot = make_slot(settings)
        elif not is_lost:
            stored = position_of(offset)
            log_begin = stored if stored.done else LogPosition(slot.confirmed)
        wants = mode == "always" or not offset or is_interrupted or is_lost
        if wants and mode not in _WITHOUT_SNAPSHOT and not self._was_taken():
            self._snapshot = HeldSnapshot(settings, log_begin, wait=self._wait)
            for table in tables:
                log_left_out(table, settings.types)
        elif mode == "initial_only":
            self._is_over = True
        elif not offset or is_lost:
            self._begin = LogPosition(slot.confirmed)
        self._is_prepared = True

    def _was_taken(self) -> bool:
        """A snapshot of each start (`always`) is not taken again where a connection was lost."""
        return self._settings["snapshot.mode"] == "always" and self._has_taken

    def _plan_snapshot(self) -> None:
        assert self._snapshot is not None
        self._planned = self._snapshot.next_splits()
        offset = self._snapshot.offset()
        if self._batches is not None:
            if self._snapshot.is_planned_out:
                self._batches.adhoc.blocking_done()
            offset |= EventCounts.kept(self._end) | self._batches.adhoc.fields
        self._end = offset

    def _begin_blocking(self, batches: LogBatches[PostgresLogState]) -> None:
        """Read the tables that a signal asks for, as of now, before the log goes on."""
        if self._snapshot is not None:
            return
        try:
            self._snapshot = HeldSnapshot(
                *(self._settings, batches.state.position, batches.adhoc.blocking), wait=self._wait
            )
        except RetriableError:
            raise
        except ConnectError as error:
            _log.warning("A blocking snapshot is skipped: %s", error)
            batches.adhoc.blocking_done()

    def _end_snapshot(self) -> None:
        assert self._snapshot is not None
        self._snapshot.close()
        self._snapshot = None
        self._has_taken = True
        self._is_over = self._settings["snapshot.mode"] == "initial_only"

    def _plan_log(self) -> None:
        if self._stream is None:
            self._begin = position_of(self._end) if self._end else self._begin
            self._batches = None
            self._stream = LogStream(self._settings, self._begin.start)
        if self._batches is None:
            self._batches = self._log_batches()
        self._batches.state.xmin = self._read_xmin()
        received = self._stream.take(self._settings["max.batch.size"], WAIT_S)
        split, end = self._batches.plan(received, self._end)
        if split is not None:
            self._planned = (split,)
        if end is not None:
            self._end = end

    def _log_batches(self) -> LogBatches[PostgresLogState]:
        settings = self._settings
        return LogBatches(
            settings,
            PostgresDatabase(settings, self._connected),
            PostgresLog(settings, time),
            PostgresLogState(self._begin, time),
            channels_of(settings),
            self._end,
            clock=time,
            ids=_new_ids(),
        )

    def _read_xmin(self) -> int | None:
        """The oldest transaction that the slot keeps the catalog for, asked at intervals."""
        interval_ms = self._settings["xmin.fetch.interval.ms"]
        if interval_ms and time.monotonic() >= self._xmin_due:
            self._xmin_due = time.monotonic() + interval_ms / 1000
            self._xmin = xmin_of(self._connected(), self._settings)
        return self._xmin

    # Connections.

    def _connected(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._settings)
        return self._connection

    def _reset(self) -> None:
        """Drop all that depends on connections; the next micro-batch follows the last stored."""
        self._disconnect()
        self._planned, self._end = None, self._committed

    def _disconnect(self) -> None:
        """Close all connections."""
        self._is_prepared = False
        if self._batches is not None:
            self._batches.adhoc.close()
            self._batches = None
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _new_ids() -> Iterator[str]:
    while True:
        yield str(uuid.uuid4())


def _is_past(confirmed: int, offset: JsonMap) -> bool:
    """Return whether the slot was advanced beyond what is stored. Debezium's driver does so itself
    while no changes come, so that its offsets say nothing about it."""
    return position_of(offset).after_lsn is None and confirmed > _last_place(offset)


def _last_place(offset: JsonMap) -> int:
    position = position_of(offset)
    return max(position.done, position.transaction or 0, position.after_lsn or 0)


def _lost(settings: PostgresSettings, offset: JsonMap, is_gone: bool) -> str:
    what = "is gone" if is_gone else "has been advanced or invalidated"
    return (
        f"The replication slot {settings['slot.name']} {what}: changes after "
        f"{lsn_text(_last_place(offset))}, where the stored offsets end, may be lost. Reset the "
        "connector's offsets or set snapshot.mode=when_needed to begin with a new snapshot"
    )
