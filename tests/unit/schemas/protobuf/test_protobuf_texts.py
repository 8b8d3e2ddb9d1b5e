"""Canonical texts, normal forms and serialized forms equal those of Confluent's registry.

`confluent-8.5-texts.json` says how it was generated. Deliberate differences are below the table.
"""

import base64
import json
import os
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from barnabas.schemas.protobuf import ProtobufFormat, ProtobufSchema
from barnabas.schemas.schema import ResolvedReference, SchemaFault

FORMAT = ProtobufFormat()
PROTO3 = 'syntax = "proto3";\n'

with open(os.path.join(os.path.dirname(__file__), "confluent-8.5-texts.json"), "rb") as _file:
    CASES: list[dict[str, Any]] = json.load(_file)["cases"]


def parse(case: dict[str, Any], text: str | None = None) -> ProtobufSchema:
    references = [
        ResolvedReference(one["name"], one["subject"], one["version"], one["schema"])
        for one in case["references"]
    ]
    return FORMAT.parse(case["schema"] if text is None else text, references)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_text_becomes_what_confluent_makes_of_it(case: dict[str, Any]) -> None:
    schema = parse(case)
    assert schema.canonical_text == case["canonical"]
    assert schema.normalized().canonical_text == case["normalized"]
    assert schema.formatted("ignore_extensions") == case["ignore_extensions"]
    assert schema.name == case["schema_name"]
    tags = {f"{one.kind.lower()} {one.name}": sorted(tags) for one, tags in schema.tags().items()}
    assert tags == {name: sorted(tags) for name, tags in case["tags"].items()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_canonical_and_normal_texts_are_their_own(case: dict[str, Any]) -> None:
    schema = parse(case)
    again = parse(case, schema.canonical_text)
    assert again == schema
    assert again.file == schema.file
    normal = schema.normalized()
    assert parse(case, normal.canonical_text).normalized() == normal.normalized()
    assert normal.normalized() == normal


# Of custom options, a descriptor keeps what its reader does not know; they are lost here.
WITHOUT_CUSTOM_OPTIONS = [
    case for case in CASES if case["schema_name"] and "option" not in case["name"]
]


@pytest.mark.parametrize("case", WITHOUT_CUSTOM_OPTIONS, ids=lambda case: case["name"])
def test_a_serialized_form_has_the_same_normal_form(case: dict[str, Any]) -> None:
    schema = parse(case)
    again = parse(case, schema.formatted("serialized"))
    assert again.normalized().canonical_text == schema.normalized().canonical_text


# Where Confluent's text would not mean what was written, ours does.
OWN = {
    "bytes of a string in UTF-8 are its characters": (
        PROTO3 + r'option java_package = "\303\251";',
        PROTO3 + '\noption java_package = "é";\n',
    ),
    "bytes that are not UTF-8 stay bytes": (
        r'message A { optional bytes a = 1 [default = "\377\x00z"]; }',
        '\nmessage A {\n  optional bytes a = 1 [default = "\\377\\000z"];\n}\n',
    ),
    "an edition stays": (
        'edition = "2023"; message A { reserved foo; int32 a = 1 [targets = X]; }',
        'edition = "2023";\n\nmessage A {\n  reserved foo;\n\n  int32 a = 1 [targets = X];\n}\n',
    ),
    "a weak import stays": (
        'import weak "google/protobuf/any.proto"; message A {}',
        '\nimport weak "google/protobuf/any.proto";\n\nmessage A {}\n',
    ),
    "groups have all that messages have": (
        "message A { repeated group G = 1 { reserved 2; enum E { Z = 0; } } }",
        (
            "\nmessage A {\n  repeated group G = 1 {\n    reserved 2;\n  \n    enum E {\n"
            "      Z = 0;\n    }\n  }\n}\n"
        ),
    ),
    "a message in angle brackets": (
        PROTO3 + "option (a) = {b < c: 1 > d: [<>, {}]};",
        PROTO3
        + "\noption (a) = {\n  b: {\n    c: 1\n  },\n"
        + "  d: [\n    {\n    },\n    {\n    }\n  ]\n};\n",
    ),
    "names with blanks and comments in them": (
        PROTO3 + "message A { a . /* */ b\n.c d = 1; }",
        PROTO3 + "\nmessage A {\n  a.b.c d = 1;\n}\n",
    ),
    "a name of an option with an extension in the middle": (
        PROTO3 + "option features.(pb.java).x = 1;",
        PROTO3 + "\noption features.(pb.java).x = 1;\n",
    ),
}


@pytest.mark.parametrize("name", OWN)
def test_where_our_text_is_another(name: str) -> None:
    text, canonical = OWN[name]
    schema = FORMAT.parse(text)
    assert schema.canonical_text == canonical
    assert FORMAT.parse(canonical).file == schema.file


def test_normal_numbers_keep_all_their_digits() -> None:
    text = "message A { optional double a = 1 [default = 1.23456789]; optional double b = 2 "
    text += "[default = 1.5e3]; optional double c = 3 [default = 1e-3]; }"
    normal = FORMAT.parse(text).normalized().canonical_text
    assert "default = 1.23456789" in normal
    assert "default = 1500]" in normal
    assert "default = 0.001]" in normal


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(ValueError, match="resolved"):
        FORMAT.parse(PROTO3).formatted("resolved")


def test_what_confluent_kafka_sends_is_read() -> None:
    """Its serializer sends the descriptor of the generated module in base64."""
    proto = FileDescriptorProto(name="reading.proto", package="weather", syntax="proto3")
    proto.dependency.append("google/protobuf/timestamp.proto")
    message = proto.message_type.add(name="Reading")
    message.field.add(name="at", number=1, label=1, type=11, type_name=".google.protobuf.Timestamp")
    message.field.add(name="values", number=2, label=3, type=1)
    sent = base64.b64encode(proto.SerializeToString()).decode()
    schema = FORMAT.parse(sent, is_new=True)
    assert schema.name == "weather.Reading"
    assert schema.canonical_text == (
        'syntax = "proto3";\npackage weather;\n\nimport "google/protobuf/timestamp.proto";\n\n'
        "message Reading {\n  .google.protobuf.Timestamp at = 1;\n"
        "  repeated double values = 2;\n}\n"
    )
    written = "import 'google/protobuf/timestamp.proto'; message Reading {"
    written += " google.protobuf.Timestamp at = 1; repeated double values = 2; }"
    text = PROTO3 + "package weather; " + written
    assert FORMAT.parse(text).normalized() == schema.normalized()


def test_the_serialized_form_is_a_descriptor_as_protoc_makes_it() -> None:
    text = PROTO3 + (
        'package w;\nimport "confluent/meta.proto";\n'
        "message A { map<string, B> as_is = 1; optional int32 n = 2 [deprecated = true];"
        ' string t = 3 [(confluent.field_meta) = {tags: ["PII"]}]; message B { A a = 1; } }\n'
    )
    serialized = base64.b64decode(FORMAT.parse(text).formatted("serialized"))
    proto = FileDescriptorProto.FromString(serialized)
    message = proto.message_type[0]
    assert [(one.name, one.type_name) for one in message.field] == [
        ("as_is", ".w.A.AsIsEntry"),
        ("n", ""),
        ("t", ""),
    ]
    assert [one.name for one in message.nested_type] == ["B", "AsIsEntry"]
    assert message.nested_type[1].options.map_entry
    assert message.field[1].proto3_optional
    assert message.oneof_decl[message.field[1].oneof_index].name == "_n"
    assert message.field[1].options.deprecated
    assert message.field[2].type == FieldDescriptorProto.TYPE_STRING
    # Field 1088 of the options, whose field 3 is the tag.
    assert message.field[2].options.SerializeToString() == b"\x82\x44\x05\x1a\x03PII"
    assert FORMAT.parse(FORMAT.parse(text).formatted("serialized")).tags() == (
        FORMAT.parse(text).tags()
    )


@pytest.mark.parametrize(
    "name", ["A message", "a.b", "A {} message B", "", "é", "1a"], ids=lambda name: name or "empty"
)
def test_a_descriptor_with_names_that_are_none_is_refused(name: str) -> None:
    proto = FileDescriptorProto(name="x", syntax="proto3")
    proto.message_type.add(name=name)
    with pytest.raises(SchemaFault, match="serialized file descriptor"):
        FORMAT.parse(base64.b64encode(proto.SerializeToString()).decode())


def test_a_descriptor_with_bytes_for_text_is_refused() -> None:
    proto = FileDescriptorProto(name="x", syntax="proto3")
    proto.message_type.add(name="A").field.add(name="pppp", number=1, label=1, type=1)
    serialized = proto.SerializeToString().replace(b"pppp", b"\xff\xfe\xfd\xfc")
    with pytest.raises(SchemaFault, match="file descriptor"):
        FORMAT.parse(base64.b64encode(serialized).decode())


def test_an_empty_list_in_a_list_has_one_normal_form() -> None:
    text = PROTO3 + "option (a) = {b: [[]] c: [] d: [[1]] e: 2};"
    normal = FORMAT.parse(text).normalized()
    assert normal.normalized() == normal


def test_base64_that_is_no_descriptor_is_refused() -> None:
    with pytest.raises(SchemaFault, match="the serialized file descriptor cannot be read"):
        FORMAT.parse(base64.b64encode(b"no descriptor at all").decode())
