"""COALESCE, IFNULL, NULLIF and AS_VALUE."""

from __future__ import annotations

import math
from typing import Any

import pytest

from support.sql_calls import call


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("COALESCE", (1, 2), 1),
        ("COALESCE", (None, 2, 3), 2),
        ("COALESCE", (None, "x"), "x"),
        ("COALESCE", (None, [10, 20]), [10, 20]),
        ("COALESCE", (False, True), False),
        ("COALESCE", (None,), None),
        ("IFNULL", (1, 10), 1),
        ("IFNULL", (None, 10), 10),
        ("IFNULL", (None, None), None),
        ("NULLIF", (1, 1), None),
        ("NULLIF", (1, 2), 1),
        ("NULLIF", (1, None), 1),
        ("NULLIF", (None, 1), None),
        ("NULLIF", ([1], [1]), None),
        ("NULLIF", (math.nan, math.nan), None),
        ("AS_VALUE", ("key",), "key"),
        ("AS_VALUE", (None,), None),
    ],
)
def test_value(name: str, arguments: tuple[Any, ...], expected: Any) -> None:
    assert call(name, *arguments) == expected
