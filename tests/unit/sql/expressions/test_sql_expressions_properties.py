"""What holds of every value: texts read back, calculation is that of machine words."""

from __future__ import annotations

import ctypes
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql import types
from barnabas.sql.errors import FAILURES
from barnabas.sql.expressions.arithmetic import calculation, result_type
from barnabas.sql.expressions.casts import cast_maker
from barnabas.sql.syntax.expressions import ArithmeticOperator
from barnabas.sql.types import SqlType
from support.effort import examples

DAYS = st.integers(-700_000, 2_900_000)
INTEGERS = st.integers(-(2**31), 2**31 - 1)
BIGINTS = st.integers(-(2**63), 2**63 - 1)
MONEY = types.Decimal(12, 4)
AMOUNTS = st.decimals(Decimal("-99999999.9999"), Decimal("99999999.9999"), places=4)

VALUES: list[tuple[SqlType, st.SearchStrategy[Any]]] = [
    (types.BOOLEAN, st.booleans()),
    (types.INTEGER, INTEGERS),
    (types.BIGINT, BIGINTS),
    (types.DOUBLE, st.floats(allow_nan=False, allow_infinity=False)),
    (MONEY, AMOUNTS),
    (types.DATE, DAYS),
    (types.TIME, st.integers(0, 86_399).map(lambda seconds: seconds * 1000)),
    (types.TIMESTAMP, st.integers(0, 200_000_000_000_000)),
]


@pytest.mark.parametrize(("sql_type", "values"), VALUES, ids=[str(v[0]) for v in VALUES])
def test_texts_of_values_read_back(sql_type: SqlType, values: st.SearchStrategy[Any]) -> None:
    to_text, back = cast_maker(sql_type, types.STRING), cast_maker(types.STRING, sql_type)
    assert to_text is not None
    assert back is not None

    @settings(max_examples=examples(15))
    @given(values)
    def reads_back(value: Any) -> None:
        assert repr(back(to_text(value))) == repr(value)

    reads_back()


@pytest.mark.parametrize(
    ("sql_type", "word", "values"),
    [(types.INTEGER, ctypes.c_int32, INTEGERS), (types.BIGINT, ctypes.c_int64, BIGINTS)],
    ids=["INTEGER", "BIGINT"],
)
def test_whole_numbers_wrap_as_machine_words(
    sql_type: SqlType, word: type[Any], values: st.SearchStrategy[int]
) -> None:
    operators = ArithmeticOperator

    @settings(max_examples=examples(15))
    @given(values, values)
    def wraps(left: int, right: int) -> None:
        def result(operator: ArithmeticOperator) -> int:
            return int(calculation(operator, sql_type, sql_type)(left, right))

        assert result(operators.ADD) == word(left + right).value
        assert result(operators.SUBTRACT) == word(left - right).value
        assert result(operators.MULTIPLY) == word(left * right).value
        if right:
            quotient, remainder = result(operators.DIVIDE), result(operators.MODULUS)
            assert word(quotient * right + remainder).value == left
            assert abs(remainder) < abs(right)
            assert remainder == 0 or (remainder < 0) == (left < 0)

    wraps()


@settings(max_examples=examples(15))
@given(AMOUNTS, AMOUNTS)
def test_decimals_are_exact_or_fail(left: Decimal, right: Decimal) -> None:
    for operator in ArithmeticOperator:
        wanted = result_type(operator, MONEY, MONEY)
        assert isinstance(wanted, types.Decimal)
        try:
            result = calculation(operator, MONEY, MONEY)(left, right)
        except FAILURES:
            assert operator in (ArithmeticOperator.DIVIDE, ArithmeticOperator.MODULUS)
            continue
        assert -result.as_tuple().exponent == wanted.scale
        assert not result or result.adjusted() < wanted.precision - wanted.scale
        if operator is ArithmeticOperator.DIVIDE:
            assert result * right == left
