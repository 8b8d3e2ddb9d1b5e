"""Records of tests to the bytes of topics, and back."""

from __future__ import annotations

import base64
import decimal
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.decimals import unit
from barnabas.sql.formats.catalog import format_named
from barnabas.sql.formats.format import Deserializer, RecordPart, Serializer
from barnabas.sql.plan.steps import FormatChoice
from barnabas.sql.runtime.records import Row, WindowBounds
from barnabas.sql.runtime.topics import part_of, windowed_serializer
from barnabas.sql.schema import Column, Part
from barnabas.sql.types import Array, BaseType, Decimal, Map, SqlType, Struct, Value

JSON_FORMATS = ("JSON", "JSON_SR")
_ID = struct.Struct(">bi")


@dataclass(frozen=True)
class Side:
    """The keys or the values of a topic: format and columns, as its stream declared them."""

    topic: str
    part: Part
    choice: FormatChoice
    columns: Sequence[Column]
    schemas: SchemaStore

    @property
    def subject(self) -> str:
        """The registry's subject of the schemas."""
        return f"{self.topic}-{self.part.value.lower()}"

    def encode(self, spec: Any) -> bytes | None:
        """The bytes of what a case puts in."""
        if spec is None or self.choice.name == "NONE":
            return None
        if self.choice.name == "DELIMITED" or self._is_unread():
            return _text(spec).encode()
        if self.choice.name == "JSON":
            return to_json(spec).encode()
        return self._encode_row(spec)

    def encode_values(self, row: Row) -> bytes | None:
        """The bytes of a row of values."""
        return self._serializer(self.columns, wraps=self.wraps)(row)

    def decode_values(self, data: bytes | None) -> Row | None:
        """The row of values that the bytes are. Raises FormatError."""
        return self._deserializer(self.columns, wraps=self.wraps)(data)

    def decode(self, data: bytes | None) -> Any:
        """Decode the output, to be compared with what a case expects."""
        if data is None or self.choice.name == "NONE":
            return None
        if self.choice.name == "DELIMITED":
            return data.decode()
        if self.choice.name in JSON_FORMATS:
            return json.loads(data[len(self._header()) :], parse_float=float)
        columns, wraps = self.columns, self.wraps
        if "schemaId" in self.choice.properties:  # the schema may have more than the columns
            columns, wraps = self._written_columns()
        row = self._deserializer(columns, wraps=wraps)(data)
        if row is None or not wraps:
            return None if row is None else row[0]
        return {column.name: value for column, value in zip(columns, row, strict=True)}

    @property
    def wraps(self) -> bool:
        """True if a single column is written as a record with one field."""
        return part_of(self.topic, self.part, self.choice, self.columns, self.schemas)[1].wraps

    def _is_unread(self) -> bool:
        """Return whether the stream has no columns for what the case puts in: then any bytes do."""
        return not self.columns and self.schemas.latest(self.subject) is None

    def _header(self) -> bytes:
        if self.choice.name != "JSON_SR":
            return b""
        stored = self.schemas.latest(self.subject)
        return _ID.pack(0, stored.id if stored else 0)

    def _encode_row(self, spec: Any) -> bytes | None:
        columns, wraps = self._written_columns()
        if not columns:
            return _text(spec).encode()
        if wraps:
            upper = {name.upper(): part for name, part in spec.items()}
            specs = [spec.get(c.name, upper.get(c.name.upper())) for c in columns]
        else:
            specs = [spec]
        row = [value_of(part, column.type) for part, column in zip(specs, columns, strict=True)]
        return self._serializer(columns, wraps=wraps)(row)

    def _serializer(self, columns: Sequence[Column], *, wraps: bool) -> Serializer:
        return format_named(self.choice.name).serializer(self._part(columns, wraps))

    def _deserializer(self, columns: Sequence[Column], *, wraps: bool) -> Deserializer:
        return format_named(self.choice.name).deserializer(self._part(columns, wraps))

    def _part(self, columns: Sequence[Column], wraps: bool) -> RecordPart:
        return RecordPart(columns, self.choice.properties, self.subject, self.schemas, wraps)

    def _written_columns(self) -> tuple[Sequence[Column], bool]:
        """Those of the schema that the case gave to the registry, if it gave one."""
        format_ = format_named(self.choice.name)
        stored = self.schemas.latest(self.subject) if format_.schemas else None
        if stored is None or format_.schemas is None:
            return self.columns, self.wraps
        columns = format_.schemas.columns(
            stored, self.choice.properties, self.part, wraps=self.wraps, upper_case=False
        )
        return columns, self.wraps


def to_json(spec: Any) -> str:
    """JSON with numbers as the case writes them."""
    if isinstance(spec, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{to_json(v)}" for k, v in spec.items()) + "}"
    if isinstance(spec, list):
        return "[" + ",".join(map(to_json, spec)) + "]"
    if isinstance(spec, (str, bool, int)) or spec is None:
        return json.dumps(spec)
    return str(spec)


def _text(spec: Any) -> str:
    return spec if isinstance(spec, str) else to_json(spec)


def with_window(key: bytes | None, window: WindowBounds, *, is_session: bool) -> bytes:
    """The bytes of a key with the window behind it."""
    return windowed_serializer(lambda _: key, session=is_session)(None, window)


def window_of(spec: Mapping[str, Any] | None) -> WindowBounds | None:
    """The window of a record's key."""
    return None if spec is None else WindowBounds(int(spec["start"]), int(spec["end"]))


# -- JSON of a test as values


_TIMES = (BaseType.DATE, BaseType.TIME, BaseType.TIMESTAMP)
_WHOLE = (BaseType.INTEGER, BaseType.BIGINT, *_TIMES)


class SpecError(Exception):
    """A test gives a value that is not of its column's type."""


def value_of(spec: Any, sql_type: SqlType) -> Value:
    """The value that the JSON stands for. Raises SpecError."""
    if spec is None:
        return None
    match sql_type:
        case Array(item):
            return [value_of(part, item) for part in _of(spec, list)]
        case Map(key, value):
            return {
                _key_of(name, key): value_of(part, value) for name, part in _of(spec, dict).items()
            }
        case Struct(fields):
            given = _of(spec, dict)
            upper = {name.upper(): part for name, part in given.items()}
            return {
                field.name: value_of(
                    given.get(field.name, upper.get(field.name.upper())), field.type
                )
                for field in fields
            }
        case Decimal(_, scale):
            number = decimal.Decimal(str(spec))
            return number.quantize(unit(scale), context=_CONTEXT)
    return _primitive(spec, sql_type.base)


def _primitive(spec: Any, base: BaseType) -> Value:
    if base in _WHOLE and isinstance(spec, (int, decimal.Decimal)):
        return int(spec)
    if base in _TIMES and isinstance(spec, str):
        return int(spec)
    if base is BaseType.DOUBLE and isinstance(spec, (int, float, decimal.Decimal)):
        return float(spec)
    if base is BaseType.BOOLEAN and isinstance(spec, bool):
        return spec
    if base is BaseType.STRING:
        return spec if isinstance(spec, str) else str(spec)
    if base is BaseType.BYTES and isinstance(spec, bytes):
        return spec
    if base is BaseType.BYTES and isinstance(spec, str):
        return base64.b64decode(spec)
    raise SpecError(f"{spec!r} is not of type {base.value}")


def _key_of(name: str, sql_type: SqlType) -> Value:
    if sql_type.base is BaseType.STRING:
        return name
    return value_of(decimal.Decimal(name), sql_type)


def _of(spec: Any, kind: type) -> Any:
    if not isinstance(spec, kind):
        raise SpecError(f"{spec!r} is not of type {kind.__name__}")
    return spec


_CONTEXT = decimal.Context(prec=200)
