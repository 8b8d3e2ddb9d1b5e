"""The steps of a query's plan: data that is stored in the command topic, compared and tested
without an engine. Each step has the schema of what it emits. Names follow ksqlDB's execution plan.

Inside a plan every column has one name; columns of a joined source are `ALIAS_COLUMN` until a
Select names them for the result. Expressions refer to columns by those names (`source` is None).
Columns of windows and pseudo columns are in a step's schema once they are used after a join or
a change of key; else sources give them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from barnabas.sql.schema import Schema
from barnabas.sql.syntax.expressions import Expression, FunctionCall
from barnabas.sql.syntax.tree import Emit, JoinKind, Window, WindowKind, Within


@dataclass(frozen=True)
class FormatChoice:
    """A format by name (JSON, AVRO, …) with its properties, as in a WITH clause: `delimiter`,
    `fullSchemaName`, `schemaId`, …; `wraps_single` is None where the format's default holds."""

    name: str
    properties: Mapping[str, str] = field(default_factory=dict)
    wraps_single: bool | None = None


@dataclass(frozen=True)
class Formats:
    """The formats of a topic's keys and values."""

    key: FormatChoice
    value: FormatChoice


@dataclass(frozen=True)
class WindowInfo:
    """The windows of a topic's keys; `size_ms` is None for sessions."""

    kind: WindowKind
    size_ms: int | None = None
    emit: Emit = Emit.CHANGES


@dataclass(frozen=True)
class TimestampColumn:
    """The column that gives a record's timestamp, and how its text is to be read."""

    name: str
    format: str | None = None


@dataclass(frozen=True)
class Source:
    """A topic to read: how its records are written, and where they have timestamps and windows."""

    topic: str
    formats: Formats
    schema: Schema
    timestamp: TimestampColumn | None = None
    window: WindowInfo | None = None


class StreamSource(Source):
    """Records of a topic as events."""


class TableSource(Source):
    """Records of a topic as the last value of each key; a null value deletes."""


@dataclass(frozen=True)
class Filter:
    """A condition that decides which records or rows pass."""

    source: Step
    condition: Expression
    schema: Schema


class StreamFilter(Filter):
    """Passes the records that meet the condition."""


class TableFilter(Filter):
    """A row that no longer meets the condition is deleted downstream."""


@dataclass(frozen=True)
class SelectedColumn:
    """A column of the value, and what it is calculated from."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Select:
    """The columns of the new value, each with its expression."""

    source: Step
    key_names: tuple[str, ...]
    selected: tuple[SelectedColumn, ...]
    schema: Schema


class StreamSelect(Select):
    """Calculates the columns of the value; the key stays (its columns may get other names)."""


class TableSelect(Select):
    """As StreamSelect, for old and new rows of a table."""


@dataclass(frozen=True)
class NewKey:
    """Expressions whose values are the new key, or the key of a group."""

    source: Step
    expressions: tuple[Expression, ...]
    schema: Schema


class StreamSelectKey(NewKey):
    """Gives each record a new key (PARTITION BY, or a join on something else than the key)."""


class TableSelectKey(NewKey):
    """As StreamSelectKey; the result is the table of the last row of each new key."""


@dataclass(frozen=True)
class StreamFlatMap:
    """One record for each row that the table functions (EXPLODE, …) make together.

    Their columns are called KSQL_SYNTH_0, KSQL_SYNTH_1, …; the shorter ones are filled with null.
    """

    source: Step
    functions: tuple[FunctionCall, ...]
    schema: Schema


class StreamGroupBy(NewKey):
    """Groups by expressions; a record for which one of them is null (or fails) is left out."""


@dataclass(frozen=True)
class StreamGroupByKey:
    """Groups by the key as it is."""

    source: Step
    schema: Schema


class TableGroupBy(NewKey):
    """As StreamGroupBy, of a table: the old row is taken out of its group, the new one added."""


@dataclass(frozen=True)
class Aggregate:
    """Aggregates of a group; `kept` are columns of the source that hold the group's last value.

    The aggregates' columns are called KSQL_AGG_VARIABLE_0, …
    """

    source: Step
    kept: tuple[str, ...]
    functions: tuple[FunctionCall, ...]
    schema: Schema


class StreamAggregate(Aggregate):
    """Aggregates each group of records."""


@dataclass(frozen=True)
class StreamWindowedAggregate:
    """As StreamAggregate, for each window of a group."""

    source: Step
    kept: tuple[str, ...]
    functions: tuple[FunctionCall, ...]
    window: Window
    schema: Schema


class TableAggregate(Aggregate):
    """As StreamAggregate; old rows of the table are taken out of their aggregates."""


@dataclass(frozen=True)
class TableSuppress:
    """EMIT FINAL: the last value of each window, once, when its grace is over."""

    source: Step
    schema: Schema


@dataclass(frozen=True)
class StreamStreamJoin:
    """`key_name` names the key of the result; it may be a synthetic column (ROWKEY)."""

    kind: JoinKind
    key_name: str
    left: Step
    right: Step
    within: Within
    schema: Schema


@dataclass(frozen=True)
class KeyJoin:
    """A join to a table by its key; `key_name` is that of a StreamStreamJoin."""

    kind: JoinKind
    key_name: str
    left: Step
    right: Step
    schema: Schema


class StreamTableJoin(KeyJoin):
    """Joins each record of a stream with the table's row of that moment."""


class TableTableJoin(KeyJoin):
    """Joins the rows of two tables that have the same key."""


@dataclass(frozen=True)
class ForeignKeyJoin:
    """Joins a table to another by what `foreign_key` gives for each row of the left one."""

    kind: JoinKind
    foreign_key: Expression
    left: Step
    right: Step
    schema: Schema


@dataclass(frozen=True)
class Sink:
    """A topic to write; `timestamp` replaces the records' timestamps."""

    source: Step
    topic: str
    formats: Formats
    schema: Schema
    timestamp: TimestampColumn | None = None


class StreamSink(Sink):
    """Writes the result to its topic."""


class TableSink(Sink):
    """As StreamSink; a row that was deleted is written as a null value."""


Step: TypeAlias = (
    StreamSource
    | TableSource
    | StreamFilter
    | TableFilter
    | StreamSelect
    | TableSelect
    | StreamSelectKey
    | TableSelectKey
    | StreamFlatMap
    | StreamGroupBy
    | StreamGroupByKey
    | TableGroupBy
    | StreamAggregate
    | StreamWindowedAggregate
    | TableAggregate
    | TableSuppress
    | StreamStreamJoin
    | StreamTableJoin
    | TableTableJoin
    | ForeignKeyJoin
    | StreamSink
    | TableSink
)


class ResultKind(Enum):
    """The kind of a query's result."""

    STREAM = "STREAM"
    TABLE = "TABLE"
    WINDOWED_TABLE = "WINDOWED_TABLE"


@dataclass(frozen=True)
class QueryPlan:
    """A persistent query: what it reads (names of sources), its sink and its last step."""

    query_id: str
    sources: tuple[str, ...]
    sink: str | None
    kind: ResultKind
    step: Step
    window: WindowInfo | None = None
