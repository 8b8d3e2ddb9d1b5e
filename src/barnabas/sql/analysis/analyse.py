"""The entry: from a statement's tree to the command that does what it says.

    command = analyse(statement, metastore, properties, functions, schemas)
    message = commands.apply(command, metastore)

Nothing is changed here. Statements that only show something or control queries have no command;
the engine answers them from the metastore.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.analysis.commands import (
    AlterSourceCommand,
    Command,
    CreateTypeCommand,
    DropSourceCommand,
    DropTypeCommand,
    InsertValuesCommand,
    NothingCommand,
)
from barnabas.sql.analysis.definitions import create_source, resolve_types
from barnabas.sql.analysis.environment import Environment
from barnabas.sql.analysis.metastore import MetaStore
from barnabas.sql.analysis.queries import create_as_select, insert_into, plain_query
from barnabas.sql.errors import TOO_LARGE, AnalysisError, text_in_errors
from barnabas.sql.functions.catalog import Function
from barnabas.sql.names import backquoted, repeated
from barnabas.sql.schema import ROWOFFSET, ROWPARTITION, ROWTIME, Column
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.expressions import Expression, NullLiteral
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.syntax.tree import InsertValues
from barnabas.sql.types import SqlType


def analyse(
    statement: tree.Statement,
    metastore: MetaStore,
    properties: Mapping[str, Any],
    functions: Mapping[str, Function],
    schemas: SchemaStore | None = None,
    *,
    topics: Mapping[str, int] | None = None,
    text: str = "",
) -> Command:
    """The command of a statement; raises AnalysisError or PrepareError.

    `properties`: settings of server and session by their full names. `topics`: the number of
    partitions of each topic that exists; None if that is not to be checked. `text`: the
    statement's, which the sources that it makes keep.
    """
    environment = Environment(metastore, properties, functions, schemas, topics or {}, text)
    make = _MAKERS.get(type(statement))
    if make is None:
        raise AnalysisError("Statement not executable", statement=text)
    with text_in_errors(text):
        try:
            return make(resolve_types(statement, metastore.types.get), environment)
        except RecursionError:
            raise AnalysisError(TOO_LARGE) from None


def _drop_source(statement: tree.DropSource, environment: Environment) -> Command:
    metastore, kind = environment.metastore, statement.kind.value.lower()
    source = metastore.source(statement.name)
    if source is None:
        if statement.if_exists:
            return NothingCommand(f"Source {backquoted(statement.name)} does not exist.")
        hint = metastore.hint(statement.name, statement.kind)
        raise AnalysisError(f"{kind.capitalize()} {statement.name} does not exist.{hint}")
    if source.kind is not statement.kind:
        raise AnalysisError(
            f"Incompatible data source type is {source.kind.value.lower()}, but statement was DROP "
            f"{kind}"
        )
    if source.is_source and statement.delete_topic:
        raise AnalysisError(f"Cannot delete topic for read-only source: {source.name}")
    metastore.copy().drop(source.name)
    return DropSourceCommand(source.name, source.kind, statement.delete_topic)


def _create_type(statement: tree.CreateType, environment: Environment) -> Command:
    existing = environment.metastore.types.get(statement.name)
    if existing is not None:
        message = f"Cannot register custom type '{statement.name}' since it is already registered"
        if statement.if_not_exists:
            return NothingCommand(f"{statement.name} is already registered with type {existing}")
        raise AnalysisError(f"{message} with type: {existing}")
    return CreateTypeCommand(statement.name, cast(SqlType, statement.type), statement.if_not_exists)


def _drop_type(statement: tree.DropType, environment: Environment) -> Command:
    if statement.name not in environment.metastore.types:
        if statement.if_exists:
            return NothingCommand(f"Type '{statement.name}' does not exist")
        raise AnalysisError(f"Type {statement.name} does not exist.")
    return DropTypeCommand(statement.name)


def _alter_source(statement: tree.AlterSource, environment: Environment) -> Command:
    source = environment.metastore.source(statement.name)
    kind = statement.kind.value
    if source is None:
        raise AnalysisError(f"Source {statement.name} does not exist.")
    if source.is_source:
        lower = kind.lower()
        raise AnalysisError(
            f"Cannot alter {lower} '{source.name}': ALTER operations are not supported on source "
            f"{lower}s."
        )
    if source.kind is not statement.kind:
        raise AnalysisError(
            f"Incompatible data source type is {source.kind.value}, but statement was ALTER {kind}"
        )
    if source.is_query_target:
        raise AnalysisError("ALTER command is not supported for CREATE ... AS statements.")
    added = tuple(Column(name, cast(SqlType, of)) for name, of in statement.added)
    names = [column.name for column in (*source.schema.columns, *added)]
    twice = repeated(names)
    for column in added:
        if column.name in twice:
            raise AnalysisError(
                f"Cannot add column {backquoted(column.name)} to schema. A column with the same "
                "name already exists."
            )
    return AlterSourceCommand(source.name, source.kind, added)


def insert_values(statement: InsertValues, environment: Environment) -> InsertValuesCommand:
    """The record that the statement writes; raises AnalysisError."""
    metastore = environment.metastore
    source = metastore.source(statement.name)
    if source is None:
        raise AnalysisError(
            "Cannot insert values into an unknown stream/table: "
            f"{backquoted(statement.name)}{metastore.hint(statement.name)}"
        )
    if source.is_windowed:
        raise AnalysisError("Cannot insert values into windowed stream/table!")
    if source.is_source:
        kind = source.kind.value.lower()
        raise AnalysisError(f"Cannot insert values into read-only {kind}: {source.name}")
    schema = source.schema
    headers = [
        column.name
        for column in schema.headers
        if not statement.columns or column.name in statement.columns
    ]
    if headers:
        raise AnalysisError(f"Cannot insert into HEADER columns: {', '.join(headers)}")
    names = statement.columns or tuple(column.name for column in (*schema.key, *schema.value))
    given = _by_column(statement, names)
    known = {column.name for column in (*schema.key, *schema.value)}
    for name in names:
        if name in (ROWPARTITION, ROWOFFSET):
            raise _failed(statement, f"Inserting into column {backquoted(name)} is not allowed.")
        if name != ROWTIME and name not in known:
            raise _failed(statement, f"Column name {backquoted(name)} does not exist.")
    missing = [column.name for column in schema.key if column.name not in given]
    if source.is_table and missing:
        raise _failed(
            statement,
            f"Value for primary key column(s) {', '.join(missing)} is required for tables",
        )
    null = NullLiteral()
    return InsertValuesCommand(
        source,
        tuple(given.get(column.name, null) for column in schema.key),
        tuple(given.get(column.name, null) for column in schema.value),
        given.get(ROWTIME),
    )


def _by_column(statement: InsertValues, names: tuple[str, ...]) -> dict[str, Expression]:
    if len(names) != len(statement.values):
        columns = ", ".join(map(backquoted, statement.columns))
        values = ", ".join(map(message_text, statement.values))
        raise _failed(
            statement,
            f"Expected a value for each column. Expected Columns: [{columns}]. Got [{values}]",
        )
    return dict(zip(names, statement.values, strict=True))


def _failed(statement: InsertValues, problem: str) -> AnalysisError:
    return AnalysisError(f"Failed to insert values into '{statement.name}'. {problem}")


_MAKERS: dict[type, Callable[[Any, Environment], Command]] = {
    tree.CreateSource: create_source,
    tree.CreateAsSelect: create_as_select,
    tree.InsertInto: insert_into,
    tree.Query: plain_query,
    tree.InsertValues: insert_values,
    tree.DropSource: _drop_source,
    tree.CreateType: _create_type,
    tree.DropType: _drop_type,
    tree.AlterSource: _alter_source,
}
