"""JSON schemas of the registry: who is judged compatible reads, and no text does harm."""

import json
from typing import Any

import hypothesis.strategies as st
import jsonschema
import pytest
from hypothesis import HealthCheck, event, given, settings

from barnabas.schemas.json_schema import JsonSchema, JsonSchemaFormat
from barnabas.schemas.schema import SchemaFault
from support.effort import examples

FORMAT = JsonSchemaFormat()
URLS = {
    7: "http://json-schema.org/draft-07/schema#",
    2020: "https://json-schema.org/draft/2020-12/schema",
}
VALIDATORS = {7: jsonschema.Draft7Validator, 2020: jsonschema.Draft202012Validator}

# Schemas of what the rules judge soundly. They do not, as Confluent's do not, where they take a
# default for a value that is there, where an alternative of oneOf comes to overlap another, where
# a property that the writer does not know is required and takes any value (which `not` turns into
# one that is required no longer), and where they look past a keyword (contains, propertyNames, if,
# format, patternProperties).
ANYTHING: tuple[Any, ...] = (True, {})
SMALL = st.integers(min_value=0, max_value=4)
STEPS = {
    "string": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
    "boolean": (),
    "null": (),
}
KINDS = st.sampled_from(sorted(STEPS))
NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.sampled_from([None, True, False, 0, 1, 2, 3, 4, 1.5, -1, "", "x", "xy", "xyzzy"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)


@st.composite
def schemas(draw: st.DrawFn, draft: int, depth: int = 2) -> Any:
    shape = draw(st.integers(0, 9 if depth else 4))
    if shape == 0:
        return draw(st.sampled_from([*ANYTHING, False]))
    if shape == 1:
        return {"enum": draw(st.lists(SCALARS, min_size=1, max_size=3, unique_by=repr))}
    if shape == 2:
        return {"type": draw(st.lists(KINDS, min_size=1, max_size=3, unique=True))}
    if shape == 8:
        parts = st.lists(schemas(draft, depth - 1), min_size=1, max_size=3)
        return {draw(st.sampled_from(["anyOf", "allOf"])): draw(parts)}
    if shape == 9:
        return {"not": draw(schemas(draft, depth - 1))}
    kind = draw(KINDS if depth == 0 or shape < 5 else st.sampled_from(["array", "object"]))
    schema: dict[str, Any] = {"type": kind}
    for keyword in STEPS[kind]:
        if draw(st.integers(0, 3)) == 0:
            schema[keyword] = draw(SMALL)
    if kind in ("integer", "number") and draw(st.booleans()):
        schema["multipleOf"] = draw(st.sampled_from([1, 2, 4]))
    if depth and kind == "array":
        schema |= draw(items(draft, depth - 1))
    if depth and kind == "object":
        properties = draw(st.dictionaries(NAMES, schemas(draft, depth - 1), max_size=3))
        schema["properties"] = properties
        schema["required"] = [
            name
            for name, inner in properties.items()
            if inner not in ANYTHING and draw(st.integers(0, 3)) == 0
        ]
        if draw(st.integers(0, 2)):
            schema["additionalProperties"] = draw(
                st.one_of(st.just(False), schemas(draft, depth - 1))
            )
    return schema


@st.composite
def items(draw: st.DrawFn, draft: int, depth: int) -> dict[str, Any]:
    inner = schemas(draft, depth)
    if draw(st.booleans()):
        return {"items": draw(inner), "uniqueItems": draw(st.booleans())}
    first, rest = ("prefixItems", "items") if draft == 2020 else ("items", "additionalItems")
    found: dict[str, Any] = {first: draw(st.lists(inner, min_size=1, max_size=2))}
    if draw(st.booleans()):
        found[rest] = draw(st.one_of(st.just(False), inner))
    return found


@st.composite
def changed(draw: st.DrawFn, schema: Any, draft: int) -> Any:
    """A schema like the given one: some keywords gone, some limits moved, some parts others."""
    if not isinstance(schema, dict) or draw(st.integers(0, 15)) == 0:
        return draw(schemas(draft, 1)) if draw(st.integers(0, 5)) == 0 else schema
    found: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword != "type" and draw(st.integers(0, 7)) == 0:
            continue
        if keyword == "properties":
            kept = {n: draw(changed(v, draft)) for n, v in value.items() if draw(st.integers(0, 7))}
            if draw(st.integers(0, 3)) == 0:
                kept[draw(NAMES)] = draw(schemas(draft, 1))
            value = kept
        elif isinstance(value, dict):
            value = draw(changed(value, draft))
        elif keyword in ("anyOf", "allOf", "prefixItems") or (
            keyword == "items" and isinstance(value, list)
        ):
            value = [draw(changed(part, draft)) for part in value]
            if draw(st.integers(0, 3)) == 0:
                value.append(draw(schemas(draft, 1)))
        elif isinstance(value, int) and not isinstance(value, bool):
            value = max(1 if keyword == "multipleOf" else 0, value + draw(st.integers(-1, 1)))
        found[keyword] = value
    if "required" in found:
        properties = found.get("properties", {})
        found["required"] = [n for n in found["required"] if properties.get(n, {}) not in ANYTHING]
    return found


@st.composite
def instances(draw: st.DrawFn, schema: Any) -> Any:
    """A value that the schema often allows."""
    if not isinstance(schema, dict) or draw(st.integers(0, 9)) == 0:
        return draw(VALUES)
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if "anyOf" in schema or "allOf" in schema:
        return draw(instances(draw(st.sampled_from(schema.get("anyOf") or schema["allOf"]))))
    kinds = schema.get("type", "null")
    kind = draw(st.sampled_from(kinds)) if isinstance(kinds, list) else kinds
    if kind == "object":
        properties = schema.get("properties", {})
        required = schema.get("required", [])
        found = {
            name: draw(instances(inner))
            for name, inner in properties.items()
            if name in required or draw(st.booleans())
        }
        if draw(st.booleans()):
            found.setdefault(draw(NAMES), draw(instances(schema.get("additionalProperties"))))
        return found
    if kind == "array":
        first = schema.get("prefixItems", schema.get("items", []))
        first = first if isinstance(first, list) else []
        rest = schema.get("additionalItems", schema.get("items"))
        rest = rest if isinstance(rest, dict) else None
        count = draw(st.integers(0, 4))
        return [draw(instances(first[i] if i < len(first) else rest)) for i in range(count)]
    return draw(
        {
            "string": st.text("xy", max_size=6),
            "integer": st.integers(-1, 8),
            "number": st.integers(-2, 16).map(lambda n: n / 2),
            "boolean": st.booleans(),
        }.get(kind, st.none())
    )


def parsed(schema: Any, draft: int) -> JsonSchema:
    if isinstance(schema, dict):
        schema = {"$schema": URLS[draft], **schema}
    return FORMAT.parse(json.dumps(schema), is_new=True)


@pytest.mark.parametrize("draft", [7, 2020])
@settings(max_examples=examples(24))
@given(st.data())
def test_who_is_judged_compatible_reads_what_was_written(draft: int, data: st.DataObject) -> None:
    writer = data.draw(schemas(draft))
    reader = data.draw(changed(writer, draft))
    verdict = parsed(reader, draft).incompatibilities(parsed(writer, draft))
    event(f"compatible: {not verdict}, same: {writer == reader}")
    if verdict:
        return
    writes, reads = VALIDATORS[draft](writer), VALIDATORS[draft](reader)
    for value in data.draw(st.lists(instances(writer), min_size=5, max_size=5)):
        if writes.is_valid(value):
            assert reads.is_valid(value), (writer, reader, value)


@given(st.sampled_from([7, 2020]).flatmap(lambda draft: st.tuples(st.just(draft), schemas(draft))))
def test_a_schema_reads_its_own_records_in_any_form(case: tuple[int, Any]) -> None:
    schema = parsed(case[1], case[0])
    assert FORMAT.parse(schema.canonical_text, is_new=True) == schema
    sorted_schema = schema.normalized()
    assert sorted_schema.normalized() == sorted_schema
    for other in (schema, sorted_schema, FORMAT.parse(schema.formatted("resolved"))):
        assert schema.incompatibilities(other) == []
        assert other.incompatibilities(schema) == []


KEYWORDS = st.sampled_from(
    [
        "$ref",
        "$id",
        "$schema",
        "$defs",
        "$anchor",
        "$dynamicRef",
        "definitions",
        "type",
        "properties",
        "required",
        "items",
        "enum",
        "const",
        "anyOf",
        "allOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "patternProperties",
        "additionalProperties",
        "dependencies",
        "dependentSchemas",
        "dependentRequired",
        "prefixItems",
        "contains",
        "minimum",
        "multipleOf",
        "pattern",
        "title",
        "confluent:tags",
        "default",
        "unevaluatedProperties",
        "minContains",
    ]
)
JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=8),
        st.sampled_from(["#", "#/definitions/a", "#/properties/a/items", "http://x/y#z", "object"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(KEYWORDS, inner, max_size=4),
        st.dictionaries(st.sampled_from(["a", "$ref", "^a", ""]), inner, max_size=3),
    ),
    max_leaves=20,
)


@settings(max_examples=examples(24), suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(KEYWORDS, JUNK, max_size=6), st.dictionaries(KEYWORDS, JUNK, max_size=6))
def test_any_json_ends_in_a_schema_or_a_fault(one: Any, other: Any) -> None:
    found = []
    for value in (one, other):
        try:
            text = json.dumps(value, ensure_ascii=False)
            stored = FORMAT.parse(text)
        except SchemaFault:
            continue
        found.append(stored)
        assert FORMAT.parse(stored.canonical_text) == stored
        assert stored.normalized().normalized() == stored.normalized()
        stored.tags()
        stored.formatted("resolved")
        try:
            FORMAT.parse(text, is_new=True)
        except SchemaFault as fault:
            event(str(fault)[:20])
    for schema in found:
        for written in found:
            schema.incompatibilities(written)
            schema.incompatibilities(written, lenient=True)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(st.text(), st.text('{}[]",:\\u0d8e-+.5tfn \n', max_size=40)))
def test_any_text_ends_in_a_schema_or_a_fault(text: str) -> None:
    try:
        schema = FORMAT.parse(text, is_new=True)
    except SchemaFault:
        return
    assert FORMAT.parse(schema.canonical_text) == schema
