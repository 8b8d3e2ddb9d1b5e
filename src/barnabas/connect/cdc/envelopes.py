"""Debezium's records of changes: keys, envelopes, tombstones, heartbeats. Runs on executors."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from barnabas.connect.cdc.database import Clock, ColumnTypes
from barnabas.connect.cdc.settings import CaptureSettings
from barnabas.connect.cdc.tables import PARSE_ERRORS, UNCHANGED, Row, RowChange, Table
from barnabas.connect.cdc.transactions import TRANSACTION_BLOCK
from barnabas.connect.record import Header, JsonMap, SourceRecord
from barnabas.schemas.data.builder import INT64, OPTIONAL_INT64, STRING, struct_of
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema, Struct, Type

_log = logging.getLogger(__name__)
_CONTEXT: Final = "__debezium.context."
SNAPSHOT_MARK: Final = Schema(
    Type.STRING,
    optional=True,
    default="false",
    name="io.debezium.data.Enum",
    version=1,
    parameters={
        "allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false,"
        "incremental"
    },
)
HEARTBEAT_KEY: Final = struct_of(
    {"serverName": STRING}, name="io.debezium.connector.common.ServerNameKey", version=1
)
HEARTBEAT_VALUE: Final = struct_of(
    {"ts_ms": INT64}, name="io.debezium.connector.common.Heartbeat", version=1
)


@dataclass(slots=True, frozen=True)
class _ColumnReader:
    """Reads one column: its place in the log's row, the value that stands for null, and the one
    that stands for a value that the log does not repeat."""

    place: int
    name: str
    parse: Callable[[Any], Any]
    lacking: Any
    unchanged: Any


class TableRecords:
    """Makes the keys and values of one table's records."""

    def __init__(self, table: Table, settings: CaptureSettings) -> None:
        self.table = table
        self._fails = settings.failure_handling == "fail"
        self._has_transforms = settings.has_transforms
        self._readers: list[_ColumnReader] = []
        types, placeholder = settings.types, settings.placeholder
        fields: list[tuple[str, Schema]] = []
        keys_fields: list[tuple[str, Schema]] = []
        for place in table.kept:
            column = table.columns[place]
            kind = types.column_type(column)
            if kind is None:
                continue
            default = types.default(column, kind)
            schema = replace(kind.schema, optional=column.is_optional, default=default)
            keys_fields.append((column.name, schema))
            if column.parameters:
                parameters = {**schema.parameters, **dict(column.parameters)}
                schema = replace(schema, parameters=parameters)
            lacking = None if column.is_optional else kind.zero if default is None else default
            unchanged = _unchanged(kind.schema, placeholder, lacking)
            self._readers.append(
                _ColumnReader(place, column.name, kind.under(schema), lacking, unchanged)
            )
            fields.append((column.name, schema))
        self.value_schema = struct_of(fields, name=f"{table.topic}.Value", optional=True)
        by_name = {name: (place, schema) for place, (name, schema) in enumerate(keys_fields)}
        keys = [by_name[name] for name in table.key if name in by_name]
        self._key_places = [place for place, _schema in keys]
        self.key_schema = (
            struct_of(
                [(fields[place][0], schema) for place, schema in keys], name=f"{table.topic}.Key"
            )
            if keys
            else None
        )
        self.envelope_schema = struct_of(
            {
                "before": self.value_schema,
                "after": self.value_schema,
                "source": settings.source_schema,
                "transaction": TRANSACTION_BLOCK,
                "op": STRING,
                "ts_ms": OPTIONAL_INT64,
                "ts_us": OPTIONAL_INT64,
                "ts_ns": OPTIONAL_INT64,
            },
            name=f"{table.topic}.Envelope",
            version=2,
        )

    def row(self, values: Row, old: Row | None = None) -> Struct:
        """Return a row; `old` fills what is unchanged, if it has it."""
        made = []
        for reader in self._readers:
            raw = values[reader.place]
            if raw is UNCHANGED and old is not None and old[reader.place] is not None:
                raw = old[reader.place]
            if raw is None:
                made.append(reader.lacking)
            elif raw is UNCHANGED:
                made.append(reader.unchanged)
            else:
                try:
                    made.append(reader.parse(raw.decode() if isinstance(raw, bytes) else raw))
                except PARSE_ERRORS as error:
                    made.append(self._bad(reader, error))
        return Struct(self.value_schema, made)

    def is_moved(self, change: RowChange) -> bool:
        """Return whether an update gives a row another key. Only keys that differ are read."""
        old, new = change.old, change.new
        if old is None or new is None:
            return False
        for key_place in self._key_places:
            reader = self._readers[key_place]
            before, after = old[reader.place], new[reader.place]
            if after is UNCHANGED and before is not None:
                after = before  # large keys are logged again though they stay
            if before != after and self._value(reader, before) != self._value(reader, after):
                return True
        return False

    def _value(self, reader: _ColumnReader, raw: Any) -> Any:
        if raw is None:
            return reader.lacking
        if raw is UNCHANGED:
            return reader.unchanged
        try:
            return reader.parse(raw.decode() if isinstance(raw, bytes) else raw)
        except PARSE_ERRORS as error:
            return self._bad(reader, error)

    def _bad(self, reader: _ColumnReader, error: Exception) -> Any:
        text = f"{self.table.full_name}.{reader.name} has a value that cannot be read"
        if self._fails:
            raise DataError(f"{text}: {error}") from error
        # The error quotes the value, which a transform may mask later.
        why = type(error).__name__ if self._has_transforms else error
        _log.warning("%s: %s; it is left out", text, why)
        return reader.lacking

    def key(self, row: Struct) -> Struct | None:
        """Return the key of a row; None in a table without one."""
        if self.key_schema is None:
            return None
        return Struct(self.key_schema, [row.values[place] for place in self._key_places])

    def envelope(
        self,
        op: str,
        before: Struct | None,
        after: Struct | None,
        source: Struct,
        block: Struct | None,
        now_ns: int,
    ) -> Struct:
        """Return the value of a change's record; `block` is its place in its transaction."""
        times = [now_ns // 1_000_000, now_ns // 1000, now_ns]
        return Struct(self.envelope_schema, [before, after, source, block, op, *times])


@lru_cache(maxsize=1024)
def records_of(table: Table, settings: CaptureSettings) -> TableRecords:
    """The maker of a table's records; tables that were altered have another."""
    return TableRecords(table, settings)


class RecordMaker:
    """The common parts of all tables' records."""

    def __init__(self, settings: CaptureSettings, task: int, clock: Clock) -> None:
        self.settings = settings
        self.clock = clock
        # Settings are worked out here: each record would do it again.
        prefix = settings.topic_prefix
        self.skipped = settings.skipped_operations
        self.partition: JsonMap = {"server": prefix}
        self._has_headers = settings.has_extended_headers
        self._context = [
            Header(f"{_CONTEXT}connectorLogicalName", STRING, prefix),
            Header(f"{_CONTEXT}taskId", STRING, str(task)),
            Header(f"{_CONTEXT}connectorName", STRING, settings.connector_name),
        ]

    def record(
        self,
        records: TableRecords,
        op: str,
        before: Struct | None,
        after: Struct | None,
        source: Struct,
        offset: JsonMap,
        *headers: Header,
        block: Struct | None = None,
    ) -> SourceRecord:
        """Return the record of a row."""
        row = after if after is not None else before
        return SourceRecord(
            topic=records.table.topic,
            key_schema=records.key_schema,
            key=None if row is None else records.key(row),
            value_schema=records.envelope_schema,
            value=records.envelope(op, before, after, source, block, self.clock.time_ns()),
            headers=[*headers, *self._context] if self._has_headers else [],
            source_partition=self.partition,
            source_offset=offset,
        )

    def plain(self, topic: str, key: Struct, value: Struct, offset: JsonMap) -> SourceRecord:
        """Return a record that is about no row."""
        return SourceRecord(
            topic=topic,
            key_schema=key.schema,
            key=key,
            value_schema=value.schema,
            value=value,
            source_partition=self.partition,
            source_offset=offset,
        )

    def heartbeat(self, now_ms: int, offset: JsonMap) -> SourceRecord:
        """Return the record of a heartbeat."""
        prefix = self.settings.topic_prefix
        topic = f"{self.settings.heartbeat_prefix}.{prefix}"
        key, value = Struct(HEARTBEAT_KEY, [prefix]), Struct(HEARTBEAT_VALUE, [now_ms])
        return self.plain(topic, key, value, offset)


def log_left_out(table: Table, types: ColumnTypes) -> None:
    """Log which columns records lack, since their types have no counterpart."""
    for place in table.kept:
        column = table.columns[place]
        if types.column_type(column) is None:
            _log.warning(
                "%s.%s is left out because its type %s is not supported; with"
                " include.unknown.datatypes=true its text is sent as bytes",
                *(table.full_name, column.name, column.type.name),
            )


def _unchanged(schema: Schema, placeholder: str, lacking: Any) -> Any:
    if schema.name is not None and schema.type is Type.BYTES:
        return lacking  # decimals and bits
    if schema.type is Type.STRING:
        return placeholder
    if schema.type is Type.BYTES:
        return placeholder.encode()
    if schema.type is Type.MAP:
        return {placeholder: placeholder}
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        inner = _unchanged(schema.value_schema, placeholder, None)
        return lacking if inner is None else [inner]
    return lacking
