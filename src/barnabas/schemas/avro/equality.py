"""Equality of two definitions of one name, as Java sees it.

Docs and aliases do not count, properties do. A name that is not found yet equals nothing.
"""

from collections.abc import Iterator

from barnabas.schemas.avro.json_text import equal
from barnabas.schemas.avro.model import (
    MISSING,
    Array,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Schema,
    Union,
    Unresolved,
)


def is_same(one: Schema, other: Schema) -> bool:
    """Compare two schemas; cycles end where a pair is met again."""
    seen: set[tuple[int, int]] = set()
    pairs = [(one, other)]
    while pairs:
        left, right = pairs.pop()
        key = (id(left), id(right))
        if left is right or key in seen:
            continue
        seen.add(key)
        if left.kind != right.kind or not _is_same_outside(left, right):
            return False
        pairs.extend(zip(_inside(left), _inside(right), strict=True))
    return True


def _is_same_outside(left: Schema, right: Schema) -> bool:
    if isinstance(left, Union) and isinstance(right, Union):
        return len(left.branches) == len(right.branches)
    if isinstance(left, Union) or isinstance(right, Union) or not equal(left.props, right.props):
        return False
    if isinstance(left, Primitive | Array | Map) or isinstance(right, Primitive | Array | Map):
        return True
    if left.name != right.name:
        return False
    if isinstance(left, Record) and isinstance(right, Record):
        if isinstance(left, Unresolved) or isinstance(right, Unresolved):
            return False
        return _fields_are_same(left, right)
    if isinstance(left, Enum) and isinstance(right, Enum):
        return left.symbols == right.symbols
    return isinstance(left, Fixed) and isinstance(right, Fixed) and left.size == right.size


def _fields_are_same(left: Record, right: Record) -> bool:
    return len(left.fields) == len(right.fields) and all(
        mine.name == its.name
        and mine.order == its.order
        and (mine.default is MISSING) == (its.default is MISSING)
        and (mine.default is MISSING or equal(mine.default, its.default))
        and equal(mine.props, its.props)
        for mine, its in zip(left.fields, right.fields, strict=True)
    )


def _inside(schema: Schema) -> Iterator[Schema]:
    if isinstance(schema, Record):
        return (field.type for field in schema.fields)
    if isinstance(schema, Union):
        return iter(schema.branches)
    if isinstance(schema, Array):
        return iter((schema.items,))
    return iter((schema.values,) if isinstance(schema, Map) else ())
