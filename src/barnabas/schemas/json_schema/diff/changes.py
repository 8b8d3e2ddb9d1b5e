"""The harmful changes found between two schemas, with paths relative to the two."""

from collections.abc import Generator, Iterable
from typing import Any

from barnabas.schemas.json_schema.model.kinds import Schema

CHANGES_MAX = 100
"""Kept of one pair of schemas. Schemas that refer to one another could multiply them."""

Path = tuple[str, ...]
Change = tuple[str, Path]
Steps = Generator[tuple[Schema, Schema], tuple[Change, ...], None]
"""Rules are generators: they yield a pair of schemas inside theirs, and get its changes. So schemas
that refer to one another in long chains do not nest calls."""


class Changes:
    """Collects what is harmful by a policy."""

    __slots__ = ("found", "harmful")

    def __init__(self, harmful: frozenset[str]) -> None:
        self.harmful = harmful
        self.found: list[Change] = []

    def add(self, kind: str, *path: str) -> None:
        """A change of this kind, harmful or not, at a path."""
        if kind in self.harmful and len(self.found) < CHANGES_MAX:
            self.found.append((kind, path))

    def add_all(self, changes: Iterable[Change], *path: str) -> None:
        """Changes of schemas inside, which are at a path."""
        for kind, inner in changes:
            self.add(kind, *path, *inner)

    def limit(self, name: str, kind: str, old: Any, new: Any) -> None:
        """A keyword with a number: added, removed, increased or decreased."""
        if new == old:
            return
        if old is None:
            self.add(f"{kind}_ADDED", name)
        elif new is None:
            self.add(f"{kind}_REMOVED", name)
        else:
            self.add(f"{kind}_INCREASED" if old < new else f"{kind}_DECREASED", name)


def inside(changes: Changes, old: Schema | None, new: Schema | None, *path: str) -> Steps:
    """The rule for a schema that each of two schemas may have at a path."""
    if old is None or new is None:
        if old is not new:
            changes.add("SCHEMA_ADDED" if old is None else "SCHEMA_REMOVED", *path)
        return
    differences = yield old, new
    changes.add_all(differences, *path)
