"""Rows, wrapped or bare, from and to values with a schema of Connect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from barnabas.schemas.errors import FormatError
from barnabas.sql.formats.connect_data import (
    Hook,
    UnreadableError,
    read_struct,
    reader,
    struct_readers,
    struct_writer,
    writer,
)
from barnabas.sql.formats.connect_schema import ConnectSchema, sql_type_of
from barnabas.sql.runtime.records import Row
from barnabas.sql.schema import Column
from barnabas.sql.types import Struct


def row_reader(
    columns: Sequence[Column], schema: ConnectSchema, hook: Hook, *, wraps: bool
) -> Callable[[Any], Row | None]:
    """How a value with the schema becomes a row. Raises FormatError where it cannot."""
    target = sql_type_of(columns, wraps=wraps)
    try:
        if isinstance(target, Struct) and (wraps or len(columns) != 1):
            if schema.type != "struct":
                raise UnreadableError(
                    f"Cannot deserialize type {schema.type} as type struct for path: "
                )
            return _wrapped(target, schema, hook)
        convert = reader(target, schema, hook)
    except UnreadableError as error:
        raise FormatError(str(error)) from error

    def read_bare(value: Any) -> Row:
        return [value if value is None or convert is None else convert(value)]

    return read_bare


def _wrapped(target: Struct, schema: ConnectSchema, hook: Hook) -> Callable[[Any], Row | None]:
    readers = struct_readers(target, schema, hook)
    raw = hook(schema)

    def read_wrapped(value: Any) -> Row | None:
        if value is None:
            return None
        return read_struct(readers, value if raw is None else raw(value))

    return read_wrapped


def row_writer(
    columns: Sequence[Column], schema: ConnectSchema, hook: Hook, *, wraps: bool
) -> Callable[[Row], Any]:
    """How a row becomes a value with the schema. Raises FormatError where it cannot."""
    source = sql_type_of(columns, wraps=wraps)
    if isinstance(source, Struct) and (wraps or len(columns) != 1):
        if schema.type != "struct":
            raise FormatError(f"Cannot write columns as type {schema.type}")
        write = struct_writer(source, schema, hook)
        raw = hook(schema)
        return write if raw is None else lambda row: raw(write(row))
    convert = writer(source, schema, hook)
    return lambda row: row[0] if convert is None else convert(row[0])
