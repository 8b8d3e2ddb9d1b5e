"""Values in answers: JSON as ksqlDB's server writes it.

Unlike records in topics, dates and times are text here (`2020-01-31`, `12:30`,
`2020-01-31T12:30:00.000`), and decimals have no exponent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal as Number

from barnabas.java.time.calendar import date_text, iso_timestamp_text, time_text
from barnabas.sql.formats.json_writing import json_string
from barnabas.sql.formats.json_writing import writer as plain_writer
from barnabas.sql.schema import Column
from barnabas.sql.types import Array, BaseType, Decimal, Map, SqlType, Struct, Value

Writer = Callable[[Value], str]

_TEXTS: dict[BaseType, Callable[[int], str]] = {
    BaseType.DATE: date_text,
    BaseType.TIME: time_text,
    BaseType.TIMESTAMP: iso_timestamp_text,
}


def row_text(columns: Sequence[Column]) -> Callable[[Sequence[Value]], str]:
    """Text of a row as a JSON array."""
    writers = [value_text(column.type) for column in columns]

    def write(row: Sequence[Value]) -> str:
        parts = [text(value) for text, value in zip(writers, row, strict=True)]
        return f"[{','.join(parts)}]"

    return write


def value_text(kind: SqlType) -> Writer:
    """Text of values of a type, NULL among them."""
    write = _not_null(kind)
    return lambda value: "null" if value is None else write(value)


def _not_null(kind: SqlType) -> Writer:
    match kind:
        case Decimal():
            return _decimal
        case Array(item):
            inner = value_text(item)
            return lambda value: f"[{','.join(map(inner, value))}]"
        case Map(_, item):
            of_item = value_text(item)
            return lambda value: _members((_name(key), of_item(v)) for key, v in value.items())
        case Struct(fields):
            writers = [(field.name, value_text(field.type)) for field in fields]
            return lambda value: _members((name, text(value[name])) for name, text in writers)
    as_text = _TEXTS.get(kind.base)
    if as_text is not None:
        return lambda value: f'"{as_text(value)}"'
    return plain_writer(kind)


def _members(members: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{json_string(name)}:{text}" for name, text in members) + "}"


def _name(key: Value) -> str:
    return key if isinstance(key, str) else "null" if key is None else str(key)


def _decimal(value: Number) -> str:
    return format(value, "f")
