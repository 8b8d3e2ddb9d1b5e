"""The functions that ksqlDB's executable cases use and that no user has: its test jar's.

They are not in the product's catalog: `all_functions()` is a catalog that has them too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, TypeVar

from barnabas.sql.errors import AnalysisError
from barnabas.sql.functions.aggregates.base import Fold, Plain, struct_of
from barnabas.sql.functions.built_in import functions
from barnabas.sql.functions.catalog import (
    AggregateOverload,
    Function,
    ScalarOverload,
    TableOverload,
)
from barnabas.sql.java_text import text_maker
from barnabas.sql.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    STRING,
    Array,
    Decimal,
    SqlType,
    Value,
)

F = TypeVar("F", bound=Callable[..., Any])

TEST_FUNCTIONS: dict[str, Function] = {}


def all_functions() -> dict[str, Function]:
    """The product's functions and those of the cases, which count their calls from now."""
    global _CALLS  # functions of the catalog are plain functions
    _CALLS = count()
    return {**functions(), **TEST_FUNCTIONS}


def _function(name: str) -> Function:
    return TEST_FUNCTIONS.setdefault(name.upper(), Function(name))


def _scalar(name: str, *signatures: str) -> Callable[[F], F]:
    def add(implementation: F) -> F:
        _function(name).scalars += [ScalarOverload(text, implementation) for text in signatures]
        return implementation

    return add


def _table(name: str, signature: str, returns: SqlType | None = None) -> Callable[[F], F]:
    def add(implementation: F) -> F:
        _function(name).tables.append(
            TableOverload(
                signature, implementation, None if returns is None else lambda types: returns
            )
        )
        return implementation

    return add


def _aggregate(name: str, *signatures: str) -> Callable[[F], F]:
    def add(make: F) -> F:
        _function(name).aggregates += [AggregateOverload(text, make) for text in signatures]
        return make

    return add


# test_udf: tells which overload was taken.


@_scalar("test_udf", "(arg1 INTEGER, arg2 STRING) -> STRING")
def _int_string(first: Value, second: Value) -> str:
    return "doStuffIntString"


@_scalar("test_udf", "(arg1 BIGINT, arg2 STRING) -> STRING")
def _long_string(first: Value, second: Value) -> str:
    return "doStuffLongString"


@_scalar("test_udf", "(arg1 BIGINT, arg2 BIGINT, arg3 STRING) -> STRING")
def _long_long_string(first: Value, second: Value, third: Value) -> str:
    return "doStuffLongLongString"


@_scalar("test_udf", "(longs BIGINT...) -> STRING")
def _longs(*values: Value) -> str:
    return "doStuffLongVarargs"


@_scalar("test_udf", "(struct STRUCT<A STRING>) -> STRING")
def _field_a(struct: Value) -> Value:
    return struct["A"]


@_scalar("test_udf", "() -> STRUCT<A STRING>")
def _foo() -> Value:
    return {"A": "foo"}


@_scalar("tostruct", "(value STRING) -> STRUCT<A STRING>")
def _to_struct(value: Value) -> Value:
    return {"A": value}


# bad_udf, throwing_udtf, WhenCondition, WhenResult: they fail.


@_scalar("bad_udf", "(arg1 INTEGER) -> STRING")
def _blow_up(argument: Value) -> str:
    raise ValueError("boom!")


@_scalar("bad_udf", "(arg BOOLEAN) -> INTEGER")
def _might_throw(argument: Value) -> int:
    if argument:
        raise ValueError("You asked me to throw...")
    return 0


_CALLS = count()


@_scalar("bad_udf", "(arg STRING) -> STRING")
def _every_other(argument: Value) -> Value:
    return argument if next(_CALLS) % 2 else None


@_table("throwing_udtf", "(shouldThrow BOOLEAN) -> BOOLEAN")
def _throw_if_true(should_throw: Value) -> list[Value]:
    if should_throw:
        raise ValueError("You asked me to throw...")
    return [should_throw]


@_scalar("WhenCondition", "(retValue BOOLEAN, shouldBeEvaluated BOOLEAN) -> BOOLEAN")
def _when_condition(value: Value, should_be_evaluated: Value) -> Value:
    if not should_be_evaluated:
        raise ValueError("When condition in case is not running lazily!")
    return value


@_scalar("WhenResult", "(retVal INTEGER, shouldBeEvaluated BOOLEAN) -> INTEGER")
def _when_result(value: Value, should_be_evaluated: Value) -> Value:
    if not should_be_evaluated:
        raise ValueError("Then expression in case is not running lazily!")
    return value


# test_udtf: the texts of its arguments, or its one argument.

_TEXTS = [
    text_maker(kind)
    for kind in (INTEGER, BIGINT, DOUBLE, BOOLEAN, STRING, Decimal(30, 10), struct_of(A=STRING))
]
_NAMES = ("i", "l", "d", "b", "s", "bd", "struct")
_KINDS = ("INTEGER", "BIGINT", "DOUBLE", "BOOLEAN", "STRING", "DECIMAL", "STRUCT<A STRING>")


def _signature(shape: str) -> str:
    parameters = (f"{name} {shape.format(k)}" for name, k in zip(_NAMES, _KINDS, strict=True))
    return f"({', '.join(parameters)}) -> STRING"


@_table("test_udtf", _signature("{}"))
def _texts(*values: Value) -> list[str]:
    return [text(value) for text, value in zip(_TEXTS, values, strict=True)]


@_table("test_udtf", _signature("ARRAY<{}>"))
def _texts_of_firsts(*arrays: Value) -> list[str]:
    return _texts(*(array[0] for array in arrays))


@_table("test_udtf", _signature("MAP<STRING, {}>"))
def _texts_of_first_entries(*maps: Value) -> list[str]:
    return _texts(*(next(iter(entries.values())) for entries in maps))


@_table("test_udtf", "(i INTEGER) -> INTEGER")
@_table("test_udtf", "(l BIGINT) -> BIGINT")
@_table("test_udtf", "(d DOUBLE) -> DOUBLE")
@_table("test_udtf", "(b BOOLEAN) -> BOOLEAN")
def _itself_unless_null(value: Value) -> list[Value]:
    if value is None:
        raise TypeError("the parameter is a primitive of Java")
    return [value]


@_table("test_udtf", "(s STRING) -> STRING")
@_table("test_udtf", "(bd DECIMAL) -> DECIMAL", Decimal(30, 10))
@_table("test_udtf", "(struct STRUCT<A STRING>) -> STRUCT<A STRING>")
def _itself(value: Value) -> list[Value]:
    return [value]


# test_udaf and the aggregates of several arguments.


def _plus(left: Value, right: Value) -> Value:
    return left + right


def _minus(left: Value, right: Value) -> Value:
    return left - right


@_aggregate("test_udaf", "(value BIGINT) -> BIGINT", "(value INTEGER) -> BIGINT")
def _sum_of_whole(types: Sequence[SqlType], constants: Sequence[Value]) -> Fold:
    return Fold(BIGINT, 0, _plus, _minus)


class _OnlyForStreams(Plain):
    """A sum of what `measure` makes of the arguments; it cannot be taken back."""

    def __init__(
        self, kind: SqlType, initial: Value, measure: Callable[..., Value], extra: int = 0
    ) -> None:
        super().__init__(kind)
        self._initial, self._measure, self._extra = initial, measure, extra

    def initial(self) -> Value:
        return self._initial

    def add(self, state: Value, *arguments: Value) -> Value:
        return state + self._measure(*arguments)

    def merge(self, left: Value, right: Value) -> Value:
        return left + right

    def result(self, state: Value) -> Value:
        return state + self._extra


@_aggregate("test_udaf", "(value DOUBLE) -> DOUBLE")
def _sum_of_doubles(types: Sequence[SqlType], constants: Sequence[Value]) -> _OnlyForStreams:
    return _OnlyForStreams(DOUBLE, 0.0, lambda value: value)


@_aggregate("test_udaf", "(value T) -> T")
def _sum_of_any(types: Sequence[SqlType], constants: Sequence[Value]) -> _OnlyForStreams:
    if types[0] not in (DOUBLE, INTEGER, BIGINT):
        raise AnalysisError(f"Type {types[0]} is not handled.")
    return _OnlyForStreams(types[0], 0, lambda value: value)


@_aggregate("test_udaf", "(value STRING, initialString STRING!) -> BIGINT")
def _sum_of_lengths(types: Sequence[SqlType], constants: Sequence[Value]) -> _OnlyForStreams:
    return _OnlyForStreams(BIGINT, len(constants[0]), len)


@_aggregate("test_udaf", "(value STRUCT<A INTEGER, B INTEGER>) -> STRUCT<A INTEGER, B INTEGER>")
class _SumOfStructs(Plain):
    def __init__(self, types: Sequence[SqlType], constants: Sequence[Value]) -> None:
        super().__init__(struct_of(A=INTEGER, B=INTEGER))

    def initial(self) -> Value:
        return {"A": 0, "B": 0}

    def add(self, state: Value, value: Value) -> Value:
        return {name: state[name] + value[name] for name in ("A", "B")}

    merge = add


def _size(value: Value) -> int:
    if value is None:
        return 0
    return len(value) if isinstance(value, str) else value


def _total(*values: Value) -> int:
    return sum(map(_size, values))


_START = "initArg1 INTEGER!, initArg2 STRING...!) -> BIGINT"


@_aggregate("MULTI_ARG", f"(first BIGINT, second STRING, {_START}")
@_aggregate("FOUR_ARG", f"(first BIGINT, second STRING, third STRING, fourth STRING, {_START}")
@_aggregate(
    "FIVE_ARG",
    f"(first BIGINT, second STRING, third STRING, fourth STRING, fifth INTEGER, {_START}",
)
def _sum_of_sizes(types: Sequence[SqlType], constants: Sequence[Value]) -> _OnlyForStreams:
    return _OnlyForStreams(BIGINT, _total(*constants), _total)


@_aggregate("VAR_ARG", "(first BIGINT, second STRING...) -> BIGINT")
def _sum_of_variadic_sizes(types: Sequence[SqlType], constants: Sequence[Value]) -> _OnlyForStreams:
    return _OnlyForStreams(BIGINT, 0, _total)


@_aggregate(
    "MID_VAR_ARG", "(first BIGINT, middle STRING..., last1 INTEGER!, last2 INTEGER!) -> BIGINT"
)
def _sum_and_constants(types: Sequence[SqlType], constants: Sequence[Value]) -> _OnlyForStreams:
    return _OnlyForStreams(BIGINT, 0, _total, extra=sum(constants))


@_aggregate("GENERIC_VAR_ARG", "(first A, second B, others C...) -> ARRAY<A>")
@_aggregate("OBJ_COL_ARG", "(first INTEGER, others ANY...) -> ARRAY<INTEGER>")
class _FirstsOfWholeRows(Plain):
    def __init__(self, types: Sequence[SqlType], constants: Sequence[Value]) -> None:
        super().__init__(Array(types[0]))

    def initial(self) -> Value:
        return []

    def add(self, state: Value, *values: Value) -> Value:
        return state if None in values else [*state, values[0]]

    def merge(self, left: Value, right: Value) -> Value:
        return [*left, *right]
