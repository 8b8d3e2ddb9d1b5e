"""Debezium's records of changes: keys, envelopes, tombstones, heartbeats, logical messages."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from barnabas.connect.connectors.postgres.defaults import default_of
from barnabas.connect.connectors.postgres.pgoutput import UNCHANGED
from barnabas.connect.connectors.postgres.tables import Table
from barnabas.connect.connectors.postgres.transactions import TRANSACTION_BLOCK
from barnabas.connect.connectors.postgres.types import (
    PARSE_ERRORS,
    Modes,
    column_type,
)
from barnabas.schemas.data.builder import (
    INT64,
    OPTIONAL_BYTES,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    struct_of,
)
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema, Struct, Type

_log = logging.getLogger(__name__)

_SNAPSHOT: Final = Schema(
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
SOURCE: Final = struct_of(
    {
        "version": STRING,
        "connector": STRING,
        "name": STRING,
        "ts_ms": INT64,
        "snapshot": _SNAPSHOT,
        "db": STRING,
        "sequence": OPTIONAL_STRING,
        "ts_us": OPTIONAL_INT64,
        "ts_ns": OPTIONAL_INT64,
        "schema": STRING,
        "table": STRING,
        "txId": OPTIONAL_INT64,
        "lsn": OPTIONAL_INT64,
        "xmin": OPTIONAL_INT64,
    },
    name="io.debezium.connector.postgresql.Source",
    version=1,
)
_MESSAGE: Final = struct_of(
    {"prefix": OPTIONAL_STRING, "content": OPTIONAL_BYTES},
    name="io.debezium.connector.postgresql.Message",
    version=1,
)
MESSAGE_KEY: Final = struct_of(
    {"prefix": OPTIONAL_STRING}, name="io.debezium.connector.postgresql.MessageKey", version=1
)
MESSAGE_VALUE: Final = struct_of(
    {
        "op": STRING,
        "ts_ms": OPTIONAL_INT64,
        "source": SOURCE,
        "transaction": TRANSACTION_BLOCK,
        "message": _MESSAGE,
    },
    name="io.debezium.connector.postgresql.MessageValue",
    version=1,
)
HEARTBEAT_KEY: Final = struct_of(
    {"serverName": STRING}, name="io.debezium.connector.common.ServerNameKey", version=1
)
HEARTBEAT_VALUE: Final = struct_of(
    {"ts_ms": INT64}, name="io.debezium.connector.common.Heartbeat", version=1
)


def message_value(
    ts_ms: int, source: Struct, block: Struct | None, prefix: str, content: bytes
) -> Struct:
    """Return the value of a logical message's record."""
    return Struct(MESSAGE_VALUE, ["m", ts_ms, source, block, Struct(_MESSAGE, [prefix, content])])


@dataclass(slots=True, frozen=True)
class _Reader:
    """Reads one column: its place in the log's row, what a lacking value is, what stands for one
    that the log does not repeat."""

    place: int
    name: str
    parse: Callable[[str], Any]
    lacking: Any
    unchanged: Any


class TableRecords:
    """Makes the keys and values of one table's records."""

    def __init__(
        self, table: Table, modes: Modes, placeholder: str, *, fails_on_bad_values: bool
    ) -> None:
        self.table = table
        self._fails = fails_on_bad_values
        self._readers: list[_Reader] = []
        fields: list[tuple[str, Schema]] = []
        keys_fields: list[tuple[str, Schema]] = []
        for place in table.kept:
            column = table.columns[place]
            kind = column_type(column.type, modes)
            if kind is None:
                continue
            default = default_of(column.default, kind, is_optional=column.is_optional)
            schema = replace(kind.schema, optional=column.is_optional, default=default)
            keys_fields.append((column.name, schema))
            if column.parameters:
                parameters = {**schema.parameters, **dict(column.parameters)}
                schema = replace(schema, parameters=parameters)
            lacking = None if column.is_optional else kind.zero if default is None else default
            unchanged = _unchanged(kind.schema, placeholder, lacking)
            self._readers.append(
                _Reader(place, column.name, kind.under(schema), lacking, unchanged)
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
                "source": SOURCE,
                "transaction": TRANSACTION_BLOCK,
                "op": STRING,
                "ts_ms": OPTIONAL_INT64,
                "ts_us": OPTIONAL_INT64,
                "ts_ns": OPTIONAL_INT64,
            },
            name=f"{table.topic}.Envelope",
            version=2,
        )

    def row(self, values: Sequence[Any], old: Sequence[Any] | None = None) -> Struct:
        """Return a row of the log's or COPY's values; `old` fills what is unchanged."""
        made = []
        for reader in self._readers:
            raw = values[reader.place]
            if raw is UNCHANGED and old is not None:
                raw = old[reader.place]
            if raw is None:
                made.append(reader.lacking)
            elif raw is UNCHANGED:
                made.append(reader.unchanged)
            else:
                text = raw if isinstance(raw, str) else raw.decode()
                try:
                    made.append(reader.parse(text))
                except PARSE_ERRORS as error:
                    made.append(self._bad(reader, error))
        return Struct(self.value_schema, made)

    def _bad(self, reader: _Reader, error: Exception) -> Any:
        text = f"{self.table.full_name}.{reader.name} has a value that cannot be read: {error}"
        if self._fails:
            raise DataError(text) from error
        _log.warning("%s; it is left out", text)
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
    ) -> Struct:
        """Return the value of a change's record; `block` is its place in its transaction."""
        now_ns = time.time_ns()
        times = [now_ns // 1_000_000, now_ns // 1000, now_ns]
        return Struct(self.envelope_schema, [before, after, source, block, op, *times])


def tell_left_out(table: Table, modes: Modes) -> None:
    """Log which columns records lack, since their types have no counterpart."""
    for place in table.kept:
        column = table.columns[place]
        if column_type(column.type, modes) is None:
            _log.warning(
                "%s.%s is left out: its type %s has no counterpart; its text is sent as bytes"
                " with include.unknown.datatypes=true",
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
