"""Translates drafts 4 to 7 to kinds, by the rules of the library that Confluent uses (Everit).

A `$ref` excludes all other keywords. Each of enum, allOf, anyOf, oneOf, not and const makes a
separate kind; `type` includes the keywords of its type; the remaining keywords make kinds without a
type. Several kinds become an allOf.
"""

from typing import Any

from barnabas.schemas.json_schema.dialect import Draft
from barnabas.schemas.json_schema.model import values
from barnabas.schemas.json_schema.model.kinds import (
    ArraySchema,
    BooleanSchema,
    CombinedSchema,
    ConstSchema,
    Criterion,
    EnumSchema,
    NotSchema,
    NullSchema,
    ObjectSchema,
    Schema,
)
from barnabas.schemas.json_schema.model.values import InnerReader
from barnabas.schemas.json_schema.references import Place
from barnabas.schemas.json_schema.text import value_key

_ARRAY = {"items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"}
_OBJECT = {
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "dependencies",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
}
_NUMBER = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
_STRING = {"minLength", "maxLength", "pattern", "format"}
_CONDITIONAL = {"if", "then", "else"}
_COMBINED: tuple[Criterion, ...] = ("allOf", "anyOf", "oneOf")


def read_classic(reader: InnerReader, place: Place) -> Schema:
    """The schema at a place. Its object is known to be one."""
    source: dict[str, Any] = place.schema
    reference = source.get("$ref")
    if isinstance(reference, str):
        return reader.reference(place, "$ref", reference)
    keywords = set(source)
    draft = place.document.draft
    if draft is Draft.DRAFT_4:
        keywords -= {"contains", "propertyNames", "const"}
    parts = _by_keyword(reader, place, keywords)
    kinds = source.get("type")
    if isinstance(kinds, str):
        parts.append(_of_type(reader, place, kinds, keywords))
    elif isinstance(kinds, list):
        types = [_of_type(reader, place, kind, keywords) for kind in kinds if isinstance(kind, str)]
        for kind in types:
            kind.is_part = True
        parts.append(CombinedSchema(source, criterion="anyOf", parts=types))
    parts += _without_type(reader, place, keywords)
    return values.together(source, parts)


def _by_keyword(reader: InnerReader, place: Place, keywords: set[str]) -> list[Schema]:
    source = place.schema
    parts: list[Schema] = []
    if isinstance(source.get("enum"), list):
        parts.append(EnumSchema(source, values=frozenset(map(value_key, source["enum"]))))
    for criterion in _COMBINED:
        if isinstance(source.get(criterion), list):
            inner = [
                reader.inner(place, criterion, str(index))
                for index in range(len(source[criterion]))
            ]
            parts.append(CombinedSchema(source, criterion=criterion, parts=inner))
    if "not" in source:
        parts.append(NotSchema(source, inner=reader.inner(place, "not")))
    if "const" in keywords:
        parts.append(ConstSchema(source, value=value_key(source["const"])))
    return parts


def _of_type(reader: InnerReader, place: Place, kind: str, keywords: set[str]) -> Schema:
    source = place.schema
    if kind == "string":
        keywords -= _STRING
        return values.string_schema(source)
    if kind in ("integer", "number"):
        keywords -= _NUMBER
        return values.number_schema(source, is_integer=kind == "integer")
    if kind == "array":
        keywords -= _ARRAY
        return _array(reader, place)
    if kind == "object":
        keywords -= _OBJECT
        return _object(reader, place)
    return BooleanSchema(source) if kind == "boolean" else NullSchema(source)


def _without_type(reader: InnerReader, place: Place, keywords: set[str]) -> list[Schema]:
    parts: list[Schema] = []
    if keywords & _ARRAY:
        parts.append(_array(reader, place))
    if keywords & _OBJECT:
        parts.append(_object(reader, place))
    if keywords & _NUMBER:
        parts.append(values.number_schema(place.schema))
    if keywords & _STRING:
        parts.append(values.string_schema(place.schema))
    if keywords & _CONDITIONAL and place.document.draft is Draft.DRAFT_7:
        parts.append(values.conditional_schema(reader, place))
    return parts


def _array(reader: InnerReader, place: Place) -> ArraySchema:
    source = place.schema
    array = ArraySchema(
        source,
        min_items=values.number(source, "minItems"),
        max_items=values.number(source, "maxItems"),
        unique_items=source.get("uniqueItems") is True,
        allows_rest=source.get("additionalItems") is not False,
    )
    if isinstance(source.get("additionalItems"), dict):
        array.rest = reader.inner(place, "additionalItems")
    if isinstance(source.get("items"), dict | bool):
        array.each = reader.inner(place, "items")
    else:
        for index in range(len(values.items(source, "items"))):
            array.first.append(reader.inner(place, "items", str(index)))
    return array


def _object(reader: InnerReader, place: Place) -> ObjectSchema:
    source = place.schema
    needed = values.members(source, "dependencies")
    known = values.object_schema(reader, place, needed)
    known.allows_rest = source.get("additionalProperties") is not False
    if isinstance(source.get("additionalProperties"), dict):
        known.rest = reader.inner(place, "additionalProperties")
    known.needed_schemas = reader.each(place, "dependencies", needed)
    return known
