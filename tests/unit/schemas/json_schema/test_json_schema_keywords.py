"""Faults in keywords: found where the metaschema finds them, and named with their path."""

import json
from typing import Any

import hypothesis.strategies as st
import jsonschema
import pytest
from hypothesis import assume, example, given

from barnabas.schemas.json_schema import JsonSchemaFormat
from barnabas.schemas.json_schema.dialect import DEFAULT_DRAFT, Draft, draft_of
from barnabas.schemas.json_schema.keywords import check
from barnabas.schemas.json_schema.patterns import fault_of, find
from barnabas.schemas.json_schema.text import decode
from barnabas.schemas.schema import SchemaFault

FORMAT = JsonSchemaFormat()
URLS = {
    Draft.DRAFT_4: "http://json-schema.org/draft-04/schema#",
    Draft.DRAFT_6: "http://json-schema.org/draft-06/schema#",
    Draft.DRAFT_7: "http://json-schema.org/draft-07/schema#",
    Draft.DRAFT_2019_09: "https://json-schema.org/draft/2019-09/schema",
    Draft.DRAFT_2020_12: "https://json-schema.org/draft/2020-12/schema",
}
CLASSES = {
    Draft.DRAFT_4: jsonschema.Draft4Validator,
    Draft.DRAFT_6: jsonschema.Draft6Validator,
    Draft.DRAFT_7: jsonschema.Draft7Validator,
    Draft.DRAFT_2019_09: jsonschema.Draft201909Validator,
    Draft.DRAFT_2020_12: jsonschema.Draft202012Validator,
}

FAULTS = [
    # schema, what the fault says
    ({"type": "strng"}, "#/type has no type of JSON Schema: 'strng'"),
    ({"type": ["string", 7]}, "#/type has no type"),
    ({"type": []}, "#/type must have at least one"),
    ({"properties": {"a/b": {"minLength": -1}}}, "#/properties/a~1b/minLength must be a whole"),
    ({"properties": []}, "#/properties must be an object"),
    ({"properties": {"a": 1}}, "#/properties/a must be a schema"),
    ({"required": "a"}, "#/required must be a list of strings"),
    ({"required": ["a", "a"]}, "#/required has a string twice"),
    ({"properties": {"a": {"required": True}}}, "#/properties/a/required must be"),
    ({"allOf": []}, "#/allOf must be a list"),
    ({"anyOf": [{}, {"oneOf": [{"maximum": "1"}]}]}, "#/anyOf/1/oneOf/0/maximum must be a number"),
    ({"items": [{"multipleOf": 0}]}, "#/items/0/multipleOf must be a number greater"),
    ({"pattern": "("}, "#/pattern is not a regular expression: it has a ( without"),
    ({"patternProperties": {"[": {}}}, "#/patternProperties/[ is not a regular expression"),
    ({"$ref": 1}, "#/$ref must be a string"),
    ({"dependencies": {"a": [1]}}, "#/dependencies/a must be a list"),
    ({"properties": {"$$x": {}}}, "#/properties/$$x begins with $$"),
    ({"$schema": URLS[Draft.DRAFT_4], "properties": {"a": True}}, "#/properties/a must be an obj"),
    ({"$schema": URLS[Draft.DRAFT_4], "required": []}, "#/required must not be empty"),
    ({"$schema": URLS[Draft.DRAFT_4], "exclusiveMinimum": True}, "#/exclusiveMinimum needs min"),
    ({"$schema": URLS[Draft.DRAFT_2020_12], "items": [{}]}, "#/items must be a schema"),
    ({"$schema": URLS[Draft.DRAFT_2020_12], "$anchor": "a b"}, "#/$anchor may not be 'a b'"),
    ({"$schema": URLS[Draft.DRAFT_2020_12], "$id": "a#b"}, "#/$id may not be 'a#b'"),
]


@pytest.mark.parametrize(("schema", "says"), FAULTS)
def test_a_fault_says_its_place(schema: Any, says: str) -> None:
    with pytest.raises(SchemaFault) as caught:
        FORMAT.parse(json.dumps(schema), is_new=True)
    assert says in str(caught.value)
    FORMAT.parse(json.dumps(schema)).tags()  # what is in a topic already is read


DRAFTS = [
    ({}, DEFAULT_DRAFT),
    ({"$schema": 7}, DEFAULT_DRAFT),
    ({"$schema": "http://example.com/mine"}, DEFAULT_DRAFT),
    ({"$schema": "http://json-schema.org/schema#"}, Draft.DRAFT_4),
    ({"$schema": "https://json-schema.org/draft-06/schema"}, Draft.DRAFT_6),
    ({"$schema": "http://json-schema.org/draft/2019-09/schema#"}, Draft.DRAFT_2019_09),
    *(({"$schema": url}, draft) for draft, url in URLS.items()),
]


@pytest.mark.parametrize(("document", "draft"), DRAFTS)
def test_the_draft_is_that_of_the_url(document: Any, draft: Draft) -> None:
    assert draft_of(document) is draft


KEYWORDS = sorted(
    {
        keyword
        for cls in CLASSES.values()
        for keyword in (*cls.META_SCHEMA.get("properties", {}), *cls.VALIDATORS)
    }
    | {"$defs", "$anchor", "$comment", "contentSchema", "definitions", "deprecated", "examples"}
    | {"$dynamicAnchor", "$vocabulary", "$recursiveAnchor", "title", "readOnly", "writeOnly"}
)
NAMES = st.sampled_from(["a", "b", "type", "$ref"])
VALUES = st.recursive(
    st.sampled_from(
        [
            None,
            True,
            False,
            0,
            1,
            -1,
            1.5,
            2.0,
            "",
            "a",
            "string",
            "array",
            "^x",
            "a#b",
            "#a",
            "a b",
        ]
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(NAMES, inner, max_size=2),
        st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=3),
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("draft", list(URLS), ids=lambda draft: draft.name)
@example({"$recursiveAnchor": "a"})
@example({"$recursiveAnchor": True})
@given(st.dictionaries(st.sampled_from(KEYWORDS), VALUES, max_size=4))
def test_faults_are_found_where_the_metaschema_finds_them(
    draft: Draft, schema: dict[str, Any]
) -> None:
    schema.pop("$schema", None)
    if draft is Draft.DRAFT_4:
        assume("$ref" not in json.dumps(schema))  # its metaschema says nothing of it
    cls = CLASSES[draft]
    valid = not list(cls(cls.META_SCHEMA).iter_errors(schema))
    document = decode(json.dumps(schema))
    if valid:
        check(document, draft)
    else:
        with pytest.raises(SchemaFault):
            check(document, draft)


PATTERNS = [
    # pattern, what is wrong with it
    (r"^\d{4}-(0[1-9]|1[0-2])$", None),
    (r"^(?!x)(?=.*y)a++$".replace("++", "+"), None),
    (r"(?<year>\d+)-\k<year>\1", None),
    (r"\p{L}+(?<=a)", None),
    (r"[^\]]+(?<!b)", None),
    ("a{,5}(?=b)", None),
    ("(?=a", "without its )"),
    ("(?=a))", "without its ("),
    ("(?=a)[b", "without its ]"),
    ("(?=a)*+?+", "repeats nothing"),
    ("(?=a)\\", "backslash"),
    ("(?=a)(?P=x)", "unknown group"),
    ("*a", "repeats nothing"),
    ("x" * 10_001, "more than 10000"),
]


@pytest.mark.parametrize(("pattern", "fault"), PATTERNS)
def test_regular_expressions_are_checked_for_their_form(pattern: str, fault: str | None) -> None:
    found = fault_of(pattern)
    assert found is None if fault is None else fault in str(found)


def test_regular_expressions_are_matched_in_linear_time_or_not_at_all() -> None:
    assert find("^(a+)+$", "a" * 5_000 + "b") is False
    assert find("^(a|a)*$", "a" * 5_000) is True
    assert find("^(?=a)(a+)+$", "a" * 5_000 + "b") is None
    assert fault_of("((a{1000}){1000}){1000}") is None
