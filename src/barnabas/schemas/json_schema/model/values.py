"""Values of keywords, and the way to the schemas inside of one, for the readers of all drafts.

Texts may be older than the checks: a value of a wrong shape is absent.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from barnabas.schemas.json_schema.model.kinds import Schema
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
