"""A table of small tables, cheap to copy."""

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

Name = TypeVar("Name")
Inner = TypeVar("Inner")
Entry = TypeVar("Entry")

_EMPTY: dict[Any, Any] = {}


class Tables(Generic[Name, Inner, Entry]):
    """Small tables by name.

    A copy shares the small tables until one side changes one: that side then takes its own. So
    copies cost one pointer per name, and a table that nobody shares is changed in place.
    """

    __slots__ = ("_own", "_tables")

    def __init__(self) -> None:
        self._tables: dict[Name, dict[Inner, Entry]] = {}
        self._own: set[Name] = set()
        """Names whose tables no copy shares."""

    def copy(self) -> "Tables[Name, Inner, Entry]":
        """Return an independent table with the same content."""
        other: Tables[Name, Inner, Entry] = Tables()
        other._tables = self._tables.copy()
        self._own = set()
        return other

    def get(self, name: Name) -> dict[Inner, Entry]:
        """The small table of a name, empty if none exists.

        To be read only, and not to be kept over a change.
        """
        return self._tables.get(name, _EMPTY)

    def put(self, name: Name, inner: Inner, entry: Entry) -> None:
        """Set one entry of one small table."""
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = {}
            self._own.add(name)
        elif name not in self._own:
            table = self._tables[name] = table.copy()
            self._own.add(name)
        table[inner] = entry

    def sort(self, name: Name) -> None:
        """Put a small table into the order of its keys."""
        table: dict[Any, Entry] = self._tables[name]
        self._tables[name] = {inner: table[inner] for inner in sorted(table)}
        self._own.add(name)

    def remove(self, name: Name, inner: Inner) -> None:
        """Take one entry away; a small table that is empty goes too."""
        table = self._tables.get(name)
        if table is None or inner not in table:
            return
        if len(table) == 1:
            del self._tables[name]
            self._own.discard(name)
            return
        if name not in self._own:
            table = self._tables[name] = table.copy()
            self._own.add(name)
        del table[inner]

    def items(self) -> Iterable[tuple[Name, dict[Inner, Entry]]]:
        """Names and small tables. To be read only, and not to be kept over a change."""
        return self._tables.items()

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def __iter__(self) -> Iterator[Name]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tables) and self._tables == other._tables

    __hash__ = None  # type: ignore[assignment] # it changes
