"""The drafts of JSON Schema, and which of them a document is written in."""

import enum
from collections.abc import Iterator
from functools import cache
from typing import Any

from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped] # it has no types


class Draft(enum.IntEnum):
    """A draft, in order of age."""

    DRAFT_4 = 4
    DRAFT_6 = 6
    DRAFT_7 = 7
    DRAFT_2019_09 = 2019
    DRAFT_2020_12 = 2020

    @property
    def id_keyword(self) -> str:
        """The keyword that names a schema."""
        return "id" if self is Draft.DRAFT_4 else "$id"

    @property
    def is_modern(self) -> bool:
        """True if `$ref` stands beside other keywords, and definitions are in `$defs`."""
        return self >= Draft.DRAFT_2019_09


DEFAULT_DRAFT = Draft.DRAFT_7  # Confluent's, where there is no `$schema` or an unknown one

_METASCHEMAS = {
    "json-schema.org/draft-04/schema": Draft.DRAFT_4,
    "json-schema.org/schema": Draft.DRAFT_4,
    "json-schema.org/draft-06/schema": Draft.DRAFT_6,
    "json-schema.org/draft-07/schema": Draft.DRAFT_7,
    "json-schema.org/draft/2019-09/schema": Draft.DRAFT_2019_09,
    "json-schema.org/draft/2020-12/schema": Draft.DRAFT_2020_12,
}

# The places of schemas inside a schema, by the shape of the keyword's value.
IN_VALUE = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
IN_LIST = ("allOf", "anyOf", "oneOf", "items", "prefixItems")
IN_MEMBERS = (
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
)


def draft_of(document: object, default: Draft = DEFAULT_DRAFT) -> Draft:
    """The draft that `$schema` of a document names, else the default."""
    url = document.get("$schema") if isinstance(document, dict) else None
    if not isinstance(url, str):
        return default
    return _METASCHEMAS.get(url.removesuffix("#").partition("://")[2], default)


@cache
def metaschema(url: str) -> Any:
    """The metaschema (or one of its vocabularies) with this URL, or None."""
    if "json-schema.org" not in url:
        return None
    resource = REGISTRY.get(url)
    if resource is None:
        other = "https" if url.startswith("http:") else "http"
        resource = REGISTRY.get(other + "://" + url.partition("://")[2])
    if resource is None:
        resource = REGISTRY.get("http://" + url.partition("://")[2] + "#")
    return None if resource is None else resource.contents


def subschemas(schema: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The schemas right inside a schema, each with the path that leads to it."""
    for keyword, value in schema.items():
        if isinstance(value, dict):
            if keyword in IN_MEMBERS:
                for name, item in value.items():
                    if isinstance(item, dict | bool):
                        yield (keyword, name), item
            elif keyword in IN_VALUE:
                yield (keyword,), value
        elif isinstance(value, list):
            if keyword in IN_LIST:
                for index, item in enumerate(value):
                    if isinstance(item, dict | bool):
                        yield (keyword, str(index)), item
        elif isinstance(value, bool) and keyword in IN_VALUE:
            yield (keyword,), value
