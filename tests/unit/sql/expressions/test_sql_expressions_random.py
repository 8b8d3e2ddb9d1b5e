"""Random expressions: each is refused, or gives values of its type, or fails as expected."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from barnabas.sql import types
from barnabas.sql.errors import FAILURES, AnalysisError
from barnabas.sql.expressions.compile import compile_expression
from barnabas.sql.functions.built_in import functions
from barnabas.sql.schema import Column
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.printer import expression_text
from barnabas.sql.types import Array, Field, Map, SqlType, Struct

TREES = 10_000

TYPES: dict[str, SqlType] = {
    "I": types.INTEGER,
    "L": types.BIGINT,
    "D": types.DOUBLE,
    "E": types.Decimal(6, 2),
    "S": types.STRING,
    "B": types.BOOLEAN,
    "Y": types.BYTES,
    "DAY": types.DATE,
    "T": types.TIME,
    "TS": types.TIMESTAMP,
    "A": Array(types.INTEGER),
    "N": Array(types.STRING),
    "M": Map(types.STRING, types.BIGINT),
    "P": Struct((Field("X", types.INTEGER), Field("Y", types.STRING))),
}
NAMES = [*TYPES, *"ILES" * 6]
"""Columns to take from: most expressions want numbers and texts."""

COLUMNS = [Column(name, sql_type) for name, sql_type in TYPES.items()]

CHOICES: dict[SqlType, list[Any]] = {
    types.INTEGER: [0, 1, -1, 5, 2**31 - 1, -(2**31)],
    types.BIGINT: [0, 1, -7, 2**63 - 1, -(2**63)],
    types.DOUBLE: [0.0, -0.0, 1.5, -3.7, 1e300, math.nan, math.inf],
    types.Decimal(6, 2): [Decimal("0.00"), Decimal("-1.25"), Decimal("9999.99")],
    types.STRING: ["", "a", "12", "1.5", "2020-01-01", "true", '{"a":1}', "é\U0001f600", "%"],
    types.BOOLEAN: [True, False],
    types.BYTES: [b"", b"\x00\xff", b"abcd1234"],
    types.DATE: [-1000, 0, 20_000],
    types.TIME: [0, 3_600_000, 86_399_999],
    types.TIMESTAMP: [-1, 0, 1_600_000_000_123],
}

LITERALS: list[Expression] = [
    nodes.NullLiteral(),
    nodes.BooleanLiteral(True),
    nodes.IntegerLiteral(0),
    nodes.IntegerLiteral(2),
    nodes.LongLiteral(2**40),
    nodes.DoubleLiteral(2.5),
    nodes.DecimalLiteral(Decimal("1.20")),
    nodes.StringLiteral("5"),
    nodes.StringLiteral("%a"),
    nodes.StringLiteral("2020-01-01"),
    nodes.BytesLiteral(b"ab"),
]


class Maker:
    """Makes expressions and rows at random."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._names = [name for name, f in functions().items() if f.scalars]

    def value(self, sql_type: SqlType) -> Any:
        if self._random.random() < 0.15:
            return None
        match sql_type:
            case Array(item):
                return [self.value(item) for _ in range(self._random.randint(0, 3))]
            case Map(_, value):
                return {key: self.value(value) for key in "ab" if self._random.random() < 0.6}
            case Struct(fields):
                return {field.name: self.value(field.type) for field in fields}
        return self._random.choice(CHOICES[sql_type])

    def expression(self, depth: int) -> Expression:
        if depth == 0 or self._random.random() < 0.2:
            if self._random.random() < 0.35:
                return self._random.choice(LITERALS)
            return nodes.ColumnReference(self._random.choice(NAMES))
        return self._random.choice(_NODES)(self._random, lambda: self.expression(depth - 1))

    def call(self, depth: int) -> Expression:
        count = self._random.randint(0, 3)
        arguments = tuple(self.expression(depth - 1) for _ in range(count))
        return nodes.FunctionCall(self._random.choice(self._names), arguments)


Part = Callable[[], Expression]

_NODES: list[Callable[[Random, Part], Expression]] = [
    lambda r, e: nodes.Arithmetic(r.choice(list(nodes.ArithmeticOperator)), e(), e()),
    lambda r, e: nodes.Comparison(r.choice(list(nodes.ComparisonOperator)), e(), e()),
    lambda r, e: nodes.Logical(r.choice(list(nodes.LogicalOperator)), e(), e()),
    lambda _, e: nodes.Not(e()),
    lambda _, e: nodes.IsNull(e()),
    lambda _, e: nodes.IsNotNull(e()),
    lambda r, e: nodes.Between(e(), e(), e()),
    lambda r, e: nodes.InList(e(), (e(), e())),
    lambda r, e: nodes.Like(e(), e(), r.choice([None, "!"])),
    lambda r, e: nodes.SearchedCase((nodes.When(e(), e()),), r.choice([None, e()])),
    lambda r, e: nodes.Cast(e(), r.choice(list(TYPES.values()))),
    lambda r, e: nodes.Subscript(e(), e()),
    lambda r, e: nodes.Dereference(e(), r.choice("XY")),
    lambda r, e: nodes.ArrayConstructor((e(), e())),
    lambda r, e: nodes.MapConstructor(((e(), e()),)),
    lambda r, e: nodes.StructConstructor((("X", e()), ("Y", e()))),
    lambda r, e: nodes.Sign(r.random() < 0.7, e()),
]


def is_of(value: Any, sql_type: SqlType) -> bool:
    """Return whether the value has the type, as `types` describes them."""
    if value is None:
        return True
    match sql_type:
        case Array(item):
            return isinstance(value, list) and all(is_of(part, item) for part in value)
        case Map(key, entry):
            return isinstance(value, dict) and all(
                is_of(k, key) and is_of(v, entry) for k, v in value.items()
            )
        case Struct(fields):
            return list(value) == [f.name for f in fields] and all(
                is_of(value[field.name], field.type) for field in fields
            )
        case types.Decimal(_, scale):
            return isinstance(value, Decimal) and value.as_tuple().exponent == -scale
        case types.INTEGER:
            return type(value) is int and -(2**31) <= value < 2**31
        case types.BIGINT:
            return type(value) is int and -(2**63) <= value < 2**63
    kind = type(CHOICES[sql_type][0])
    return type(value) is kind


@pytest.mark.parametrize("seed", [1, 2])
def test_random_expressions(seed: int) -> None:
    maker, evaluated = Maker(seed), 0
    for index in range(TREES):
        tree = maker.call(2) if index % 3 == 0 else maker.expression(3)
        try:
            compiled = compile_expression(tree, COLUMNS, functions())
        except AnalysisError:
            continue
        for _ in range(3):
            row = [maker.value(sql_type) for sql_type in TYPES.values()]
            try:
                value = compiled.evaluate(row)
            except FAILURES:
                continue
            evaluated += 1
            assert compiled.type is None or is_of(value, compiled.type), expression_text(tree)
    assert evaluated > TREES / 10
