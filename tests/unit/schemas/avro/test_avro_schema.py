"""A parsed Avro schema: names, forms, equality, references and tags."""

import pytest

from barnabas.schemas.avro import AvroFormat, AvroSchema
from barnabas.schemas.avro.json_text import double_text
from barnabas.schemas.schema import (
    Incompatibility,
    ParsedSchema,
    ResolvedReference,
    SchemaFault,
    SchemaFormat,
    TaggedEntity,
)

FORMAT: SchemaFormat = AvroFormat()
ADDRESS = (
    '{"type":"record","name":"Address","namespace":"com.x",'
    '"fields":[{"name":"zip","type":"string"}]}'
)
PERSON = (
    '{"type":"record","name":"Person","namespace":"com.x",'
    '"fields":[{"name":"home","type":"Address"}]}'
)
ADDRESS_1 = ResolvedReference("com.x.Address", "address", 1, ADDRESS)


def parse(text: str, *references: ResolvedReference) -> AvroSchema:
    return AvroFormat().parse(text, references, is_new=True)


def test_only_a_record_has_a_name() -> None:
    assert parse(ADDRESS).name == "com.x.Address"
    assert parse('{"type":"enum","name":"E","symbols":[]}').name is None
    assert parse('["null",' + ADDRESS + "]").name is None


def test_layout_goes_and_meaning_stays() -> None:
    loose = """ {
        "fields" : [ {"type":"int", "doc":"how many", "name" : "n",
            "unit": "pieces", "default":0} ],
        "doc": "what", "aliases": ["Old"], "name":"com.x.R", "type":"record" }"""
    assert parse(loose).canonical_text == (
        '{"type":"record","name":"R","namespace":"com.x","doc":"what","fields":[{"name":"n",'
        '"type":"int","doc":"how many","default":0,"unit":"pieces"}],"aliases":["Old"]}'
    )


def test_equal_are_schemas_of_one_text_with_the_same_references() -> None:
    one, other = parse(PERSON, ADDRESS_1), parse(f" {PERSON} ", ADDRESS_1)
    assert one == other
    assert hash(one) == hash(other)
    version_2 = ResolvedReference("com.x.Address", "address", 2, ADDRESS)
    assert one != parse(PERSON, version_2)
    assert one != parse(ADDRESS)
    assert one != PERSON


def test_forms() -> None:
    person = parse(PERSON, ADDRESS_1)
    assert person.formatted("") == person.formatted("default") == person.canonical_text == PERSON
    inlined = PERSON.replace(
        '"type":"Address"', '"type":' + ADDRESS.replace(',"namespace":"com.x"', "")
    )
    assert person.formatted("resolved") == inlined
    with pytest.raises(ValueError, match="no form 'serialized'"):
        person.formatted("serialized")


def test_a_schema_of_another_format_is_one_incompatibility() -> None:
    class Other:
        schema_type = "JSON"

    (fault,) = parse(PERSON, ADDRESS_1).incompatibilities(Other())  # type: ignore[arg-type]
    assert (fault.kind, fault.path) == ("TYPE_MISMATCH", "/")
    assert "AVRO and JSON" in fault.description


def test_incompatibilities_are_told_in_words() -> None:
    reader: ParsedSchema = parse(ADDRESS.replace('"string"', '"int"'))
    assert reader.incompatibilities(parse(ADDRESS)) == [
        Incompatibility(
            "TYPE_MISMATCH",
            "/fields/0/type",
            "The type int at path '/fields/0/type' in the reader schema cannot read the type"
            " string of the writer schema",
            "reader type: INT not compatible with writer type: STRING",
        )
    ]


def test_the_normal_form_is_one_for_all_orders() -> None:
    one = parse(
        '{"type":"fixed","name":"F","size":4,"b":{"z":1,"y":2},"a":1,"aliases":["Q","P"],"doc":""}'
    )
    other = parse(
        '{"a":1,"b":{"y":2,"z":1},"aliases":["P","Q"],"size":4,"name":"F","type":"fixed"}'
    )
    assert one != other
    assert one.normalized() == other.normalized()
    assert one.normalized().normalized() == one.normalized()


RECORD = TaggedEntity("SR_RECORD", "com.x.Person")
FIELD = TaggedEntity("SR_FIELD", "com.x.Person.name")
INNER = TaggedEntity("SR_FIELD", "com.x.Inner.secret")
TAGGED = (
    '{"type":"record","name":"Person","namespace":"com.x","fields":['
    '{"name":"name","type":"string","confluent:tags":["PII","A"]},'
    '{"name":"list","type":["null",{"type":"array","items":{"type":"map","values":'
    '{"type":"record","name":"Inner","fields":[{"name":"secret","type":"string"},'
    '{"name":"up","type":["null","Person"]}]}}}]}],'
    '"confluent:tags":["T"]}'
)


def test_tags_are_read_from_the_text() -> None:
    assert parse(TAGGED).tags() == {
        RECORD: frozenset({"T"}),
        FIELD: frozenset({"PII", "A"}),
    }
    assert parse('"int"').tags() == {}
    assert parse('{"type":"record","name":"R","fields":[],"confluent:tags":"T"}').tags() == {}


def test_tags_are_added_and_removed_in_the_text() -> None:
    schema = parse(TAGGED)
    changed = schema.with_tags(
        {INNER: frozenset({"Y", "X"}), FIELD: frozenset({"PII", "B"})},
        {RECORD: frozenset({"T"}), FIELD: frozenset({"A"})},
    )
    assert changed.tags() == {FIELD: frozenset({"PII", "B"}), INNER: frozenset({"X", "Y"})}
    assert '"secret","type":"string","confluent:tags":["X","Y"]' in changed.canonical_text
    assert schema.canonical_text == TAGGED
    assert schema.with_tags({}, {}) == schema


def test_a_name_without_a_namespace_is_one_of_any() -> None:
    short = TaggedEntity("SR_FIELD", "Inner.secret")
    assert parse(TAGGED).with_tags({short: frozenset({"X"})}, {}).tags()[INNER] == {"X"}


@pytest.mark.parametrize(
    "entity",
    [
        TaggedEntity("SR_RECORD", "com.x.Nobody"),
        TaggedEntity("SR_RECORD", "com.y.Person"),
        TaggedEntity("SR_FIELD", "com.x.Person.nothing"),
        TaggedEntity("SR_FIELD", "Person"),
        TaggedEntity("SR_RECORD", ""),
    ],
)
def test_tags_of_what_is_not_there_are_a_fault(entity: TaggedEntity) -> None:
    with pytest.raises(SchemaFault, match="the schema has no SR_"):
        parse(TAGGED).with_tags({entity: frozenset({"X"})}, {})


def test_tags_of_a_reference_are_read_and_not_written() -> None:
    tagged = ADDRESS.replace('"string"', '"string","confluent:tags":["Z"]')
    person = parse(PERSON, ResolvedReference("com.x.Address", "address", 1, tagged))
    zip_code = TaggedEntity("SR_FIELD", "com.x.Address.zip")
    assert person.tags() == {zip_code: frozenset({"Z"})}
    with pytest.raises(SchemaFault, match=r"no SR_FIELD 'com.x.Address.zip'"):
        person.with_tags({}, {zip_code: frozenset({"Z"})})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5e-324, "4.9E-324"),
        (1e-323, "9.9E-324"),
        (2e-3, "0.002"),
        (9.99e-4, "9.99E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-1.5e300, "-1.5E300"),
        (0.1 + 0.2, "0.30000000000000004"),
        (-0.0, "-0.0"),
        (2.0**53 * 1e10, "9.007199254740992E25"),
        (float("inf"), '"Infinity"'),
        (float("nan"), '"NaN"'),
    ],
)
def test_numbers_are_written_as_java_does(value: float, text: str) -> None:
    assert double_text(value) == text
