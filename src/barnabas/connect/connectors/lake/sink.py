"""The sink of a lake's tables, exactly once by offsets that are part of each commit.

Executors turn records into Arrow's batches, one per table. A commit adds a table's rows and says,
for each partition of the topics, which offset comes next. What is read again after a failure is cut
at those offsets, table by table, before it is added.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.connectors.base import (
    Settings,
    SinkConnector,
    SinkRange,
    SinkWriter,
    TaskContext,
    TopicPartition,
)
from barnabas.connect.connectors.lake.settings import LakeSettings, TableSettings
from barnabas.connect.connectors.storage.formats.parquet import ArrowColumns
from barnabas.connect.connectors.storage.partitioners import field_of
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data.errors import ConfigError, ConnectError, DataError, RetriableError
from barnabas.schemas.data.schema import Schema, Struct

RECORDS_PER_COMMIT: Final = 100_000
"""Of each partition: a micro-batch's rows pass the driver."""

Offsets = Mapping[TopicPartition, int]
OFFSET: Final = "__barnabas_offset"
IS_DELETE: Final = "__barnabas_is_delete"
_DELETES: Final = ("d", "true")


class LakeSink(SinkConnector):
    """Topics to the tables of a lake. A subclass says the settings' prefix and makes the tables."""

    prefix: ClassVar[str]

    def conflicts(
        self, values: Mapping[str, Any], settings: Settings
    ) -> Mapping[str, Sequence[str]]:
        """Return what is wrong between settings."""
        try:
            LakeSettings.of(self.prefix, values, settings)
        except ConfigError as error:
            return {f"{self.prefix}.tables": [str(error)]}
        return {}

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """Tasks share the topics' partitions."""
        return [{} for _ in range(tasks_max)]

    def writer(self, context: TaskContext) -> SinkWriter:
        """Return the writer of a task. Raises ConfigError, ConnectError."""
        values = self.definition.parse(context.settings)
        settings = LakeSettings.of(self.prefix, values, context.settings)
        return LakeWriter(settings, self.tables(context, values, settings))

    @abstractmethod
    def tables(
        self, context: TaskContext, values: Mapping[str, Any], settings: LakeSettings
    ) -> Tables:
        """Return the tables, for a task. Raises ConnectError."""


@dataclass(slots=True)
class Change:
    """The changes of one commit to one table.

    `rows` are added, or replace those with the same `ids`; of `deleted` only the ids count.
    """

    table: str
    rows: Any
    deleted: Any
    ids: tuple[str, ...]
    offsets: Offsets
    known: Offsets = field(default_factory=dict)
    settings: TableSettings = field(default_factory=TableSettings)

    def check(self, offsets: Offsets) -> None:
        """Raise RetriableError where the table's offsets are not those that rows were cut at.

        Another task has the partition now, or had it. The next try cuts the rows again.
        """
        moved = [place for place in self.offsets if offsets.get(place, -1) != self.known[place]]
        if moved:
            places = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(moved))
            raise RetriableError(f"table {self.table}: another task has written {places} meanwhile")


class Tables(ABC):
    """The tables of one lake, on the driver."""

    @abstractmethod
    def offsets(self, table: str, partitions: Sequence[TopicPartition]) -> Offsets:
        """Return which offsets come next, as the table's commits say; empty where it is not there.

        Raises RetriableError, ConnectError.
        """

    @abstractmethod
    def commit(self, change: Change) -> None:
        """Carry out a change in one commit. Raises RetriableError, ConnectError."""

    def close(self) -> None:  # noqa: B027  # not all hold anything
        """Close what is open."""


class LakeWriter(SinkWriter):
    """Writes a task's records to tables."""

    report: Callable[[SinkRecord, Exception], None] | None = None

    def __init__(self, settings: LakeSettings, tables: Tables | None) -> None:
        self._settings = settings
        self._tables = tables
        self._known: dict[str, dict[TopicPartition, int]] = {}
        self._due_ms = -1

    def __getstate__(self) -> dict[str, Any]:
        return {"_settings": self._settings, "_tables": None, "_known": {}, "_due_ms": -1}

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        """Forget what tables said: others write them now."""
        self._known.clear()

    def plan(self, ranges: Sequence[SinkRange], now_ms: int) -> Sequence[SinkRange]:
        """Wait for the next commit's time, or for as many records as one takes."""
        if not ranges:
            return ()
        if self._due_ms < 0:
            self._due_ms = now_ms + self._settings.interval_ms
        is_full = any(one.end - one.start >= RECORDS_PER_COMMIT for one in ranges)
        if now_ms < self._due_ms and not is_full:
            return ()
        return [replace(one, end=min(one.end, one.start + RECORDS_PER_COMMIT)) for one in ranges]

    def write(self, records: Iterator[SinkRecord], where: SinkRange) -> RangeRows:
        """Return a range's rows. Raises ConnectError."""
        return rows_of(self._settings, records, where, self.report)

    def commit(self, ranges: Sequence[SinkRange], messages: Sequence[RangeRows]) -> Offsets:
        """Commit each table's rows with the offsets that come next."""
        assert self._tables is not None
        ends = {(one.topic, one.partition): one.end for one in messages}
        for table in sorted({name for message in messages for name in message.tables}):
            try:
                self._commit_table(table, messages, ends)
            except BaseException:
                self._known.pop(table, None)  # it may have been committed
                raise
        self._due_ms = -1
        return ends

    def _commit_table(self, table: str, messages: Sequence[RangeRows], ends: Offsets) -> None:
        assert self._tables is not None
        known = self._known.setdefault(table, {})
        missing = [place for place in ends if place not in known]
        if missing:
            stored = self._tables.offsets(table, missing)
            known.update({place: stored.get(place, -1) for place in missing})
        pieces = []
        for message in messages:
            next_offset = known[message.topic, message.partition]
            for data in message.tables.get(table, ()):
                piece = read_stream(data)
                pieces.append(piece.filter(pc.greater_equal(piece[OFFSET], next_offset)))
        rows = _together(table, pieces)
        # An offset never goes back: what is read again is known already.
        offsets = {place: max(end, known[place]) for place, end in ends.items()}
        if rows.num_rows:
            before = {place: known[place] for place in offsets}
            self._tables.commit(self._change(table, rows, offsets, before))
            known.update(offsets)

    def _change(self, table: str, rows: Any, offsets: Offsets, known: Offsets) -> Change:
        settings = self._settings.of_table(table)
        if not self._settings.has_ids:
            rows = rows.drop_columns([OFFSET, IS_DELETE])
            return Change(table, rows, rows.slice(0, 0), (), offsets, known, settings)
        ids = settings.id_columns
        if not ids or any(name not in rows.column_names for name in ids):
            raise ConnectError(
                f"table {table}: upserts need id columns that records have, not {list(ids)}"
            )
        rows = latest(rows, ids)
        is_delete = rows[IS_DELETE]
        rows = rows.drop_columns([OFFSET, IS_DELETE])
        return Change(
            table,
            rows.filter(pc.invert(is_delete)),
            rows.filter(is_delete).select(list(ids)),
            ids,
            offsets,
            known,
            settings,
        )

    def stop(self) -> None:
        """Close the tables."""
        if self._tables is not None:
            self._tables.close()


_REFUSED: Final = re.compile(
    r"AccessDenied|InvalidAccessKeyId|NoSuchBucket|SignatureDoesNotMatch|\b40[13]\b|PermissionDenied"
)


def is_refused(text: str) -> bool:
    """Return whether a store has denied access, which time alone does not change."""
    return _REFUSED.search(text) is not None


def latest(rows: Any, ids: Sequence[str]) -> Any:
    """Return the last row of each id, in the order in which they came."""
    columns = [rows[name].to_pylist() for name in ids]
    last = {key: number for number, key in enumerate(zip(*columns, strict=True))}
    return rows.take(pa.array(sorted(last.values()), pa.int64()))


def _together(table: str, pieces: Sequence[Any]) -> Any:
    try:
        return pa.concat_tables(pieces, promote_options="permissive")
    except pa.ArrowException as error:
        raise ConnectError(f"table {table}: records' schemas do not fit: {error}") from error


@dataclass(slots=True)
class RangeRows:
    """The rows of a range, by table, as Arrow's streams, with offsets and deletes beside."""

    topic: str
    partition: int
    end: int
    tables: dict[str, list[bytes]] = field(default_factory=dict)


def tables_of(settings: LakeSettings, record: SinkRecord) -> list[str]:
    """Return the tables that a record goes to; by default none."""
    if settings.route_field is None:
        return list(settings.tables)
    _, value = field_of(record.value, settings.route_field)
    if value is None:
        return []
    if settings.is_dynamic:
        return [str(value).lower()]
    routes = [(table, settings.of_table(table).route) for table in settings.tables]
    return [table for table, route in routes if route is not None and route.search(str(value))]


def is_delete(settings: LakeSettings, record: SinkRecord) -> bool:
    """Return whether a record says that its row is gone."""
    if settings.operation_field is None:
        return False
    _, value = field_of(record.value, settings.operation_field)
    text = "" if value is None else str(value).lower()
    return text.startswith(_DELETES)


class _Rows:
    """The rows of one table that have one schema."""

    def __init__(self, schema: Schema | None) -> None:
        self._columns = None if schema is None else ArrowColumns(schema)
        self._maps: list[Mapping[str, Any]] = []
        self._offsets: list[int] = []
        self._deletes: list[bool] = []

    def add(self, record: SinkRecord, *, deletes: bool) -> None:
        if self._columns is not None:
            self._columns.add(record.value)
        else:
            self._maps.append(record.value)
        self._offsets.append(record.original_offset)
        self._deletes.append(deletes)

    def stream(self) -> bytes:
        table = self._columns.take() if self._columns is not None else _inferred(self._maps)
        table = table.append_column(OFFSET, pa.array(self._offsets, pa.int64()))
        table = table.append_column(IS_DELETE, pa.array(self._deletes, pa.bool_()))
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue())


def _inferred(maps: list[Mapping[str, Any]]) -> Any:
    """Columns of values without a schema: Arrow finds types that hold all of them."""
    names = dict.fromkeys(name for row in maps for name in row)
    rows = [{name: row.get(name) for name in names} for row in maps]
    try:
        table = pa.Table.from_pylist(rows)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ConnectError(f"Records without schemas do not fit each other: {error}") from error
    unknown = [
        name
        for name, type_ in zip(table.column_names, table.schema.types, strict=True)
        if pa.types.is_null(type_)
    ]
    return table.drop_columns(unknown) if unknown else table


def rows_of(
    settings: LakeSettings, records: Iterator[SinkRecord], where: SinkRange, report: Any
) -> RangeRows:
    """Return the rows of a range; `report` takes what cannot be one. Raises ConnectError."""
    open_rows: dict[str, tuple[Schema | None, _Rows]] = {}
    made = RangeRows(where.topic, where.partition, where.end)
    for record in records:
        if record.value is None:
            continue  # a tombstone: what it deletes was said by the record before it
        try:
            if not isinstance(record.value, (Struct, Mapping)):
                raise DataError("Rows are made of structs and maps only")
            deletes = is_delete(settings, record)
            for table in tables_of(settings, record):
                current = open_rows.get(table)
                if current is None or current[0] != record.value_schema:
                    current = record.value_schema, _Rows(record.value_schema)
                    current[1].add(record, deletes=deletes)
                    before = open_rows.pop(table, None)
                    if before is not None:
                        made.tables.setdefault(table, []).append(before[1].stream())
                    open_rows[table] = current
                else:
                    current[1].add(record, deletes=deletes)
        except DataError as error:
            if report is None:
                raise ConnectError(
                    f"cannot store the record at offset {record.original_offset} of "
                    f"{record.original_topic}-{record.original_partition}: {error}"
                ) from error
            report(record, error)
    for table, (_, rows) in open_rows.items():
        made.tables.setdefault(table, []).append(rows.stream())
    return made


def read_stream(data: bytes) -> Any:
    """Return the table of a stream."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
