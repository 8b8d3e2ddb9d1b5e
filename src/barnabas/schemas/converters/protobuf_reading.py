"""Protobuf's messages as Connect's schemas and values.

Source: io.confluent.connect.protobuf.ProtobufData (Confluent 8).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

from barnabas.java.numbers import low_bits
from barnabas.schemas.converters.base import Parts
from barnabas.schemas.converters.protobuf_writing import (
    ALWAYS,
    ENTRIES,
    ENUM,
    KIND,
    PRECISION,
    TAG,
    UNION,
    WRAPPER,
    ProtobufOptions,
)
from barnabas.schemas.data.builder import array_of, map_of, optional, struct_of
from barnabas.schemas.data.logical import bytes_to_decimal, ms_to_time, ms_to_timestamp
from barnabas.schemas.data.recursive import SchemaReference, reference
from barnabas.schemas.data.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, Schema, Struct, Type
from barnabas.schemas.protobuf.messages import MessageSchema

REPEATED: Final = FieldDescriptorProto.LABEL_REPEATED
REQUIRED: Final = FieldDescriptorProto.LABEL_REQUIRED
_OPTIONAL: Final = FieldDescriptorProto.LABEL_OPTIONAL
Convert = Callable[[Any], Any]
Made = tuple[Schema, Convert]
_F: Final = FieldDescriptor
_KINDS: Final[dict[int, tuple[Type, str | None]]] = {
    _F.TYPE_INT32: (Type.INT32, None),
    _F.TYPE_SINT32: (Type.INT32, "sint32"),
    _F.TYPE_SFIXED32: (Type.INT32, "sfixed32"),
    _F.TYPE_UINT32: (Type.INT64, "uint32"),
    _F.TYPE_FIXED32: (Type.INT64, "fixed32"),
    _F.TYPE_INT64: (Type.INT64, None),
    _F.TYPE_SINT64: (Type.INT64, "sint64"),
    _F.TYPE_SFIXED64: (Type.INT64, "sfixed64"),
    _F.TYPE_UINT64: (Type.INT64, "uint64"),
    _F.TYPE_FIXED64: (Type.INT64, "fixed64"),
    _F.TYPE_FLOAT: (Type.FLOAT32, None),
    _F.TYPE_DOUBLE: (Type.FLOAT64, None),
    _F.TYPE_BOOL: (Type.BOOLEAN, None),
    _F.TYPE_STRING: (Type.STRING, None),
    _F.TYPE_BYTES: (Type.BYTES, None),
}
_WRAPPERS: Final = {
    f"google.protobuf.{name}": kind
    for name, kind in (
        ("DoubleValue", Type.FLOAT64),
        ("FloatValue", Type.FLOAT32),
        ("Int64Value", Type.INT64),
        ("UInt64Value", Type.INT64),
        ("Int32Value", Type.INT32),
        ("UInt32Value", Type.INT64),
        ("BoolValue", Type.BOOLEAN),
        ("StringValue", Type.STRING),
        ("BytesValue", Type.BYTES),
    )
}


def _same(value: Any) -> Any:
    return value


class ProtobufReading:
    """Makes schemas and conversions of one Protobuf schema."""

    def __init__(self, loaded: MessageSchema, options: ProtobufOptions) -> None:
        self._loaded = loaded
        self._options = options
        self._parts = Parts()
        self._open: dict[str, tuple[list[Convert], list[_StructReader]]] = {}
        """The messages that are being read: what reads their fields, and what refers to them."""

    def root(self, message: Descriptor) -> Made:
        """The schema of a message and what makes its values. Raises DataError."""
        self._parts = Parts()
        self._open.clear()  # of a message that had too many
        wrapped = _WRAPPERS.get(message.full_name)
        if wrapped is not None and self._options.unwraps_roots:
            return self._wrapped(wrapped)
        return self._message(message)

    def _wrapped(self, kind: Type) -> Made:
        parameters = {WRAPPER: ""} if self._options.marks_messages else {}
        return Schema(kind, parameters=parameters), lambda value: value.value

    def _message(self, message: Descriptor) -> Made:
        known = self._open.get(message.full_name)
        if known is not None:
            inner = _StructReader(reference(is_optional=False), known[0], known[1])
            return inner.schema, inner
        reads: list[Convert] = []
        within: list[_StructReader] = []
        self._open[message.full_name] = reads, within
        proto = proto_of(message)
        synthetic = {f.oneof_index for f in proto.field if f.proto3_optional}
        repeated, words = labelled(proto, REPEATED), labelled(proto, _OPTIONAL)
        fields: list[tuple[str, Schema]] = []
        for oneof in message.oneofs:
            if oneof.index not in synthetic:
                self._oneof(oneof, fields, reads)
        for field in message.fields:
            containing = field.containing_oneof
            if containing is None or containing.index in synthetic:
                schema, convert = self._field(
                    field,
                    is_repeated=field.name in repeated,
                    is_optional_word=field.has_presence and field.name in words,
                )
                if self._options.marks_messages and not field.has_presence:
                    schema = replace(schema, parameters={**schema.parameters, ALWAYS: ""})
                fields.append((field.name, schema))
                reads.append(_reader_of(field, convert, is_repeated=field.name in repeated))
        del self._open[message.full_name]
        made = struct_of(fields, name=self._name(message))
        for inner in within:
            assert isinstance(inner.schema, SchemaReference)
            inner.schema.bind(made)
        return made, _StructReader(made, reads)

    def _name(self, descriptor: Any) -> str:
        name: str = descriptor.full_name if self._options.is_enhanced else descriptor.name
        return name

    def _oneof(
        self, oneof: OneofDescriptor, fields: list[tuple[str, Schema]], reads: list[Convert]
    ) -> None:
        parts = [(field, *self._member(field)) for field in oneof.fields]
        if self._options.flattens_unions:
            for field, schema, convert in parts:
                fields.append((field.name, schema))
                reads.append(_reader_of(field, convert, is_repeated=False, is_choice=oneof.name))
            return
        name = f"{oneof.name}_{oneof.index}" if self._options.indexes_unions else oneof.name
        union = struct_of(
            ((field.name, schema) for field, schema, _ in parts),
            name=f"{UNION}{oneof.name}",
            optional=True,
        )
        places = {field.name: (i, convert) for i, (field, _, convert) in enumerate(parts)}

        def read(message: Any) -> Struct | None:
            chosen = message.WhichOneof(oneof.name)
            if chosen is None:
                return None
            place, convert = places[chosen]
            values: list[Any] = [None] * len(places)
            values[place] = convert(getattr(message, chosen))
            return Struct(union, values)

        fields.append((name, union))
        reads.append(read)

    def _member(self, field: FieldDescriptor) -> Made:
        self._parts.add()
        schema, convert = self._value(field, is_repeated=False)
        schema = _tagged(optional(schema), field)
        return schema, _with_schema(convert, schema)

    def _field(self, field: FieldDescriptor, *, is_repeated: bool, is_optional_word: bool) -> Made:
        self._parts.add()
        schema, convert = self._value(field, is_repeated=is_repeated)
        if field.message_type is not None or field.enum_type is not None:
            schema = optional(schema)
        if is_repeated and schema.type is not Type.MAP:
            items = optional(schema)
            convert = _with_schema(convert, items)
            made = _tagged(array_of(items, optional=True), field)
            return made, lambda value: [convert(item) for item in value]
        if self._options.has_optional:
            schema = optional(schema) if is_optional_word else schema
        elif not self._options.has_wrappers:
            schema = optional(schema)
        schema = _tagged(schema, field)
        return schema, _with_schema(convert, schema)

    def _value(self, field: FieldDescriptor, *, is_repeated: bool) -> Made:
        if field.enum_type is not None:
            return self._enum(field)
        message = field.message_type
        if message is None:
            return self._scalar(field)
        known = _LOGICAL.get(message.full_name)
        if known is not None:
            return known(self._loaded.parameters.get(field.full_name, {}))
        unwraps = self._options.has_wrappers or self._options.unwraps_fields
        if unwraps and message.full_name in _WRAPPERS:
            return self._wrapped(_WRAPPERS[message.full_name])
        if is_repeated and _is_entry(message):
            return self._map(message)
        return self._message(message)

    def _scalar(self, field: FieldDescriptor) -> Made:
        kind, name = _KINDS[field.type]
        own = self._loaded.parameters.get(field.full_name, {}).get("connect.type")
        bits = 64 if name in ("uint64", "fixed64") else None
        if kind is Type.INT32 and own in ("int8", "int16"):
            kind, bits = Type(own), 8 if own == "int8" else 16
        parameters = {} if name is None else {KIND: name}
        convert: Convert = _same if bits is None else lambda value: low_bits(value, bits)
        return Schema(kind, parameters=parameters), convert

    def _enum(self, field: FieldDescriptor) -> Made:
        enum = field.enum_type
        assert enum is not None
        parameters = {ENUM: enum.name}
        names: dict[int, str] = {}
        for value in enum.values:
            parameters[f"{ENUM}.{value.name}"] = str(value.number)
            names.setdefault(value.number, value.name)
        schema = Schema(Type.STRING, name=self._name(enum), parameters=parameters)
        return schema, lambda number: names.get(number, f"UNKNOWN_ENUM_VALUE_{enum.name}_{number}")

    def _map(self, message: Descriptor) -> Made:
        members = {field.name: field for field in message.fields}
        proto = proto_of(message)
        repeated, words = labelled(proto, REPEATED), labelled(proto, _OPTIONAL)
        (keys, of_key), (values, of_value) = (
            self._field(
                members[name],
                is_repeated=name in repeated,
                is_optional_word=members[name].has_presence and name in words,
            )
            for name in ("key", "value")
        )
        name = self._name(message).removesuffix("Entry")
        schema = map_of(keys, values, name=None if name.startswith("ConnectDefault") else name)
        if message.GetOptions().map_entry:
            schema = replace(schema, name=None)
            return schema, lambda value: {of_key(key): of_value(value[key]) for key in value}
        if self._options.marks_messages:
            schema = replace(schema, parameters={ENTRIES: ""})
        read_value = _reader_of(members["value"], of_value, is_repeated="value" in repeated)
        read_key = _reader_of(members["key"], of_key, is_repeated=False)
        return schema, lambda value: {read_key(entry): read_value(entry) for entry in value}


def proto_of(message: Descriptor) -> DescriptorProto:
    """A message as its file declares it."""
    proto = DescriptorProto()
    message.CopyToProto(proto)
    return proto


def labelled(proto: DescriptorProto, label: int) -> set[str]:
    """The names of fields with a label."""
    return {f.name for f in proto.field if f.label == label}


class _StructReader:
    """Makes structs of messages."""

    def __init__(
        self, schema: Schema, reads: list[Convert], within: list[_StructReader] | None = None
    ) -> None:
        """`within` has the readers of a message within itself, whose schemas are bound later."""
        self.schema = schema
        self._reads = reads
        self._within = within
        if within is not None:
            within.append(self)

    def with_schema(self, schema: Schema) -> _StructReader:
        """The same for a schema that differs in what does not concern fields."""
        return _StructReader(schema, self._reads, self._within)

    def __call__(self, message: Any) -> Struct:
        return Struct(self.schema, [read(message) for read in self._reads])


def _with_schema(convert: Convert, schema: Schema) -> Convert:
    return convert.with_schema(schema) if isinstance(convert, _StructReader) else convert


def _tagged(schema: Schema, field: FieldDescriptor) -> Schema:
    return replace(schema, parameters={**schema.parameters, TAG: str(field.number)})


def _reader_of(
    field: FieldDescriptor, convert: Convert, *, is_repeated: bool, is_choice: str | None = None
) -> Convert:
    name = field.name
    if is_choice is not None:
        return lambda message: (
            convert(getattr(message, name)) if message.WhichOneof(is_choice) == name else None
        )
    if not is_repeated and field.has_presence:
        return lambda message: convert(getattr(message, name)) if message.HasField(name) else None
    return lambda message: convert(getattr(message, name))


def _is_entry(message: Descriptor) -> bool:
    names = [field.name for field in message.fields]
    return message.name.endswith("Entry") and names == ["key", "value"]


def _decimal(parameters: dict[str, str]) -> Made:
    own = {SCALE: parameters.get("scale", "0")}
    precision = parameters.get("precision")
    if precision is not None:
        own[PRECISION] = precision
    schema = Schema(Type.BYTES, name=DECIMAL, version=1, parameters=own)
    return schema, lambda value: bytes_to_decimal(
        replace(schema, parameters={SCALE: str(value.scale)}), value.value
    )


def _date(_: dict[str, str]) -> Made:
    schema = Schema(Type.INT32, name=DATE, version=1)
    return schema, lambda value: date(value.year, value.month, value.day)


def _time(_: dict[str, str]) -> Made:
    def read(value: Any) -> Any:
        seconds = (value.hours * 60 + value.minutes) * 60 + value.seconds
        return ms_to_time(seconds * 1000 + value.nanos // 1_000_000)

    return Schema(Type.INT32, name=TIME, version=1), read


def _timestamp(_: dict[str, str]) -> Made:
    schema = Schema(Type.INT64, name=TIMESTAMP, version=1)
    return schema, lambda value: ms_to_timestamp(value.seconds * 1000 + value.nanos // 1_000_000)


_LOGICAL: Final[dict[str, Callable[[dict[str, str]], Made]]] = {
    "confluent.type.Decimal": _decimal,
    "google.type.Date": _date,
    "google.type.TimeOfDay": _time,
    "google.protobuf.Timestamp": _timestamp,
}
