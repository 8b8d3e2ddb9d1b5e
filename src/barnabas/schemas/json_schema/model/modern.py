"""Translates drafts 2019-09 and 2020-12 to kinds, by Confluent's rules.

Each keyword is a small schema of one kind. Two of the same kind join into one; with one of several
types, the keywords of that type join it; what cannot join is an allOf.
"""

from typing import Any

from barnabas.schemas.json_schema.dialect import Draft
from barnabas.schemas.json_schema.model import values
from barnabas.schemas.json_schema.model.kinds import (
    ArraySchema,
    BooleanSchema,
    CombinedSchema,
    ConstSchema,
    EnumSchema,
    FalseSchema,
    NotSchema,
    NullSchema,
    NumberSchema,
    ObjectSchema,
    Schema,
    StringSchema,
    TrueSchema,
)
from barnabas.schemas.json_schema.model.values import InnerReader
from barnabas.schemas.json_schema.references import REFERENCE_KEYWORDS, Place
from barnabas.schemas.json_schema.text import value_key

_STRING = {"minLength", "maxLength", "pattern"}
_NUMBER = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
_ARRAY = {
    "items",
    "prefixItems",
    "additionalItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "unevaluatedItems",
}
_OBJECT = {
    "properties",
    "patternProperties",
    "additionalProperties",
    "required",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "propertyNames",
    "unevaluatedProperties",
}


def read_modern(reader: InnerReader, place: Place) -> Schema:
    """The schema at a place. Its object is known to be one."""
    source: dict[str, Any] = place.schema
    parts: list[Schema] = [
        reader.reference(place, keyword, source[keyword])
        for keyword in REFERENCE_KEYWORDS
        if isinstance(source.get(keyword), str)
    ]
    kinds = source.get("type")
    names = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    types = [_of_type(source, name) for name in names if isinstance(name, str)]
    loose = [part for part in _typeless(reader, place) if not _join_one_of(types, part)]
    if len(types) > 1 or (types and isinstance(kinds, list)):
        for each in types:
            each.is_part = True
        parts.append(CombinedSchema(source, criterion="anyOf", parts=types, is_generated=True))
    else:
        parts += types
    parts += loose
    parts += _by_keyword(reader, place)
    return values.together(source, parts)


def _join_one_of(types: list[Schema], part: Schema) -> bool:
    for index, own in enumerate(types):
        if type(own) is type(part):
            if isinstance(own, NumberSchema) and isinstance(part, NumberSchema):
                part.is_integer = own.is_integer
            types[index] = part
            return True
    return False


def _of_type(source: dict[str, Any], kind: str) -> Schema:
    if kind in ("integer", "number"):
        return NumberSchema(source, is_integer=kind == "integer")
    for name, known in (
        ("string", StringSchema),
        ("array", ArraySchema),
        ("object", ObjectSchema),
        ("boolean", BooleanSchema),
    ):
        if kind == name:
            return known(source)
    return NullSchema(source)


def _typeless(reader: InnerReader, place: Place) -> list[Schema]:
    source = place.schema
    keywords = source.keys()
    parts: list[Schema] = []
    if keywords & _STRING:
        parts.append(values.string_schema(source))
    if keywords & _NUMBER:
        parts.append(values.number_schema(source))
    if keywords & _ARRAY:
        parts.append(_array(reader, place))
    if any(
        source[keyword] != {} or keyword not in ("properties", "patternProperties")
        for keyword in keywords & _OBJECT
    ):
        parts.append(_object(reader, place))
    return parts


def _by_keyword(reader: InnerReader, place: Place) -> list[Schema]:
    source = place.schema
    parts: list[Schema] = []
    if isinstance(source.get("enum"), list):
        parts.append(EnumSchema(source, values=frozenset(map(value_key, source["enum"]))))
    if "const" in source:
        parts.append(ConstSchema(source, value=value_key(source["const"])))
    for criterion in ("allOf", "anyOf", "oneOf"):
        if isinstance(source.get(criterion), list):
            inner: list[Schema] = []
            for index in range(len(source[criterion])):
                part = reader.inner(place, criterion, str(index))
                if (
                    isinstance(part, CombinedSchema)
                    and part.is_generated
                    and part.criterion == "allOf"
                ):
                    inner += part.parts
                else:
                    inner.append(part)
            parts.append(CombinedSchema(source, criterion=criterion, parts=inner))
    if "not" in source:
        parts.append(NotSchema(source, inner=reader.inner(place, "not")))
    if "if" in source:
        parts.append(values.conditional_schema(reader, place))
    return parts


def _array(reader: InnerReader, place: Place) -> ArraySchema:
    source = place.schema
    array = ArraySchema(
        source,
        min_items=values.number(source, "minItems"),
        max_items=values.number(source, "maxItems"),
        unique_items=source.get("uniqueItems") is True,
    )
    first, rest = "prefixItems", "items"
    if place.document.draft is Draft.DRAFT_2019_09 and isinstance(source.get("items"), list):
        first, rest = "items", "additionalItems"
    for index in range(len(values.items(source, first))):
        array.first.append(reader.inner(place, first, str(index)))
    if isinstance(source.get(rest), dict | bool):
        others = reader.inner(place, rest)
        if isinstance(others, FalseSchema):
            array.allows_rest = False
        elif not isinstance(others, TrueSchema):
            if array.first:
                array.rest = others
            else:
                array.each = others
    if "contains" in source:
        low = values.number(source, "minContains")
        array.min_contains = 1 if low is None else low
        array.max_contains = values.number(source, "maxContains")
    if "unevaluatedItems" in source:
        array.unevaluated = reader.inner(place, "unevaluatedItems")
    return array


def _object(reader: InnerReader, place: Place) -> ObjectSchema:
    source = place.schema
    known = values.object_schema(reader, place, values.members(source, "dependentRequired"))
    needed = values.members(source, "dependentSchemas")
    known.needed_schemas = reader.each(place, "dependentSchemas", needed)
    if isinstance(source.get("additionalProperties"), dict | bool):
        others = reader.inner(place, "additionalProperties")
        if isinstance(others, FalseSchema):
            known.allows_rest = False
        elif not isinstance(others, TrueSchema):
            known.rest = others
    if "unevaluatedProperties" in source:
        known.unevaluated = reader.inner(place, "unevaluatedProperties")
    return known
