"""A `FileDescriptorProto` as a file, as protoc's descriptors and confluent-kafka send them."""

from collections.abc import Iterable, Sequence
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message as ProtoMessage
from google.protobuf.text_encoding import CUnescape

from barnabas.schemas.protobuf.nodes import (
    ENUM_NUMBER_MAX,
    FIELD_NUMBER_MAX,
    Aggregate,
    Enum,
    EnumValue,
    Extend,
    Extensions,
    Field,
    File,
    Group,
    Import,
    Message,
    Method,
    OneOf,
    Option,
    Reserved,
    Service,
    Span,
    Value,
    Word,
)

_FieldProto = descriptor_pb2.FieldDescriptorProto
_IMPORT_ORDER = {"": 0, "public": 1, "weak": 2}
_LABELS = {
    _FieldProto.LABEL_OPTIONAL: "optional",
    _FieldProto.LABEL_REQUIRED: "required",
    _FieldProto.LABEL_REPEATED: "repeated",
}
# The order in which options are printed, where it is not that of their numbers.
_OPTION_ORDER = {
    name: index
    for index, name in enumerate(
        [
            "java_package",
            "java_outer_classname",
            "java_multiple_files",
            "java_generate_equals_and_hash",
            "java_string_check_utf8",
            "optimize_for",
            "go_package",
            "cc_generic_services",
            "java_generic_services",
            "py_generic_services",
            "no_standard_descriptor_accessor",
            "ctype",
            "packed",
            "jstype",
            "allow_alias",
            "deprecated",
            "map_entry",
        ]
    )
}


def read_descriptor(proto: descriptor_pb2.FileDescriptorProto) -> File:
    """The file of a descriptor. Names are taken as they are, without checks.

    Options are those that the descriptor's class knows: extensions if they are in its pool.
    """
    syntax: str | None = proto.syntax or None
    if syntax == "editions":
        syntax = descriptor_pb2.Edition.Name(proto.edition).removeprefix("EDITION_")
    reader = _DescriptorReader(syntax)
    return File(
        syntax,
        proto.package,
        _imports(proto),
        _options(proto),
        tuple(reader.message(one) for one in proto.message_type),
        tuple(_enum(one) for one in proto.enum_type),
        reader.extends(proto.extension),
        tuple(_service(one) for one in proto.service),
    )


class _DescriptorReader:
    """Reads the parts of a descriptor that depend on the syntax."""

    def __init__(self, syntax: str | None) -> None:
        self._is_proto2 = syntax in (None, "proto2")
        self._is_proto3 = syntax == "proto3"

    def message(self, proto: descriptor_pb2.DescriptorProto) -> Message:
        fields: list[Field] = []
        of_oneofs: list[list[Field]] = [[] for _ in proto.oneof_decl]
        groups: list[Group] = []
        groups_of_oneofs: list[list[Group]] = [[] for _ in proto.oneof_decl]
        bodies = {nested.name: nested for nested in proto.nested_type}
        for field in proto.field:
            in_oneof = (
                field.HasField("oneof_index")
                and not field.proto3_optional
                and 0 <= field.oneof_index < len(of_oneofs)
            )
            body = _group_body(field, bodies)
            if body is not None:
                several = groups_of_oneofs[field.oneof_index] if in_oneof else groups
                several.append(self._group(field, body, in_oneof))
            else:
                (of_oneofs[field.oneof_index] if in_oneof else fields).append(
                    self._field(field, in_oneof)
                )
        oneofs = tuple(
            OneOf(one.name, tuple(its_fields), tuple(its_groups), _options(one))
            for one, its_fields, its_groups in zip(
                proto.oneof_decl, of_oneofs, groups_of_oneofs, strict=True
            )
            if its_fields or its_groups
        )
        return Message(
            name=proto.name,
            fields=tuple(fields),
            oneofs=oneofs,
            groups=tuple(groups),
            extensions=tuple(
                Extensions((_span(r.start, r.end - 1, FIELD_NUMBER_MAX),), _options(r))
                for r in proto.extension_range
            ),
            extends=self.extends(proto.extension),
            messages=tuple(self.message(one) for one in bodies.values()),
            enums=tuple(_enum(one) for one in proto.enum_type),
            reserved=_reserved(proto.reserved_range, proto.reserved_name, 1),
            options=_options(proto),
        )

    def extends(self, protos: Iterable[descriptor_pb2.FieldDescriptorProto]) -> tuple[Extend, ...]:
        fields: dict[str, list[Field]] = {}
        for proto in protos:
            fields.setdefault(proto.extendee, []).append(self._field(proto, False))
        return tuple(Extend(name, tuple(its_fields)) for name, its_fields in fields.items())

    def _field(self, proto: descriptor_pb2.FieldDescriptorProto, in_oneof: bool) -> Field:
        type_name = proto.type_name
        if not type_name:
            type_name = _FieldProto.Type.Name(proto.type).removeprefix("TYPE_").lower()
        label = None if in_oneof else self._label(proto)
        return Field(label, type_name, proto.name, proto.number, self._field_options(proto))

    def _group(
        self,
        proto: descriptor_pb2.FieldDescriptorProto,
        body: descriptor_pb2.DescriptorProto,
        in_oneof: bool,
    ) -> Group:
        label = None if in_oneof else self._label(proto)
        return Group(label, proto.number, self.message(body), self._field_options(proto))

    def _label(self, proto: descriptor_pb2.FieldDescriptorProto) -> str | None:
        label = _LABELS[proto.label]
        if self._is_proto2 or label == "repeated":
            return label
        return "optional" if proto.proto3_optional else None

    def _field_options(self, proto: descriptor_pb2.FieldDescriptorProto) -> tuple[Option, ...]:
        options = list(_options(proto))
        if proto.HasField("default_value") and not self._is_proto3:
            value: Value = Word(proto.default_value)
            if proto.type == _FieldProto.TYPE_STRING:
                value = proto.default_value
            elif proto.type == _FieldProto.TYPE_BYTES:
                raw = CUnescape(proto.default_value)
                value = raw.decode("utf-8", "surrogateescape")
            options.append(Option(("default",), value))
        if proto.HasField("json_name"):
            options.append(Option(("json_name",), proto.json_name))
        return tuple(options)


def _group_body(
    field: descriptor_pb2.FieldDescriptorProto, bodies: dict[str, descriptor_pb2.DescriptorProto]
) -> descriptor_pb2.DescriptorProto | None:
    """Take the message of a group out of the nested ones."""
    if field.type != _FieldProto.TYPE_GROUP:
        return None
    return bodies.pop(field.type_name.rpartition(".")[2], None)


def _imports(proto: descriptor_pb2.FileDescriptorProto) -> tuple[Import, ...]:
    kinds = dict.fromkeys(proto.weak_dependency, "weak")
    kinds.update(dict.fromkeys(proto.public_dependency, "public"))
    imports = [Import(path, kinds.get(index, "")) for index, path in enumerate(proto.dependency)]
    return tuple(sorted(imports, key=lambda one: _IMPORT_ORDER[one.kind]))


def _enum(proto: descriptor_pb2.EnumDescriptorProto) -> Enum:
    return Enum(
        proto.name,
        tuple(EnumValue(one.name, one.number, _options(one)) for one in proto.value),
        _reserved(proto.reserved_range, proto.reserved_name, 0),
        _options(proto),
    )


def _service(proto: descriptor_pb2.ServiceDescriptorProto) -> Service:
    methods = tuple(
        Method(
            one.name,
            one.input_type,
            one.output_type,
            one.client_streaming,
            one.server_streaming,
            _options(one),
        )
        for one in proto.method
    )
    return Service(proto.name, methods, _options(proto))


def _reserved(
    ranges: Iterable[
        descriptor_pb2.DescriptorProto.ReservedRange
        | descriptor_pb2.EnumDescriptorProto.EnumReservedRange
    ],
    names: Iterable[str],
    beyond: int,
) -> tuple[Reserved, ...]:
    high = FIELD_NUMBER_MAX if beyond else ENUM_NUMBER_MAX
    spans = [Reserved((_span(one.start, one.end - beyond, high),)) for one in ranges]
    return (*spans, *(Reserved((name,)) for name in names))


def _span(first: int, last: int, high: int) -> Span:
    return Span(first, None if first == last else min(last, high))


def _options(proto: Any) -> tuple[Option, ...]:
    """The options of anything that has some: the usual first, then extensions."""
    if not proto.HasField("options"):
        return ()
    options: list[Option] = []
    for field, value in sorted(proto.options.ListFields(), key=_order):
        name = f"({field.full_name})" if field.is_extension else field.name
        values = value if _is_list(value) else [value]
        options.extend(Option((name,), _value(field, one)) for one in values)
    return tuple(options)


def _order(entry: tuple[FieldDescriptor, Any]) -> tuple[bool, int, int]:
    field = entry[0]
    return field.is_extension, _OPTION_ORDER.get(field.name, len(_OPTION_ORDER)), field.number


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _value(field: FieldDescriptor, value: Any) -> Value:
    if field.type == FieldDescriptor.TYPE_BOOL:
        return Word("true" if value else "false")
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return Word(str(value) if known is None else known.name)
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, int | float):
        return Word(str(value))
    return _aggregate(value)


def _aggregate(message: ProtoMessage) -> Aggregate:
    entries: list[tuple[str, Value]] = []
    for field, value in message.ListFields():
        key = f"[{field.full_name}]" if field.is_extension else field.name
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            entries.append((key, _map_entries(entry.fields_by_name, value)))
        elif _is_list(value):
            entries.append((key, tuple(_value(field, one) for one in value)))
        else:
            entries.append((key, _value(field, value)))
    return Aggregate(tuple(entries))


# Of these parameters, Confluent's registry has always written the value first.
_VALUE_FIRST = frozenset(["precision", "scale"])


def _map_entries(fields: Any, values: Any) -> Value:
    entries = []
    for key in sorted(values):
        pairs = [
            ("key", _value(fields["key"], key)),
            ("value", _value(fields["value"], values[key])),
        ]
        if key in _VALUE_FIRST:
            pairs.reverse()
        entries.append(Aggregate(tuple(pairs)))
    return tuple(entries)
