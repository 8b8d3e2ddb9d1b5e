"""Connect's schemas as Protobuf's, and values as messages.

Source: io.confluent.connect.protobuf.ProtobufData (Confluent 8).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.logical import decimal_scale, decimal_to_bytes, timestamp_to_ms
from barnabas.schemas.data.recursive import SchemaReference, when_needed
from barnabas.schemas.data.schema import (
    DATE,
    DECIMAL,
    TIME,
    TIMESTAMP,
    Schema,
    Struct,
    Type,
    validate_value,
)

PLACE: Final = "io.confluent.connect.protobuf"
TAG: Final = f"{PLACE}.Tag"
ENUM: Final = f"{PLACE}.Enum"
UNION: Final = f"{PLACE}.Union."
KIND: Final = f"{PLACE}.Type"
ALWAYS: Final = "barnabas.always"
"""Marks a field that has a value in every message."""
ENTRIES: Final = "barnabas.entries"
"""Marks a map whose message has a list of entries, and no map."""
WRAPPER: Final = "barnabas.wrapper"
"""Marks a simple value in a message of google.protobuf's wrappers."""
PRECISION: Final = "connect.decimal.precision"
PRECISION_DEFAULT: Final = 64
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
SCALARS: Final = {
    Type.INT8: ("int32", "Int32Value"),
    Type.INT16: ("int32", "Int32Value"),
    Type.INT32: ("int32", "Int32Value"),
    Type.INT64: ("int64", "Int64Value"),
    Type.FLOAT32: ("float", "FloatValue"),
    Type.FLOAT64: ("double", "DoubleValue"),
    Type.BOOLEAN: ("bool", "BoolValue"),
    Type.STRING: ("string", "StringValue"),
    Type.BYTES: ("bytes", "BytesValue"),
}
MESSAGES: Final[dict[str | None, tuple[str, str]]] = {
    DECIMAL: ("confluent.type.Decimal", "confluent/type/decimal.proto"),
    DATE: ("google.type.Date", "google/type/date.proto"),
    TIME: ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    TIMESTAMP: ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
}
Convert = Callable[[Any], Any]
References = dict[tuple[Schema, "ProtobufOptions"], Convert]
"""Writers of recursive structs."""


@dataclass(slots=True, frozen=True)
class ProtobufOptions:
    """Settings of ProtobufData."""

    is_enhanced: bool = False
    has_optional: bool = False
    has_wrappers: bool = False
    flattens_unions: bool = False
    indexes_unions: bool = True
    ignores_defaults: bool = False
    unwraps_roots: bool = True
    """True if a message of google.protobuf's wrappers is a simple value where it is a root."""
    unwraps_fields: bool = False
    """True if it is one in a field too, as with `has_wrappers`."""
    marks_messages: bool = False
    """True if parameters say what messages need: ALWAYS, ENTRIES and WRAPPER."""


def is_union(schema: Schema) -> bool:
    """Return whether a struct stands for a `oneof`."""
    return schema.type is Type.STRUCT and (schema.name or "").startswith(UNION)


@dataclass(slots=True)
class ProtobufText:
    """Writes one schema."""

    options: ProtobufOptions
    _imports: set[str] = field(default_factory=set)
    _unnamed: int = 0
    _open: list[tuple[Schema, str]] = field(default_factory=list)
    """The structs that are being written, and the messages that they become."""

    def of(self, schema: Schema) -> str:
        """The text of a struct's schema. Raises DataError."""
        if schema.type is not Type.STRUCT or is_union(schema):
            raise DataError(f"Unsupported root schema of type {schema.type.name}")
        package, _, name = (schema.name or self._new_name()).rpartition(".")
        message = self._message(schema, name, "")
        head = 'syntax = "proto3";\n' + (f"package {package};\n" if package else "")
        imports = "".join(f'import "{path}";\n' for path in sorted(self._imports))
        return f"{head}\n{imports}\n{message}" if imports else f"{head}\n{message}"

    def _new_name(self) -> str:
        self._unnamed += 1
        return f"ConnectDefault{self._unnamed}"

    def _message(self, schema: Schema, name: str, indent: str) -> str:
        self._open.append((schema, name))
        text = self._body(schema, name, indent)
        self._open.pop()
        return text

    def _body(self, schema: Schema, name: str, indent: str) -> str:
        inner = indent + "  "
        lines: list[str] = []
        nested: dict[str, str] = {}
        number = 1
        for part in schema.fields:
            if is_union(part.schema):
                lines.append(f"{inner}oneof {(part.schema.name or '').removeprefix(UNION)} {{\n")
                for branch in part.schema.fields:
                    tag = branch.schema.parameters.get(TAG, str(number))
                    text = self._field(branch.name, branch.schema, tag, f"{inner}  ", nested, "")
                    lines.append(text)
                    number = int(tag) + 1
                lines.append(f"{inner}}}\n")
                continue
            tag = part.schema.parameters.get(TAG, str(number))
            label = self._label(part.schema)
            lines.append(self._field(part.name, part.schema, tag, inner, nested, label))
            number = int(tag) + 1
        body = "".join(lines) + "".join(f"\n{text}" for text in nested.values())
        return f"{indent}message {_checked(name)} {{\n{body}{indent}}}\n"

    def _label(self, schema: Schema) -> str:
        if schema.type in (Type.ARRAY, Type.MAP):
            return "repeated "
        return "optional " if self.options.has_optional and schema.optional else ""

    def _field(
        self, name: str, schema: Schema, tag: str, indent: str, nested: dict[str, str], label: str
    ) -> str:
        item = schema
        if schema.type is Type.ARRAY:
            assert schema.value_schema is not None
            item = schema.value_schema
            if item.type is Type.MAP:
                raise DataError("Array cannot have maps")
        kind = self._type(item, name, indent, nested, can_wrap=bool(label) or item is schema)
        options = self._meta(item, indent)
        return f"{indent}{label}{kind} {_checked(name)} = {tag}{options};\n"

    def _type(
        self, schema: Schema, name: str, indent: str, nested: dict[str, str], *, can_wrap: bool
    ) -> str:
        known = MESSAGES.get(schema.name)
        if known:
            self._imports.add(known[1])
            return known[0]
        match schema.type:
            case Type.ARRAY:
                raise DataError("Array cannot be nested")
            case Type.MAP:
                return self._entry(schema, indent, nested)
            case Type.STRUCT if (outer := self._outer(schema)) is not None:
                return outer
            case Type.STRUCT:
                kind = (schema.name or self._new_name()).rpartition(".")[2]
                kind = f"{kind}Message" if kind == name else kind
                if kind not in nested:
                    nested[kind] = self._message(schema, kind, indent)
                return kind
        if ENUM in schema.parameters:
            return self._enum(schema, indent, nested)
        scalar, wrapper = SCALARS[schema.type]
        if self.options.has_wrappers and schema.optional and can_wrap:
            self._imports.add("google/protobuf/wrappers.proto")
            return f"google.protobuf.{wrapper}"
        return schema.parameters.get(KIND, scalar)

    def _outer(self, schema: Schema) -> str | None:
        """The message that a schema within itself is; None of any other."""
        if type(schema) is not SchemaReference:
            return None
        return next((name for one, name in self._open if schema.refers_to(one)), None)

    def _entry(self, schema: Schema, indent: str, nested: dict[str, str]) -> str:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        kind = f"{(schema.name or self._new_name()).rpartition('.')[2]}Entry"
        inner: dict[str, str] = {}
        deep = indent + "  "
        parts = [("key", schema.key_schema, "1"), ("value", schema.value_schema, "2")]
        body = "".join(
            self._field(name, part, tag, deep, inner, self._label(part))
            for name, part, tag in parts
        )
        body += "".join(f"\n{text}" for text in inner.values())
        nested[kind] = f"{indent}message {kind} {{\n{body}{indent}}}\n"
        return kind

    def _enum(self, schema: Schema, indent: str, nested: dict[str, str]) -> str:
        name = _checked(schema.parameters[ENUM].rpartition(".")[2])
        prefix = f"{ENUM}."
        symbols = "".join(
            f"{indent}  {_checked(key.removeprefix(prefix))} = {number};\n"
            for key, number in schema.parameters.items()
            if key.startswith(prefix)
        )
        nested[name] = f"{indent}enum {name} {{\n{symbols}{indent}}}\n"
        return name

    def _meta(self, schema: Schema, indent: str) -> str:
        if schema.name == DECIMAL:
            precision = schema.parameters.get(PRECISION, str(PRECISION_DEFAULT))
            told = {"precision": precision, "scale": str(decimal_scale(schema))}
        elif schema.type in (Type.INT8, Type.INT16):
            told = {"connect.type": schema.type.value}
        else:
            return ""
        self._imports.add("confluent/meta.proto")
        return _field_meta(told, indent)


def _field_meta(parameters: Mapping[str, Any], indent: str) -> str:
    """The option of a field in which Confluent keeps what Protobuf does not say of it."""
    entries = ",\n".join(
        f'{indent}    {{\n{indent}      key: "{key}",\n{indent}      value: "{value}"\n'
        f"{indent}    }}"
        for key, value in parameters.items()
    )
    return (
        f" [(confluent.field_meta) = {{\n{indent}  params: [\n{entries}\n{indent}  ]\n{indent}}}]"
    )


def _checked(name: str) -> str:
    if not _NAME.match(name):
        raise DataError(f"Schema is not compatible with Protobuf: illegal name: {name!r}")
    return name


def to_message(
    schema: Schema, options: ProtobufOptions, references: References | None = None
) -> Convert:
    """Returns a converter from non-null values to values of a message's field."""
    references = {} if references is None else references
    logical = _LOGICAL.get(schema.name)
    if logical is not None:
        return lambda value: logical(schema, _fitting(schema, value))
    match schema.type:
        case Type.STRUCT:
            if type(schema) is not SchemaReference:
                return _to_fields(schema, options, references)
            key = schema, options
            if key not in references:
                references[key] = when_needed(lambda: _to_fields(schema, options, references))
            return references[key]
        case Type.ARRAY:
            assert schema.value_schema is not None
            item = to_message(schema.value_schema, options, references)
            return lambda value: [item(_element(one)) for one in value]
        case Type.MAP:
            assert schema.key_schema is not None
            assert schema.value_schema is not None
            of_key = _to_entry_part("key", schema.key_schema, options, references)
            of_value = _to_entry_part("value", schema.value_schema, options, references)
            return lambda value: [{**of_key(k), **of_value(v)} for k, v in value.items()]
    if options.has_wrappers and schema.optional and ENUM not in schema.parameters:
        return lambda value: {"value": _fitting(schema, value)}
    return lambda value: _fitting(schema, value)


def _element(value: Any) -> Any:
    if value is None:
        raise DataError("Protobuf has no null in arrays")
    return value


def _to_entry_part(
    name: str, schema: Schema, options: ProtobufOptions, references: References
) -> Convert:
    convert = to_message(schema, options, references)
    return lambda value: {} if value is None else {name: convert(value)}


def _to_fields(schema: Schema, options: ProtobufOptions, references: References) -> Convert:
    parts = [
        (f.name, is_union(f.schema), f.schema, _part(f.schema, options, references))
        for f in schema.fields
    ]
    replaces_null = not options.ignores_defaults

    def convert(value: Any) -> dict[str, Any]:
        if type(value) is not Struct or (value.schema is not schema and value.schema != schema):
            validate_value(schema, value)
        result: dict[str, Any] = {}
        for (name, is_choice, inner, part), item in zip(parts, value.values, strict=True):
            given = inner.default if item is None and replaces_null else item
            if given is None:
                if not inner.optional:
                    validate_value(inner, None, name)
            elif is_choice:
                result.update(part(given))
            else:
                result[name] = part(given)
        return result

    return convert


def _part(schema: Schema, options: ProtobufOptions, references: References) -> Convert:
    if not is_union(schema):
        return to_message(schema, options, references)
    inner = ProtobufOptions(has_optional=options.has_optional)
    branches = [(f.name, to_message(f.schema, inner, references)) for f in schema.fields]

    def choose(value: Struct) -> dict[str, Any]:
        for (name, convert), item in zip(branches, value.values, strict=True):
            if item is not None:
                return {name: convert(item)}
        return {}

    return choose


def _fitting(schema: Schema, value: Any) -> Any:
    validate_value(schema, value)
    if schema.type is Type.BYTES and schema.name != DECIMAL:
        return bytes(value)
    return value


def _decimal(schema: Schema, value: Decimal) -> dict[str, Any]:
    precision = int(schema.parameters.get(PRECISION, PRECISION_DEFAULT))
    scale = decimal_scale(schema)
    return {"value": decimal_to_bytes(schema, value), "precision": precision, "scale": scale}


def _date(_: Schema, value: date) -> dict[str, int]:
    return {"year": value.year, "month": value.month, "day": value.day}


def _time(_: Schema, value: time) -> dict[str, int]:
    nanos = value.microsecond // 1000 * 1_000_000
    return {"hours": value.hour, "minutes": value.minute, "seconds": value.second, "nanos": nanos}


def _timestamp(_: Schema, value: datetime) -> dict[str, int]:
    seconds, ms = divmod(timestamp_to_ms(value), 1000)
    return {"seconds": seconds, "nanos": ms * 1_000_000}


_LOGICAL: Final[dict[str | None, Callable[[Schema, Any], dict[str, Any]]]] = {
    DECIMAL: _decimal,
    DATE: _date,
    TIME: _time,
    TIMESTAMP: _timestamp,
}
