"""Schemas made to exhaust their reader: all end soon, in a schema, a fault or a refusal."""

import json
from typing import Any

import pytest

from barnabas.schemas.json_schema import JsonSchema, JsonSchemaFormat

FORMAT = JsonSchemaFormat()


def parsed(schema: Any) -> JsonSchema:
    return FORMAT.parse(json.dumps(schema), is_new=True)


def chain(length: int, last: Any, keyword: str = "properties") -> dict[str, Any]:
    """D0 refers to D1, D1 to D2, and so on."""
    definitions: dict[str, Any] = {f"D{length}": last}
    for index in range(length):
        reference = {"$ref": f"#/definitions/D{index + 1}"}
        definitions[f"D{index}"] = (
            {"properties": {"next": reference}} if keyword == "properties" else reference
        )
    return {"$ref": "#/definitions/D0", "definitions": definitions}


@pytest.mark.parametrize("keyword", ["properties", "$ref"])
def test_chains_of_references_do_not_nest_calls(keyword: str) -> None:
    length = 5_000  # five times the depth of calls that Python allows by default
    old, new = (parsed(chain(length, {"type": kind}, keyword)) for kind in ("string", "null"))
    assert [one.kind for one in new.incompatibilities(old)] == ["TYPE_CHANGED"]
    assert new.incompatibilities(new) == []
    new.tags()
    new.formatted("resolved")


def doubling(depth: int, last: Any) -> dict[str, Any]:
    """Each definition has the next one twice: written out, 2 to the power of depth."""
    definitions: dict[str, Any] = {f"D{depth}": last}
    for index in range(depth):
        reference = {"$ref": f"#/definitions/D{index + 1}"}
        definitions[f"D{index}"] = {"properties": {"a": reference, "b": reference}}
    return {"$ref": "#/definitions/D0", "definitions": definitions}


def test_what_multiplies_is_looked_at_once() -> None:
    old, new = parsed(doubling(200, {"type": "string"})), parsed(doubling(200, {"type": "null"}))
    found = new.incompatibilities(old)
    assert 0 < len(found) <= 100
    assert {one.kind for one in found} == {"TYPE_CHANGED"}
    assert old.incompatibilities(old) == []
    assert len(old.formatted("resolved")) == len(old.canonical_text)


def test_cycles_of_bare_references_end() -> None:
    definitions = {"A": {"$ref": "#/definitions/B"}, "B": {"$ref": "#/definitions/A"}}
    schema = parsed({"$ref": "#/definitions/A", "definitions": definitions})
    assert schema.incompatibilities(schema) == []
    assert schema.incompatibilities(parsed({"type": "string"})) == []


def test_cliques_of_unions_end() -> None:
    names = [f"T{index}" for index in range(14)]
    union = {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in names]}
    definitions = {
        name: {"type": "object", "properties": {"id": {"type": "string"}, "x": union, "y": union}}
        for name in names
    }
    schema = {"type": "object", "properties": {"root": union}, "definitions": definitions}
    old = parsed(schema)
    definitions["T3"]["properties"]["id"] = {"type": "number"}  # type: ignore[index]
    new = parsed(schema)
    assert old.incompatibilities(old) == []
    assert new.incompatibilities(old) != []


def test_too_many_alternatives_are_refused() -> None:
    def union(count: int) -> JsonSchema:
        return parsed({"oneOf": [{"const": index} for index in range(count)]})

    assert union(300).incompatibilities(union(299)) == []
    found = union(1001).incompatibilities(union(1000))
    assert [one.kind for one in found] == ["COMPARISON_TOO_LARGE"]


NUMBERS = ["1e100000", "1e-100000", "9" * 1000, "1." + "9" * 900, "0"]


@pytest.mark.parametrize("first", NUMBERS)
@pytest.mark.parametrize("second", NUMBERS)
def test_huge_numbers_are_compared(first: str, second: str) -> None:
    keywords = ["maximum", "minimum", "const"] + ["multipleOf"] * ("0" not in (first, second))
    old, new = (
        FORMAT.parse("{" + ",".join(f'"{name}":{number}' for name in keywords) + "}", is_new=True)
        for number in (first, second)
    )
    assert (new.incompatibilities(old) == []) == (first == second)
    counted = FORMAT.parse('{"maxItems":1e100000}', is_new=True)
    assert counted.incompatibilities(counted) == []


def test_multiples_of_many_digits_are_known() -> None:
    old = FORMAT.parse('{"multipleOf":' + "7" * 90 + "}", is_new=True)
    assert FORMAT.parse('{"multipleOf":0.001}').incompatibilities(old) == []


def test_wide_schemas_are_read() -> None:
    wide = parsed({"properties": {f"p{index}": {"type": "string"} for index in range(20_000)}})
    assert wide.incompatibilities(wide) == []


def test_patterns_that_take_for_ever_are_not_run() -> None:
    slow = {
        "patternProperties": {"^(?=a)(a+)+$": {"type": "string"}},
        "additionalProperties": False,
    }
    old = parsed({"type": "object", "properties": {"a" * 5000 + "b": {"type": "null"}}, **slow})
    found = parsed({"type": "object", **slow}).incompatibilities(old)
    assert {one.kind for one in found} == {
        "TYPE_CHANGED",
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    }
