"""FILTER, REDUCE and TRANSFORM: functions that take a lambda.

A lambda that has no value for an item leaves the whole call without one, as in ksqlDB: where
FILTER's gives NULL, and where a map would get a NULL value or one key twice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from barnabas.java.hash import hash_order
from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.catalog import scalar
from barnabas.sql.types import Value

STATE_SIZE_MAX = 4 * 1024 * 1024
"""Characters, bytes and items that the state of REDUCE may have between two items."""

_scalar = partial(scalar, category="LAMBDA")


@_scalar(
    "filter",
    "(array ARRAY<T>, function LAMBDA(T) -> BOOLEAN) -> ARRAY<T>",
    description="Those items of an array, or entries of a map, for which a lambda is true.",
    null_is_null=True,
)
def filter_array(array: list[Value], keeps: Callable[[Value], Value]) -> list[Value]:
    return [item for item in array if _is_true(keeps(item))]


@_scalar(
    "filter",
    "(map MAP<K, V>, biFunction LAMBDA(K, V) -> BOOLEAN) -> MAP<K, V>",
    null_is_null=True,
)
def filter_map(
    entries: dict[Value, Value], keeps: Callable[[Value, Value], Value]
) -> dict[Value, Value]:
    kept: dict[Value, Value] = {}
    for key, value in entries.items():
        if _is_true(keeps(key, value)):
            _put(kept, key, value)
    return kept


@_scalar(
    "transform",
    "(array ARRAY<T>, function LAMBDA(T) -> R) -> ARRAY<R>",
    description="The results of a lambda for each item of an array, or of two lambdas for each "
    "key and each value of a map.",
    null_is_null=True,
)
def transform_array(array: list[Value], function: Callable[[Value], Value]) -> list[Value]:
    return [function(item) for item in array]


@_scalar(
    "transform",
    "(map MAP<K, V>, biFunction1 LAMBDA(K, V) -> R, biFunction2 LAMBDA(K, V) -> T) -> MAP<R, T>",
    null_is_null=True,
)
def transform_map(
    entries: dict[Value, Value],
    to_key: Callable[[Value, Value], Value],
    to_value: Callable[[Value, Value], Value],
) -> dict[Value, Value]:
    transformed: dict[Value, Value] = {}
    for key, value in entries.items():
        _put(transformed, to_key(key, value), to_value(key, value))
    return transformed


@_scalar(
    "reduce",
    "(list ARRAY<T>, initialState S, biFunction LAMBDA(S, T) -> S) -> S",
    description="Folds the items of an array, or the entries of a map, into one value: a lambda "
    "takes the value so far, at first the initial one, and the next item or entry.",
)
def reduce_array(
    array: list[Value] | None, state: Value, function: Callable[[Value, Value], Value]
) -> Value:
    if state is None:
        return None
    for item in array or ():
        state = _bounded(function(state, item))
    return state


@_scalar("reduce", "(map MAP<K, V>, initialState S, triFunction LAMBDA(S, K, V) -> S) -> S")
def reduce_map(
    entries: dict[Value, Value] | None,
    state: Value,
    function: Callable[[Value, Value, Value], Value],
) -> Value:
    if state is None:
        return None
    for key, value in hash_order(entries or {}):
        state = _bounded(function(state, key, value))
    return state


def _bounded(state: Value) -> Value:
    """The state of REDUCE, unless it is so large that a lambda like `s + s` must be doubling it."""
    if isinstance(state, str | bytes | list | dict) and _size(state) > STATE_SIZE_MAX:
        raise EvaluationError(f"The state of REDUCE is larger than {STATE_SIZE_MAX}.")
    return state


def _size(value: Value) -> int:
    """Characters, bytes and items in the value."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(1 + _size(key) + _size(item) for key, item in value.items())
    return sum(1 + _size(item) for item in value) if isinstance(value, list) else 0


def _is_true(answer: Value) -> bool:
    if answer is None:
        raise EvaluationError("the lambda of FILTER gives NULL")
    return bool(answer)


def _put(entries: dict[Value, Value], key: Value, value: Value) -> None:
    if value is None:
        raise EvaluationError(f"no value for key {key}")
    if key in entries:
        raise EvaluationError(f"Duplicate key {key}")
    entries[key] = value
