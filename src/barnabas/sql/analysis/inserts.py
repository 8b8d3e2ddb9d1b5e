"""INSERT INTO … VALUES: which value goes into which column."""

from __future__ import annotations

from barnabas.sql.analysis.commands import InsertValuesCommand
from barnabas.sql.analysis.environment import Environment
from barnabas.sql.errors import AnalysisError
from barnabas.sql.names import backquoted
from barnabas.sql.schema import ROWOFFSET, ROWPARTITION, ROWTIME
from barnabas.sql.syntax.expressions import Expression, NullLiteral
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.syntax.tree import InsertValues


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
