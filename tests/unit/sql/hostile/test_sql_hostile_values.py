"""Values that are meant to keep an expression busy for ever, or to fill the memory."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.sql.errors import EvaluationError
from barnabas.sql.expressions.patterns import like_matcher
from barnabas.sql.functions.lambdas import reduce_array, reduce_map


@pytest.mark.parametrize(
    ("pattern", "text", "is_like"),
    [
        ("%a" * 30 + "b", "a" * 10_000, False),
        ("%a" * 3_000, "a" * 5_000, True),
        ("%a%" * 500 + "c%b", "a" * 5_000 + "b", False),
        ("%_a" * 30 + "_b", "aa" * 1_000, False),
    ],
)
def test_like_never_tries_twice(pattern: str, text: str, is_like: bool) -> None:
    assert like_matcher(pattern, None)(text) is is_like


@given(st.text("ab%_\n", max_size=7), st.text("ab\n", max_size=8))
def test_like_is_what_the_plain_expression_matches(pattern: str, text: str) -> None:
    dot = "[^\n\r\x85\u2028\u2029]"
    plain = "".join({"%": dot + "*", "_": dot}.get(c, re.escape(c)) for c in pattern)
    assert like_matcher(pattern, None)(text) is (re.fullmatch(plain, text) is not None)


def test_reduce_stops_what_doubles() -> None:
    items = [1] * 60
    with pytest.raises(EvaluationError, match="REDUCE"):
        reduce_array(items, "aaaa", lambda state, item: state + state)
    with pytest.raises(EvaluationError, match="REDUCE"):
        reduce_array(items, [1], lambda state, item: state + state)
    with pytest.raises(EvaluationError, match="REDUCE"):
        reduce_array(items, ["a"], lambda state, item: [text + text for text in state])
    with pytest.raises(EvaluationError, match="REDUCE"):
        reduce_map(dict.fromkeys(range(60), 1), {"S": "a"}, lambda s, k, v: {"S": s["S"] * 2})
    assert reduce_array(items, 1, lambda state, item: state + item) == 61
