"""The ends of a plan: what a source's rows hold beside the value, and rows as the sink's schema has
them, with the timestamps that both ask for."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.sql.plan.steps import TimestampColumn, WindowInfo
from barnabas.sql.runtime.evaluation import EVALUATION_ERRORS, Compiler, Log, QueryFailedError
from barnabas.sql.runtime.layout import Layout, Pick
from barnabas.sql.runtime.node import Node
from barnabas.sql.runtime.records import Record
from barnabas.sql.runtime.windows import NEVER
from barnabas.sql.schema import (
    PSEUDO_COLUMNS,
    ROWOFFSET,
    ROWPARTITION,
    ROWTIME,
    WINDOW_BOUNDS,
    WINDOWEND,
    WINDOWSTART,
    Column,
    Schema,
)
from barnabas.sql.types import BaseType, Value

NO_TIMESTAMP = -1
"""Given where a record's timestamp cannot be told; the record is dropped then."""


class SinkNode(Node):
    """Gives records the columns and the timestamp that the sink's topic gets."""

    stream_time = NEVER
    """The latest timestamp that came here: that of tombstones, whose columns tell none."""

    def __init__(
        self, name: str, pick: Pick | None, timestamp: Callable[[Record], int] | None
    ) -> None:
        self.saved = ("stream_time",) if timestamp else ()
        super().__init__(name)
        self._pick = pick
        self._timestamp = timestamp

    def process(self, record: Record) -> None:
        row = record.value
        if row is not None and self._pick is not None:
            row = record.value = self._pick(row)
        if self._timestamp is not None:
            self.stream_time = max(self.stream_time, record.timestamp_ms)
            record.timestamp_ms = self.stream_time if row is None else self._timestamp(record)
            if record.timestamp_ms < 0:
                return
        record.old_value = None
        self.forward(record)


def timestamp_reader(
    schema: Schema,
    column: TimestampColumn | None,
    compiler: Compiler,
    log: Log,
    *,
    fails: bool = False,
) -> Callable[[Record], int] | None:
    """What reads a record's timestamp out of a column; gives NO_TIMESTAMP where it cannot, or
    raises QueryFailedError if it `fails`."""
    if column is None:
        return None
    take, declared = _column_reader(schema, column.name)
    parse: Callable[[Value], int] | None = None
    if declared.type.base is BaseType.STRING:
        parse = compiler.timestamp_parser(column.format or "")

    def read(record: Record) -> int:
        try:
            value = take(record)
            timestamp_ms = parse(value) if parse else value
            if isinstance(timestamp_ms, int) and timestamp_ms >= 0:
                return timestamp_ms
            cause: Exception | None = None
        except EVALUATION_ERRORS as error:
            cause = error
        log("Failed to extract timestamp from row", record.value, cause)
        if fails:
            raise QueryFailedError(
                "Fatal user code error in TimestampExtractor callback for record "
                f"{record.offset} of partition {record.partition}: {cause}"
            )
        return NO_TIMESTAMP

    return read


def _column_reader(schema: Schema, name: str) -> tuple[Callable[[Record], Value], Column]:
    place = Layout(schema.key).place(name)
    if place is not None:
        in_key = place
        return (lambda record: record.key[in_key] if record.key else None), schema.key[place]
    (in_value,) = Layout(schema.value).places((name,))
    of = schema.value[in_value]
    return (lambda record: record.value[in_value] if record.value else None), of


# -- what a source's rows hold beside the value: headers, pseudo columns, key, bounds of windows


Extra = Callable[[Record], Value]

_OF_RECORD: dict[str, Extra] = {
    ROWTIME: lambda record: record.timestamp_ms,
    ROWPARTITION: lambda record: record.partition,
    ROWOFFSET: lambda record: record.offset,
    WINDOWSTART: lambda record: record.window.start_ms if record.window else None,
    WINDOWEND: lambda record: record.window.end_ms if record.window else None,
}


def source_columns(
    schema: Schema, window: WindowInfo | None, mentioned: frozenset[str]
) -> tuple[Layout, list[Extra]]:
    """The layout of a source's rows, and what makes the values behind those of the value."""
    pseudo = {**PSEUDO_COLUMNS, **(WINDOW_BOUNDS if window else {})}
    hidden: list[tuple[Column, Extra]] = [
        (column, header_value(column.header)) for column in schema.headers
    ]
    hidden += [(column, _of_key(place)) for place, column in enumerate(schema.key)]
    hidden += [(Column(name, of), _OF_RECORD[name]) for name, of in pseudo.items()]
    layout = Layout(schema.value).with_hidden((column for column, _ in hidden), mentioned)
    made = {column.name: extra for column, extra in hidden}
    return layout, [made[column.name] for column in layout.columns[len(schema.value) :]]


def _of_key(place: int) -> Extra:
    return lambda record: None if record.key is None else record.key[place]


def header_value(name: str | None) -> Extra:
    """All headers as an array of structs, or the last value of the one named."""
    if name is None:
        return lambda record: [{"KEY": key, "VALUE": value} for key, value in record.headers]

    def last(record: Record) -> Value:
        last_value = None
        for key, value in record.headers:
            if key == name:
                last_value = value
        return last_value

    return last
