"""A file as a `FileDescriptorProto`, as protoc makes it of the same text."""

from collections.abc import Callable, Iterable

from google.protobuf import descriptor_pb2
from google.protobuf.text_encoding import CEscape

from barnabas.schemas.protobuf.nodes import (
    SCALARS,
    Enum,
    Extend,
    Field,
    File,
    Group,
    Message,
    Method,
    Option,
    Reserved,
    Service,
    Word,
)
from barnabas.schemas.protobuf.scope import Scope, joined
from barnabas.schemas.protobuf.tokens import plain_number

_FieldProto = descriptor_pb2.FieldDescriptorProto
_LABELS = {
    None: _FieldProto.LABEL_OPTIONAL,
    "optional": _FieldProto.LABEL_OPTIONAL,
    "required": _FieldProto.LABEL_REQUIRED,
    "repeated": _FieldProto.LABEL_REPEATED,
}
_SCALAR_TYPES = {name: _FieldProto.Type.Value(f"TYPE_{name.upper()}") for name in SCALARS}
_EDITIONS = {"2023": descriptor_pb2.EDITION_2023, "2024": descriptor_pb2.EDITION_2024}

_AddMessage = Callable[[], descriptor_pb2.DescriptorProto]
OptionsProto = (
    descriptor_pb2.FileOptions
    | descriptor_pb2.MessageOptions
    | descriptor_pb2.FieldOptions
    | descriptor_pb2.OneofOptions
    | descriptor_pb2.EnumOptions
    | descriptor_pb2.EnumValueOptions
    | descriptor_pb2.ServiceOptions
    | descriptor_pb2.MethodOptions
    | descriptor_pb2.ExtensionRangeOptions
)
# The target of options, the options, and the full name of their owner.
Optioned = tuple[OptionsProto, tuple[Option, ...], str]


def write_descriptor(
    file: File, path: str, scope: Scope
) -> tuple[descriptor_pb2.FileDescriptorProto, list[Optioned]]:
    """The descriptor without its options, and the list of options that are to be filled in.

    Types that the scope does not have keep the name as written.
    """
    writer = _Writer(file, scope)
    return writer.file(path), writer.optioned


class _Writer:
    def __init__(self, file: File, scope: Scope) -> None:
        self._file = file
        self._scope = scope
        self.optioned: list[Optioned] = []

    def file(self, path: str) -> descriptor_pb2.FileDescriptorProto:
        file = self._file
        proto = descriptor_pb2.FileDescriptorProto(name=path)
        if file.package:
            proto.package = file.package
        if file.edition is not None:
            proto.syntax = "editions"
            proto.edition = _EDITIONS[file.edition]
        elif file.is_proto3:
            proto.syntax = "proto3"
        for index, one in enumerate(file.imports):
            proto.dependency.append(one.path)
            if one.kind == "public":
                proto.public_dependency.append(index)
            elif one.kind == "weak":
                proto.weak_dependency.append(index)
        for message in file.messages:
            self._message(proto.message_type.add(), message, file.package)
        for enum in file.enums:
            self._enum(proto.enum_type.add(), enum, file.package)
        for service in file.services:
            self._service(proto.service.add(), service)
        self._extends(proto, proto.message_type.add, file.extends, file.package)
        self._options(proto, file.options, file.package)
        return proto

    def _message(
        self, proto: descriptor_pb2.DescriptorProto, message: Message, within: str
    ) -> None:
        name = joined(within, message.name)
        proto.name = message.name
        # Before the entries of maps, so that a message has the index that it has in the text.
        for nested in message.messages:
            self._message(proto.nested_type.add(), nested, name)
        for field in message.fields:
            self._field(proto.field.add(), field, name, proto)
        for group in message.groups:
            self._group(proto.field.add(), group, name, proto.nested_type.add)
        for index, oneof in enumerate(message.oneofs):
            oneof_proto = proto.oneof_decl.add(name=oneof.name)
            self._options(oneof_proto, oneof.options, name)
            for field in oneof.fields:
                field_proto = proto.field.add(oneof_index=index)
                self._field(field_proto, field, name, proto)
            for group in oneof.groups:
                field_proto = proto.field.add(oneof_index=index)
                self._group(field_proto, group, name, proto.nested_type.add)
        self._optional_oneofs(proto)
        for enum in message.enums:
            self._enum(proto.enum_type.add(), enum, name)
        for extensions in message.extensions:
            for span in extensions.spans:
                span_proto = proto.extension_range.add(start=span.first, end=span.end + 1)
                self._options(span_proto, extensions.options, name)
        self._extends(proto, proto.nested_type.add, message.extends, name)
        _reserve(proto, message.reserved, 1)
        self._options(proto, message.options, name)

    def _optional_oneofs(self, proto: descriptor_pb2.DescriptorProto) -> None:
        """A proto3 field that is `optional` is alone in a oneof that nobody wrote."""
        taken = {oneof.name for oneof in proto.oneof_decl} | {field.name for field in proto.field}
        for field in proto.field:
            if field.proto3_optional:
                name = field.name if field.name.startswith("_") else f"_{field.name}"
                while name in taken:
                    name = f"X{name}"
                taken.add(name)
                field.oneof_index = len(proto.oneof_decl)
                proto.oneof_decl.add(name=name)

    def _field(
        self,
        proto: descriptor_pb2.FieldDescriptorProto,
        field: Field,
        within: str,
        message: descriptor_pb2.DescriptorProto | None = None,
    ) -> None:
        proto.name = field.name
        proto.number = field.number
        proto.label = _LABELS[field.label]
        if field.key_type is not None:
            assert message is not None
            proto.label = _FieldProto.LABEL_REPEATED
            proto.type = _FieldProto.TYPE_MESSAGE
            proto.type_name = f".{joined(within, self._map_entry(message, field, within))}"
        else:
            self._type(proto, field.type, within)
            if self._file.is_proto3 and field.label == "optional" and message is not None:
                proto.proto3_optional = True
        self._field_options(proto, field.options, within)

    def _map_entry(self, message: descriptor_pb2.DescriptorProto, field: Field, within: str) -> str:
        entry = message.nested_type.add(name=map_entry_name(field.name))
        entry.options.map_entry = True
        for name, number, type_name in (("key", 1, field.key_type), ("value", 2, field.type)):
            proto = entry.field.add(name=name, number=number, label=_FieldProto.LABEL_OPTIONAL)
            assert type_name is not None
            self._type(proto, type_name, within)
        return entry.name

    def _group(
        self,
        proto: descriptor_pb2.FieldDescriptorProto,
        group: Group,
        within: str,
        add_body: _AddMessage,
    ) -> None:
        proto.name = group.name.lower()
        proto.number = group.number
        proto.label = _LABELS[group.label]
        proto.type = _FieldProto.TYPE_GROUP
        proto.type_name = f".{joined(within, group.name)}"
        self._field_options(proto, group.options, within)
        self._message(add_body(), group.body, within)

    def _type(
        self, proto: descriptor_pb2.FieldDescriptorProto, type_name: str, within: str
    ) -> None:
        scalar = _SCALAR_TYPES.get(type_name)
        if scalar is not None:
            proto.type = scalar
            return
        entry = self._scope.resolve(type_name, within)
        if entry is None:
            proto.type_name = type_name
            return
        proto.type_name = f".{entry.full_name}"
        is_enum = isinstance(entry.node, Enum)
        proto.type = _FieldProto.TYPE_ENUM if is_enum else _FieldProto.TYPE_MESSAGE

    def _field_options(
        self,
        proto: descriptor_pb2.FieldDescriptorProto,
        options: tuple[Option, ...],
        within: str,
    ) -> None:
        rest = []
        for option in options:
            if option.parts == ("default",):
                proto.default_value = _default_value(option, proto)
            elif option.parts == ("json_name",) and isinstance(option.value, str):
                proto.json_name = option.value
            else:
                rest.append(option)
        self._options(proto, tuple(rest), within)

    def _enum(self, proto: descriptor_pb2.EnumDescriptorProto, enum: Enum, within: str) -> None:
        proto.name = enum.name
        for value in enum.values:
            value_proto = proto.value.add(name=value.name, number=value.number)
            self._options(value_proto, value.options, within)
        _reserve(proto, enum.reserved, 0)
        self._options(proto, enum.options, within)

    def _service(self, proto: descriptor_pb2.ServiceDescriptorProto, service: Service) -> None:
        proto.name = service.name
        within = joined(self._file.package, service.name)
        for method in service.methods:
            self._method(proto.method.add(), method, within)
        self._options(proto, service.options, within)

    def _method(
        self, proto: descriptor_pb2.MethodDescriptorProto, method: Method, within: str
    ) -> None:
        proto.name = method.name
        proto.input_type = self._full_name(method.input, within)
        proto.output_type = self._full_name(method.output, within)
        if method.client_streaming:
            proto.client_streaming = True
        if method.server_streaming:
            proto.server_streaming = True
        self._options(proto, method.options, within)

    def _full_name(self, name: str, within: str) -> str:
        entry = self._scope.resolve(name, within)
        return name if entry is None else f".{entry.full_name}"

    def _extends(
        self,
        proto: descriptor_pb2.FileDescriptorProto | descriptor_pb2.DescriptorProto,
        add_body: _AddMessage,
        extends: Iterable[Extend],
        within: str,
    ) -> None:
        for extend in extends:
            extendee = self._full_name(extend.name, within)
            for field in extend.fields:
                self._field(proto.extension.add(extendee=extendee), field, within)
            for group in extend.groups:
                self._group(proto.extension.add(extendee=extendee), group, within, add_body)

    def _options(self, proto: "_Owner", options: tuple[Option, ...], within: str) -> None:
        if options:
            proto.options.SetInParent()
            self.optioned.append((proto.options, options, within))


_Owner = (
    descriptor_pb2.FileDescriptorProto
    | descriptor_pb2.DescriptorProto
    | descriptor_pb2.DescriptorProto.ExtensionRange
    | descriptor_pb2.FieldDescriptorProto
    | descriptor_pb2.OneofDescriptorProto
    | descriptor_pb2.EnumDescriptorProto
    | descriptor_pb2.EnumValueDescriptorProto
    | descriptor_pb2.ServiceDescriptorProto
    | descriptor_pb2.MethodDescriptorProto
)


def map_entry_name(field_name: str) -> str:
    """The name that protoc gives to the message of a map's entries."""
    parts = field_name.split("_")
    return "".join(part[:1].upper() + part[1:] for part in parts) + "Entry"


def _reserve(
    proto: descriptor_pb2.DescriptorProto | descriptor_pb2.EnumDescriptorProto,
    statements: Iterable[Reserved],
    beyond: int,
) -> None:
    """`beyond` is what a descriptor's end of a range lies behind the last number."""
    for statement in statements:
        for item in statement.items:
            if isinstance(item, str):
                proto.reserved_name.append(item)
            else:
                proto.reserved_range.add(start=item.first, end=item.end + beyond)


def _default_value(option: Option, proto: descriptor_pb2.FieldDescriptorProto) -> str:
    value = option.value
    if isinstance(value, str):
        raw = value.encode("utf-8", "surrogateescape")
        if proto.type == _FieldProto.TYPE_BYTES:
            return CEscape(raw, as_utf8=False)
        return raw.decode("utf-8", "replace")
    if not isinstance(value, Word):
        return ""
    return plain_number(value.text)
