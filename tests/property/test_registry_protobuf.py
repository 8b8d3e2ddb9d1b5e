"""Protobuf schemas: printing and parsing, any text at all, and what compatible readers read."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from protobuf_files import files

from barnabas.schemas.protobuf import ProtobufFormat, ProtobufSchema
from barnabas.schemas.protobuf.descriptors import compile_file
from barnabas.schemas.protobuf.nodes import File
from barnabas.schemas.protobuf.parser import parse_file
from barnabas.schemas.protobuf.printer import print_file
from barnabas.schemas.schema import SchemaFault
from support.effort import examples

FORMAT = ProtobufFormat()


@given(files)
@settings(max_examples=examples(13))
def test_what_is_printed_is_parsed_again(file: File) -> None:
    assert parse_file(print_file(file)) == file


@given(files)
@settings(max_examples=examples(13))
def test_a_normal_form_has_itself_as_its_own(file: File) -> None:
    normal = ProtobufSchema(file).normalized()
    assert normal.normalized() == normal
    assert FORMAT.parse(normal.canonical_text).normalized().canonical_text == (
        normal.canonical_text
    )


def use(text: str) -> None:
    """Use a text as a schema; only SchemaFault may be raised."""
    for is_new in (False, True):
        try:
            schema = FORMAT.parse(text, is_new=is_new)
        except SchemaFault as fault:
            assert str(fault)  # noqa: PT017 - a text need not be at fault
            continue
        assert FORMAT.parse(schema.canonical_text) == schema
        schema.normalized()
        schema.formatted("serialized")
        schema.formatted("ignore_extensions")
        schema.tags()
        assert schema.incompatibilities(schema) == []


@given(st.text())
def test_any_text_is_a_schema_or_a_fault(text: str) -> None:
    use(text)


PIECES = st.sampled_from(
    [
        'syntax = "proto3";', "message", "enum", "oneof", "extend", "service", "rpc", "returns",
        "option", "reserved", "extensions", "import", "package", "map<", "group", "optional",
        "repeated", "int32", "string", "A", "b", ".c", ".", "=", "1", "2", "0x", "1.5", "-", "to",
        "max", "{", "}", "{", "}", "[", "]", "(", ")", "<", ">", ";", ";", ",", ":", '"x"', "'",
        '"', "\\", "/*", "*/", "//", "\n", "/", "deprecated", "default", "true", "\x00", "é",
    ]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40))
def test_any_pieces_are_a_schema_or_a_fault(pieces: list[str]) -> None:
    use(" ".join(pieces))


@given(files, st.data())
@settings(max_examples=examples(13))
def test_a_damaged_text_is_a_schema_or_a_fault(file: File, data: st.DataObject) -> None:
    text = print_file(file)
    at = data.draw(st.integers(0, len(text)))
    until = data.draw(st.integers(at, min(len(text), at + 10)))
    use(text[:at] + data.draw(PIECES | st.just("")) + text[until:])


@given(files, st.data())
@settings(max_examples=examples(13))
def test_a_damaged_descriptor_is_a_schema_or_a_fault(file: File, data: st.DataObject) -> None:
    serialized = base64.b64decode(ProtobufSchema(file).formatted("serialized"))
    at = data.draw(st.integers(0, len(serialized)))
    until = data.draw(st.integers(at, min(len(serialized), at + 4)))
    damaged = serialized[:at] + data.draw(st.binary(max_size=4)) + serialized[until:]
    use(base64.b64encode(damaged).decode())


@dataclass(frozen=True)
class Spec:
    """A field: `type` is a scalar, `E` or `M`; with `key` it is a map; `oneof` may be empty."""

    type: str
    label: str = ""
    key: str = ""
    oneof: str = ""
    name: str = ""


INTEGERS = {
    "int32": (32, True),
    "int64": (64, True),
    "uint32": (32, False),
    "uint64": (64, False),
    "sint32": (32, True),
    "sint64": (64, True),
    "fixed32": (32, False),
    "fixed64": (64, False),
    "sfixed32": (32, True),
    "sfixed64": (64, True),
    "E": (32, True),
}
TYPES = [*INTEGERS, "bool", "string", "bytes", "float", "double", "M"]
specs = st.builds(
    Spec,
    st.sampled_from(TYPES),
    st.sampled_from(["", "", "repeated", "optional"]),
    st.sampled_from(["", "", "", "int32", "string"]),
    st.sampled_from(["", "", "x", "y"]),
)


@st.composite
def evolutions(draw: st.DrawFn) -> tuple[dict[int, Spec], dict[int, Spec]]:
    """Fields by number, before and after: most stay, some change a little."""
    old = draw(st.dictionaries(st.integers(1, 6), specs, min_size=1, max_size=5))
    new: dict[int, Spec] = {}
    for number, spec in old.items():
        match draw(st.sampled_from(["keep", "keep", "type", "label", "oneof", "name", "drop"])):
            case "keep":
                new[number] = spec
            case "type":
                new[number] = replace(spec, type=draw(st.sampled_from(TYPES)))
            case "label":
                new[number] = replace(spec, label=draw(st.sampled_from(["", "repeated"])))
            case "oneof":
                new[number] = replace(spec, oneof=draw(st.sampled_from(["", "x", "z"])))
            case "name":
                new[number] = replace(spec, name=f"renamed{number}")
    return old, new | draw(st.dictionaries(st.integers(7, 8), specs, max_size=2))


def text_of(fields: Mapping[int, Spec]) -> str:
    oneofs: dict[str, list[str]] = {}
    for number, spec in fields.items():
        name = spec.name or f"f{number}"
        if spec.key:
            line = f"map<{spec.key}, {spec.type}> {name} = {number};"
        elif spec.oneof:
            line = f"{spec.type} {name} = {number};"
        else:
            line = f"{spec.label} {spec.type} {name} = {number};"
        oneofs.setdefault("" if spec.key else spec.oneof, []).append(line)
    lines = oneofs.pop("", [])
    lines += [f"oneof {name} {{ {' '.join(inner)} }}" for name, inner in oneofs.items()]
    return (
        'syntax = "proto3";\nmessage R {\n' + "\n".join(lines) + "\n}\n"
        "message M { int32 a = 1; string b = 2; }\nenum E { Z = 0; ONE = 1; }\n"
    )


def values_of(type_name: str) -> st.SearchStrategy[Any]:
    if type_name in INTEGERS:
        bits, signed = INTEGERS[type_name]
        low = -(1 << (bits - 1)) if signed else 0
        return st.integers(low, low + (1 << bits) - 1)
    return {
        "bool": st.booleans(),
        "string": st.text("aé☀", max_size=4),
        # A string can be read as bytes always, bytes as a string if they are one.
        "bytes": st.text("aé☀", max_size=4).map(str.encode),
        "float": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False),
        "M": st.tuples(values_of_int32(), st.text("ab", max_size=3)),
    }[type_name]


def values_of_int32() -> st.SearchStrategy[int]:
    return st.integers(-(1 << 31), (1 << 31) - 1)


def message_class(schema: ProtobufSchema) -> Any:
    _, pool = compile_file(schema.scope)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("R"))


def fill(message: Any, name: str, spec: Spec, draw: Any) -> None:
    """Set a field to a drawn value."""
    if spec.key:
        for key in draw(st.lists(values_of(spec.key), max_size=2)):
            target = getattr(message, name)
            if spec.type == "M":
                target[key].a, target[key].b = draw(values_of("M"))
            else:
                target[key] = draw(values_of(spec.type))
    elif spec.label == "repeated" and not spec.oneof:
        for value in draw(st.lists(values_of(spec.type), max_size=3)):
            if spec.type == "M":
                getattr(message, name).add(a=value[0], b=value[1])
            else:
                getattr(message, name).append(value)
    elif spec.type == "M":
        value = draw(values_of("M"))
        getattr(message, name).SetInParent()
        getattr(message, name).a, getattr(message, name).b = value
    else:
        setattr(message, name, draw(values_of(spec.type)))


def plain(value: Any) -> Any:
    return (value.a, value.b) if hasattr(value, "SetInParent") else value


def converted(value: Any, type_name: str) -> Any:
    """Return a value as a reader of this type sees it, by the rules of the wire format."""
    if type_name == "bool":
        return bool(value)
    if type_name in INTEGERS:
        bits, signed = INTEGERS[type_name]
        number = int(value) & ((1 << bits) - 1)
        return number - (1 << bits) if signed and number >> (bits - 1) else number
    if type_name == "bytes":
        return value.encode() if isinstance(value, str) else value
    if type_name == "string":
        return value.decode() if isinstance(value, bytes) else value
    return value


def all_values(message: Any, name: str, spec: Spec) -> list[Any]:
    """The values that are set, in the order of the bytes."""
    if spec.key:
        entries = getattr(message, name)
        return sorted(((key, plain(entries[key])) for key in entries), key=lambda one: one[0])
    if spec.label == "repeated" and not spec.oneof:
        return [plain(value) for value in getattr(message, name)]
    descriptor = message.DESCRIPTOR.fields_by_name[name]
    if descriptor.has_presence and not message.HasField(name):
        return []
    value = plain(getattr(message, name))
    return [] if not descriptor.has_presence and not value else [value]


@given(evolutions(), st.data())
def test_a_compatible_reader_reads_what_was_written(
    evolution: tuple[dict[int, Spec], dict[int, Spec]], data: st.DataObject
) -> None:
    old_fields, new_fields = evolution
    old = FORMAT.parse(text_of(old_fields), is_new=True)
    new = FORMAT.parse(text_of(new_fields), is_new=True)
    assume(not new.incompatibilities(old))
    written = message_class(old)()
    for number, spec in old_fields.items():
        fill(written, spec.name or f"f{number}", spec, data.draw)
    read = message_class(new).FromString(written.SerializeToString())
    for number in old_fields.keys() & new_fields.keys():
        before, after = old_fields[number], new_fields[number]
        expected = all_values(written, before.name or f"f{number}", before)
        got = all_values(read, after.name or f"f{number}", after)
        if after.key:
            wanted = [(key, converted(value, after.type)) for key, value in expected]
            assert [key for key, _ in got] == [key for key, _ in wanted]
            assert [value for _, value in got] == [value for _, value in wanted]
            continue
        wanted = [converted(value, after.type) for value in expected]
        if after.label == "repeated" and not after.oneof:
            assert got == wanted
        elif after.type == "M":
            # Messages of a list are merged: the last value of each field that is set counts.
            assert bool(got) == bool(wanted) or not any(map(any, wanted))
            if len(wanted) == 1:
                assert got == wanted
        else:
            assert (got or [converted_zero(after.type)])[-1] == (
                wanted or [converted_zero(after.type)]
            )[-1]


def converted_zero(type_name: str) -> Any:
    return {"string": "", "bytes": b"", "bool": False}.get(type_name, 0)


@given(evolutions())
def test_the_verdict_does_not_depend_on_how_a_schema_is_written(
    evolution: tuple[dict[int, Spec], dict[int, Spec]],
) -> None:
    old, new = (FORMAT.parse(text_of(fields)) for fields in evolution)
    verdict = not new.incompatibilities(old)
    assert (not new.normalized().incompatibilities(old.normalized())) == verdict
    serialized = [FORMAT.parse(schema.formatted("serialized")) for schema in (old, new)]
    assert (not serialized[1].incompatibilities(serialized[0])) == verdict


@given(evolutions())
def test_the_serialized_form_describes_the_fields(
    evolution: tuple[dict[int, Spec], dict[int, Spec]],
) -> None:
    fields = evolution[0]
    serialized = base64.b64decode(FORMAT.parse(text_of(fields)).formatted("serialized"))
    proto = FileDescriptorProto.FromString(serialized)
    assert {one.number for one in proto.message_type[0].field} == set(fields)
