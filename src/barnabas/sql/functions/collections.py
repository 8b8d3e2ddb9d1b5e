"""Functions of arrays and maps, and table functions, which make rows of them.

Functions that go through a map take its entries in the order of Java's HashMap, as ksqlDB's do.
ENTRIES can sort them by their keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from barnabas.java.hash import hash_order
from barnabas.sql.errors import AnalysisError, EvaluationError
from barnabas.sql.functions.catalog import scalar, table_function
from barnabas.sql.functions.ordering import key_of
from barnabas.sql.java_text import text_maker
from barnabas.sql.types import Array, BaseType, SqlType, Value

_array = partial(scalar, category="ARRAY")
_map = partial(scalar, category="MAP")

SERIES_LENGTH_MAX = 10_000_000
"""GENERATE_SERIES makes no longer array."""


@_array(
    "array_concat",
    "(left ARRAY<T>, right ARRAY<T>) -> ARRAY<T>",
    description="All items of the first array and then all of the second. A NULL array counts as "
    "empty; two NULLs give NULL.",
)
def array_concat(left: list[Value] | None, right: list[Value] | None) -> list[Value] | None:
    """The items of both; a NULL array counts as an empty one if the other is there."""
    if left is None and right is None:
        return None
    return [*(left or ()), *(right or ())]


@_array(
    "ARRAY_CONTAINS",
    "(array ARRAY<T>, val T) -> BOOLEAN",
    description="Whether an array has a value among its items; false for a NULL array.",
)
def array_contains(array: list[Value] | None, value: Value) -> bool:
    return array is not None and value in array


@_array(
    "array_distinct",
    "(input ARRAY<T>) -> ARRAY<T>",
    description="Each item of an array once, in the order of first appearance.",
    null_is_null=True,
)
def array_distinct(values: list[Value]) -> list[Value]:
    return _distinct(values)


@_array(
    "array_except",
    "(left ARRAY<T>, right ARRAY<T>) -> ARRAY<T>",
    description="Each item of the first array once, without those that the second has.",
    null_is_null=True,
)
def array_except(left: list[Value], right: list[Value]) -> list[Value]:
    """Items may be of any type; arrays, maps and structs are compared one by one."""
    excluded = _Members(right)
    return [value for value in _distinct(left) if value not in excluded]


@_array(
    "array_intersect",
    "(left ARRAY<T>, right ARRAY<T>) -> ARRAY<T>",
    description="Each item that both arrays have once, in the order of the first.",
    null_is_null=True,
)
def array_intersect(left: list[Value], right: list[Value]) -> list[Value]:
    """Items may be of any type; arrays, maps and structs are compared one by one."""
    common = _Members(right)
    return [value for value in _distinct(left) if value in common]


@_array(
    "array_union",
    "(left ARRAY<T>, right ARRAY<T>) -> ARRAY<T>",
    description="Each item of both arrays once, in the order of first appearance.",
    null_is_null=True,
)
def array_union(left: list[Value], right: list[Value]) -> list[Value]:
    return _distinct([*left, *right])


class _Members:
    """Answers whether an array has a value; quickly where its values can be hashed."""

    def __init__(self, values: Iterable[Value]) -> None:
        self._values: Iterable[Value]
        try:
            self._values = set(values)
        except TypeError:
            self._values = list(values)

    def __contains__(self, value: Value) -> bool:
        return value in self._values


def _distinct(values: Sequence[Value]) -> list[Value]:
    try:
        return list(dict.fromkeys(values))
    except TypeError:  # arrays, maps and structs cannot be hashed
        distinct: list[Value] = []
        for value in values:
            if value not in distinct:
                distinct.append(value)
        return distinct


_JOINABLE = (
    BaseType.BOOLEAN,
    BaseType.INTEGER,
    BaseType.BIGINT,
    BaseType.DOUBLE,
    BaseType.DECIMAL,
    BaseType.STRING,
)


@_array(
    "ARRAY_JOIN",
    "(array ARRAY<T>) -> STRING",
    "(array ARRAY<T>, delimiter STRING) -> STRING",
    description="The texts of all items of an array with a delimiter (a comma) between them; "
    "NULL is written as null.",
    takes_types=True,
)
def array_join(
    array: list[Value] | None, delimiter: str | None = ",", *, types: Sequence[SqlType]
) -> str | None:
    """Raises EvaluationError for items that are arrays, maps or structs."""
    if array is None:
        return None
    kind = types[0]
    assert isinstance(kind, Array)
    if kind.item.base not in _JOINABLE and any(item is not None for item in array):
        raise EvaluationError(
            f"error: hit element of type {kind.item} which is currently not supported"
        )
    return (delimiter or "").join(map(text_maker(kind.item), array))


@_array(
    "ARRAY_LENGTH",
    "(array ARRAY<T>) -> INTEGER",
    description="The number of items of an array.",
    null_is_null=True,
)
def array_length(array: list[Value]) -> int:
    return len(array)


@_array(
    "array_max",
    "(input ARRAY<T>) -> T",
    description="The greatest item of an array; NULLs do not count.",
    null_is_null=True,
)
def array_max(values: list[Value]) -> Value:
    return max(_comparable(values), key=key_of, default=None)


@_array(
    "array_min",
    "(input ARRAY<T>) -> T",
    description="The least item of an array; NULLs do not count.",
    null_is_null=True,
)
def array_min(values: list[Value]) -> Value:
    return min(_comparable(values), key=key_of, default=None)


def _comparable(values: list[Value]) -> list[Value]:
    comparable = [value for value in values if value is not None]
    if comparable and isinstance(comparable[0], (list, dict)):
        raise EvaluationError("arrays, maps and structs have no order")
    return comparable


@_array(
    "array_remove",
    "(array ARRAY<T>, victim T) -> ARRAY<T>",
    description="An array without the items that are equal to a value.",
)
def array_remove(array: list[Value] | None, victim: Value) -> list[Value] | None:
    return None if array is None else [item for item in array if item != victim]


@_array(
    "array_sort",
    "(input ARRAY<T>) -> ARRAY<T>",
    "(input ARRAY<T>, direction STRING) -> ARRAY<T>",
    description="The items of an array in their order, or, with the direction DESC, from the "
    "greatest; NULLs come last.",
    null_is_null=True,
)
def array_sort(values: list[Value], direction: str = "ASC") -> list[Value] | None:
    """None if `direction` is not a known one; texts are in the order of Java's."""
    is_descending = _DESCENDING.get(direction.upper())
    if is_descending is None:
        return None
    ordered = sorted(_comparable(values), key=key_of, reverse=is_descending)
    return [*ordered, *[None] * (len(values) - len(ordered))]


_DESCENDING = {"ASC": False, "ASCENDING": False, "DESC": True, "DESCENDING": True}


@_array(
    "slice",
    "(in ARRAY<T>, from INTEGER, to INTEGER) -> ARRAY<T>",
    description="The items of an array from one place to another, both counted from 1 and "
    "included; NULL for places that the array does not have.",
)
def slice_of(values: list[Value] | None, first: int | None, last: int | None) -> Value:
    """`first` and `last` count from 1; NULL stands for the first or last item."""
    if values is None:
        return None
    start = 0 if first is None else first - 1
    end = len(values) if last is None else last
    return values[start:end] if 0 <= start <= end <= len(values) else None


@_array(
    "GENERATE_SERIES",
    "(start INTEGER, end INTEGER) -> ARRAY<INTEGER>",
    "(start BIGINT, end BIGINT) -> ARRAY<BIGINT>",
    "(start INTEGER, end INTEGER, step INTEGER) -> ARRAY<INTEGER>",
    "(start BIGINT, end BIGINT, step INTEGER) -> ARRAY<BIGINT>",
    description="The numbers from one to another, both included, with a step of 1 or -1 or the one "
    "given.",
    null_is_null=True,
)
def generate_series(start: int, end: int, step: int | None = None) -> list[int]:
    """Raises EvaluationError for a step that is 0 or leads away from `end`."""
    difference = end - start
    if step is None:
        step = 1 if difference > 0 else -1
    if step == 0:
        raise EvaluationError("GENERATE_SERIES step cannot be zero")
    if difference * step < 0:
        raise EvaluationError("GENERATE_SERIES step has wrong sign")
    length = 1 + difference // step
    if length > SERIES_LENGTH_MAX:
        raise EvaluationError(f"GENERATE_SERIES makes at most {SERIES_LENGTH_MAX} numbers")
    return list(range(start, start + length * step, step))


@_map(
    "AS_MAP",
    "(keys ARRAY<STRING>, values ARRAY<T>) -> MAP<STRING, T>",
    description="A map of keys and values from two arrays; a key without a value gets NULL.",
    null_is_null=True,
)
def as_map(keys: list[Value], values: list[Value]) -> dict[Value, Value]:
    """Values without a key are left out."""
    missing = [None] * (len(keys) - len(values))
    return dict(zip(keys, [*values, *missing], strict=False))


_ENTRY_VALUES = ("INTEGER", "BIGINT", "DOUBLE", "BOOLEAN", "STRING")


@_map(
    "ENTRIES",
    *(
        f"(map MAP<STRING, {kind}>, sorted BOOLEAN) -> ARRAY<STRUCT<K STRING, V {kind}>>"
        for kind in _ENTRY_VALUES
    ),
    description="The entries of a map as structs of a key K and a value V, sorted by their keys if "
    "asked for.",
    null_is_null=True,
)
def entries(values: dict[str, Value], is_sorted: bool) -> list[dict[str, Value]]:
    """In the order of Java's hash map, unless sorted."""
    keys = hash_order(values)
    if is_sorted:
        keys.sort(key=lambda entry: key_of(entry[0]))
    return [{"K": key, "V": value} for key, value in keys]


@_map(
    "map_keys",
    "(input MAP<STRING, T>) -> ARRAY<STRING>",
    description="The keys of a map.",
    null_is_null=True,
)
def map_keys(values: dict[str, Value]) -> list[str]:
    return [key for key, _ in hash_order(values)]


@_map(
    "map_values",
    "(input MAP<STRING, T>) -> ARRAY<T>",
    description="The values of a map.",
    null_is_null=True,
)
def map_values(values: dict[str, Value]) -> list[Value]:
    return [value for _, value in hash_order(values)]


@_map(
    "map_union",
    "(map1 MAP<STRING, T>, map2 MAP<STRING, T>) -> MAP<STRING, T>",
    description="The entries of both maps; where both have a key, the second map's. A NULL map "
    "counts as empty; two NULLs give NULL.",
)
def map_union(
    first: dict[str, Value] | None, second: dict[str, Value] | None
) -> dict[str, Value] | None:
    """A NULL map counts as an empty one if the other is there."""
    if first is None and second is None:
        return None
    return {**(first or {}), **(second or {})}


# -- table functions: EXPLODE and CUBE_EXPLODE give several rows for one record


CUBE_COLUMNS_MAX = 20
"""2^20 rows for one record are more than anyone wants."""


def _item_type(types: Sequence[SqlType]) -> SqlType:
    if not isinstance(types[0], Array):
        raise AnalysisError("explode should be provided with an ARRAY")
    return types[0].item


@table_function(
    "explode",
    "(list ARRAY<T>) -> T",
    description="A row for each item of an array.",
)
@table_function("explode", "(input ARRAY<DECIMAL>) -> DECIMAL", returns=_item_type)
def explode(items: list[Value] | None) -> list[Value]:
    return items or []


@table_function(
    "cube_explode",
    "(columns ARRAY<T>) -> ARRAY<T>",
    description="A row for each combination of the items of an array: each of them or NULL.",
)
def cube_explode(columns: list[Value] | None) -> Iterator[list[Value]]:
    if columns is None:
        return
    count = len(columns)
    if count > CUBE_COLUMNS_MAX:
        raise EvaluationError(
            f"cube_explode: too many columns ({count}); max is {CUBE_COLUMNS_MAX}"
        )
    bits = [1 << (count - 1 - index) for index in range(count)]
    # An item that is NULL has no two ways: combinations with its bit would repeat others.
    nulls = sum(bit for bit, column in zip(bits, columns, strict=True) if column is None)
    for combination in range(1 << count):
        if not combination & nulls:
            yield [
                column if combination & bit else None
                for bit, column in zip(bits, columns, strict=True)
            ]
