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


# -- kinds of changes, by Confluent's names, and a description of each
#
# A change that the policy calls harmless is not reported, so only kinds that some policy refuses
# need a description. The lenient policy (`compatibilityPolicy`) allows more changes of content
# models.


_HARMFUL = {
    "keyword_added": (
        "MAXIMUM_ADDED MINIMUM_ADDED EXCLUSIVE_MAXIMUM_ADDED EXCLUSIVE_MINIMUM_ADDED"
        " MULTIPLE_OF_ADDED MAX_LENGTH_ADDED MIN_LENGTH_ADDED PATTERN_ADDED"
        " REQUIRED_ATTRIBUTE_ADDED MAX_PROPERTIES_ADDED MIN_PROPERTIES_ADDED"
        " DEPENDENCY_ARRAY_ADDED DEPENDENCY_SCHEMA_ADDED MAX_ITEMS_ADDED MIN_ITEMS_ADDED"
        " MAX_CONTAINS_ADDED MIN_CONTAINS_ADDED UNIQUE_ITEMS_ADDED ADDITIONAL_ITEMS_REMOVED"
        " ADDITIONAL_PROPERTIES_REMOVED UNEVALUATED_PROPERTIES_REMOVED UNEVALUATED_ITEMS_REMOVED"
        " SCHEMA_ADDED"
    ),
    "greater": (
        "MIN_LENGTH_INCREASED MINIMUM_INCREASED EXCLUSIVE_MINIMUM_INCREASED"
        " MIN_PROPERTIES_INCREASED MULTIPLE_OF_EXPANDED MIN_ITEMS_INCREASED"
        " MIN_CONTAINS_INCREASED"
    ),
    "smaller": (
        "MAX_LENGTH_DECREASED MAXIMUM_DECREASED MAX_ITEMS_DECREASED MAX_CONTAINS_DECREASED"
        " EXCLUSIVE_MAXIMUM_DECREASED MAX_PROPERTIES_DECREASED"
    ),
    "different": "PATTERN_CHANGED MULTIPLE_OF_CHANGED DEPENDENCY_ARRAY_CHANGED",
    "fewer": (
        "ADDITIONAL_ITEMS_NARROWED ENUM_ARRAY_NARROWED SUM_TYPE_NARROWED"
        " ADDITIONAL_PROPERTIES_NARROWED UNEVALUATED_PROPERTIES_NARROWED"
        " UNEVALUATED_ITEMS_NARROWED"
    ),
    "more": "DEPENDENCY_ARRAY_EXTENDED PRODUCT_TYPE_EXTENDED NOT_TYPE_EXTENDED",
    "type": (
        "TYPE_CHANGED TYPE_NARROWED COMBINED_TYPE_CHANGED COMBINED_TYPE_SUBSCHEMAS_CHANGED"
        " ENUM_ARRAY_CHANGED"
    ),
    "added_to_open": (
        "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
        " REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL"
        " OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL ITEM_ADDED_TO_OPEN_CONTENT_MODEL"
    ),
    "required_added": "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
    "removed_from_closed": (
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL"
    ),
    "removed_not_covered": (
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        " ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
    ),
    "added_not_covered": (
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        " ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
    ),
    "too_large": "COMPARISON_TOO_LARGE",
}

_SENTENCES = {
    "keyword_added": "the reader's schema restricts {path}, the writer's does not",
    "greater": "the value of {path} is greater in the reader's schema than in the writer's",
    "smaller": "the value of {path} is smaller in the reader's schema than in the writer's",
    "different": "the value of {path} differs between the reader's schema and the writer's",
    "fewer": "{path} allows fewer alternatives in the reader's schema than in the writer's",
    "more": "{path} asks for more in the reader's schema than in the writer's",
    "type": "the type of {path} in the reader's schema does not take all that the writer's allows",
    "added_to_open": (
        "the reader's schema restricts {path}, where the writer's open content model allows"
        " anything"
    ),
    "required_added": "the reader's schema requires {path}, which the writer's does not have",
    "removed_from_closed": (
        "the reader's closed content model does not allow {path}, which the writer's schema has"
    ),
    "removed_not_covered": (
        "the writer's schema has {path}, and what the reader's schema says of other properties or"
        " items does not allow it"
    ),
    "added_not_covered": (
        "the reader's schema has {path}, which does not allow all that the writer's schema says of"
        " other properties or items"
    ),
    "too_large": "the two schemas have too many alternatives to compare them all",
}

_WORDS = {kind: group for group, kinds in _HARMFUL.items() for kind in kinds.split()}

HARMFUL_STRICT = frozenset(_WORDS)
HARMFUL_LENIENT = HARMFUL_STRICT - {
    "ADDITIONAL_PROPERTIES_NARROWED",
    "ADDITIONAL_PROPERTIES_REMOVED",
    "UNEVALUATED_PROPERTIES_NARROWED",
    "UNEVALUATED_PROPERTIES_REMOVED",
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
}


def describe(kind: str, path: str) -> str:
    """One sentence about a change of a harmful kind."""
    return _SENTENCES[_WORDS[kind]].format(path=f"'{path}'")
