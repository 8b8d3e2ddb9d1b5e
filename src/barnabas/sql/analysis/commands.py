"""Commands: the result of analysing statements, as data.

The engine stores those that change something in its command topic and applies them, first to the
metastore (`apply`), then to topics, the schema registry and running queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from barnabas.sql.analysis.metastore import DataSource, MetaStore, with_columns
from barnabas.sql.errors import AnalysisError
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.schema import Column
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.tree import Query, SourceKind
from barnabas.sql.types import SqlType


@dataclass(frozen=True)
class TopicWish:
    """The topic that a source lies in, and how it is made if it does not exist yet.

    Figures that are None are taken from `like`, the topic that the query reads first, or from the
    broker. `cleanup_policy` is as Kafka's configuration has it.
    """

    name: str
    partitions: int | None = None
    replicas: int | None = None
    retention_ms: int | None = None
    cleanup_policy: str = "delete"
    like: str | None = None


@dataclass(frozen=True)
class CreateSourceCommand:
    """A stream or table over a topic, by CREATE, or as the result of a query."""

    source: DataSource
    topic: TopicWish
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class QueryCommand:
    """A query that runs; `ddl` declares its sink if it has to be made."""

    plan: QueryPlan
    ddl: CreateSourceCommand | None = None
    replaces: str | None = None
    """Id of the running query that this one takes the place of, with its state."""
    limit: int | None = None


@dataclass(frozen=True)
class PullQueryCommand:
    """A query of a table's present rows, checked, with its columns' sources resolved."""

    query: Query
    source: DataSource


@dataclass(frozen=True)
class DropSourceCommand:
    """A stream or table goes, and its topic too if it was asked for."""

    name: str
    kind: SourceKind
    deletes_topic: bool = False


@dataclass(frozen=True)
class InsertValuesCommand:
    """One record: values of the key's and value's columns, in the schema's order, as literals or
    expressions of the columns' types; `timestamp` is that of ROWTIME, if given."""

    source: DataSource
    key: tuple[Expression, ...]
    value: tuple[Expression, ...] | None
    timestamp: Expression | None = None


@dataclass(frozen=True)
class CreateTypeCommand:
    """A type gets a name that statements can use."""

    name: str
    type: SqlType
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropTypeCommand:
    name: str


@dataclass(frozen=True)
class AlterSourceCommand:
    """A stream or table gets more columns of its value."""

    name: str
    kind: SourceKind
    added: tuple[Column, ...]


@dataclass(frozen=True)
class NothingCommand:
    """There is nothing to do (IF EXISTS, IF NOT EXISTS); says why."""

    message: str


Command: TypeAlias = (
    CreateSourceCommand
    | QueryCommand
    | PullQueryCommand
    | DropSourceCommand
    | InsertValuesCommand
    | CreateTypeCommand
    | DropTypeCommand
    | AlterSourceCommand
    | NothingCommand
)


def apply(command: Command, metastore: MetaStore, text: str = "") -> str:
    """Do what the command does to the metastore; gives the message for who sent the statement.

    Raises AnalysisError if the metastore does not take it.
    """
    match command:
        case CreateSourceCommand():
            return _create(command, metastore)
        case QueryCommand():
            return _query(command, metastore)
        case DropSourceCommand():
            topic = metastore.must(command.name).topic
            metastore.drop(command.name)
            return f"Source `{command.name}` (topic: {topic}) was dropped."
        case CreateTypeCommand():
            metastore.types[command.name] = command.type
            return f"Registered custom type with name '{command.name}' and SQL type {command.type}"
        case DropTypeCommand():
            del metastore.types[command.name]
            return f"Dropped type '{command.name}'"
        case AlterSourceCommand():
            source = metastore.must(command.name)
            metastore.put(with_columns(source, command.added, text), may_replace=True)
            return f"{source.kind.value.capitalize()} {source.name} altered."
        case NothingCommand():
            return command.message
        case PullQueryCommand() | InsertValuesCommand():
            return ""


def _create(command: CreateSourceCommand, metastore: MetaStore) -> str:
    metastore.put(command.source, may_replace=command.or_replace)
    return f"{command.source.kind.value.capitalize()} created"


def _query(command: QueryCommand, metastore: MetaStore) -> str:
    plan = command.plan
    if command.ddl is not None:
        _create(command.ddl, metastore)
        metastore.refer(command.ddl.source.name, plan.sources)
    if plan.sink is None:
        return ""
    if plan.query_id in metastore.queries and command.replaces != plan.query_id:
        raise AnalysisError(f"Query ID '{plan.query_id}' already exists.")
    metastore.queries[plan.query_id] = plan
    metastore.next_query += 1
    return f"Created query with ID {plan.query_id}"
