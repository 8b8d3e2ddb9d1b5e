"""Protobuf schemas from Connect's and back, as Connect's ProtobufData translates them.

A row is a message, `ConnectDefault1` unless the statement names it; messages of nested structs are
numbered on in the order in which they are met. A struct's or map's message is declared where it is
used. Without more a null field reads back as its type's default; with `nullableRepresentation`
fields are `optional`, or messages of google.protobuf's wrappers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

from barnabas.schemas.converters.protobuf_writing import field_meta
from barnabas.schemas.protobuf.messages import DATE, DECIMAL, TIME, TIMESTAMP, MessageSchema
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.connect_schema import (
    DATE_NAME,
    DECIMAL_NAME,
    ENTRIES,
    PRECISION,
    SCALE,
    TIME_NAME,
    TIMESTAMP_NAME,
    UNION,
    ConnectField,
    ConnectSchema,
)

UNWRAP_PRIMITIVES = "unwrapPrimitives"
NULLABLES = "nullableRepresentation"

WRAPPER = "wrapper"
"""The kind of a simple value in a message of google.protobuf's wrappers."""
UNSIGNED = "unsigned"
"""The kind of a number that may need more than the 63 bits of BIGINT."""
ENUM = "enum"

ALWAYS = "always"
"""The presence of a field that has a value in every message."""

_NAME = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
_SCALARS = {
    "int32": ("int32", "Int32Value"),
    "int64": ("int64", "Int64Value"),
    "float64": ("double", "DoubleValue"),
    "boolean": ("bool", "BoolValue"),
    "string": ("string", "StringValue"),
    "bytes": ("bytes", "BytesValue"),
}
_MESSAGES = {
    DECIMAL_NAME: (DECIMAL, "confluent/type/decimal.proto"),
    DATE_NAME: (DATE, "google/type/date.proto"),
    TIME_NAME: (TIME, "google/type/timeofday.proto"),
    TIMESTAMP_NAME: (TIMESTAMP, "google/protobuf/timestamp.proto"),
}
_WRAPPERS_FILE = "google/protobuf/wrappers.proto"
_META_FILE = "confluent/meta.proto"


@dataclass(frozen=True, slots=True)
class Nullables:
    """How a schema tells null from a default, and whether wrappers read as simple values."""

    optional: bool = False
    wrapper: bool = False
    unwraps: bool = False

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Nullables:
        """What a format's properties ask for."""
        asked = properties.get(NULLABLES)
        unwraps = properties.get(UNWRAP_PRIMITIVES, "").lower() == "true"
        return cls(asked == "optional", asked == "wrapper", unwraps)


class Writer:
    """Makes the text of a schema from Connect's."""

    def __init__(self, nullables: Nullables) -> None:
        self.nullables = nullables
        self.names = 0
        self.imports: set[str] = set()

    def text(self, schema: ConnectSchema, full_name: str | None) -> str:
        """The schema of a row. Raises AnalysisError for what Protobuf cannot have."""
        package, _, name = (full_name or self.new_name()).rpartition(".")
        message = self.message(schema, name, "")
        head = 'syntax = "proto3";\n'
        if package:
            head += f"package {package};\n"
        imports = "".join(f'import "{path}";\n' for path in sorted(self.imports))
        return f"{head}\n{imports}\n{message}" if imports else f"{head}\n{message}"

    def new_name(self) -> str:
        self.names += 1
        return f"ConnectDefault{self.names}"

    def message(self, schema: ConnectSchema, name: str, indent: str) -> str:
        _check_name(name)
        inner = indent + "  "
        lines: list[str] = []
        nested: list[str] = []
        for number, field in enumerate(schema.fields, 1):
            lines.append(self.field(field.name, field.schema, number, inner, nested))
        body = "".join(lines) + "".join(f"\n{text}" for text in nested)
        return f"{indent}message {name} {{\n{body}{indent}}}\n"

    def field(
        self, name: str, schema: ConnectSchema, number: int, indent: str, nested: list[str]
    ) -> str:
        _check_name(name)
        label = ""
        if schema.type in ("array", "map"):
            label = "repeated "
        elif self.nullables.optional and schema.optional:
            label = "optional "
        item = schema.item() if schema.type == "array" else schema
        kind = self.type_name(item, name, indent, nested)
        return f"{indent}{label}{kind} {name} = {number}{self.options(item, indent)};\n"

    def type_name(self, schema: ConnectSchema, name: str, indent: str, nested: list[str]) -> str:
        known = _MESSAGES.get(schema.name or "")
        if known:
            self.imports.add(known[1])
            return known[0]
        match schema.type:
            case "array":
                raise AnalysisError("Array cannot be nested")
            case "map":
                kind = f"{self.new_name()}Entry"
                entry = ConnectSchema(
                    "struct",
                    fields=(
                        ConnectField("key", schema.map_key()),
                        ConnectField("value", schema.item()),
                    ),
                )
                nested.append(self.message(entry, kind, indent))
                return kind
            case "struct":
                kind = self.new_name()
                if kind == name:
                    kind += "Message"
                nested.append(self.message(schema, kind, indent))
                return kind
        scalar, wrapper = _SCALARS[schema.type]
        if self.nullables.wrapper and schema.optional:
            self.imports.add(_WRAPPERS_FILE)
            return f"google.protobuf.{wrapper}"
        return scalar

    def options(self, schema: ConnectSchema, indent: str) -> str:
        if not schema.is_decimal:
            return ""
        self.imports.add(_META_FILE)
        return field_meta({"precision": schema.precision, "scale": schema.scale}, indent)


def _check_name(name: str) -> None:
    if not _NAME.match(name):
        raise AnalysisError(f"Schema is not compatible with Protobuf: illegal name: {name!r}")


def wrapper_file(schema: ConnectSchema) -> str:
    """The name of the message that holds a bare value. Raises AnalysisError."""
    if schema.type not in _SCALARS or schema.name in _MESSAGES:
        raise AnalysisError(f"Unsupported root schema of type {schema.type.upper()}")
    return f"google.protobuf.{_SCALARS[schema.type][1]}"


WRAPPER_TEXT = f'syntax = "proto3"; import "{_WRAPPERS_FILE}";'
"""A file with nothing but the import of the wrappers."""


_F = FieldDescriptor
_CONNECT_TYPES: dict[int, tuple[str, str]] = {
    _F.TYPE_INT32: ("int32", ""),
    _F.TYPE_SINT32: ("int32", ""),
    _F.TYPE_SFIXED32: ("int32", ""),
    _F.TYPE_UINT32: ("int64", ""),
    _F.TYPE_FIXED32: ("int64", ""),
    _F.TYPE_INT64: ("int64", ""),
    _F.TYPE_SINT64: ("int64", ""),
    _F.TYPE_SFIXED64: ("int64", ""),
    _F.TYPE_UINT64: ("int64", UNSIGNED),
    _F.TYPE_FIXED64: ("int64", UNSIGNED),
    _F.TYPE_FLOAT: ("float32", ""),
    _F.TYPE_DOUBLE: ("float64", ""),
    _F.TYPE_BOOL: ("boolean", ""),
    _F.TYPE_STRING: ("string", ""),
    _F.TYPE_BYTES: ("bytes", ""),
}
_OF_WRAPPERS = {
    "google.protobuf.DoubleValue": "float64",
    "google.protobuf.FloatValue": "float32",
    "google.protobuf.Int64Value": "int64",
    "google.protobuf.UInt64Value": "int64",
    "google.protobuf.Int32Value": "int32",
    "google.protobuf.UInt32Value": "int64",
    "google.protobuf.BoolValue": "boolean",
    "google.protobuf.StringValue": "string",
    "google.protobuf.BytesValue": "bytes",
}
_OF_MESSAGES = {message: name for name, (message, _) in _MESSAGES.items()}
_CARRIERS = {
    DECIMAL_NAME: "bytes",
    DATE_NAME: "int32",
    TIME_NAME: "int32",
    TIMESTAMP_NAME: "int64",
}


class Reader:
    """Makes Connect's schemas from descriptors."""

    def __init__(self, schema: MessageSchema, nullables: Nullables) -> None:
        self.schema = schema
        self.nullables = nullables
        self.unwraps = nullables.unwraps or nullables.wrapper
        self.open: set[str] = set()

    def root(self, message: Descriptor) -> ConnectSchema:
        """The schema of a record's value."""
        if self.nullables.unwraps and message.full_name in _OF_WRAPPERS:
            return ConnectSchema(_OF_WRAPPERS[message.full_name], kind=WRAPPER)
        return self.message(message)

    def message(self, message: Descriptor) -> ConnectSchema:
        if message.full_name in self.open:
            raise AnalysisError(f"The Protobuf schema is recursive: {message.full_name}")
        self.open.add(message.full_name)
        proto = DescriptorProto()
        message.CopyToProto(proto)
        synthetic = {field.oneof_index for field in proto.field if field.proto3_optional}
        repeated = {f.name for f in proto.field if f.label == FieldDescriptorProto.LABEL_REPEATED}
        fields = []
        for oneof in message.oneofs:
            if oneof.index not in synthetic:
                branches = tuple(
                    ConnectField(field.name, replace(self.field(field), optional=True))
                    for field in oneof.fields
                )
                union = ConnectSchema("struct", True, fields=branches, kind=UNION)
                fields.append(ConnectField(f"{oneof.name}_{oneof.index}", union, oneof.name))
        for field in message.fields:
            containing = field.containing_oneof
            if containing is None or containing.index in synthetic:
                schema = self.field(field, repeated=field.name in repeated)
                presence = "" if field.has_presence else ALWAYS
                fields.append(ConnectField(field.name, schema, presence))
        self.open.discard(message.full_name)
        return ConnectSchema("struct", name=message.full_name, fields=tuple(fields))

    def field(self, field: FieldDescriptor, *, repeated: bool = False) -> ConnectSchema:
        """The schema of a field's values."""
        value = self.value(field, repeated=repeated)
        if field.message_type is not None or field.enum_type is not None:
            value = replace(value, optional=True)
        if repeated and value.type != "map":
            return ConnectSchema("array", True, value=replace(value, optional=True))
        if self.nullables.optional:
            return replace(value, optional=True) if field.has_presence else value
        if self.nullables.wrapper and field.message_type is None:
            return value
        return replace(value, optional=True)

    def value(self, field: FieldDescriptor, *, repeated: bool) -> ConnectSchema:
        """The schema of one value of a field, or of a map."""
        if field.enum_type is not None:
            names = tuple((value.name, str(value.number)) for value in field.enum_type.values)
            return ConnectSchema("string", name=field.enum_type.name, parameters=names, kind=ENUM)
        message = field.message_type
        if message is None:
            connect, kind = _CONNECT_TYPES[field.type]
            return ConnectSchema(connect, kind=kind)
        name = _OF_MESSAGES.get(message.full_name)
        if name:
            return ConnectSchema(
                _CARRIERS[name], name=name, version=1, parameters=self.parameters(field)
            )
        if self.unwraps and message.full_name in _OF_WRAPPERS:
            return ConnectSchema(_OF_WRAPPERS[message.full_name], kind=WRAPPER)
        if repeated and _is_entry(message):
            key, item = (self.field(member) for member in message.fields)
            kind = "" if message.GetOptions().map_entry else ENTRIES
            return ConnectSchema("map", key=key, value=item, kind=kind)
        return self.message(message)

    def parameters(self, field: FieldDescriptor) -> tuple[tuple[str, str], ...]:
        given = self.schema.parameters.get(field.full_name, {})
        pairs = ((SCALE, given.get("scale", "0")), (PRECISION, given.get("precision")))
        return tuple((name, value) for name, value in pairs if value is not None)


def _is_entry(message: Descriptor) -> bool:
    return message.name.endswith("Entry") and [field.name for field in message.fields] == [
        "key",
        "value",
    ]
