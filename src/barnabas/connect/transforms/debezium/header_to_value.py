"""HeaderToValue: headers become fields of the value.

Source: io.debezium.transforms.HeaderToValue, ConnectRecordUtil (Debezium 3.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
)
from barnabas.connect.record import ConnectRecord
from barnabas.connect.transforms.base import PlainTransform, plain, require_struct
from barnabas.connect.transforms.debezium.envelope import refused
from barnabas.schemas.data.builder import with_fields
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import ConfigError, SchemaBuilderError
from barnabas.schemas.data.schema import Schema, Struct, Type

_OPERATIONS: Final = ("move", "copy")


def _names(name: str, value: Any) -> None:
    if not value:
        raise refused(name, value, "A value is required")
    if any(" " in one for one in value):
        raise refused(name, value, "Element(s) containing space not permitted")
    if "" in value:
        raise refused(name, value, "Empty string element(s) not permitted")


def _operation(name: str, value: Any) -> None:
    if not value:
        raise refused(name, value, "A value is required")
    if value not in _OPERATIONS:
        raise refused(name, value, f"Value must be one of {', '.join(_OPERATIONS)}")


def _setting(name: str, kind: ConfigType, title: str, doc: str, check: Any) -> Setting:
    return Setting(name, kind, None, Importance.HIGH, doc, display_name=title, validator=check)


class HeaderToValue(PlainTransform):
    """Copies or moves headers into the value."""

    definition: ClassVar[Definition] = Definition([
        _setting("headers", ConfigType.LIST, "Header names list", "The headers' names.", _names),
        _setting("fields", ConfigType.LIST, "Field names list",
                 "The fields' names, one for each header; a.b is the field b of the struct a.",
                 _names),
        _setting("operation", ConfigType.STRING, "Operation: mover or copy",
                 "copy keeps the headers, move removes them.", _operation),
    ])  # fmt: skip

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        headers, fields = parsed["headers"], parsed["fields"]
        if len(headers) != len(fields):
            raise ConfigError(
                "'fields' config must have the same number of elements as 'headers' config."
            )
        self._fields: dict[str, str] = {}
        for header, field in zip(headers, fields, strict=True):
            self._fields.setdefault(header, field)
        self._moves = parsed["operation"] == "move"
        self._schemas: Cache[tuple[Schema, _Entries], Schema] = Cache(_widened)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record with the fields. Raises ConnectError."""
        if record.value is None:
            return record
        value = require_struct(record.value, "Header field insertion", record.value_schema)
        moved = [header for header in record.headers if header.key in self._fields]
        if not moved:
            return record
        entries = tuple((self._fields[header.key], header.schema) for header in moved)
        schema = self._schemas((value.schema, entries))
        copy = record.copied()
        paths = [name.split(".") for name, _ in entries]
        copy.value_schema = schema
        copy.value = _filled(value, schema, paths, [header.value for header in moved])
        if self._moves:
            copy.headers = [header for header in copy.headers if header.key not in self._fields]
        return copy


_Entries = tuple[tuple[str, Schema | None], ...]


def _widened(key: tuple[Schema, _Entries]) -> Schema:
    schema, entries = key
    return _with(schema, [(name.split("."), made) for name, made in entries])


def _with(schema: Schema, entries: Sequence[tuple[Sequence[str], Schema | None]]) -> Schema:
    """The schema with the fields; those of structs that it lacks are left out, as Debezium does."""
    fields = []
    for field in schema.fields:
        inner = [(path[1:], made) for path, made in entries if _is_inside(path, field.name)]
        is_struct = field.schema.type is Type.STRUCT
        fields.append(
            (field.name, _with(field.schema, inner) if inner and is_struct else field.schema)
        )
    for path, made in entries:
        if len(path) == 1:
            if made is None:
                raise SchemaBuilderError(f"fieldSchema for field {path[0]} cannot be null.")
            fields.append((path[0], made))
    return with_fields(plain(schema), fields)


def _filled(
    struct: Struct, schema: Schema, paths: Sequence[Sequence[str]], values: Sequence[Any]
) -> Struct:
    made = Struct.of(schema)
    pairs = list(zip(paths, values, strict=True))
    for place, field in enumerate(struct.schema.fields):
        value = struct.get(field.name)
        if value is None:
            continue
        inner = [(path[1:], given) for path, given in pairs if _is_inside(path, field.name)]
        if inner:
            nested = require_struct(value, "Nested field", field.schema)
            value = _filled(nested, schema.fields[place].schema, *zip(*inner, strict=True))
        made.values[place] = value
    for path, given in pairs:
        if len(path) == 1:
            made.put(path[0], given)
    return made


def _is_inside(path: Sequence[str], name: str) -> bool:
    return len(path) > 1 and path[0] == name
