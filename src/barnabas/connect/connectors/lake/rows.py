"""Records as batches of Arrow, one per table: what executors do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from barnabas.connect.connectors.base import SinkRange
from barnabas.connect.connectors.lake.settings import LakeSettings
from barnabas.connect.connectors.storage.formats.parquet import ArrowColumns
from barnabas.connect.connectors.storage.partitioners import field_of
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data.errors import ConnectError, DataError
from barnabas.schemas.data.schema import Schema, Struct

OFFSET: Final = "__barnabas_offset"
IS_DELETE: Final = "__barnabas_is_delete"
_DELETES: Final = ("d", "true")


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
