"""What is not an Avro schema: a clear fault that says where, however bad the text."""

import json
from typing import Any

import pytest

from barnabas.schemas.avro import AvroFormat, AvroSchema, compatibility, defaults
from barnabas.schemas.avro.compatibility import INCOMPATIBILITIES_MAX, PATH_TOKENS_MAX
from barnabas.schemas.avro.json_text import NESTING_MAX, TEXT_CHARS_MAX
from barnabas.schemas.schema import ResolvedReference, SchemaFault


def parse(schema: Any, *references: Any, is_new: bool = True) -> AvroSchema:
    resolved = [
        ResolvedReference(f"r{index}", f"s{index}", index + 1, text_of(reference))
        for index, reference in enumerate(references)
    ]
    return AvroFormat().parse(text_of(schema), resolved, is_new=is_new)


def text_of(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)


def record(name: str, *fields: tuple[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field, "type": type_} for field, type_ in fields],
    }


FAULTS: list[tuple[Any, str]] = [
    ("", "no JSON: line 1, column 1"),
    ('{\n  "type": "int",\n}', "no JSON: line 3, column 1"),
    ("string", "no JSON: line 1, column 1"),
    ('/* a comment */ {"type": }', "no JSON: line 1, column 26"),
    ('{"type":"int","a":NaN}', "NaN is not a number"),
    ('/* c */ {"type":"int","a":NaN}', "NaN is not a number"),
    ("null", "a schema is a name, an object or an array, not null"),
    ({}, 'the schema has no "type"'),
    ({"type": 3}, '"type" is not a name'),
    (record("R", ("a", "com.x.Missing")), "/fields/0/type: no schema is named 'com.x.Missing'"),
    ([record("R", ("a", {"type": "array", "items": "No"}))], "/0/fields/0/type/items: no schema"),
    (record("R", ("a", "int"), ("b", {"type": "map"})), '/fields/1/type: map has no "values"'),
    (record("R", ("a", "int"), ("a", "int")), "/fields/1: record 'R' has two fields 'a'"),
    (record("R", ("a-b", "int")), "/fields/0: field name 'a-b' is invalid: it has the char"),
    (record("1R"), "name '1R' is invalid: it starts with '1'"),
    (record("x-y.R"), "namespace 'x-y' is invalid"),
    (record("int"), "cannot have the name of the primitive type 'int'"),
    (["int", ["null"]], "/1: a union cannot be a branch of a union"),
    (["int", "string", "int"], "/2: the union has two branches 'int'"),
    (record("R", ("a", ["E", "E"]), ("b", {"type": "enum", "name": "E", "symbols": []})),
     "/fields/0/type/1: the union has two branches 'E'"),
    ({"type": "enum", "name": "E", "symbols": ["A", "B", "A"]}, "/symbols/2: enum 'E' has two"),
    (
        {"type": "enum", "name": "E", "symbols": ["A"], "default": "B"},
        "default 'B' is not a symbol",
    ),
    ({"type": "fixed", "name": "F", "size": -1}, "fixed 'F' needs a \"size\""),
    (record("R", ("a", record("I")), ("b", record("I", ("c", "int")))), "/fields/1/type: 'I'"),
    (
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": "x"}]},
        "/fields/0: the default of field 'a' is \"x\", which is not of type int",
    ),
    (
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "float", "default": "x"}]},
        "/fields/0: the default 'x' is not a number",
    ),
    ('{"type":"string","p":"\\ud800"}', "half of a surrogate pair"),
    ('{"type":"string","p":' + "9" * 5000 + "}", "too many digits"),
    ('"' + " " * TEXT_CHARS_MAX + '"', f"more than {TEXT_CHARS_MAX}"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "message"), FAULTS, ids=[message for _, message in FAULTS])
def test_a_fault_says_what_and_where(schema: Any, message: str) -> None:
    with pytest.raises(SchemaFault) as caught:
        parse(schema)
    assert message in str(caught.value)


def test_a_fault_of_a_reference_names_the_reference() -> None:
    with pytest.raises(SchemaFault, match=r"reference 'r1' \(subject 's1', version 2\): /fields/0"):
        parse(record("A"), record("B"), record("C", ("a", "Nope")))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[", "]"),
        ('{"type":"array","items":', "}"),
        ('{"type":"map","values":', "}"),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":', "}]}"),
        ('{"type":"int","p":', "}"),
        ('{"type":', "}"),
    ],
)
def test_nesting_ends_at_its_maximum(before: str, after: str) -> None:
    for depth in (NESTING_MAX + 1, 100_000):
        with pytest.raises(SchemaFault, match="nests deeper than 300"):
            parse(before * depth + '"int"' + after * depth)
    with pytest.raises(SchemaFault, match="nests deeper than 300"):
        parse(before * 100_000)


def test_brackets_in_strings_do_not_nest() -> None:
    doc = '\\"[{' * 1000
    assert parse(f'{{"type":"string","p":"{doc}"}}').canonical_text.count("[") == 1000


def test_what_nests_as_deep_as_it_may_is_read_written_and_compared() -> None:
    text = '{"type":"array","items":' * NESTING_MAX + '"int"' + "}" * NESTING_MAX
    schema = parse(text)
    assert schema.canonical_text == text
    assert schema.normalized() == schema
    assert (
        schema.incompatibilities(parse(text.replace('"int"', '"long"')))[0].path.count("items")
        == NESTING_MAX
    )


def chain(length: int, *, leaf: str = "int") -> list[Any]:
    """References of which each uses the one before, twice."""
    first = record("n0", ("v", leaf))
    return [
        first,
        *(
            record(f"n{i}", ("a", f"n{i - 1}"), ("b", ["null", f"n{i - 1}"]))
            for i in range(1, length)
        ),
    ]


def test_a_long_chain_of_references_is_no_depth_and_no_explosion() -> None:
    *references, last = chain(1500)
    schema = parse(last, *references)
    assert schema.formatted("resolved").count('"record"') == 1500
    assert schema.incompatibilities(schema) == []
    *references, last = chain(1500, leaf="string")
    faults = schema.incompatibilities(parse(last, *references))
    assert 0 < len(faults) <= INCOMPATIBILITIES_MAX
    assert {fault.kind for fault in faults} == {"TYPE_MISMATCH", "MISSING_UNION_BRANCH"}


def test_defaults_within_defaults_do_not_explode() -> None:
    types = [record("n0", ("v", ["null", "int"]))]
    types[0]["fields"][0]["default"] = None
    for i in range(1, 60):
        node = record(f"n{i}", ("a", f"n{i - 1}"), ("b", f"n{i - 1}"))
        for field in node["fields"]:
            field["default"] = {}
        types.append(node)
    assert parse(types).canonical_text.count('"default":{}') == 118


def test_unions_of_records_do_not_multiply_the_work_of_a_default() -> None:
    union = [f"n{i}" for i in range(8)]
    nodes = [record(f"n{i}", ("x", ["null", *union]), (f"only{i}", "int")) for i in range(8)]
    value: Any = None
    for _ in range(40):
        value = {"x": value}
    root = {
        "type": "record",
        "name": "R",
        "fields": [*record("_", *((f"f{i}", node) for i, node in enumerate(nodes)))["fields"],
                   {"name": "last", "type": union, "default": value}],
    }  # fmt: skip
    with pytest.raises(SchemaFault, match="/fields/8: the default of field 'last'"):
        parse(root)


def test_names_before_their_definition_may_form_a_long_chain() -> None:
    nodes: list[Any] = [record(f"n{i}", ("a", f"n{i + 1}")) for i in range(2000)]
    schema = parse([*nodes, record("n2000", ("v", "int"))])
    assert schema.canonical_text.count('"record"') == 2001
    assert schema.incompatibilities(schema) == []


def test_two_rings_that_make_too_many_pairs_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def ring(length: int) -> AvroSchema:
        return parse([record(f"s{i}.R", ("a", f"s{(i + 1) % length}.R")) for i in range(length)])

    assert ring(30).incompatibilities(ring(31)) == []
    monkeypatch.setattr(compatibility, "CHECKS_MAX", 900)
    (fault,) = ring(30).incompatibilities(ring(31))
    assert fault.kind == "TOO_LARGE"


def test_paths_of_deep_faults_are_cut() -> None:
    *references, last = chain(1500)
    *others, other = chain(1500, leaf="string")
    faults = parse(last, *references).incompatibilities(parse(other, *others))
    assert max(len(fault.path.split("/")) for fault in faults) == PATH_TOKENS_MAX + 2


def test_a_default_takes_no_more_than_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults, "STEPS_MAX", 1000)
    field = {"name": "a", "type": {"type": "array", "items": "int"}, "default": [1] * 1000}
    with pytest.raises(SchemaFault, match="/fields/0: a default takes more than 1000 steps"):
        parse({"type": "record", "name": "R", "fields": [field]})


def test_a_document_of_a_megabyte_is_read() -> None:
    fields = [(f"field_{i}", ["null", "string"]) for i in range(20_000)]
    schema = parse(record("R", *fields))
    assert len(schema.canonical_text) > 900_000
    assert schema.incompatibilities(schema) == []


def test_what_only_new_schemas_must_keep_is_not_asked_of_old_ones() -> None:
    old = {
        "type": "record",
        "name": "Größe",
        "namespace": "my-company",
        "fields": [{"name": "a", "type": "int", "default": "x"}],
    }
    assert parse(old, is_new=False).name == "my-company.Größe"
    with pytest.raises(SchemaFault):
        parse(old)
    with pytest.raises(SchemaFault, match="a-b"):
        parse(record("a-b"), is_new=False)


def test_of_a_key_that_comes_twice_the_last_value_stands() -> None:
    text = '{"type":"int","a":1,"b":2,"a":3}'
    assert parse(text).canonical_text == '{"type":"int","a":3,"b":2}'
