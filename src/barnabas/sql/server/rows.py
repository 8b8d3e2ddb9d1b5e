"""Rows of queries as text, in each form that clients may ask for."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal as Number
from typing import Any, Protocol

from barnabas.java.time.calendar import date_text, iso_timestamp_text, time_text
from barnabas.sql.formats.catalog import format_named
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.formats.json_writing import json_string
from barnabas.sql.formats.json_writing import writer as plain_writer
from barnabas.sql.schema import Column, Schema
from barnabas.sql.server.errors import DELIMITED, JSON, MEDIA_TYPE, PROTOBUF
from barnabas.sql.types import Array, BaseType, Decimal, Map, SqlType, Struct, Value


class RowForm(Protocol):
    """The form of an answer with rows, written part by part."""

    media_type: str

    def begin(self, query_id: str, schema: Schema) -> str: ...

    def row(self, values: Sequence[Value], *, is_tombstone: bool = False) -> str: ...

    def end(self, final_message: str | None = None) -> str: ...

    def fail(self, error: dict[str, Any]) -> str:
        """The end, for an error that came after the beginning."""
        ...


class StreamedRows:
    """One JSON array with an object for each part: what `/query` gives."""

    media_type = MEDIA_TYPE

    def __init__(self, *, is_push: bool) -> None:
        self._is_push = is_push

    def begin(self, query_id: str, schema: Schema) -> str:
        self._row_text = row_text(schema.columns)
        header = {"header": {"queryId": query_id, "schema": str(schema)}}
        return "[" + json.dumps(header) + self._after

    @property
    def _after(self) -> str:
        """Clients that read line by line need a row's end with the row, not with the next one."""
        return ",\n" if self._is_push else ""

    @property
    def _before(self) -> str:
        return "" if self._is_push else ",\n"

    def row(self, values: Sequence[Value], *, is_tombstone: bool = False) -> str:
        tombstone = ',"tombstone":true' if is_tombstone else ""
        row = f'{{"row":{{"columns":{self._row_text(values)}{tombstone}}}}}'
        return self._before + row + self._after

    def end(self, final_message: str | None = None) -> str:
        if final_message is None:
            return "]"
        return self._before + json.dumps({"finalMessage": final_message}) + "]"

    def fail(self, error: dict[str, Any]) -> str:
        return self._before + json.dumps({"errorMessage": error}) + "]"


class ProtobufRows(StreamedRows):
    """As StreamedRows, with rows as Protobuf messages in base64."""

    media_type = PROTOBUF

    def begin(self, query_id: str, schema: Schema) -> str:
        columns = tuple(Column(column.name, column.type) for column in schema.columns)
        format_ = format_named("PROTOBUF_NOSR")
        part = RecordPart(columns, {}, "query-value", None, wraps=True)
        self._serialize = format_.serializer(part)
        translator = format_named("PROTOBUF").schemas
        assert translator is not None
        text = translator.text(columns, {}, wraps=True)
        header = {"header": {"queryId": query_id, "schema": str(schema), "protoSchema": text}}
        return "[" + json.dumps(header) + self._after

    def row(self, values: Sequence[Value], *, is_tombstone: bool = False) -> str:
        data = self._serialize(list(values)) or b""
        row = json.dumps({"row": {"protobufBytes": base64.b64encode(data).decode()}})
        return self._before + row + self._after


class DelimitedRows:
    """A header and rows, each a line: the default of `/query-stream`."""

    media_type = DELIMITED

    def begin(self, query_id: str, schema: Schema) -> str:
        self._row_text = row_text(schema.columns)
        return json.dumps(_metadata(query_id, schema)) + "\n"

    def row(self, values: Sequence[Value], *, is_tombstone: bool = False) -> str:
        return "" if is_tombstone else self._row_text(values) + "\n"

    def end(self, final_message: str | None = None) -> str:
        return ""

    def fail(self, error: dict[str, Any]) -> str:
        return json.dumps(error) + "\n"


class JsonRows:
    """One JSON array with the header and an array for each row."""

    media_type = JSON

    def begin(self, query_id: str, schema: Schema) -> str:
        self._row_text = row_text(schema.columns)
        return "[" + json.dumps(_metadata(query_id, schema))

    def row(self, values: Sequence[Value], *, is_tombstone: bool = False) -> str:
        return "" if is_tombstone else ",\n" + self._row_text(values)

    def end(self, final_message: str | None = None) -> str:
        return "]"

    def fail(self, error: dict[str, Any]) -> str:
        return ",\n" + json.dumps(error) + "]"


def _metadata(query_id: str, schema: Schema) -> dict[str, Any]:
    return {
        "queryId": query_id,
        "columnNames": [column.name for column in schema.columns],
        "columnTypes": [str(column.type) for column in schema.columns],
    }


def form_for(accept: str, *, is_push: bool, is_old_endpoint: bool) -> RowForm:
    """The form that an Accept header asks for."""
    accepted = [part.split(";")[0].strip().lower() for part in accept.split(",")]
    for kind in accepted:
        if kind == DELIMITED:
            return DelimitedRows()
        if kind == PROTOBUF:
            return ProtobufRows(is_push=is_push)
        if kind == MEDIA_TYPE or (kind == JSON and is_old_endpoint):
            return StreamedRows(is_push=is_push)
        if kind == JSON:
            return JsonRows()
    return StreamedRows(is_push=is_push) if is_old_endpoint else DelimitedRows()


# -- values in answers: JSON as ksqlDB's server writes it
#
# Unlike records in topics, dates and times are text here (`2020-01-31`, `12:30`,
# `2020-01-31T12:30:00.000`), and decimals have no exponent.


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
