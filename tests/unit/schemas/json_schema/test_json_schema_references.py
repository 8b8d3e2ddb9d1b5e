"""Where `$ref` may lead, and what is said where it leads nowhere."""

import json
from typing import Any

import jsonschema
import pytest

from barnabas.schemas.json_schema import JsonSchema, JsonSchemaFormat
from barnabas.schemas.schema import ResolvedReference, SchemaFault

FORMAT = JsonSchemaFormat()
DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
STRING = {"type": "string"}


def named(**texts: Any) -> list[ResolvedReference]:
    return [
        ResolvedReference(name.replace("__", "/").replace("_", "."), name, 1, json.dumps(text))
        for name, text in texts.items()
    ]


def parsed(schema: Any, **references: Any) -> JsonSchema:
    return FORMAT.parse(json.dumps(schema), named(**references), is_new=True)


ADDRESS: dict[str, Any] = {
    "$id": "http://example.com/address.json",
    "type": "object",
    "properties": {"street": STRING, "country": {"$ref": "country.json#/definitions/Code"}},
}
COUNTRY = {"definitions": {"Code": {"type": "string", "maxLength": 2}, "Name": STRING}}

FOUND: list[tuple[str, Any, dict[str, Any]]] = [
    ("the root", {"properties": {"a": {"$ref": "#"}}}, {}),
    ("a pointer", {"$ref": "#/definitions/a", "definitions": {"a": STRING}}, {}),
    ("escapes", {"$ref": "#/definitions/a~1b~0c%25", "definitions": {"a/b~c%": STRING}}, {}),
    ("a list", {"allOf": [STRING], "properties": {"a": {"$ref": "#/allOf/0"}}}, {}),
    ("an anchor", {"$ref": "#x", "definitions": {"a": {"$id": "#x", **STRING}}}, {}),
    (
        "an anchor of draft 4",
        {"$schema": DRAFT_4, "$ref": "#x", "definitions": {"a": {"id": "#x"}}},
        {},
    ),
    ("a new anchor", {"$schema": DRAFT_2020, "$ref": "#x", "$defs": {"a": {"$anchor": "x"}}}, {}),
    (
        "a dynamic anchor",
        {"$schema": DRAFT_2020, "$dynamicAnchor": "n", "properties": {"a": {"$dynamicRef": "#n"}}},
        {},
    ),
    ("recursively", {"$schema": DRAFT_2019, "properties": {"a": {"$recursiveRef": "#"}}}, {}),
    (
        "an id inside",
        {"$id": "http://x/a.json", "$ref": "b.json", "definitions": {"b": {"$id": "b.json"}}},
        {},
    ),
    (
        "its own id",
        {"$id": "task.json", "properties": {"a": {"$ref": "task.json#/properties"}}},
        {},
    ),
    (
        "a pointer in a schema with an id",
        {
            "$schema": DRAFT_2020,
            "$ref": "b",
            "$defs": {"b": {"$id": "b", "$ref": "#/$defs/c", "$defs": {"c": STRING}}},
        },
        {},
    ),
    ("$defs that are definitions", {"$ref": "#/$defs/a", "definitions": {"a": STRING}}, {}),
    ("a name", {"$ref": "address.json"}, {"address_json": STRING}),
    ("a name with a dot", {"$ref": "./address.json"}, {"address_json": STRING}),
    ("a name in a folder", {"$ref": "types/address.json#"}, {"types__address_json": STRING}),
    ("a pointer in a name", {"$ref": "c.json#/definitions/Code"}, {"c_json": COUNTRY}),
    ("$defs in a name", {"$schema": DRAFT_2020, "$ref": "c.json#/$defs/Code"}, {"c_json": COUNTRY}),
    (
        "an anchor in a name",
        {"$ref": "c.json#x"},
        {"c_json": {"definitions": {"a": {"$id": "#x"}}}},
    ),
    (
        "a name by the id of the root",
        {"$id": "http://example.com/a.json", "$ref": "http://example.com/address.json"},
        {"address_json": STRING},
    ),
    (
        "references of references",
        {"$ref": "address.json"},
        {"address_json": ADDRESS, "country_json": COUNTRY},
    ),
    ("the metaschema", {"$ref": "http://json-schema.org/draft-07/schema#"}, {}),
    (
        "an old metaschema",
        {"$ref": "https://json-schema.org/draft-04/schema#/definitions/positiveInteger"},
        {},
    ),
    ("a new metaschema", {"$schema": DRAFT_2020, "$ref": DRAFT_2020}, {}),
    ("what is not a reference", {"enum": [{"$ref": "nowhere"}], "x": {"$ref": "nowhere"}}, {}),
    ("a property named $ref", {"properties": {"$ref": STRING, "$id": STRING, "items": STRING}}, {}),
]


@pytest.mark.parametrize(
    ("schema", "references"), [case[1:] for case in FOUND], ids=[case[0] for case in FOUND]
)
def test_found(schema: Any, references: dict[str, Any]) -> None:
    found = parsed(schema, **references)
    assert found.incompatibilities(found) == []
    found.tags()
    whole = found.formatted("resolved")
    FORMAT.parse(whole, is_new=True)  # without references
    assert FORMAT.parse(whole).incompatibilities(found) == []


NOWHERE: list[tuple[Any, str]] = [
    ({"$ref": "#/definitions/a"}, "#/$ref leads nowhere: '#/definitions/a'"),
    ({"properties": {"a/b": {"$ref": "#x"}}}, "#/properties/a~1b/$ref leads nowhere"),
    ({"$ref": "other.json"}, "'other.json'"),
    ({"$ref": "https://example.com/schema.json"}, "'https://example.com/schema.json'"),
    ({"$ref": "http://169.254.169.254/latest#/x"}, "leads nowhere"),
    ({"$ref": "file:///etc/passwd"}, "leads nowhere"),
    ({"$ref": "http://["}, "leads nowhere"),
    ({"$ref": "c.json#/definitions/Missing"}, "leads nowhere"),
    ({"$ref": "#/allOf/1", "allOf": [{}]}, "leads nowhere"),
    ({"$ref": "#/allOf/²", "allOf": [{}]}, "leads nowhere"),
    ({"$ref": "#/allOf/" + "9" * 10_000, "allOf": [{}]}, "leads nowhere"),
    ({"$ref": "#/type/0", "type": "object"}, "leads nowhere"),
    ({"$schema": DRAFT_2020, "$dynamicRef": "#x"}, "#/$dynamicRef leads nowhere"),
    ({"$ref": "%zz%ff#%00"}, "leads nowhere"),
]


@pytest.mark.parametrize(("schema", "says"), NOWHERE)
def test_nowhere(schema: Any, says: str) -> None:
    with pytest.raises(SchemaFault) as caught:
        parsed(schema, c_json=COUNTRY)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 400
    stored = FORMAT.parse(json.dumps(schema), named(c_json=COUNTRY))
    assert stored.incompatibilities(stored) == []
    stored.formatted("resolved")


def test_a_reference_that_is_not_json_is_named() -> None:
    references = [ResolvedReference("order.proto", "order", 1, 'syntax = "proto3";')]
    with pytest.raises(SchemaFault, match=r"#/\$ref: the reference 'order.proto' is at fault"):
        FORMAT.parse('{"$ref":"order.proto"}', references, is_new=True)
    stored = FORMAT.parse('{"$ref":"order.proto"}', references)
    assert stored.incompatibilities(stored) == []


def test_a_change_in_what_is_referred_to_is_a_change() -> None:
    user = {"type": "object", "properties": {"a": {"$ref": "address.json"}}}
    old = parsed(user, address_json=ADDRESS, country_json=COUNTRY)
    longer = {"definitions": {"Code": {"type": "string", "maxLength": 1}}}
    new = parsed(user, address_json=ADDRESS, country_json=longer)
    found = new.incompatibilities(old)
    assert [(one.kind, one.path) for one in found] == [
        ("MAX_LENGTH_DECREASED", "#/properties/a/properties/country/maxLength")
    ]
    assert old.incompatibilities(new) == []
    assert new != old


def test_the_resolved_form_allows_the_same() -> None:
    text = parsed(
        {"properties": {"home": {"$ref": "address.json"}, "work": {"$ref": "address.json"}}},
        address_json={**ADDRESS, "properties": {**ADDRESS["properties"], "next": {"$ref": "#"}}},
        country_json=COUNTRY,
    ).formatted("resolved")
    validator = jsonschema.Draft7Validator(json.loads(text))
    assert validator.is_valid({"home": {"country": "de", "next": {"country": "fr"}}})
    assert not validator.is_valid({"home": {"country": "deu"}})
    assert not validator.is_valid({"work": {"next": {"country": "deu"}}})
    assert text.count("maxLength") == 1


def test_normalized_sorts_references_and_drops_copies() -> None:
    one, two = named(b_json=STRING, a_json=STRING)
    schema = FORMAT.parse('{"$ref":"a.json"}', [one, two, one])
    assert schema.normalized().references == (two, one)
