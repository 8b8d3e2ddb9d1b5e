"""Reading keywords of texts that may be older than the checks: what has a wrong shape is absent."""

from typing import Any

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
