"""What the readers of all drafts share: values of keywords, the way to the schemas inside of one,
and the kinds that have the same keywords in all drafts.

Texts may be older than the checks: a value of a wrong shape is absent.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from barnabas.schemas.json_schema.model.kinds import (
    CombinedSchema,
    ConditionalSchema,
    EmptySchema,
    NumberSchema,
    ObjectSchema,
    Schema,
    StringSchema,
)
from barnabas.schemas.json_schema.references import Place
from barnabas.schemas.json_schema.text import is_number


def number(schema: dict[str, Any], keyword: str) -> Any:
    """The number there, or None."""
    value = schema.get(keyword)
    return value if is_number(value) else None


def string(schema: dict[str, Any], keyword: str) -> str | None:
    """The string there, or None."""
    value = schema.get(keyword)
    return value if isinstance(value, str) else None


def members(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    """The members of the object there."""
    value = schema.get(keyword)
    return value if isinstance(value, dict) else {}


def items(schema: dict[str, Any], keyword: str) -> list[Any]:
    """The items of the list there."""
    value = schema.get(keyword)
    return value if isinstance(value, list) else []


def names(value: object) -> set[str]:
    """The strings of a list."""
    return {name for name in value if isinstance(name, str)} if isinstance(value, list) else set()


class InnerReader(Protocol):
    """Reads the schemas inside of another, of any draft."""

    def inner(self, place: Place, keyword: str, *path: str) -> Schema:
        """The schema under a keyword of the one at a place."""

    def each(self, place: Place, keyword: str, values: Mapping[str, object]) -> dict[str, Schema]:
        """The schemas in the members of an object."""

    def reference(self, place: Place, keyword: str, text: str) -> Schema:
        """The reference that a keyword of the schema at a place is."""


def string_schema(source: dict[str, Any]) -> StringSchema:
    """The keywords of strings."""
    return StringSchema(
        source,
        min_length=number(source, "minLength"),
        max_length=number(source, "maxLength"),
        pattern=string(source, "pattern"),
    )


def number_schema(source: dict[str, Any], *, is_integer: bool = False) -> NumberSchema:
    """The keywords of numbers."""
    return NumberSchema(
        source,
        is_integer=is_integer,
        minimum=number(source, "minimum"),
        maximum=number(source, "maximum"),
        exclusive_minimum=number(source, "exclusiveMinimum"),
        exclusive_maximum=number(source, "exclusiveMaximum"),
        multiple_of=number(source, "multipleOf"),
    )


def object_schema(reader: InnerReader, place: Place, needed: Mapping[str, Any]) -> ObjectSchema:
    """The keywords of objects, without the rest of the properties.

    `needed`: of a property, the names of those that must be there with it.
    """
    source = place.schema
    return ObjectSchema(
        source,
        properties=reader.each(place, "properties", members(source, "properties")),
        patterns=reader.each(place, "patternProperties", members(source, "patternProperties")),
        required=names(source.get("required")),
        min_properties=number(source, "minProperties"),
        max_properties=number(source, "maxProperties"),
        needed_names={
            name: names(value)
            for name, value in needed.items()
            if isinstance(value, list) and value
        },
    )


def conditional_schema(reader: InnerReader, place: Place) -> ConditionalSchema:
    """The keywords if, then and else."""
    branches = {
        keyword: reader.inner(place, keyword)
        for keyword in ("if", "then", "else")
        if keyword in place.schema
    }
    return ConditionalSchema(place.schema, branches=branches)


def together(source: dict[str, Any], parts: list[Schema]) -> Schema:
    """The schema of an object whose keywords make these parts."""
    if not parts:
        return EmptySchema(source)
    if len(parts) == 1:
        return parts[0]
    for part in parts:
        part.is_part = True
    return CombinedSchema(source, parts=parts, is_generated=True)
