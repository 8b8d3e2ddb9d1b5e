"""The order of entries in Java's HashMap."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.java.hash import hash_order, text_hash


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("The quick brown fox jumps over the lazy dog", -609428141 & 0xFFFF_FFFF),
        ("\U0001f600", 1772899),
    ],
)
def test_hashes_texts(text: str, expected: int) -> None:
    assert text_hash(text) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([], []),
        (["b", "a"], ["a", "b"]),
        # Three fit into four buckets: the first and the last share one.
        (["yes, thanks", "nope", "sure, yeah"], ["yes, thanks", "sure, yeah", "nope"]),
        # Four do not.
        (["d", "h", "l", "p"], ["h", "p", "d", "l"]),
        ([3, 1, 2], [3, 1, 2]),
        (["b", None], ["b", None]),
    ],
)
def test_orders_entries(keys: list[Any], expected: list[Any]) -> None:
    assert [key for key, _ in hash_order(dict.fromkeys(keys, 0))] == expected
