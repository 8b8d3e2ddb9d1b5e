"""The metastore: streams, tables and types that statements declared, and which reads which.

It is what a statement's analysis looks things up in. Only the engine changes it, by `apply` of
`commands` that the analysis gave.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from barnabas.sql.errors import AnalysisError
from barnabas.sql.names import backquoted
from barnabas.sql.plan import steps
from barnabas.sql.plan.steps import Formats, QueryPlan, Step, TimestampColumn, WindowInfo
from barnabas.sql.schema import Column, Part, Schema
from barnabas.sql.syntax.tree import SourceKind
from barnabas.sql.types import SqlType


@dataclass(frozen=True)
class DataSource:
    """A stream or table, and the topic that holds it.

    `is_source`: declared as SOURCE, read only. `is_query_target`: made by CREATE … AS SELECT.
    `text`: the statements that made it what it is.
    """

    name: str
    kind: SourceKind
    schema: Schema
    topic: str
    formats: Formats
    window: WindowInfo | None = None
    timestamp: TimestampColumn | None = None
    is_source: bool = False
    is_query_target: bool = False
    text: str = ""

    @property
    def is_windowed(self) -> bool:
        return self.window is not None

    @property
    def is_table(self) -> bool:
        return self.kind is SourceKind.TABLE


@dataclass
class MetaStore:
    """`references`: what each source was made from; `queries`: persistent queries by id."""

    sources: dict[str, DataSource] = field(default_factory=dict)
    types: dict[str, SqlType] = field(default_factory=dict)
    references: dict[str, frozenset[str]] = field(default_factory=dict)
    queries: dict[str, QueryPlan] = field(default_factory=dict)
    next_query: int = 0
    """The number that the next query's id ends with."""

    def copy(self) -> MetaStore:
        """One that can change without this one changing."""
        return MetaStore(
            dict(self.sources),
            dict(self.types),
            dict(self.references),
            dict(self.queries),
            self.next_query,
        )

    # --- looking ---------------------------------------------------------------------------

    def source(self, name: str) -> DataSource | None:
        """The stream or table of that name."""
        return self.sources.get(name)

    def must(self, name: str) -> DataSource:
        """The stream or table of that name; raises AnalysisError."""
        source = self.sources.get(name)
        if source is None:
            raise AnalysisError(f"{name} does not exist.{self.hint(name)}")
        return source

    def writers(self, name: str) -> list[str]:
        """Ids of the queries that write into a source."""
        return [query_id for query_id, plan in self.queries.items() if plan.sink == name]

    def readers(self, name: str) -> list[str]:
        """Ids of the queries that read a source."""
        return [query_id for query_id, plan in self.queries.items() if name in plan.sources]

    def made_from(self, name: str) -> list[str]:
        """Names of the sources that were made from one, in order."""
        return sorted(made for made, of in self.references.items() if name in of)

    def hint(self, name: str, kind: SourceKind | None = None) -> str:
        """A question for who wrote a name in another case, or nothing."""
        similar = sorted(
            (source.name, source.kind.value)
            for source in self.sources.values()
            if source.name.upper() == name.upper() and kind in (None, source.kind)
        )
        if not similar:
            return ""
        if len(similar) > 1:
            listed = [f'"{other}" ({of})' for other, of in similar]
            comma = "" if len(listed) == 2 else ","
            names = f"{', '.join(listed[:-1])}{comma} or {listed[-1]}"
            ending = "Hint: wrap the source name in double quotes to make it case-sensitive."
            return f"\nDid you mean {names}? {ending}"
        other = similar[0][0]
        if other != other.upper():
            return (
                f'\nDid you mean "{other}"? Hint: wrap the source name in double quotes to make it '
                "case-sensitive."
            )
        return f"\nDid you mean {other}? Hint: try removing double quotes from the source name."

    # --- changing --------------------------------------------------------------------------

    def put(self, source: DataSource, *, may_replace: bool) -> None:
        """Add a source, or replace one that may become it; raises AnalysisError."""
        existing = self.sources.get(source.name)
        if existing is not None and not may_replace:
            raise AnalysisError(
                f"Cannot add {source.kind.value.lower()} '{source.name}': "
                f"A {existing.kind.value.lower()} with the same name already exists"
            )
        if existing is not None:
            check_upgrade(existing, source)
        self.sources[source.name] = source

    def refer(self, name: str, sources: Iterable[str]) -> None:
        """Note what a source is made from: those cannot be dropped before it."""
        self.references[name] = self.references.get(name, frozenset()) | frozenset(sources)

    def drop(self, name: str) -> None:
        """Take a source away; raises AnalysisError if others are made from it."""
        self.must(name)
        made = self.made_from(name)
        if made:
            raise AnalysisError(
                f"Cannot drop {name}.\n"
                "The following streams and/or tables read from this source: "
                f"[{', '.join(made)}].\nYou need to drop them before dropping {name}."
            )
        del self.sources[name]
        self.references.pop(name, None)


def check_upgrade(old: DataSource, new: DataSource) -> None:
    """Raise AnalysisError unless readers of the old source can read the new one."""
    compared: Mapping[str, tuple[object, object]] = {
        "name": (backquoted(old.name), backquoted(new.name)),
        "type": (old.kind.value, new.kind.value),
        "topic": (_topic(old), _topic(new)),
        "timestampColumn": (old.timestamp, new.timestamp),
    }
    name = backquoted(old.name)
    issues = [
        f"DataSource '{name}' has {what} = {before} which is not upgradeable to {after}"
        for what, (before, after) in compared.items()
        if before != after
    ]
    problem = _schema_problem(old.schema, new.schema)
    if problem:
        issues.append(
            f"DataSource '{name}' has schema = {old.schema} which is not upgradeable to "
            f"{new.schema}. ({problem})"
        )
    if issues:
        raise AnalysisError("Cannot upgrade data source: " + "\n\tAND ".join(issues))


def _topic(source: DataSource) -> tuple[object, ...]:
    return (source.topic, source.formats, source.window)


def _schema_problem(old: Schema, new: Schema) -> str:
    """Why rows of the old schema are none of the new one: its columns must be there, in place."""
    missing = _missing(old.key, new.key)
    if missing:
        return (
            "Key columns must be identical. The following key columns are changed, missing or "
            f"reordered: [{missing}]"
        )
    missing = ", ".join(filter(None, (_missing(old.key, new.key), _missing(old.value, new.value))))
    if missing:
        return f"The following columns are changed, missing or reordered: [{missing}]"
    return ""


def _missing(old: tuple[Column, ...], new: tuple[Column, ...]) -> str:
    return ", ".join(
        f"{column} KEY" if column.part is Part.KEY else str(column)
        for place, column in enumerate(old)
        if place >= len(new) or new[place] != column
    )


def with_columns(source: DataSource, added: Iterable[Column], text: str) -> DataSource:
    """The source with more columns in its value, as ALTER adds them; raises AnalysisError."""
    schema = source.schema
    for column in added:
        if schema.find(column.name) is not None and column.name in {c.name for c in schema.value}:
            raise AnalysisError(
                f"Cannot add column {backquoted(column.name)} to schema. A column with the same "
                "name already exists."
            )
        schema = Schema((*schema.columns, column))
    return replace(source, schema=schema, text=f"{source.text}\n{text}")


# -- CREATE OR REPLACE: whether a new plan can take over the state of the running one
#
# Filters and selections may come and go. All other steps must be there in both plans, in the same
# order and with the same facts about their state; of some, ksqlDB allows no change at all.


_PASSIVE = (steps.Filter, steps.Select)
_MUST_MATCH: dict[type, tuple[str, ...]] = {
    steps.StreamSink: ("formats", "topic", "timestamp"),
    steps.TableSink: ("formats", "topic", "timestamp"),
    steps.StreamSource: ("topic", "formats", "timestamp", "window"),
    steps.TableSource: ("topic", "formats", "timestamp", "window"),
    steps.StreamSelectKey: ("expressions",),
    steps.TableSelectKey: ("expressions",),
    steps.StreamGroupBy: ("expressions",),
    steps.StreamGroupByKey: (),
    steps.StreamAggregate: ("kept", "functions"),
}


def check_plan_upgrade(old: Step, new: Step) -> None:
    """Raise AnalysisError unless `new` can go on where `old` stopped."""
    if old == new:
        return
    before, after = _acting(old), _acting(new)
    kind = type(before)
    if kind not in _MUST_MATCH:
        raise AnalysisError(f"Upgrades not yet supported for {kind.__name__}")
    if type(after) is not kind:
        raise AnalysisError(
            f"Query is not upgradeable. Plan step of type {kind.__name__} must have matching "
            f"class. Values differ: {kind.__name__} vs. {type(after).__name__}"
        )
    for name in _MUST_MATCH[kind]:
        values = getattr(before, name), getattr(after, name)
        if values[0] != values[1]:
            raise AnalysisError(
                f"Query is not upgradeable. Plan step of type {kind.__name__} must have matching "
                f"{name}. Values differ: {values[0]} vs. {values[1]}"
            )
    below = getattr(before, "source", None)
    if below is not None:
        check_plan_upgrade(below, after.source)  # type: ignore[union-attr]  # of the same class


def _acting(step: Step) -> Step:
    """The step itself, or the first one below that may not go."""
    while isinstance(step, _PASSIVE):
        step = step.source
    return step
