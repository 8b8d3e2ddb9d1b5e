"""Schemas of rows: Spark's DDL, or a dataclass whose annotations say the same.

| annotation | Spark | | annotation | Spark |
|---|---|---|---|---|
| str | STRING | | datetime | TIMESTAMP |
| int | BIGINT | | date | DATE |
| float | DOUBLE | | Decimal | DECIMAL(38,18) |
| bool | BOOLEAN | | list[T] | ARRAY<T> |
| bytes | BINARY | | dict[K, V] | MAP<K,V> |
| a dataclass | STRUCT<…> | | T or None | T, which may be null |

`Annotated[T, "DECIMAL(10,2)"]` names Spark's type itself. What cannot be None is NOT NULL: a record
without it is malformed.
"""

from __future__ import annotations

import dataclasses
import types
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Final, TypeAlias, Union, get_args, get_origin, get_type_hints

from barnabas.pipeline.streams.errors import PipelineError

SchemaLike: TypeAlias = str | type[Any]
"""A DDL schema (`"user STRING NOT NULL, at TIMESTAMP"`), or a dataclass."""

_TYPES: Final[dict[Any, str]] = {
    str: "STRING",
    int: "BIGINT",
    float: "DOUBLE",
    bool: "BOOLEAN",
    bytes: "BINARY",
    datetime: "TIMESTAMP",
    date: "DATE",
    Decimal: "DECIMAL(38,18)",
}


def ddl_of(schema: SchemaLike) -> str:
    """Return the DDL of a schema. Raises PipelineError for a class that has none."""
    if isinstance(schema, str):
        return schema
    return ", ".join(f"`{name}` {text}" for name, text in _columns(schema))


def _columns(schema: type[Any]) -> list[tuple[str, str]]:
    if not (isinstance(schema, type) and dataclasses.is_dataclass(schema)):
        raise PipelineError(f"a schema is DDL text or a dataclass, not {schema!r}")
    hints = get_type_hints(schema, include_extras=True)
    return [
        (field.name, _column(hints[field.name], f"{schema.__name__}.{field.name}"))
        for field in dataclasses.fields(schema)
    ]


def _column(annotation: Any, where: str) -> str:
    text, is_nullable = _type(annotation, where)
    return text if is_nullable else f"{text} NOT NULL"


def _type(annotation: Any, where: str) -> tuple[str, bool]:
    """Spark's type, and whether it may be null."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        text, is_nullable = _type(arguments[0], where)
        named = [extra for extra in arguments[1:] if isinstance(extra, str)]
        return (named[0] if named else text), is_nullable
    if origin in (Union, types.UnionType):
        present = [one for one in arguments if one is not types.NoneType]
        if len(present) == 1 and len(arguments) == 2:
            return _type(present[0], where)[0], True
    elif annotation in _TYPES:
        return _TYPES[annotation], False
    elif origin is list:
        return f"ARRAY<{_type(arguments[0], where)[0]}>", False
    elif origin is dict:
        key, value = (_type(argument, where)[0] for argument in arguments)
        return f"MAP<{key},{value}>", False
    elif isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        fields = ",".join(f"`{name}`: {text}" for name, text in _columns(annotation))
        return f"STRUCT<{fields}>", False
    raise PipelineError(f"{where}: no Spark type for {annotation!r}")


def from_row(schema: SchemaLike, row: dict[str, Any]) -> Any:
    """Return a row as an instance of its dataclass; as it is where the schema is DDL."""
    if isinstance(schema, str):
        return row
    hints = get_type_hints(schema)
    return schema(
        **{
            field.name: _to_python(hints[field.name], row.get(field.name))
            for field in dataclasses.fields(schema)
        }
    )


def to_row(value: Any) -> dict[str, Any]:
    """Return an instance of a dataclass as a row; a dict as it is."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return dict(value)


def _to_python(annotation: Any, value: Any) -> Any:
    if value is None:
        return None
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        present = next(one for one in arguments if one is not types.NoneType)
        return _to_python(present, value)
    if origin is list:
        return [_to_python(arguments[0], one) for one in value]
    if origin is dict:
        return {key: _to_python(arguments[1], one) for key, one in value.items()}
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return from_row(annotation, value)
    return value
