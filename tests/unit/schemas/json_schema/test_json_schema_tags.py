"""Tags in schemas, and the names of what carries them."""

import json
from typing import Any

import pytest

from barnabas.schemas.json_schema import JsonSchema, JsonSchemaFormat
from barnabas.schemas.schema import SchemaFault, TaggedEntity

FORMAT = JsonSchemaFormat()
STRING = {"type": "string"}
TAGGED = {"type": "string", "confluent:tags": ["PII"]}


def parsed(schema: Any) -> JsonSchema:
    return FORMAT.parse(json.dumps(schema), is_new=True)


def tags(schema: JsonSchema) -> dict[str, set[str]]:
    return {f"{e.kind} {e.name}": set(found) for e, found in schema.tags().items()}


def field(name: str) -> TaggedEntity:
    return TaggedEntity("SR_FIELD", name)


def record(name: str) -> TaggedEntity:
    return TaggedEntity("SR_RECORD", name)


# A schema with a tag, and the name of the tagged entity.
PLACES: list[tuple[Any, str]] = [
    ({"type": "object", "properties": {"a": TAGGED}}, "SR_FIELD object.a"),
    ({"type": "object", "confluent:tags": ["PII"]}, "SR_RECORD object"),
    (
        {"properties": {"a": {"type": "array", "items": {"properties": {"b": TAGGED}}}}},
        "SR_FIELD object.a.array.object.b",
    ),
    ({"properties": {"a": {"properties": {"b": TAGGED}}}}, "SR_FIELD object.a.object.b"),
    (
        {"properties": {"a": {"oneOf": [{"properties": {"b": TAGGED}}, {"type": "null"}]}}},
        "SR_FIELD object.a.oneof.1.object.b",
    ),
    (
        {"properties": {"a": {"not": {"properties": {"b": TAGGED}}}}},
        "SR_FIELD object.a.not.object.b",
    ),
    ({"type": ["object", "null"], "properties": {"a": TAGGED}}, "SR_FIELD anyof.1.object.a"),
    (
        {"if": {"properties": {"a": TAGGED}}, "properties": {"b": STRING}},
        "SR_FIELD allof.0.conditional.if.object.a",
    ),
    (
        {"type": "object", "definitions": {"D.E": {"properties": {"a.b": TAGGED}}}},
        "SR_FIELD object.definitions.D.E.object.a.b",
    ),
    (
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"D": {"type": "object", "confluent:tags": ["PII"]}},
        },
        "SR_RECORD object.$defs.D.object",
    ),
    (
        {"properties": {"a": {"$ref": "#/definitions/D", "confluent:tags": ["PII"]}},
         "definitions": {"D": STRING}},
        "SR_FIELD object.a",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "entity"), PLACES, ids=[place for _, place in PLACES])
def test_tags_are_found_put_and_taken_away(schema: Any, entity: str) -> None:
    tagged = parsed(schema)
    assert tags(tagged) == {entity: {"PII"}}
    key = TaggedEntity(*entity.split(" "))
    assert tags(tagged.with_tags({key: frozenset({"B", "A"})}, {})) == {entity: {"PII", "A", "B"}}
    bare = tagged.with_tags({}, {key: frozenset({"PII", "other"})})
    assert tags(bare) == {}
    assert "confluent:tags" not in bare.canonical_text
    again = bare.with_tags({key: frozenset({"PII"})}, {})
    assert tags(again) == tags(tagged)
    assert again.incompatibilities(tagged) == []
    assert tags(tagged) == {entity: {"PII"}}  # as it was


def test_new_tags_stand_behind_old_ones_and_removing_wins() -> None:
    schema = parsed({"type": "object", "properties": {"a": TAGGED}})
    changed = schema.with_tags(
        {field("object.a"): frozenset("CB")}, {field("object.a"): frozenset("C")}
    )
    assert json.loads(changed.canonical_text)["properties"]["a"]["confluent:tags"] == ["PII", "B"]


def test_an_entity_that_is_not_there_is_a_fault() -> None:
    schema = parsed({"type": "object", "properties": {"a": TAGGED}})
    for entity in (field("object.b"), record("object.a"), record("array")):
        with pytest.raises(SchemaFault, match=entity.name):
            schema.with_tags({entity: frozenset({"x"})}, {})


def test_records_made_of_several_kinds_can_be_tagged() -> None:
    schema = parsed({"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}})
    changed = schema.with_tags({record("allof.1.object"): frozenset({"x"})}, {})
    assert json.loads(changed.canonical_text)["confluent:tags"] == ["x"]


@pytest.mark.parametrize("text", ["true", "{}", '{"confluent:tags":7}', '{"type":"string"}'])
def test_schemas_without_objects_have_no_entities(text: str) -> None:
    assert FORMAT.parse(text).tags() == {}
