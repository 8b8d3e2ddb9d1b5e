"""Layouts of rows: which column a running step has at which place.

A row holds the columns of its step's schema first, in their order. After them come columns that
the schema does not list but that expressions further down refer to: the key's columns, pseudo
columns (ROWTIME, …), bounds of windows. So an expression needs the row alone, and steps that
change nothing pass rows on as they are. Columns that the plan never mentions are not carried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

from barnabas.sql.runtime.records import Row
from barnabas.sql.schema import Column

Pick = Callable[[Row], Row]
"""Makes a row of one layout from one of another."""


@dataclass(frozen=True)
class Layout:
    """The columns of a row, in their order."""

    columns: tuple[Column, ...]

    def place(self, name: str) -> int | None:
        """Return where the column lies."""
        return self._places.get(name)

    @cached_property
    def _places(self) -> dict[str, int]:
        """Places by name; of two with one name the first counts."""
        return {c.name: place for place, c in reversed(list(enumerate(self.columns)))}

    def places(self, names: Iterable[str]) -> list[int]:
        """Return where the columns lie; all must be there."""
        return [self._must(name) for name in names]

    def _must(self, name: str) -> int:
        place = self.place(name)
        if place is None:
            raise LookupError(f"no column {name} among {', '.join(c.name for c in self.columns)}")
        return place

    def with_hidden(self, columns: Iterable[Column], mentioned: frozenset[str]) -> Layout:
        """This layout, then those of `columns` that are mentioned and not yet there."""
        names = {column.name for column in self.columns}
        extra = []
        for column in columns:
            if column.name in mentioned and column.name not in names:
                names.add(column.name)
                extra.append(column)
        return Layout(self.columns + tuple(extra))


def picker(places: Sequence[int], width: int) -> Pick | None:
    """What makes a row of the values at `places` of a row `width` wide; None if it is that row."""
    if list(places) == list(range(width)):
        return None
    if list(places) == list(range(len(places))):
        count = len(places)
        return lambda row: row[:count]
    if len(places) == 1:
        (only,) = places
        return lambda row: (row[only],)
    return itemgetter(*places)


# -- the row of a join, made of a row of each side; a missing side's columns are null


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
