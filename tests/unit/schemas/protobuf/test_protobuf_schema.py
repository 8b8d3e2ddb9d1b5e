"""Names, index paths, references, tags and equality of schemas."""

import pytest

from barnabas.schemas.protobuf import ProtobufFormat
from barnabas.schemas.protobuf.descriptors import compile_file
from barnabas.schemas.protobuf.known import KNOWN_PATHS
from barnabas.schemas.schema import ResolvedReference, SchemaFault, TaggedEntity

FORMAT = ProtobufFormat()
P = 'syntax = "proto3";\n'

NESTED = P + (
    "package w.x; enum E { Z = 0; } message A { message B {} enum F { Y = 0; } message C"
    " { message D {} } } message G {}"
)
PATHS = {
    (): "w.x.A",
    (0,): "w.x.A",
    (1,): "w.x.G",
    (0, 0): "w.x.A.B",
    (0, 1): "w.x.A.C",
    (0, 1, 0): "w.x.A.C.D",
}


@pytest.mark.parametrize("path", PATHS)
def test_an_index_path_names_a_message(path: tuple[int, ...]) -> None:
    schema = FORMAT.parse(NESTED)
    assert schema.message_at(path) == PATHS[path]


@pytest.mark.parametrize("path", [(2,), (-1,), (0, 2), (1, 0), (0, 1, 0, 0)])
def test_an_index_path_to_nowhere_is_refused(path: tuple[int, ...]) -> None:
    with pytest.raises(LookupError, match="index path"):
        FORMAT.parse(NESTED).message_at(path)


def test_a_file_that_only_imports_publicly_stands_for_the_other() -> None:
    references = [ResolvedReference("a.proto", "a", 1, P + "package a; message A {} message B {}")]
    schema = FORMAT.parse(P + 'import public "a.proto";', references, is_new=True)
    assert schema.name == "a.A"
    assert schema.message_at([1]) == "a.B"


@pytest.mark.parametrize("path", sorted(KNOWN_PATHS))
def test_built_in_files_can_be_imported(path: str) -> None:
    FORMAT.parse(P + f'import "{path}"; message A {{}}', is_new=True)


def test_a_reference_wins_over_a_built_in_file() -> None:
    own = ResolvedReference("google/type/money.proto", "m", 1, P + "package google.type;"
                            " message Money { int32 own = 1; }")  # fmt: skip
    text = P + 'import "google/type/money.proto"; message A { google.type.Money m = 1; }'
    with_own, without = FORMAT.parse(text, [own], is_new=True), FORMAT.parse(text, is_new=True)
    assert [one.kind for one in with_own.incompatibilities(without)] == [
        "FIELD_SCALAR_KIND_CHANGED", "FIELD_NAMED_TYPE_CHANGED",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "path",
    ["google/type/money.proto", "google/protobuf/timestamp.proto",
     "google/protobuf/descriptor.proto", "confluent/meta.proto"],
)  # fmt: skip
def test_such_a_reference_may_have_other_messages(path: str) -> None:
    package = path.rpartition("/")[0].replace("/", ".")
    own = ResolvedReference(path, "m", 1, f"package {package}; message Own {{ extensions 1000; }}"
                            " extend Own { optional int32 own = 1000; }")  # fmt: skip
    option = f"[({package}.own) = 5]"
    text = P + f'import "{path}"; message A {{ {package}.Own m = 1%s; }}'
    serialized = FORMAT.parse(text % "", [own], is_new=True).formatted("serialized")
    assert FORMAT.parse(serialized, [own]).formatted("serialized") == serialized
    assert FORMAT.parse(text % option, [own]).formatted("serialized")


# The fields of these files in other descriptors.
FACTS = {
    "google/type/color.proto": "Color red:1:2 green:2:2 blue:3:2 alpha:4:11",
    "google/type/money.proto": "Money currency_code:1:9 units:2:3 nanos:3:5",
    "confluent/type/decimal.proto": "Decimal value:1:12 precision:2:13 scale:3:5",
    "confluent/type/variant.proto": "Variant metadata:1:12 value:2:12",
    "confluent/meta.proto": "Meta doc:1:9 params:2:11 tags:3:9 rules:4:11",
}


@pytest.mark.parametrize("path", FACTS)
def test_built_in_files_have_their_fields(path: str) -> None:
    package = path.rpartition("/")[0].replace("/", ".")
    name, *fields = FACTS[path].split()
    text = P + f'import "{path}"; message A {{ {package}.{name} a = 1; }}'
    schema = FORMAT.parse(text, is_new=True)
    proto, pool = compile_file(schema.scope)
    assert proto.dependency == [path]
    found = pool.FindMessageTypeByName(f"{package}.{name}").fields
    assert [f"{field.name}:{field.number}:{field.type}" for field in found] == fields
    assert FORMAT.parse(schema.formatted("serialized"), is_new=True).incompatibilities(schema) == []


def test_references_may_be_serialized() -> None:
    other = FORMAT.parse(P + "package o; message O { int32 a = 1; }").formatted("serialized")
    reference = ResolvedReference("o.proto", "o", 1, other)
    text = P + 'import "o.proto"; message A { o.O o = 1; }'
    schema = FORMAT.parse(text, [reference], is_new=True)
    assert ".o.O o = 1;" in schema.normalized().canonical_text


def test_schemas_are_equal_by_text_and_references() -> None:
    reference = ResolvedReference("o.proto", "o", 1, P + "message O {}")
    text = P + "message A { string a = 1; }"
    assert FORMAT.parse(text) == FORMAT.parse(text.replace(" ", "\n"))
    assert hash(FORMAT.parse(text)) == hash(FORMAT.parse(text.replace(" ", "\n")))
    assert FORMAT.parse(text) != FORMAT.parse(text, [reference])
    assert FORMAT.parse(text) != FORMAT.parse(text.replace("a = 1", "b = 1"))
    assert FORMAT.parse(text) != text


def test_normal_references_are_sorted_and_each_once() -> None:
    references = [ResolvedReference(name, name, 1, P) for name in ("b", "a", "b")]
    normal = FORMAT.parse(P + "message A {}", references).normalized()
    assert [one.name for one in normal.references] == ["a", "b"]


TAGGED = P + (
    'package t; import "confluent/meta.proto"; message A { string a = 1'
    ' [deprecated = true, (confluent.field_meta).tags = "X", (confluent.field_meta).doc = "d"];'
    " oneof o { string b = 2; } message N { option (confluent.message_meta) = {tags: ['T']};"
    " string n = 1; } }"
)


def field(name: str) -> TaggedEntity:
    return TaggedEntity("SR_FIELD", name)


def record(name: str) -> TaggedEntity:
    return TaggedEntity("SR_RECORD", name)


def test_tags_are_found() -> None:
    assert FORMAT.parse(TAGGED).tags() == {field("A.a"): {"X"}, record("A.N"): {"T"}}


_Tags = dict[TaggedEntity, set[str]]
CHANGES: dict[str, tuple[dict[TaggedEntity, list[str]], dict[TaggedEntity, list[str]], _Tags]] = {
    "added to a field without any": (
        {field("A.N.n"): ["B", "A"]}, {}, {field("A.N.n"): {"A", "B"}},
    ),
    "added to a field of a oneof": ({field("A.b"): ["P"]}, {}, {field("A.b"): {"P"}}),
    "added to a field named by its oneof": ({field("A.o.b"): ["P"]}, {}, {field("A.b"): {"P"}}),
    "added to one more": ({field("A.a"): ["P"]}, {}, {field("A.a"): {"X", "P"}}),
    "added to a message": ({record("A"): ["P"]}, {}, {record("A"): {"P"}}),
    "added by the full name": ({record("t.A"): ["P"]}, {}, {record("A"): {"P"}}),
    "added by the full name with a dot": ({record(".t.A"): ["P"]}, {}, {record("A"): {"P"}}),
    "removed": ({}, {field("A.a"): ["X", "Y"]}, {field("A.a"): set()}),
    "removed with all of the option": ({}, {record("A.N"): ["T"]}, {record("A.N"): set()}),
    "added and removed": ({record("A.N"): ["U"]}, {record("A.N"): ["T"]}, {record("A.N"): {"U"}}),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_tags_are_changed(name: str) -> None:
    added, removed, expected = CHANGES[name]
    schema = FORMAT.parse(TAGGED)
    changed = schema.with_tags(
        {one: frozenset(tags) for one, tags in added.items()},
        {one: frozenset(tags) for one, tags in removed.items()},
    )
    wanted = {**schema.tags(), **{one: frozenset(tags) for one, tags in expected.items()}}
    assert changed.tags() == {one: tags for one, tags in wanted.items() if tags}
    assert FORMAT.parse(changed.canonical_text, is_new=True) == changed
    assert 'doc: "d"' in changed.canonical_text or '.doc = "d"' in changed.canonical_text


def test_a_schema_without_its_last_tag_has_no_option_left() -> None:
    schema = FORMAT.parse(TAGGED).with_tags({}, {record("A.N"): frozenset(["T"])})
    assert "message_meta" not in schema.canonical_text


@pytest.mark.parametrize("entity", [field("A.z"), field("A"), record("B"), record("A.a")])
def test_tags_for_what_is_not_there_are_refused(entity: TaggedEntity) -> None:
    with pytest.raises(SchemaFault, match=entity.name):
        FORMAT.parse(TAGGED).with_tags({entity: frozenset(["P"])}, {})
