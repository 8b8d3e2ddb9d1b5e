"""Statements: the tree that the parser makes of text. Names are as they count: upper case unless
they were quoted. Names of columns and sources are not looked up here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import TypeAlias

from barnabas.sql.syntax.expressions import Expression, Node
from barnabas.sql.types import SqlType

Literal: TypeAlias = str | int | float | Decimal | bool | None
"""A property's value in a WITH clause."""


class SourceKind(Enum):
    """The sources of a FROM clause."""

    STREAM = "STREAM"
    TABLE = "TABLE"


# --- queries ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class SingleColumn(Node):
    """`expression [AS alias]`."""

    expression: Expression
    alias: str | None = None


@dataclass(frozen=True)
class AllColumns(Node):
    """`*`, or `source.*`."""

    source: str | None = None


@dataclass(frozen=True)
class StructAll(Node):
    """`base->*`: every field of a STRUCT as a column."""

    base: Expression


SelectItem: TypeAlias = SingleColumn | AllColumns | StructAll


@dataclass(frozen=True)
class Source(Node):
    """`name [AS alias]` in a FROM clause; without an alias it is the name."""

    name: str
    alias: str


class JoinKind(Enum):
    """Which side's rows are kept without a partner."""

    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    OUTER = "OUTER"


@dataclass(frozen=True)
class Within(Node):
    """`WITHIN (before, after) [GRACE PERIOD grace]`; a single figure is both."""

    before_ms: int
    after_ms: int
    grace_ms: int | None = None


@dataclass(frozen=True)
class Join(Node):
    """One `[kind] JOIN source [WITHIN …] ON condition` after what stands to its left."""

    kind: JoinKind
    source: Source
    condition: Expression
    within: Within | None = None


class WindowKind(Enum):
    """The kind of a window, which decides on its bounds."""

    TUMBLING = "TUMBLING"
    HOPPING = "HOPPING"
    SESSION = "SESSION"


@dataclass(frozen=True)
class Window(Node):
    """A WINDOW clause; `size_ms` is a session's gap, `advance_ms` is the size unless hopping."""

    kind: WindowKind
    size_ms: int
    advance_ms: int
    retention_ms: int | None = None
    grace_ms: int | None = None
    name: str | None = None


class Emit(Enum):
    """EMIT CHANGES: every change; EMIT FINAL: a window's last value."""

    CHANGES = "CHANGES"
    FINAL = "FINAL"


@dataclass(frozen=True)
class Query(Node):
    """A SELECT; without EMIT and outside of CREATE … AS it is a pull query."""

    select: tuple[SelectItem, ...]
    source: Source
    joins: tuple[Join, ...] = ()
    window: Window | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] | None = None
    partition_by: tuple[Expression, ...] | None = None
    having: Expression | None = None
    emit: Emit | None = None
    limit: int | None = None


# --- data definition -------------------------------------------------------------------------


class Constraint(Enum):
    """The role of a declared column that is not a part of the value."""

    KEY = "KEY"
    PRIMARY_KEY = "PRIMARY KEY"
    HEADERS = "HEADERS"
    HEADER = "HEADER"


@dataclass(frozen=True)
class ColumnElement(Node):
    """A column that a CREATE declares; `header` is the name in `HEADER('name')`."""

    name: str
    type: SqlType | NamedType
    constraint: Constraint | None = None
    header: str | None = None


@dataclass(frozen=True)
class NamedType(Node):
    """A type that CREATE TYPE made; the analysis looks it up.

    It may be used wherever a statement allows a SqlType, also inside other types; no type that
    leaves the analysis holds one.
    """

    name: str


@dataclass(frozen=True)
class CreateSource(Node):
    """CREATE [OR REPLACE] [SOURCE] STREAM|TABLE [IF NOT EXISTS] name (columns) WITH (…)."""

    kind: SourceKind
    name: str
    elements: tuple[ColumnElement, ...] = ()
    properties: Mapping[str, Literal] = field(default_factory=dict)
    or_replace: bool = False
    if_not_exists: bool = False
    is_source: bool = False


@dataclass(frozen=True)
class CreateAsSelect(Node):
    """CREATE [OR REPLACE] STREAM|TABLE name WITH (…) AS query."""

    kind: SourceKind
    name: str
    query: Query
    properties: Mapping[str, Literal] = field(default_factory=dict)
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class InsertInto(Node):
    """INSERT INTO name [WITH (…)] query."""

    name: str
    query: Query
    properties: Mapping[str, Literal] = field(default_factory=dict)


@dataclass(frozen=True)
class InsertValues(Node):
    """INSERT INTO name [(columns)] VALUES (…)."""

    name: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True)
class DropSource(Node):
    """DROP STREAM|TABLE [IF EXISTS] name [DELETE TOPIC]."""

    kind: SourceKind
    name: str
    if_exists: bool = False
    delete_topic: bool = False


@dataclass(frozen=True)
class AlterSource(Node):
    """ALTER STREAM|TABLE name ADD COLUMN …."""

    kind: SourceKind
    name: str
    added: tuple[tuple[str, SqlType | NamedType], ...]


@dataclass(frozen=True)
class CreateType(Node):
    """CREATE TYPE [IF NOT EXISTS] name AS type."""

    name: str
    type: SqlType | NamedType
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropType(Node):
    """DROP TYPE [IF EXISTS] name."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class CreateConnector(Node):
    """CREATE SOURCE|SINK CONNECTOR [IF NOT EXISTS] name WITH (…)."""

    name: str
    is_source: bool
    properties: Mapping[str, Literal]
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropConnector(Node):
    """DROP CONNECTOR [IF EXISTS] name."""

    name: str
    if_exists: bool = False


# --- statements about statements --------------------------------------------------------------


class Listed(Enum):
    """The kinds that LIST and SHOW can list."""

    PROPERTIES = "PROPERTIES"
    TOPICS = "TOPICS"
    STREAMS = "STREAMS"
    TABLES = "TABLES"
    FUNCTIONS = "FUNCTIONS"
    CONNECTORS = "CONNECTORS"
    SOURCE_CONNECTORS = "SOURCE CONNECTORS"
    SINK_CONNECTORS = "SINK CONNECTORS"
    CONNECTOR_PLUGINS = "CONNECTOR PLUGINS"
    TYPES = "TYPES"
    VARIABLES = "VARIABLES"
    QUERIES = "QUERIES"


@dataclass(frozen=True)
class Show(Node):
    """LIST|SHOW; `show_all` is SHOW ALL TOPICS."""

    listed: Listed
    extended: bool = False
    show_all: bool = False


class Described(Enum):
    """The kinds that DESCRIBE can describe."""

    SOURCE = "SOURCE"
    STREAMS = "STREAMS"
    TABLES = "TABLES"
    FUNCTION = "FUNCTION"
    CONNECTOR = "CONNECTOR"


@dataclass(frozen=True)
class Describe(Node):
    """DESCRIBE name, STREAMS, TABLES, FUNCTION name or CONNECTOR name."""

    described: Described
    name: str | None = None
    extended: bool = False


@dataclass(frozen=True)
class Explain(Node):
    """EXPLAIN of a running query by its id, or of a statement."""

    query_id: str | None = None
    statement: Statement | None = None


@dataclass(frozen=True)
class PrintTopic(Node):
    """PRINT topic [FROM BEGINNING] [INTERVAL n] [LIMIT n]."""

    topic: str
    from_beginning: bool = False
    interval: int | None = None
    limit: int | None = None


class Control(Enum):
    """The operations on a running query."""

    TERMINATE = "TERMINATE"
    PAUSE = "PAUSE"
    RESUME = "RESUME"


@dataclass(frozen=True)
class ControlQuery(Node):
    """TERMINATE, PAUSE or RESUME of one query, or of all (`query_id` None)."""

    control: Control
    query_id: str | None = None


@dataclass(frozen=True)
class SetProperty(Node):
    """SET 'name'='value', or ALTER SYSTEM 'name'='value'."""

    name: str
    value: str
    is_system: bool = False


@dataclass(frozen=True)
class UnsetProperty(Node):
    """UNSET 'name'."""

    name: str


@dataclass(frozen=True)
class DefineVariable(Node):
    """DEFINE name = 'value'."""

    name: str
    value: str


@dataclass(frozen=True)
class UndefineVariable(Node):
    """UNDEFINE name."""

    name: str


@dataclass(frozen=True)
class RunScript(Node):
    """RUN SCRIPT 'path'."""

    path: str


# --- assertions ------------------------------------------------------------------------------


@dataclass(frozen=True)
class AssertTopic(Node):
    """ASSERT [NOT EXISTS] TOPIC name [WITH (…)] [TIMEOUT …]."""

    topic: str
    properties: Mapping[str, Literal] = field(default_factory=dict)
    timeout_ms: int | None = None
    exists: bool = True


@dataclass(frozen=True)
class AssertSchema(Node):
    """ASSERT [NOT EXISTS] SCHEMA [SUBJECT 'subject'] [ID id] [TIMEOUT …]."""

    subject: str | None = None
    schema_id: int | None = None
    timeout_ms: int | None = None
    exists: bool = True


@dataclass(frozen=True)
class AssertValues(Node):
    """ASSERT VALUES, or ASSERT NULL VALUES (`is_tombstone`), of a test file."""

    name: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]
    is_tombstone: bool = False


@dataclass(frozen=True)
class AssertSource(Node):
    """ASSERT STREAM|TABLE name (columns) WITH (…) of a test file."""

    kind: SourceKind
    name: str
    elements: tuple[ColumnElement, ...] = ()
    properties: Mapping[str, Literal] = field(default_factory=dict)


Statement: TypeAlias = (
    Query
    | CreateSource
    | CreateAsSelect
    | InsertInto
    | InsertValues
    | DropSource
    | AlterSource
    | CreateType
    | DropType
    | CreateConnector
    | DropConnector
    | Show
    | Describe
    | Explain
    | PrintTopic
    | ControlQuery
    | SetProperty
    | UnsetProperty
    | DefineVariable
    | UndefineVariable
    | RunScript
    | AssertTopic
    | AssertSchema
    | AssertValues
    | AssertSource
)


@dataclass(frozen=True)
class ParsedStatement:
    """A statement and the text that it was made of, without comments around it, with its `;`."""

    text: str
    statement: Statement
