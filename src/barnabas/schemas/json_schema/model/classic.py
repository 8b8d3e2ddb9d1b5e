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
    ConditionalSchema,
    ConstSchema,
    Criterion,
    EmptySchema,
    EnumSchema,
    NotSchema,
    NullSchema,
    NumberSchema,
    ObjectSchema,
    Schema,
    StringSchema,
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
    if not parts:
        return EmptySchema(source)
    if len(parts) == 1:
        return parts[0]
    for part in parts:
        part.is_part = True
    return CombinedSchema(source, parts=parts, is_generated=True)


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
        return _string(source)
    if kind in ("integer", "number"):
        keywords -= _NUMBER
        return _number(source, is_integer=kind == "integer")
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
        parts.append(_number(place.schema))
    if keywords & _STRING:
        parts.append(_string(place.schema))
    if keywords & _CONDITIONAL and place.document.draft is Draft.DRAFT_7:
        branches = {
            keyword: reader.inner(place, keyword)
            for keyword in ("if", "then", "else")
            if keyword in place.schema
        }
        parts.append(ConditionalSchema(place.schema, branches=branches))
    return parts


def _string(source: dict[str, Any]) -> StringSchema:
    return StringSchema(
        source,
        min_length=values.number(source, "minLength"),
        max_length=values.number(source, "maxLength"),
        pattern=values.string(source, "pattern"),
    )


def _number(source: dict[str, Any], *, is_integer: bool = False) -> NumberSchema:
    return NumberSchema(
        source,
        is_integer=is_integer,
        minimum=values.number(source, "minimum"),
        maximum=values.number(source, "maximum"),
        exclusive_minimum=values.number(source, "exclusiveMinimum"),
        exclusive_maximum=values.number(source, "exclusiveMaximum"),
        multiple_of=values.number(source, "multipleOf"),
    )


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
    known = ObjectSchema(
        source,
        properties=reader.each(place, "properties", values.members(source, "properties")),
        patterns=reader.each(
            place, "patternProperties", values.members(source, "patternProperties")
        ),
        allows_rest=source.get("additionalProperties") is not False,
        required=values.names(source.get("required")),
        min_properties=values.number(source, "minProperties"),
        max_properties=values.number(source, "maxProperties"),
    )
    if isinstance(source.get("additionalProperties"), dict):
        known.rest = reader.inner(place, "additionalProperties")
    needed = values.members(source, "dependencies")
    known.needed_schemas = reader.each(place, "dependencies", needed)
    known.needed_names = {
        name: values.names(value)
        for name, value in needed.items()
        if isinstance(value, list) and value
    }
    return known
