"""Records of tests to the bytes of topics, and back."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.formats.catalog import format_named, is_wrapped, key_wrapping, value_wrapping
from barnabas.sql.formats.format import Deserializer, RecordPart, Serializer
from barnabas.sql.plan.steps import FormatChoice
from barnabas.sql.runtime.records import Row, WindowBounds
from barnabas.sql.schema import Column, Part
from barnabas.sql.testing.values import value_of

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
        format_ = format_named(self.choice.name)
        if self.part is Part.KEY:
            return is_wrapped(format_, key_wrapping(format_, self.columns))
        return is_wrapped(format_, value_wrapping(format_, self.columns, self.choice.wraps_single))

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


def window_of(spec: Mapping[str, Any] | None) -> WindowBounds | None:
    """The window of a record's key."""
    return None if spec is None else WindowBounds(int(spec["start"]), int(spec["end"]))
