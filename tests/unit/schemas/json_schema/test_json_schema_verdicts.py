"""Our verdicts on pairs of schemas against those of Confluent's provider.

`confluent-8.5-verdicts.json` says how it was made.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.schemas.json_schema import JsonSchema, JsonSchemaFormat

FORMAT = JsonSchemaFormat()
PAIRS = json.loads(Path(__file__).with_name("confluent-8.5-verdicts.json").read_text())["pairs"]
MODERN = "https://json-schema.org/draft/2020-12/schema"


def parsed(schema: Any) -> JsonSchema:
    return FORMAT.parse(json.dumps(schema))  # as in a topic: Confluent checks less


def changes(writer: Any, reader: Any, *, lenient: bool = False) -> list[str]:
    found = parsed(reader).incompatibilities(parsed(writer), lenient=lenient)
    return sorted(f"{one.kind} {one.path}" for one in found)


def test_the_table_is_large() -> None:
    assert len(PAIRS) > 1500
    assert sum(not pair["strict"] for pair in PAIRS) > 300


@pytest.mark.parametrize("policy", ["strict", "lenient"])
def test_verdicts_are_those_of_confluent(policy: str) -> None:
    wrong = []
    for pair in PAIRS:
        expected = pair.get(policy, pair["strict"])
        ours = changes(pair["writer"], pair["reader"], lenient=policy == "lenient")
        if ours != expected:
            wrong.append((pair, ours))
    assert wrong == []


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def unevaluated(value: Any, **properties: Any) -> dict[str, Any]:
    return {"$schema": MODERN, "properties": properties, "unevaluatedProperties": value}


STRING, NUMBER = {"type": "string"}, {"type": "number"}

UNEVALUATED = [
    # writer, reader, changes
    (unevaluated(False, a=STRING), unevaluated(False, a=STRING, b=NUMBER), []),
    (
        unevaluated(False, a=STRING, b=NUMBER),
        unevaluated(False, a=STRING),
        ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/b"],
    ),
    (unevaluated(STRING, a=STRING), unevaluated(STRING, a=STRING, b=STRING), []),
    (
        unevaluated(STRING, a=STRING),
        unevaluated(STRING, a=STRING, b=NUMBER),
        [
            "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/b",
            "TYPE_CHANGED #/properties/b",
        ],
    ),
    (
        unevaluated(True, a=STRING),
        unevaluated(False, a=STRING),
        ["UNEVALUATED_PROPERTIES_REMOVED #/unevaluatedProperties"],
    ),
    (unevaluated(False, a=STRING), unevaluated(True, a=STRING), []),
    (
        unevaluated(True, a=STRING),
        unevaluated(STRING, a=STRING),
        ["UNEVALUATED_PROPERTIES_NARROWED #/unevaluatedProperties"],
    ),
    (
        unevaluated(STRING, a=STRING),
        unevaluated(NUMBER, a=STRING),
        ["TYPE_CHANGED #/unevaluatedProperties"],
    ),
    (
        {"$schema": MODERN, "type": "array"},
        {"$schema": MODERN, "type": "array", "unevaluatedItems": False},
        ["UNEVALUATED_ITEMS_REMOVED #/unevaluatedItems"],
    ),
    (
        {"$schema": MODERN, "prefixItems": [STRING], "unevaluatedItems": STRING},
        {"$schema": MODERN, "prefixItems": [STRING, NUMBER], "unevaluatedItems": STRING},
        [
            "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
            "TYPE_CHANGED #/items/1",
        ],
    ),
    (
        {"$schema": MODERN, "prefixItems": [STRING, STRING], "unevaluatedItems": STRING},
        {"$schema": MODERN, "prefixItems": [STRING], "unevaluatedItems": STRING},
        [],
    ),
]


@pytest.mark.parametrize(("writer", "reader", "expected"), UNEVALUATED)
def test_unevaluated_is_a_content_model_too(writer: Any, reader: Any, expected: list[str]) -> None:
    assert changes(writer, reader) == expected


def definitions(**inner: Any) -> dict[str, Any]:
    return {"definitions": inner, "$ref": "#/definitions/A"}


def linked(name: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**properties, "next": {"oneOf": [{"$ref": f"#/definitions/{name}"}]}},
    }


RECURSIVE = [
    ("the same list", linked_list := closed(v=STRING, next={"$ref": "#"}), linked_list, True),
    ("a value added", linked_list, closed(v=STRING, w=STRING, next={"$ref": "#"}), True),
    ("a value removed", linked_list, closed(next={"$ref": "#"}), False),
    (
        "a change that only a cycle reaches",
        definitions(A=linked("B", v=STRING), B=linked("A", w=STRING)),
        definitions(A=linked("B", v=STRING), B=linked("A", w=NUMBER)),
        False,
    ),
    ("references that never end", {"$ref": "#"}, {"$ref": "#"}, True),
]


@pytest.mark.parametrize(
    ("writer", "reader", "compatible"),
    [case[1:] for case in RECURSIVE],
    ids=[c[0] for c in RECURSIVE],
)
def test_schemas_that_refer_to_themselves(writer: Any, reader: Any, compatible: bool) -> None:
    assert (changes(writer, reader) == []) == compatible


def test_what_was_taken_for_compatible_in_a_cycle_is_looked_at_again() -> None:
    """The pair (T0, T0) is compared inside itself first; the root must not trust that."""

    def schema(first: str, second: str) -> dict[str, Any]:
        def one(kind: str, target: str) -> dict[str, Any]:
            ref = {"oneOf": [{"$ref": f"#/definitions/{target}"}]}
            return {"type": "object", "properties": {"id": {"type": kind}, "ref": ref}}

        root = [{"$ref": "#/definitions/T0"}, {"$ref": "#/definitions/T1"}]
        return {
            "type": "object",
            "properties": {"root": {"oneOf": root}},
            "definitions": {
                "T0": one(first, "T2"),
                "T1": one(second, "T2"),
                "T2": one("integer", "T0"),
            },
        }

    assert changes(schema("integer", "boolean"), schema("boolean", "number")) != []
    assert changes(schema("integer", "boolean"), schema("integer", "boolean")) == []


def test_a_smaller_exclusive_maximum_is_refused_beside_a_maximum() -> None:
    """Confluent compares it with the wrong keyword."""
    writer = {"type": "number", "maximum": 9, "exclusiveMaximum": 5}
    reader = {"type": "number", "maximum": 9, "exclusiveMaximum": 3}
    assert changes(writer, reader) == ["EXCLUSIVE_MAXIMUM_DECREASED #/exclusiveMaximum"]


def test_schemas_of_other_formats_are_incompatible() -> None:
    class Stranger:
        schema_type = "AVRO"

    found = parsed({}).incompatibilities(Stranger())  # type: ignore[arg-type]
    assert [one.kind for one in found] == ["SCHEMA_TYPE_CHANGED"]


def test_each_change_is_told_in_a_sentence_with_its_place() -> None:
    found = parsed(closed(a=NUMBER)).incompatibilities(parsed(closed(a=STRING)))
    assert [one.path for one in found] == ["#/properties/a"]
    assert "'#/properties/a'" in found[0].description
    for pair in PAIRS:
        for one in parsed(pair["reader"]).incompatibilities(parsed(pair["writer"])):
            assert one.description
