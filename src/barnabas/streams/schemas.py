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
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from barnabas.streams.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

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


def struct_of(schema: SchemaLike) -> StructType:
    """Return Spark's type of rows; needs a session, which parses the DDL."""
    from pyspark.sql.types import StructType

    kind = StructType.fromDDL(ddl_of(schema))
    assert isinstance(kind, StructType)
    return kind


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


def to_row(value: Any) -> dict[str, Any]:
    """Return an instance of a dataclass as a row; a dict as it is."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return dict(value)


@dataclass(frozen=True)
class Maker:
    """Makes Python values of rows. It goes to Spark's workers, where modules may be missing.

    So annotations, which name things of their module, are resolved before.
    """

    kind: Literal["as it is", "dataclass", "list", "dict"] = "as it is"
    made: type[Any] | None = None
    parts: tuple[tuple[str, Maker], ...] = ()

    def make(self, value: Any) -> Any:
        """Return what a row, or a value in it, is in Python."""
        if value is None or self.kind == "as it is":
            return value
        if self.kind == "dataclass":
            assert self.made is not None
            return self.made(**{name: part.make(value.get(name)) for name, part in self.parts})
        part = self.parts[0][1]
        if self.kind == "list":
            return [part.make(one) for one in value]
        return {key: part.make(one) for key, one in value.items()}


def maker_of(schema: SchemaLike | None) -> Maker:
    """Return what makes instances of a dataclass of rows; rows stay dicts where it is DDL."""
    return _maker(None if isinstance(schema, str) else schema)


def _maker(annotation: Any) -> Maker:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _maker(next(one for one in arguments if one is not types.NoneType))
    if origin in (list, dict):
        part = _maker(arguments[-1])
        return Maker("list" if origin is list else "dict", None, (("", part),))
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        hints = get_type_hints(annotation)
        names = [field.name for field in dataclasses.fields(annotation)]
        parts = tuple((name, _maker(hints[name])) for name in names)
        return Maker("dataclass", annotation, parts)
    return Maker()
