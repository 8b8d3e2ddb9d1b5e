"""Texts that are not schemas: what is said of them and where."""

import base64

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from barnabas.schemas.protobuf import ProtobufFormat
from barnabas.schemas.protobuf.tokens import TEXT_CHARS_MAX
from barnabas.schemas.schema import ResolvedReference, SchemaFault

FORMAT = ProtobufFormat()
P = 'syntax = "proto3";\n'
EDITION = 'edition = "2023";\n'

# Texts that the grammar refuses in every case.
GRAMMAR = {
    'syntax = "proto4";': 'line 1, column 10: expected "proto2", "proto3" or edition "2023"',
    "syntax = proto3;": "line 1, column 10: expected a quoted name of the syntax, found proto3",
    'edition = "2022";': "line 1, column 11: expected",
    'package a;\nsyntax = "proto3";': "line 2, column 1: expected message, enum, service",
    P + "mesage A {}": "line 2, column 1: expected message, enum",
    P + "message {}": "line 2, column 9: expected the name of the message, found {",
    P + "message a.b {}": "line 2, column 9: expected the name of the message, found a.b",
    P + "message A { string a = 1 }": "line 2, column 26: expected ';' after the field, found }",
    P + "message A { string a; }": "line 2, column 21: expected '=' and the number of the field",
    P + "message A { strng }": "line 2, column 19: expected the name of the field, found }",
    P + "message A {\n  string a = 1;\n": "line 4, column 1: expected '}' of A, found the end",
    P + "message A {} }": "line 2, column 14: expected a definition, found }",
    P + 'option a = "b\n";': "line 2, column 12: the string has no end",
    P + "option a = 'b": "line 2, column 12: the string has no end",
    P + "/* abc": "line 2, column 1: the comment has no end: expected '*/'",
    P + "message é {}": "line 2, column 9: unexpected character '\\xe9'",
    P + "message A { string a = 1x; }": "line 2, column 24: expected a number, found letters in it",
    P + "message A { string a = 0x; }": "line 2, column 24: expected a number",
    P + "message A { string a = 08; }": "line 2, column 24: expected the number of a field",
    P + "message A { string a = 1.5; }": "line 2, column 24: expected the number of a field",
    P + "message A { string a = 0; }": "line 2, column 24: the number of a field must be from 1 to",
    P + "message A { string a = -1; }": "line 2, column 24: the number of a field must be from 1",
    P + "message A { string a = 536870912; }": "from 1 to 536870911, found 536870912",
    P + "enum A { X = 2147483648; }": "from -2147483648 to 2147483647",
    P + "message A { reserved 4 to 2; }": "the range ends at 2, before it begins",
    P + "message A { repeated map<string, A> t = 1; }": "line 2, column 13: a map has no label",
    P + "message A { map<string, map<string, A>> t = 1; }": "expected '>' after the types of a map",
    P + "message A { oneof o { optional string a = 1; } }": "a field of a oneof has no label",
    P + "message A { a..b c = 1; }": "line 2, column 15: expected the type of a field",
    P + "extend A { map<string, A> a = 1; }": "line 2, column 27: an extension cannot be a map",
    P + "option a = ;": "line 2, column 12: expected a value, found ;",
    P + "option a = -b;": "line 2, column 13: expected a number, found b",
    P + 'option a = "\\q";': "line 2, column 12: the string has an escape that does not exist",
    P + 'option a = "\\ud800";': "the string has an escape that is not a character",
    P + "option (a = 1;": "expected ')' after the name of the extension",
    P + "option (a) = {b 1};": "expected ':' after the name of a field, found 1",
    P + "option (a) = {1: 1};": "expected the name of a field, found 1",
    P + "option (a) = [1 2];": "expected ',' or ']', found 2",
    P + "package a; package b;": "line 2, column 12: the package is named a second time",
    P + "import google;": "line 2, column 8: expected the quoted path of a file",
    P + "service S { rpc F (A) (A); }": "expected 'returns' after the type of the request",
    P + "service S { message A {} }": "line 2, column 13: expected rpc or option",
    P + "service S { rpc F (A) returns (A) { message B {} } }": "expected 'option', found message",
    P + "option a = 1;\ud800": "line 2, column 14: the text has half of a surrogate pair",
    P + f"message {'a' * 1025} {{}}": "a name has more than 1024 characters or 64 parts",
    P + f"package {'.'.join('a' * 66)};": "a name has more than 1024 characters or 64 parts",
}


@pytest.mark.parametrize("text", GRAMMAR, ids=lambda text: ascii(text[:60]))
def test_the_grammar_is_kept(text: str) -> None:
    with pytest.raises(SchemaFault) as caught:
        FORMAT.parse(text)
    assert GRAMMAR[text] in str(caught.value)


# Texts that are read from the topic, but not registered.
RULES = {
    "": "line 1, column 1: the file defines nothing",
    P + 'import "google/protobuf/any.proto";': "the file defines nothing, it only imports google",
    P + "message A { string a = 1; int32 b = 1; }": "b has the number 1, which a has",
    P
    + "message A { string a = 1;\n oneof o { int32 b = 1; } }": "line 3, column 18: b has the num",
    P + "message A { string a = 1; int32 a = 2; }": "line 2, column 33: a is defined twice",
    P + "message A {} enum A { Z = 0; }": "line 2, column 14: A is defined twice",
    P + "enum A { X = 0; } enum B { X = 0; }": "line 2, column 28: X is defined twice",
    P + "enum A { X = 0; Y = 0; }": "Y has the number 0, which X has; allow_alias would allow it",
    P + "enum A {}": "the enum A has no values",
    P + "enum A { X = 1; }": "line 2, column 10: in proto3, the first value of A has to be 0",
    EDITION + "enum A { X = 1; }": "the first value must be zero (A)",
    P + "enum A { X = 0; Y = 3; reserved 2 to 4; }": "Y = 3 has a reserved name or number",
    P + 'enum A { X = 0; Y = 3; reserved "Y"; }': "Y = 3 has a reserved name or number",
    P + "message A { reserved 2 to 4; string a = 3; }": "a has the number 3, which is reserved",
    P + 'message A { reserved "a"; string a = 3; }': "line 2, column 34: the name a is reserved",
    P + "message A { reserved 2 to 4, 4; }": "the range from 4 overlaps another one",
    P + "message A { string a = 19500; }": "19000 to 19999 are protobuf's own",
    P + "message A { B b = 1; }": "line 2, column 15: the type B is not defined",
    P + "package a; message A { a b = 1; }": "the type a is not defined",
    P + "message A { map<string, B> b = 1; }": "the type B is not defined",
    P
    + 'import "x.proto"; message A {}': "line 2, column 1: x.proto is imported, but it is neither",
    P + "import 'google/protobuf/any.proto'; import 'google/protobuf/any.proto'; message A {}": (
        "line 2, column 37: google/protobuf/any.proto is imported twice"
    ),
    P + "message A { google.protobuf.Any a = 1; }": "the type google.protobuf.Any is not defined",
    P + 'import "confluent/meta.proto"; message A { google.protobuf.FileOptions a = 1; }': (
        "is defined in google/protobuf/descriptor.proto, which is not imported"
    ),
    P + "message A { map<float, string> t = 1; }": "the keys of a map cannot be of type float",
    P + "message A { oneof o { map<string, string> t = 1; } }": "a map cannot be in a oneof",
    P + "message A { oneof o {} }": "line 2, column 13: the oneof o has no fields",
    P + "message A { required string a = 1; }": "required fields are not allowed in proto3",
    P + 'message A { string a = 1 [default = "x"]; }': "defaults are not allowed in proto3",
    P + "message A { optional group G = 1 {} }": "groups are allowed in proto2 only",
    P + "message A { extensions 10; }": "extension ranges are not allowed in proto3",
    EDITION + "message A { optional string a = 1; }": "optional is said by features.field_presence",
    "message A { string a = 1; }": "line 1, column 20: a has no label",
    "message A { optional string a = 10; extensions 10; }": "which is for extensions",
    "message A { extensions 10; } extend A { optional int32 b = 9; }": (
        "line 1, column 56: A has no extension range with the number 9"
    ),
    "message A { extensions 10; } extend A {}": "the extension of A has no fields",
    P + "extend B { string a = 1; }": "line 2, column 1: the type B is not defined",
    P + "service S { rpc F (string) returns (string); }": "string is not a message",
    P + "enum E { Z = 0; } service S { rpc F (E) returns (E); }": "E is not a message",
    P + "message A {} service S { rpc F (A) returns (A); rpc F (A) returns (A); }": (
        "line 2, column 49: F is defined twice"
    ),
    'message A { optional int32 a = 1 [default = "x"]; }': "the default of a is not of type int32",
    "message A { optional int32 a = 1 [default = 3000000000]; }": (
        "the default of a is not of type int32"
    ),
    "message A { optional uint32 a = 1 [default = -1]; }": "the default of a is not of type uint32",
    "message A { optional bool a = 1 [default = 1]; }": "the default of a is not of type bool",
    "message A { optional double a = 1 [default = x]; }": "the default of a is not of type double",
    "message A { optional E a = 1 [default = B]; enum E { C = 1; } }": (
        "the default of a is not of type E"
    ),
    "message A { repeated int32 a = 1 [default = 1]; }": "a cannot have a default",
    "message A { optional int32 a = 1 [default = 1, default = 2]; }": "a has two defaults",
    P + "message A { string a = 1 [deprecated = 5]; }": (
        'line 2, column 27: the option deprecated: Expected "true" or "false"'
    ),
    P + "option optimize_for = FAST; message A {}": "line 2, column 8: the option optimize_for: ",
    EDITION + "option features.field_presence = NO; message A {}": "has no value named NO",
    P + 'import "confluent/meta.proto"; message A { option (confluent.message_meta) = 5; }': (
        "line 2, column 51: the option (confluent.message_meta): Expected"
    ),
    P + 'import "confluent/meta.proto"; message A { option (confluent.message_meta).x = 5; }': (
        'the option (confluent.message_meta).x: Message type "confluent.Meta" has no field'
    ),
    P + "message A { string a_b = 1; string aB = 2; }": "duplicate json_name",
}


@pytest.mark.parametrize("text", RULES, ids=lambda text: ascii(text[:60]))
def test_a_new_schema_keeps_the_rules(text: str) -> None:
    with pytest.raises(SchemaFault) as caught:
        FORMAT.parse(text, is_new=True)
    assert RULES[text] in str(caught.value)


@pytest.mark.parametrize("text", RULES, ids=lambda text: ascii(text[:60]))
def test_what_is_in_the_topic_is_read_whatever_the_rules_say(text: str) -> None:
    schema = FORMAT.parse(text)
    assert FORMAT.parse(schema.canonical_text) == schema
    assert (schema.normalized().canonical_text == "") == (not text)
    assert schema.incompatibilities(schema) == []
    schema.formatted("serialized")


ALLOWED = [
    P + 'import public "google/protobuf/any.proto";',
    P + "message A { string a = 1 [(unknown.option).x = 5]; } ",
    P + "option from_another_release = 1; message A {}",
    P + "enum E { option allow_alias = true; A = 0; B = 0; } message M { E e = 1; }",
    P + "message A { reserved foo; message B {} B b = 1; A.B c = 2; .A.B d = 3; }",
    "message A { optional string a_b = 1; optional string aB = 2; }",
    "message A { repeated group G = 1 { optional A a = 1; } optional G again = 2; }",
    "message A { extensions 10 to max; } extend A { optional group G = 10 { } }",
    EDITION + "message A { int32 a = 1 [features.field_presence = LEGACY_REQUIRED, default = 1]; }",
    P + 'import "google/protobuf/descriptor.proto"; package x;\n'
    "extend google.protobuf.MessageOptions { Note note = 50000; repeated int32 n = 50001; }\n"
    'message Note { string text = 1; Note more = 2; } message A { option (note).text = "a";'
    " option (x.note).more = {text: 'b'}; option (n) = 1; option (n) = 2; }",
]


@pytest.mark.parametrize("text", ALLOWED, ids=lambda text: ascii(text[:60]))
def test_what_is_allowed(text: str) -> None:
    schema = FORMAT.parse(text, is_new=True)
    assert FORMAT.parse(schema.canonical_text, is_new=True) == schema
    assert FORMAT.parse(schema.normalized().canonical_text, is_new=True)
    assert schema.formatted("serialized")


def reference(name: str, text: str) -> ResolvedReference:
    return ResolvedReference(name, name, 1, text)


def test_a_cycle_of_imports_is_refused() -> None:
    references = [
        reference("a.proto", P + 'import "b.proto"; message A {}'),
        reference("b.proto", P + 'import "a.proto"; message B {}'),
    ]
    text = P + 'import "a.proto"; message R { A a = 1; }'
    with pytest.raises(SchemaFault, match=r"a cycle: a.proto -> b.proto -> a.proto"):
        FORMAT.parse(text, references, is_new=True)
    assert FORMAT.parse(text, references).normalized().name == "R"


def test_a_reference_that_imports_what_is_not_there_is_refused() -> None:
    references = [reference("a.proto", P + 'import "b.proto"; message A {}')]
    with pytest.raises(SchemaFault, match=r"imports b.proto, which no reference has"):
        FORMAT.parse(P + 'import "a.proto"; message R { A a = 1; }', references, is_new=True)


def test_a_reference_that_is_no_schema_is_named() -> None:
    text = P + 'import "a.proto"; message R {}'
    with pytest.raises(SchemaFault, match=r"the reference a.proto: line 1, column 1: expected"):
        FORMAT.parse(text, [reference("a.proto", "mess")])


def test_a_long_chain_of_imports_is_followed() -> None:
    references = [
        reference(f"{i}.proto", P + f'import public "{i + 1}.proto"; message M{i} {{}}')
        for i in range(3000)
    ]
    references.append(reference("3000.proto", P + "message Last {}"))
    text = P + 'import "0.proto"; message R { Last last = 1; }'
    assert ".Last last = 1" in FORMAT.parse(text, references).normalized().canonical_text


BOMBS = {
    "messages in messages": P + "message A {" * 100_000,
    "messages in an option": P + "option (a) = " + "{a:" * 100_000,
    "angle brackets": P + "option (a) = {" + "a <" * 100_000,
    "lists": P + "option (a) = " + "[" * 100_000,
    "groups": "message A { " + "optional group G = 1 {" * 100_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_deep_nesting_is_refused(name: str) -> None:
    with pytest.raises(SchemaFault, match="nested more than 64 deep"):
        FORMAT.parse(BOMBS[name])


def test_nesting_has_room_to_be_used() -> None:
    text = P + "message A {" * 60 + "string a = 1;" + "}" * 60
    schema = FORMAT.parse(text, is_new=True)
    assert FORMAT.parse(schema.canonical_text) == schema
    assert FORMAT.parse(schema.formatted("serialized"), is_new=True).file == schema.file


# A quadratic step would take minutes for one of these.
LONG = {
    "unterminated comments": P + "/* /" * 500_000,
    "backslashes": P + 'option a = "' + "\\" * 2_000_000,
    "digits with letters": P + "option a = " + "1" * 1_000_000 + "x;",
    "dots": P + "message A { a" + ".a" * 500_000,
    "blanks": P + " " * 2_000_000 + "x",
    "a character that is none": P + "message A {}" * 1000 + "é" * 1_000_000,
}


@pytest.mark.parametrize("name", LONG)
def test_long_texts_are_read_once(name: str) -> None:
    with pytest.raises(SchemaFault) as caught:
        FORMAT.parse(LONG[name])
    assert len(str(caught.value)) < 300


def test_values_of_a_repeated_option_are_gathered_once() -> None:
    tags = "".join(f'option (confluent.message_meta).tags = "{i}";' for i in range(20_000))
    schema = FORMAT.parse(P + f'import "confluent/meta.proto"; message A {{ {tags} }}')
    assert [len(tags) for tags in schema.tags().values()] == [20_000]
    assert schema.normalized().canonical_text.count('"1999"') == 1


def test_a_reserved_name_that_is_no_text_is_refused() -> None:
    """The library gives such a name as bytes."""
    proto = FileDescriptorProto(message_type=[DescriptorProto(name="A", reserved_name=["abc"])])
    serialized = proto.SerializeToString().replace(b"abc", b"a\xa0c")
    with pytest.raises(SchemaFault, match="cannot be read"):
        FORMAT.parse(base64.b64encode(serialized).decode())


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(SchemaFault, match="more than"):
        FORMAT.parse(" " * (TEXT_CHARS_MAX + 1))
