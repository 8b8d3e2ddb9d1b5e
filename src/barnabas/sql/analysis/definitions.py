"""CREATE STREAM and CREATE TABLE over a topic: columns, formats, windows, timestamps; and the types
that CREATE TYPE made, put into their places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, TypeVar, cast

from barnabas.java.time.pattern import pattern_of
from barnabas.sql import types
from barnabas.sql.analysis.commands import Command, CreateSourceCommand, NothingCommand, TopicWish
from barnabas.sql.analysis.environment import DEFAULT_KEY_FORMAT, DEFAULT_VALUE_FORMAT, Environment
from barnabas.sql.analysis.formats import checked_formats, format_choice, inferred_columns
from barnabas.sql.analysis.metastore import DataSource, check_upgrade
from barnabas.sql.analysis.properties import CREATE, SourceProperties, read_properties
from barnabas.sql.analysis.schemas import HEADERS_TYPE, SYSTEM_COLUMNS, build_schema
from barnabas.sql.errors import AnalysisError, PrepareError
from barnabas.sql.names import backquoted, repeated
from barnabas.sql.plan.steps import FormatChoice, TimestampColumn
from barnabas.sql.schema import Column, Part, Schema
from barnabas.sql.syntax.limits import check_tree
from barnabas.sql.syntax.rewriting import rebuilt
from barnabas.sql.syntax.tree import (
    ColumnElement,
    Constraint,
    CreateAsSelect,
    CreateSource,
    NamedType,
    SourceKind,
)
from barnabas.sql.types import SqlType

T = TypeVar("T")

_KEYS = (Constraint.KEY, Constraint.PRIMARY_KEY)
_HEADERS = (Constraint.HEADERS, Constraint.HEADER)


def create_source(statement: CreateSource, environment: Environment) -> Command:
    """The command of a CREATE over a topic; raises AnalysisError."""
    properties = read_properties(statement.properties, CREATE, needs_topic=True)
    topic = properties.topic
    assert topic is not None
    _check_elements(statement)
    key, value = _formats(statement, properties, environment)
    _check_topic(statement, properties, environment)
    schema = _schema(statement, properties, key, value, environment)
    existing = environment.metastore.source(statement.name)
    if existing is not None and not statement.or_replace:
        return exists_already(statement, existing)
    _check_kind(statement, properties, schema, existing)
    timestamp = properties.timestamp
    check_timestamp(timestamp, schema)
    formats = checked_formats(schema, key, value, environment, properties.wraps_single)
    source = DataSource(
        statement.name,
        statement.kind,
        schema,
        topic,
        formats,
        properties.window,
        timestamp,
        is_source=statement.is_source,
        text=environment.text,
    )
    if existing is not None:
        check_upgrade(existing, source)
    return CreateSourceCommand(
        source,
        topic_wish(topic, properties, is_compacted=statement.kind is SourceKind.TABLE),
        statement.or_replace,
        statement.if_not_exists,
    )


def exists_already(
    statement: CreateSource | CreateAsSelect, existing: DataSource
) -> NothingCommand:
    """Return that there is nothing to do with IF NOT EXISTS. Raises AnalysisError without it."""
    kind, other = statement.kind.value.lower(), existing.kind.value.lower()
    if statement.if_not_exists:
        return NothingCommand(
            f"Cannot add {kind} {backquoted(statement.name)}: A {other} with the same name already "
            "exists."
        )
    raise AnalysisError(
        f"Cannot add {kind} '{statement.name}': A {other} with the same name already exists"
    )


def read_only(statement: CreateSource | CreateAsSelect) -> AnalysisError:
    """The error of a CREATE OR REPLACE where the old or the new one is declared as SOURCE."""
    kind = statement.kind.value.lower()
    return AnalysisError(
        f"Cannot add {kind} '{statement.name}': CREATE OR REPLACE is not supported on source "
        f"{kind}s."
    )


def topic_wish(
    topic: str,
    properties: SourceProperties,
    *,
    is_compacted: bool,
    retention_ms: int | None = None,
    is_windowed: bool = False,
    like: str | None = None,
) -> TopicWish:
    """The topic that a WITH clause asks for; raises AnalysisError."""
    policy = ",".join(["compact"] * is_compacted + ["delete"] * (is_windowed or not is_compacted))
    asked_ms = properties.values.get("RETENTION_MS")
    if policy == "compact" and asked_ms is not None:
        raise AnalysisError(
            "Invalid config variable in the WITH clause: RETENTION_MS. Non-windowed tables do not "
            "support retention."
        )
    if retention_ms is not None:
        asked_ms = max(retention_ms, asked_ms or 0)
    return TopicWish(
        topic,
        properties.values.get("PARTITIONS"),
        properties.values.get("REPLICAS"),
        asked_ms,
        policy,
        like,
    )


def check_timestamp(timestamp: TimestampColumn | None, schema: Schema) -> None:
    """Raise AnalysisError if the column cannot give timestamps."""
    if timestamp is None:
        return
    column = schema.find(timestamp.name)
    if column is None:
        raise AnalysisError(
            "The TIMESTAMP column set in the WITH clause does not exist in the schema: "
            f"'{timestamp.name}'"
        )
    if column.type == types.STRING:
        if timestamp.format is None:
            raise AnalysisError(
                "A String timestamp field has been specified without also specifying the "
                "timestamp_format"
            )
        _check_pattern(timestamp.format)
        return
    if timestamp.format is not None:
        raise AnalysisError(
            "'TIMESTAMP_FORMAT' set in the WITH clause can only be used when the timestamp column "
            "is of type STRING."
        )
    if column.type not in (types.BIGINT, types.TIMESTAMP):
        raise AnalysisError(
            f"Timestamp column, {backquoted(timestamp.name)}, should be LONG(INT64), TIMESTAMP, or "
            "a String with a timestamp_format specified."
        )


def _check_pattern(pattern: str) -> None:
    try:
        pattern_of(pattern)
    except ValueError as error:
        raise AnalysisError(f"Invalid timestamp_format: '{pattern}'. {error}") from None


# --- columns ---------------------------------------------------------------------------------


def _check_elements(statement: CreateSource) -> None:
    """Check the declared columns for faults that do not depend on their formats."""
    names = [element.name for element in statement.elements]
    twice = sorted(map(backquoted, repeated(names)))
    if twice:
        raise PrepareError(f"Duplicate column names: {', '.join(twice)}")
    is_table = statement.kind is SourceKind.TABLE
    own, other = ("PRIMARY KEY", "KEY") if is_table else ("KEY", "PRIMARY KEY")
    for element in statement.elements:
        if element.constraint is Constraint(other):
            place = element.place
            where = f"Line: {place.line}, Col: {place.column}: " if place else ""
            kind = f"{statement.kind.value.lower()}s"
            raise PrepareError(
                f"{where}Column {backquoted(element.name)} is a '{other}' column: please use "
                f"'{own}' for {kind}."
            )
        _check_header_type(element)
        if element.name in SYSTEM_COLUMNS:
            raise AnalysisError(
                f"'{element.name}' is a reserved column name. You cannot use it as a name for a "
                "column."
            )


def _check_header_type(element: ColumnElement) -> None:
    if element.constraint is Constraint.HEADER and element.type != types.BYTES:
        raise PrepareError(
            f"Invalid type for HEADER('{element.header}') column: expected BYTES, got "
            f"{element.type}"
        )
    if element.constraint is Constraint.HEADERS and element.type != HEADERS_TYPE:
        raise PrepareError(
            f"Invalid type for HEADERS column: expected {HEADERS_TYPE}, got {element.type}"
        )


def _schema(
    statement: CreateSource,
    properties: SourceProperties,
    key: FormatChoice,
    value: FormatChoice,
    environment: Environment,
) -> Schema:
    """The declared columns, completed by those that the registry knows."""
    topic = properties.topic or ""
    declared = [_column(element) for element in statement.elements]
    keys = tuple(column for column in declared if column.part is Part.KEY)
    values = tuple(column for column in declared if column.part is Part.VALUE)
    headers = tuple(column for column in declared if column.part is Part.HEADERS)
    inferred = inferred_columns(
        key, Part.KEY, topic, environment, has_columns=bool(keys), wraps=None
    )
    keys = keys if inferred is None else inferred
    inferred = inferred_columns(
        value,
        Part.VALUE,
        topic,
        environment,
        has_columns=bool(values),
        wraps=properties.wraps_single,
    )
    values = values if inferred is None else inferred
    if not keys and not values and not headers:
        raise AnalysisError("No columns supplied.")
    clashing = {column.name for column in keys} & {column.name for column in values}
    if clashing:
        names = ", ".join(backquoted(name) for name in sorted(clashing))
        raise PrepareError(f"Duplicate column names: {names}")
    return build_schema((*keys, *values, *headers))


def _column(element: ColumnElement) -> Column:
    part = Part.VALUE
    if element.constraint in _KEYS:
        part = Part.KEY
    elif element.constraint in _HEADERS:
        part = Part.HEADERS
    return Column(element.name, cast(SqlType, element.type), part, element.header)


# --- formats, kinds, topics ------------------------------------------------------------------


def _formats(
    statement: CreateSource, properties: SourceProperties, environment: Environment
) -> tuple[FormatChoice, FormatChoice]:
    names = {}
    for part, given, setting in (
        (Part.KEY, properties.key_format, DEFAULT_KEY_FORMAT),
        (Part.VALUE, properties.value_format, DEFAULT_VALUE_FORMAT),
    ):
        names[part] = given or environment.setting(setting)
        if not names[part]:
            raise AnalysisError(
                f"Statement is missing the '{part.value}_FORMAT' property from the WITH clause. "
                f"Either provide one or set a default via the '{setting}' config."
            )
    return (
        format_choice(names[Part.KEY], Part.KEY, properties, statement.name, None),
        format_choice(names[Part.VALUE], Part.VALUE, properties, statement.name, None),
    )


def _check_kind(
    statement: CreateSource,
    properties: SourceProperties,
    schema: Schema,
    existing: DataSource | None,
) -> None:
    if statement.kind is SourceKind.TABLE and not schema.key:
        hint = ""
        if "VALUE_SCHEMA_ID" in properties.values:
            hint = (
                "\nUse a partial schema to define the primary key and still load the value columns "
                f"from the Schema Registry, for example:\n\tCREATE TABLE {statement.name} "
                "(ID INT PRIMARY KEY) WITH (...);"
            )
        raise AnalysisError(f"Tables require a PRIMARY KEY. Please define the PRIMARY KEY.{hint}")
    is_source = statement.is_source or (existing is not None and existing.is_source)
    if statement.or_replace and is_source:
        raise read_only(statement)
    if properties.window is not None and not schema.key:
        raise AnalysisError("Windowed sources require a key column.")


def _check_topic(
    statement: CreateSource, properties: SourceProperties, environment: Environment
) -> None:
    """A topic that does not exist can be made if the statement says how."""
    topic = properties.topic
    if not environment.topics or topic in environment.topics:
        return
    if "PARTITIONS" not in properties.values:
        raise AnalysisError(
            f"Topic '{topic}' does not exist. If you want to create a new topic for the "
            "stream/table please re-run the statement providing the required 'PARTITIONS' "
            "configuration in the WITH clause (and optionally 'REPLICAS')."
        )


# --- types by name ---------------------------------------------------------------------------


def resolve_types(node: T, find: Callable[[str], SqlType | None]) -> T:
    """The tree with each type that is named replaced by what the name stands for."""
    resolved = _resolved(node, find)
    if resolved is not node:
        check_tree(resolved)
    return cast(T, resolved)


def _resolved(value: Any, find: Callable[[str], SqlType | None]) -> Any:
    if isinstance(value, NamedType):
        resolved = find(value.name)
        if resolved is None:
            raise PrepareError(f"Cannot resolve unknown type: {value.name}")
        return resolved
    if isinstance(value, tuple) or (is_dataclass(value) and not isinstance(value, type)):
        return rebuilt(value, lambda part: _resolved(part, find))
    return value
