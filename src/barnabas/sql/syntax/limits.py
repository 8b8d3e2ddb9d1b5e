"""Limits of what a text may hold: how deeply expressions and types nest, how large a type is.

Analysis, compilation and evaluation call themselves once per level, so a statement that is
accepted must be so shallow that every one of them ends, wherever it runs: not only here, but also
when a server starts again and in a worker of Spark. Therefore the limits are figures, and do not
depend on how much of Python's stack is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from barnabas.sql.errors import TOO_LARGE, ParseError, Place, PrepareError
from barnabas.sql.types import Array, Decimal, Map, Primitive, SqlType, Struct

NESTING_MAX = 50
"""Maximum depth of nested expressions, or types, in a text."""

DEPTH_MAX = 100
"""The number of levels of an expression's tree; `a + b + c` has three."""

TYPE_DEPTH_MAX = 50
TYPE_SIZE_MAX = 20_000
"""The number of types that a type may consist of, each counted as often as it occurs."""

_TYPES = (Primitive, Decimal, Array, Map, Struct)


def check_text(text: str) -> None:
    """Raise ParseError for half of a surrogate pair, which UTF-8 cannot write."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        before = text[: error.start]
        place = Place(before.count("\n") + 1, error.start - before.rfind("\n"))
        shown = f"\\u{ord(text[error.start]):04x}"
        raise ParseError(f"Syntax Error\n{shown} is half of a character", place) from None


def check_tree(tree: Any) -> None:
    """Raise ParseError if an expression in the tree is too deep, PrepareError if a type is."""
    level, depth = [tree], 0
    place: Place | None = None
    while level:
        depth += 1
        place = next((node.place for node in level if getattr(node, "place", None)), place)
        if depth > DEPTH_MAX:
            raise ParseError(TOO_LARGE, place)
        level = [part for node in level for part in _parts(node)]


def _parts(node: Any) -> Iterator[Any]:
    for field in fields(node):
        yield from _nodes(getattr(node, field.name))


def _nodes(value: Any) -> Iterator[Any]:
    if isinstance(value, _TYPES):
        check_type(value)
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)
    elif is_dataclass(value) and not isinstance(value, Place):
        yield value


def check_type(checked: SqlType) -> None:
    """Raise PrepareError if the type is too deep or too large to work with."""
    waiting: list[tuple[SqlType, int]] = [(checked, 1)]
    count = 0
    while waiting:
        of, depth = waiting.pop()
        count += 1
        if depth > TYPE_DEPTH_MAX:
            raise PrepareError(f"A type must not be nested deeper than {TYPE_DEPTH_MAX} levels.")
        if count > TYPE_SIZE_MAX:
            raise PrepareError(f"A type must not be made of more than {TYPE_SIZE_MAX} types.")
        match of:
            case Array():
                waiting.append((of.item, depth + 1))
            case Map():
                waiting += [(of.key, depth + 1), (of.value, depth + 1)]
            case Struct():
                waiting += [(field.type, depth + 1) for field in of.fields]
            case _:
                pass
