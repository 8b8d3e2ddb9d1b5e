"""The row of a join, made of a row of each side; a missing side's columns are null."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.sql.runtime.layout import Pick
from barnabas.sql.runtime.records import Row

Joiner = Callable[[Row | None, Row | None, Row | None], Row]
"""(left row, right row, key) -> joined row."""


def joiner(left_width: int, right_width: int, pick: Pick | None) -> Joiner:
    """A joiner; `pick` sees the left row, then the right one, then the key."""
    no_left, no_right = (None,) * left_width, (None,) * right_width

    def join(left: Row | None, right: Row | None, key: Row | None) -> Row:
        left = no_left if left is None else left
        right = no_right if right is None else right
        return pick([*left, *right, *(key or (None,))]) if pick else [*left, *right]

    return join
