"""Protobuf schemas from Connect's and back, as Connect's ProtobufData translates them.

A row is a message, `ConnectDefault1` unless the statement names it; messages of nested structs are
numbered on in the order in which they are met. A struct's or map's message is declared where it is
used. Without more a null field reads back as its type's default; with `nullableRepresentation`
fields are `optional`, or messages of google.protobuf's wrappers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

from barnabas.schemas.converters.avro_schemas import PRECISION
from barnabas.schemas.converters.protobuf_writing import (
    MESSAGES,
    SCALARS,
    ProtobufOptions,
    ProtobufText,
)
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, Schema
from barnabas.schemas.protobuf.messages import MessageSchema
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.connect_schema import ENTRIES, UNION, ConnectField, ConnectSchema

UNWRAP_PRIMITIVES = "unwrapPrimitives"
NULLABLES = "nullableRepresentation"

WRAPPER = "wrapper"
"""The kind of a simple value in a message of google.protobuf's wrappers."""
UNSIGNED = "unsigned"
"""The kind of a number that may need more than the 63 bits of BIGINT."""
ENUM = "enum"

ALWAYS = "always"
"""The presence of a field that has a value in every message."""

_WRAPPERS_FILE = "google/protobuf/wrappers.proto"


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


def to_text(schema: Schema, nullables: Nullables, full_name: str | None) -> str:
    """The text of a row's schema. Raises AnalysisError for what Protobuf cannot have."""
    options = ProtobufOptions(has_optional=nullables.optional, has_wrappers=nullables.wrapper)
    try:
        return ProtobufText(options).of(replace(schema, name=full_name))
    except DataError as error:
        raise AnalysisError(str(error)) from error


def wrapper_file(schema: Schema) -> str:
    """The name of the message that holds a bare value. Raises AnalysisError."""
    if schema.type not in SCALARS or schema.name in MESSAGES:
        raise AnalysisError(f"Unsupported root schema of type {schema.type.name}")
    return f"google.protobuf.{SCALARS[schema.type][1]}"


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
_OF_MESSAGES = {message: str(name) for name, (message, _) in MESSAGES.items()}
_CARRIERS = {
    DECIMAL: "bytes",
    DATE: "int32",
    TIME: "int32",
    TIMESTAMP: "int64",
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
