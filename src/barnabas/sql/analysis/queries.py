"""Statements with a query: CREATE … AS SELECT, INSERT INTO … SELECT, and SELECT alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from barnabas.sql.analysis.commands import (
    Command,
    CreateSourceCommand,
    PullQueryCommand,
    QueryCommand,
)
from barnabas.sql.analysis.definitions import (
    check_timestamp,
    exists_already,
    read_only,
    topic_wish,
)
from barnabas.sql.analysis.environment import DEFAULT_KEY_FORMAT, TOPIC_PREFIX, Environment
from barnabas.sql.analysis.formats import (
    check_against_schema_id,
    check_formats,
    format_choice,
    wrapped_formats,
)
from barnabas.sql.analysis.metastore import DataSource, check_plan_upgrade, check_upgrade
from barnabas.sql.analysis.new_keys import is_null_key
from barnabas.sql.analysis.planner import (
    Result,
    Sink,
    check_existing_sink,
    plan_with_sink,
    plan_without_sink,
    result_node,
    result_window,
)
from barnabas.sql.analysis.properties import (
    CREATE_AS,
    INSERT_INTO,
    SourceProperties,
    read_properties,
)
from barnabas.sql.analysis.query import QueryAnalysis, analyse_query
from barnabas.sql.errors import AnalysisError, Place, SqlError
from barnabas.sql.names import backquoted
from barnabas.sql.plan.steps import FormatChoice, Formats
from barnabas.sql.schema import ROWOFFSET, ROWPARTITION, Part, Schema
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.rewriting import column_references
from barnabas.sql.syntax.statement_printer import statement_text
from barnabas.sql.syntax.tree import CreateAsSelect, InsertInto, Query, SingleColumn, SourceKind

_QUERY_ID = re.compile(r"[A-Za-z0-9_]+\Z")
_RESERVED_IDS = ("INSERTQUERY_", "CTAS_", "CSAS_", "CST_")


# --- CREATE … AS SELECT ----------------------------------------------------------------------


def create_as_select(statement: CreateAsSelect, environment: Environment) -> Command:
    """A query and the stream or table that it makes; raises AnalysisError."""
    properties = read_properties(statement.properties, CREATE_AS)
    existing = environment.metastore.source(statement.name)
    if existing is not None and not statement.or_replace:
        return exists_already(statement, existing)
    analysis = analyse_query(statement.query, environment, is_persistent=True)
    try:
        return _planned(statement, properties, analysis, environment)
    except SqlError as error:
        error.statement = statement_text(replace(statement, query=analysis.query))
        raise


def _planned(
    statement: CreateAsSelect,
    properties: SourceProperties,
    analysis: QueryAnalysis,
    environment: Environment,
) -> QueryCommand:
    """The command of an analysed statement. Errors show the statement with all names resolved."""
    existing = environment.metastore.source(statement.name)
    result = result_node(analysis, environment)
    _check_kind(statement.kind, result.kind)
    check_timestamp(properties.timestamp, result.schema)
    result.check_sink_key(statement.name)
    sink = _new_sink(statement, properties, analysis, result, environment)
    query_id, replaces = _query_id(statement, environment)
    plan = plan_with_sink(query_id, analysis, result, sink, environment)
    check_formats(result.schema, sink.formats)
    source = DataSource(
        statement.name,
        result.kind,
        result.schema,
        sink.topic,
        sink.formats,
        sink.window,
        sink.timestamp,
        is_query_target=True,
        text=environment.text,
    )
    if existing is not None:
        if existing.is_source:
            raise read_only(statement)
        check_upgrade(existing, source)
    if replaces is not None:
        check_plan_upgrade(environment.metastore.queries[replaces].step, plan.step)
    wish = topic_wish(
        sink.topic,
        properties,
        is_compacted=result.kind is SourceKind.TABLE,
        retention_ms=None if analysis.window is None else analysis.window.retention_ms,
        is_windowed=analysis.window is not None,
        like=analysis.source.source.topic,
    )
    ddl = CreateSourceCommand(source, wish, statement.or_replace, statement.if_not_exists)
    return QueryCommand(plan, ddl, replaces)


def _check_kind(asked: SourceKind, given: SourceKind) -> None:
    if asked is not given:
        raise AnalysisError(
            f"Invalid result type. Your SELECT query produces a {given.value}. "
            f"Please use CREATE {given.value} AS SELECT statement instead."
        )


def _new_sink(
    statement: CreateAsSelect,
    properties: SourceProperties,
    analysis: QueryAnalysis,
    result: Result,
    environment: Environment,
) -> Sink:
    prefix = str(environment.setting(TOPIC_PREFIX))
    topic = properties.topic or prefix + statement.name
    key, value = _choices(statement.name, properties, analysis, result.schema, environment)
    formats = wrapped_formats(result.schema, key, value, environment, properties.wraps_single)
    check_against_schema_id(formats.key, Part.KEY, topic, result.schema.key, environment)
    check_against_schema_id(formats.value, Part.VALUE, topic, result.schema.value, environment)
    window = result_window(analysis)
    return Sink(statement.name, topic, formats, properties.timestamp, window)


def _choices(
    name: str,
    properties: SourceProperties,
    analysis: QueryAnalysis,
    schema: Schema,
    environment: Environment,
) -> tuple[FormatChoice, FormatChoice]:
    """The formats that a WITH clause asks for, or those of the source that FROM names."""
    source: Formats = analysis.source.source.formats
    key_name = properties.key_format or source.key.name
    if is_null_key(analysis.query.partition_by or ()):
        if properties.key_format is not None and properties.key_format.upper() != "NONE":
            raise AnalysisError("Key format specified for stream without key columns.")
        key_name = "NONE"
    value_name = properties.value_format or source.value.name
    key = format_choice(key_name, Part.KEY, properties, name, source.key)
    if properties.key_format is None and key.name == "NONE" and schema.key:
        key = FormatChoice(str(environment.setting(DEFAULT_KEY_FORMAT)))
    return key, format_choice(value_name, Part.VALUE, properties, name, source.value)


def _query_id(statement: CreateAsSelect, environment: Environment) -> tuple[str, str | None]:
    """The query's id, and that of the query it takes the place of."""
    metastore = environment.metastore
    writers = metastore.writers(statement.name)
    if len(writers) > 1:
        listed = ", ".join(writers)
        raise AnalysisError(
            f"REPLACE for sink {backquoted(statement.name)} is not supported because there are "
            f"multiple queries writing into it: [{listed}]"
        )
    if writers:
        return writers[0], writers[0]
    prefix = "CTAS" if statement.kind is SourceKind.TABLE else "CSAS"
    return f"{prefix}_{statement.name.upper()}_{metastore.next_query}", None


# --- INSERT INTO … SELECT --------------------------------------------------------------------


def insert_into(statement: InsertInto, environment: Environment) -> Command:
    """A query that writes into a stream that is there already; raises AnalysisError."""
    properties = read_properties(statement.properties, INSERT_INTO)
    existing = _target(statement, environment)
    analysis = analyse_query(statement.query, environment, is_persistent=True)
    result = result_node(analysis, environment, existing.schema)
    check_existing_sink(existing, result)
    window = result_window(analysis)
    own, other = window and (window.kind, window.size_ms), existing.window
    if own != (other and (other.kind, other.size_ms)):
        raise AnalysisError("Into can't change windowing")
    sink = Sink(existing.name, existing.topic, existing.formats, None, window)
    query_id = str(properties.values.get("QUERY_ID", "")).upper()
    if query_id:
        _check_query_id(query_id, environment)
    else:
        query_id = f"INSERTQUERY_{environment.metastore.next_query}"
    plan = plan_with_sink(query_id, analysis, result, sink, environment)
    return QueryCommand(plan)


def _target(statement: InsertInto, environment: Environment) -> DataSource:
    existing = environment.metastore.source(statement.name)
    if existing is None:
        place = statement.place
        shifted = None
        if place is not None:
            shifted = Place(place.line, place.column + len("INSERT INTO "))
        raise AnalysisError(f"Source {backquoted(statement.name)} does not exist.", shifted)
    if existing.is_table:
        raise AnalysisError(
            f"INSERT INTO can only be used to insert into a stream. {existing.name} is a table."
        )
    if existing.schema.headers:
        raise AnalysisError(f"Cannot insert into {existing.name} because it has header columns")
    if existing.is_source:
        raise AnalysisError(f"Cannot insert into read-only stream: {existing.name}")
    return existing


def _check_query_id(query_id: str, environment: Environment) -> None:
    for prefix in _RESERVED_IDS:
        if query_id.startswith(prefix):
            raise AnalysisError(
                "Query IDs must not start with a reserved query ID prefix "
                f"({', '.join(_RESERVED_IDS)}). Got '{query_id}'."
            )
    if not _QUERY_ID.match(query_id):
        raise AnalysisError(
            f"Query IDs may contain only alphanumeric characters and '_'. Got: '{query_id}'"
        )
    if query_id in environment.metastore.queries:
        raise AnalysisError(f"Query ID '{query_id}' already exists.")


# --- SELECT ----------------------------------------------------------------------------------


def plain_query(query: Query, environment: Environment) -> Command:
    """A push query, whose result goes to who asked, or a pull query; raises AnalysisError."""
    analysis = analyse_query(query, environment, is_persistent=False)
    if analysis.is_pull:
        check_pull_query(analysis)
        return PullQueryCommand(analysis.query, analysis.source.source)
    result = result_node(analysis, environment)
    query_id = f"transient_{analysis.source.alias}_{environment.metastore.next_query}"
    plan = plan_without_sink(query_id, analysis, result, environment)
    return QueryCommand(plan, limit=query.limit)


_HELP = (
    " See https://cnfl.io/queries for more info.\n"
    "Add EMIT CHANGES if you intended to issue a push query."
)


def check_pull_query(analysis: QueryAnalysis) -> None:
    """Raise AnalysisError for a pull query with a clause that only push queries have."""
    query = analysis.query
    clauses = {
        "JOIN": analysis.joins,
        "WINDOW": query.window,
        "GROUP BY": analysis.group_by,
        "PARTITION BY": query.partition_by,
        "HAVING": query.having,
    }
    for clause, content in clauses.items():
        if content:
            raise AnalysisError(f"Pull queries don't support {clause} clauses.{_HELP}")
    if query.limit is not None and query.limit < 0:
        raise AnalysisError(
            f"Pull queries don't support negative integers in the LIMIT clause.{_HELP}"
        )
    selected = [item.expression for item in query.select if isinstance(item, SingleColumn)]
    _check_columns(selected, "SELECT")
    _check_columns([] if query.where is None else [query.where], "WHERE")


def _check_columns(expressions: Iterable[Expression], clause: str) -> None:
    """Rows of a table have no partition and offset."""
    columns = [
        backquoted(column.name)
        for expression in expressions
        for column in column_references(expression)
        if column.name in (ROWPARTITION, ROWOFFSET)
    ]
    if columns:
        raise AnalysisError(
            f"Pull queries don't support the following columns in {clause} clauses: "
            f"{', '.join(columns)}\n{_HELP}"
        )
