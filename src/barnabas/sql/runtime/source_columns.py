"""What a source's rows hold beside the value: headers, pseudo columns, key, bounds of windows."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.sql.plan.steps import WindowInfo
from barnabas.sql.runtime.layout import Layout
from barnabas.sql.runtime.records import Record
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
from barnabas.sql.types import Value

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
