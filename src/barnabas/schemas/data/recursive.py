"""Schemas of structs that contain themselves: a list's next item, a tree's branches.

Inside itself such a schema is a `SchemaReference`: it has all attributes of the schema, but its own
optionality. Code that walks through schemas must not follow references forever: it processes a
reference only when that is first needed (`when_needed`).

Source: AvroData.CyclicSchemaWrapper (Confluent 8).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema, Type

A = TypeVar("A")
R = TypeVar("R")
_PARTS = ("type", "optional", "default", "name", "version", "doc", "parameters", "fields")


class SchemaReference(Schema):
    """A struct's schema within itself. It is bound as soon as the schema is whole."""

    __slots__ = ()

    def bind(self, schema: Schema, *, is_optional: bool | None = None) -> None:
        """Take what the schema has, but for whether it allows null; own parameters stay."""
        if is_optional is not None:
            object.__setattr__(self, "optional", is_optional)
        for part in ("name", "version", "doc", "fields"):
            object.__setattr__(self, part, getattr(schema, part))
        object.__setattr__(self, "parameters", {**schema.parameters, **self.parameters})
        object.__setattr__(self, "_by_name", None)

    def refers_to(self, schema: Schema) -> bool:
        """Return whether a schema is what this one stands for within it."""
        return self.name == schema.name and self.fields == schema.fields

    def __hash__(self) -> int:
        names = tuple(field.name for field in self.fields)
        return hash((self.optional, self.name, self.version, names))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SchemaReference) and _is_same(self, other, set())

    def __repr__(self) -> str:
        return f"SchemaReference(name={self.name!r}, optional={self.optional})"

    def __reduce__(self) -> tuple[Any, ...]:
        # First the object, then what it has: that has the object again.
        return _unbound, (), {part: getattr(self, part) for part in _PARTS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for part, value in state.items():
            object.__setattr__(self, part, value)


def reference(*, is_optional: bool) -> SchemaReference:
    """A reference that is not bound yet."""
    return SchemaReference(Type.STRUCT, optional=is_optional)


def _unbound() -> SchemaReference:
    return reference(is_optional=False)


def _is_same(one: Schema | None, other: Schema | None, assumed: set[tuple[int, int]]) -> bool:
    """Return whether two schemas are equal if those are that are being compared already."""
    if one is other or one is None or other is None:
        return one is other
    if type(one) is not type(other):
        return False
    if type(one) is SchemaReference:
        pair = id(one), id(other)
        if pair in assumed:
            return True
        assumed.add(pair)
    if any(getattr(one, p) != getattr(other, p) for p in _PARTS[:-1]):
        return False
    return (
        len(one.fields) == len(other.fields)
        and all(
            mine.name == theirs.name and _is_same(mine.schema, theirs.schema, assumed)
            for mine, theirs in zip(one.fields, other.fields, strict=True)
        )
        and _is_same(one.key_schema, other.key_schema, assumed)
        and _is_same(one.value_schema, other.value_schema, assumed)
    )


def refuse_recursion(schema: Schema, what: str) -> None:
    """Raises DataError for a schema within itself, which `what` does not have."""
    if type(schema) is SchemaReference:
        raise DataError(f"{schema} contains itself, which is not possible in {what}")


def when_needed(make: Callable[[], Callable[[A], R]]) -> Callable[[A], R]:
    """A function that is made when it is first called."""
    made: list[Callable[[A], R]] = []

    def call(given: A) -> R:
        if not made:
            made.append(make())
        return made[0](given)

    return call
