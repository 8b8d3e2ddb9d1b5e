"""Filter expressions: what they match, where they are wrong, and that they run nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.services.expressions import (
    LENGTH_MAX,
    ExpressionError,
    compile_expression,
)


@dataclass
class Record:
    key: Any = "user-1"
    value: Any = field(
        default_factory=lambda: {
            "amount": 120,
            "state": "open",
            "user": {"email": "ann@example.org", "tags": ["new", "vip"]},
            "paid": False,
            "a b": 1,
        }
    )
    headers: Any = field(default_factory=lambda: {"trace-id": "abc"})
    offset: int = 42
    partition: int = 3
    timestamp: int = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "is_match"),
    [
        ("value.amount > 100", True),
        ("value.amount > 100 and value.amount <= 119", False),
        ("value.amount == 120.0", True),
        ('value.amount > "100"', False),  # kinds differ
        ('value.amount != "120"', True),
        ("value.paid == false", True),
        ("value.paid == 0", False),
        ("value.paid or value.amount", True),
        ('key startswith "user-" and key endswith "1"', True),
        ('value.user.email matches "@example\\\\.org$"', True),
        ('value.user.tags contains "vip"', True),
        ('value.user.tags[1] == "vip"', True),
        ("value.user.tags[7] == null", True),
        ('value contains "ann@"', True),
        ('value["a b"] == 1', True),
        ('value.state in ("late", "open")', True),
        ('not value.state in ("late", "open")', False),
        ('headers["trace-id"] == "abc"', True),
        ("headers.nothing == null", True),
        ("partition == 3 and offset >= 42 and timestamp > 0", True),
        ("exists(value.user) and not exists(value.nothing)", True),
        ('lower(value.state) == "open" and length(value.user.tags) == 2', True),
        ('text(value.user.tags) contains "vip"', True),
        ('"vip"', True),
        ("'abc'", True),
        ('"nowhere"', False),
        ('not "nowhere"', True),
        ("(value.amount > 1 or value.amount < 0) and true", True),
        ("value.user.email.deeper == null", True),
    ],
)
def test_an_expression_matches(text: str, is_match: bool) -> None:
    assert compile_expression(text).matches(Record()) is is_match


@pytest.mark.parametrize("value", [None, "text", 5, [1], {"x": None}, b"bytes"])
def test_values_of_other_kinds_do_not_match_and_raise_nothing(value: Any) -> None:
    record = Record(key=None, value=value, headers={})
    for text in ("value.x.y > 1", "value[0].z == 2", 'value.x matches "a"', "length(value.x) > 1"):
        assert not compile_expression(text).matches(record)


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("", "is empty", 0),
        ("   ", "is empty", 0),
        ("value.amount = 3", "write '=='", 13),
        ("value.amount >", "something is missing at the end", 14),
        ("value.amount > 3 4", "unexpected '4'", 17),
        ("amount > 3", "unknown name 'amount'", 0),
        ("key == user", "unknown name 'user'", 7),
        ('key == "abc', "no closing quote", 7),
        ("(key", "')' is missing before 'the end'", 4),
        ("value. > 3", "a name is needed after '.'", 7),
        ("value[x]", "a text or an index", 6),
        ('key matches "(("', "not a pattern", 12),
        ("key matches value", "a pattern in quotes", 12),
        ("key in (value)", "a text or a number is needed here", 8),
        ("key # 3", "unexpected '#'", 4),
        ("and", "unexpected 'and'", 0),
        ("(" * 60 + "true" + ")" * 60, "nested deeper", 51),
        ("not " * 60 + "true", "nested deeper", 204),
        ("1" * (LENGTH_MAX + 1), "longer than", LENGTH_MAX),
    ],
)
def test_an_error_says_where(text: str, message: str, position: int) -> None:
    with pytest.raises(ExpressionError) as error:
        compile_expression(text)
    assert message in error.value.message
    assert error.value.position == position


@pytest.mark.parametrize(
    "text",
    [
        '__import__("os").system("id")',
        'key.__class__.__mro__ == 1 and exec("1")',
        'eval("1")',
        "lambda: 1",
        "[x for x in key]",
        "value.__class__.__subclasses__()",
        "open('/etc/passwd')",
    ],
)
def test_python_is_not_run(text: str) -> None:
    with pytest.raises(ExpressionError):
        compile_expression(text)


def test_attributes_of_objects_are_not_read() -> None:
    assert compile_expression("value.__class__ == null").matches(Record())
    assert compile_expression("key.__len__ == null").matches(Record())


def test_a_pattern_takes_linear_time() -> None:
    record = Record(value="a" * 50_000 + "!")
    found = compile_expression('value matches "^(a+)+$"')
    begun_s = time.process_time()
    assert not found.matches(record)
    assert time.process_time() - begun_s < 2


def wrong_at(text: str) -> int:
    """Where a text is wrong; 0 if it is not, and then it can be evaluated."""
    try:
        compile_expression(text).matches(Record())
    except ExpressionError as error:
        return error.position
    return 0


@given(st.text(max_size=80))
def test_any_text_compiles_or_says_where(text: str) -> None:
    assert 0 <= wrong_at(text) <= len(text)


@given(
    st.lists(
        st.sampled_from(
            [
                *("value", "key", ".", "amount", "==", ">", "(", ")", "and", "or", "not", "1"),
                *('"x"', "in", ",", "[", "]", "contains", "matches", "length", "null"),
            ]
        ),
        max_size=14,
    )
)
def test_any_order_of_words_compiles_or_says_where(words: list[str]) -> None:
    text = " ".join(words)
    assert 0 <= wrong_at(text) <= len(text)
