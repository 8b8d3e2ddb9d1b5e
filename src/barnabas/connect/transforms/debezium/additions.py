"""Transforms that add to changes: names of changed fields, fields of headers, columns' types.

Source: io.debezium.transforms.ExtractChangedRecordState, HeaderToValue, ConnectRecordUtil and
ExtractSchemaToNewRecord (Debezium 3.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import copysign, isnan
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import ConfigType, Definition, Importance, Setting, Width
from barnabas.connect.record import ConnectRecord, Header
from barnabas.connect.transforms.base import Transform, plain, require_struct
from barnabas.connect.transforms.debezium.envelope import (
    AFTER,
    BEFORE,
    SOURCE,
    DebeziumError,
    is_envelope,
    refused,
    required,
)
from barnabas.schemas.data.builder import (
    OPTIONAL_INT32,
    OPTIONAL_STRING,
    STRING,
    array_of,
    struct_of,
    with_fields,
)
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import (
    ConfigError,
    DataError,
    IllegalArgumentError,
    NullPointerError,
    SchemaBuilderError,
)
from barnabas.schemas.data.schema import Schema, Struct, Type, validate_value

_CHANGED: Final = "header.changed.name"
_UNCHANGED: Final = "header.unchanged.name"


def _header_name(name: str, title: str, doc: str) -> Setting:
    return Setting(
        name,
        ConfigType.STRING,
        None,
        Importance.LOW,
        doc,
        order=1,
        width=Width.LONG,
        display_name=title,
    )


class ExtractChangedRecordState(Transform):
    """Lists in headers which fields of a row an update changed, and which it did not."""

    definition: ClassVar[Definition] = Definition(
        [
            _header_name(
                _CHANGED,
                "Header change name.",
                "The header that lists fields whose values changed; none where it is not set.",
            ),
            _header_name(
                _UNCHANGED,
                "Header unchanged name.",
                "The header that lists fields whose values stayed; none where it is not set.",
            ),
        ]
    )

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._changed = _header_of(parsed[_CHANGED])
        self._unchanged = _header_of(parsed[_UNCHANGED])

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the change with the headers, empty where it is no update. Raises ConnectError."""
        if record.value is None or not is_envelope(record):
            return record
        envelope = require_struct(record.value, "Record value should be struct.")
        row, old = envelope.get(AFTER), envelope.get(BEFORE)
        changed: list[str] = []
        unchanged: list[str] = []
        if row is not None and old is not None:
            row = require_struct(row, "After value should be struct.")
            old = require_struct(old, "Before value should be struct.")
            for field, value in zip(row.schema.fields, row.values, strict=True):
                is_same = _is_same(value, old.get_without_default(field.name))
                (unchanged if is_same else changed).append(field.name)
        copy = record.copied()
        for schema, names in ((self._changed, changed), (self._unchanged, unchanged)):
            if schema is not None:
                assert schema.name is not None
                copy.headers.append(Header(schema.name, schema, names))
        return copy


def _header_of(name: str | None) -> Schema | None:
    """The schema of a header, which has the header's name."""
    return array_of(OPTIONAL_STRING, optional=True, name=name) if name else None


def _is_same(value: Any, old: Any) -> bool:
    """Return whether Java's equals holds, by which NaN is NaN and 0.0 is not -0.0."""
    if isinstance(value, float) and isinstance(old, float):
        if isnan(value) or isnan(old):
            return isnan(value) and isnan(old)
        return value == old and copysign(1, value) == copysign(1, old)
    return bool(value == old)


_OPERATIONS: Final = ("move", "copy")


def _names(name: str, value: Any) -> None:
    required(name, value)
    if any(" " in one for one in value):
        raise refused(name, value, "Element(s) containing space not permitted")
    if "" in value:
        raise refused(name, value, "Empty string element(s) not permitted")


def _operation(name: str, value: Any) -> None:
    required(name, value)
    if value not in _OPERATIONS:
        raise refused(name, value, f"Value must be one of {', '.join(_OPERATIONS)}")


def _high(name: str, kind: ConfigType, title: str, doc: str, check: Any) -> Setting:
    return Setting(name, kind, None, Importance.HIGH, doc, display_name=title, validator=check)


class HeaderToValue(Transform):
    """Copies or moves headers into the value."""

    definition: ClassVar[Definition] = Definition([
        _high("headers", ConfigType.LIST, "Header names list", "The headers' names.", _names),
        _high("fields", ConfigType.LIST, "Field names list",
              "The fields' names, one for each header; a.b is the field b of the struct a.",
              _names),
        _high("operation", ConfigType.STRING, "Operation: mover or copy",
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
        self._schemas: Cache[tuple[Schema, _Entries], Schema] = Cache(_with_headers)

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


def _with_headers(key: tuple[Schema, _Entries]) -> Schema:
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


_PARAMETER: Final = "__debezium.source.column."
_COLUMN: Final = struct_of(
    {
        "name": STRING,
        "typeName": STRING,
        "length": OPTIONAL_INT32,
        "scale": OPTIONAL_INT32,
        "comment": OPTIONAL_STRING,
    },
    name="io.debezium.connector.source.schema.Column",
    version=1,
)
_TABLE: Final = struct_of(
    {"columns": array_of(_COLUMN)}, name="io.debezium.connector.source.schema.Table", version=1
)
_BLOCK: Final = struct_of(
    {"id": STRING, "table": _TABLE}, name="io.debezium.connector.source.Schema", version=1
)


class ExtractSchemaToNewRecord(Transform):
    """Adds the field `sourceSchema`."""

    def _configure(self, parsed: Any) -> None:
        self._schemas: Cache[Schema, Schema] = Cache(_with_columns)
        self._columns: Cache[Schema, Struct] = Cache(_table)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the change with its columns. Raises ConnectError."""
        if record.value is None or not is_envelope(record):
            return record
        envelope = require_struct(record.value, "field extraction", record.value_schema)
        for name in (AFTER, BEFORE):
            if envelope.schema.field(name) is None:
                raise IllegalArgumentError(f"Unknown field: {name}")
        if envelope.get(AFTER) is None and envelope.get(BEFORE) is None:
            return record
        source = envelope.get(SOURCE)
        if source is None:
            raise NullPointerError("There is no source in the envelope")
        name = source.get("table")
        validate_value(STRING, name, "id")
        schema, table = self._schemas(envelope.schema), self._columns(envelope.schema)
        values = [envelope.get(field.name) for field in envelope.schema.fields]
        block = Struct(_BLOCK, [name, table])
        return record.with_value(schema, Struct(schema, [*values, block]))


def _with_columns(envelope: Schema) -> Schema:
    fields = [(field.name, field.schema) for field in envelope.fields]
    return replace(with_fields(envelope, [*fields, ("sourceSchema", _BLOCK)]), default=None)


def _table(envelope: Schema) -> Struct:
    after = envelope.field(AFTER)
    assert after is not None
    return Struct(_TABLE, [[_column(field.schema) for field in after.schema.fields]])


def _column(schema: Schema) -> Struct:
    def told(name: str) -> str | None:
        return schema.parameters.get(_PARAMETER + name)

    if told("name") is None or told("type") is None:
        raise DebeziumError(
            'Ensure that enable configurations "column.propagate.source.type" or '
            '"datatype.propagate.source.type" and the value is set to ".*"'
        )
    values = [told("name"), told("type"), _number(told("length")), _number(told("scale"))]
    return Struct(_COLUMN, [*values, told("comment")])


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        raise DataError(f"{text} is no length or scale of a column") from None
