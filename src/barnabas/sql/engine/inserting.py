"""Records that are written by hand: INSERT INTO … VALUES, and rows of a stream of inserts."""

from __future__ import annotations

import base64
import decimal
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.base.clock import now_ms
from barnabas.java.regex_characters import JavaError
from barnabas.schemas.errors import FormatError
from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.analysis.commands import Command, InsertValuesCommand
from barnabas.sql.analysis.metastore import DataSource
from barnabas.sql.engine import config
from barnabas.sql.engine.cluster import ClusterError
from barnabas.sql.engine.context import Context
from barnabas.sql.engine.session import Session
from barnabas.sql.errors import FAILURES, AnalysisError, EvaluationError, SqlError
from barnabas.sql.expressions.coercion import coerce_literal, coerced_type
from barnabas.sql.expressions.compile import compile_expression
from barnabas.sql.functions.catalog import Function
from barnabas.sql.names import backquoted
from barnabas.sql.plan.steps import StreamSink
from barnabas.sql.plan.steps import StreamSource as Source
from barnabas.sql.runtime.records import Record, Row
from barnabas.sql.runtime.topics import TopicRecord, TopicWriter
from barnabas.sql.schema import ROWTIME, Column, Schema
from barnabas.sql.syntax.expressions import Expression
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.syntax.tree import ParsedStatement
from barnabas.sql.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    STRING,
    Array,
    BaseType,
    Decimal,
    Map,
    SqlType,
    Struct,
    Value,
)

_WRITERS_MAX = 1_000


class InsertError(SqlError):
    """A row cannot be written."""


class InsertedRow(NamedTuple):
    """Values of the key's and the value's columns; `timestamp_ms` None: the time of writing."""

    key: tuple[Value, ...]
    value: tuple[Value, ...] | None
    timestamp_ms: int | None


class Inserting:
    """Writes rows into the topics of streams and tables."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._writers: dict[str, RowWriter] = {}

    def insert(
        self, parsed: ParsedStatement, session: Session, command: Command | None = None
    ) -> None:
        """INSERT INTO … VALUES; raises SqlError. `command`: the statement's, if it is analysed."""
        context = self._context
        if not context.settings.get(config.INSERTS_ENABLED, True):
            raise AnalysisError(
                "The server has disabled INSERT INTO ... VALUES functionality. To enable it, "
                f"restart your ksqlDB server with '{config.INSERTS_ENABLED}'=true"
            )
        with context.lock:
            if not isinstance(command, InsertValuesCommand) or (
                context.metastore.source(command.source.name) is not command.source
            ):
                command = context.analyse(parsed, session, topics={})
                assert isinstance(command, InsertValuesCommand)
        try:
            row = inserted_row(command, context.functions)
            self.write(command.source, row)
        except (JavaError, EvaluationError, SqlError, ClusterError) as error:
            raise AnalysisError(
                f"Failed to insert values into '{command.source.name}'. {error}",
                statement=parsed.text,
            ) from error
        context.cluster.flush()

    def write(self, source: DataSource, row: InsertedRow) -> None:
        """Write a row, which may be done after the call returned; raises InsertError."""
        with self._context.lock:
            writer = self._writers.get(source.name)
            if writer is None or writer.source is not source:
                if len(self._writers) > _WRITERS_MAX:
                    self._writers.clear()
                writer = self._writers[source.name] = RowWriter(source, self._context.schemas)
            record = writer.record(row)
        self._context.cluster.write(source.topic, record)


class RowWriter:
    """Makes records of a source's topic."""

    def __init__(self, source: DataSource, schemas: SchemaStore | None) -> None:
        self.source = source
        plain = Schema((*source.schema.key, *source.schema.value))
        below = Source(source.topic, source.formats, plain)
        sink = StreamSink(below, source.topic, source.formats, plain)
        self._failure: BaseException | None = None
        self._writer = TopicWriter(sink, None, schemas, self._note)

    def _note(self, message: str, row: Row | None, cause: BaseException | None) -> None:
        self._failure = cause

    def record(self, row: InsertedRow) -> TopicRecord:
        """The record of a row. Raises InsertError."""
        timestamp = now_ms() if row.timestamp_ms is None else row.timestamp_ms
        self._failure = None
        key = row.key if row.key and any(part is not None for part in row.key) else None
        try:
            made = self._writer.write(Record(key, row.value, timestamp))
        except FormatError as error:
            raise InsertError(str(error)) from error
        if made is None:
            raise InsertError(f"{self._failure}")
        return made


def row_of_json(source: DataSource, given: Mapping[str, Any]) -> InsertedRow:
    """The row that a JSON object stands for: names are in upper case unless they are quoted.

    Numbers may be given as text, as ksqlDB's client gives decimals. Raises InsertError.
    """
    named = {_name(name): value for name, value in given.items()}
    columns = (*source.schema.key, *source.schema.value)
    unknown = named.keys() - {column.name for column in columns} - {ROWTIME}
    if unknown:
        raise InsertError(f"Column name `{min(unknown)}` does not exist.")
    for column in source.schema.key:
        if source.is_table and named.get(column.name) is None:
            raise InsertError(
                f'Key field must be specified: "{column.name}". Some or all fields are missing.'
            )
    timestamp = named.get(ROWTIME)
    return InsertedRow(
        tuple(_member(column, named) for column in source.schema.key),
        tuple(_member(column, named) for column in source.schema.value),
        None if timestamp is None else int(timestamp),
    )


def _member(column: Column, named: Mapping[str, Any]) -> Value:
    try:
        return value_of_json(named.get(column.name), column.type)
    except (*FAILURES, SqlError) as error:
        raise InsertError(
            f"Can't coerce a field of type {type(named[column.name]).__name__} "
            f"({named[column.name]}) into type {column.type} for column {column.name}"
        ) from error


def value_of_json(given: Any, kind: SqlType) -> Value:
    """The value of a type that JSON stands for. Raises one of FAILURES or SqlError."""
    if given is None:
        return None
    match kind:
        case Array(item):
            return [value_of_json(part, item) for part in _of(given, list)]
        case Map(key, value):
            return {
                value_of_json(name, key): value_of_json(part, value)
                for name, part in _of(given, dict).items()
            }
        case Struct(fields):
            named = {_name(name): part for name, part in _of(given, dict).items()}
            return {
                field.name: value_of_json(named.get(field.name), field.type) for field in fields
            }
        case Decimal():
            return coerce_literal(decimal.Decimal(str(given)), _decimal_of(given), kind)
    return _plain(given, kind)


def _plain(given: Any, kind: SqlType) -> Value:
    if kind.base is BaseType.BYTES:
        return base64.b64decode(_of(given, str), validate=True)
    if isinstance(given, bool):
        return coerce_literal(given, BOOLEAN, kind)
    if isinstance(given, int):
        if kind.base is BaseType.INTEGER and not -(2**31) <= given < 2**31:
            raise ValueError(given)
        return float(given) if kind.base is BaseType.DOUBLE else _whole(given, kind)
    if isinstance(given, float):
        if kind.base is not BaseType.DOUBLE:
            raise TypeError(given)
        return coerce_literal(given, DOUBLE, kind)
    return coerce_literal(_of(given, str), STRING, kind)


def _whole(given: int, kind: SqlType) -> Value:
    if kind.base in (BaseType.INTEGER, BaseType.BIGINT):
        return given
    return coerce_literal(given, BIGINT, kind)


def _decimal_of(given: Any) -> SqlType:
    exact = decimal.Decimal(str(given)).as_tuple()
    scale = max(0, -int(exact.exponent))
    return Decimal(max(len(exact.digits), scale + 1), scale)


def _of(given: Any, kind: type) -> Any:
    if not isinstance(given, kind):
        raise TypeError(f"{given!r} is not of type {kind.__name__}")
    return given


def _name(name: str) -> str:
    for quote in '`"':
        if len(name) > 1 and name.startswith(quote) and name.endswith(quote):
            return name[1:-1]
    return name.upper()


# -- the record that INSERT INTO … VALUES writes


def inserted_row(command: InsertValuesCommand, functions: Mapping[str, Function]) -> InsertedRow:
    """Evaluate a command's expressions, as values of their columns.

    Raises EvaluationError or AnalysisError.
    """

    def values(expressions: tuple[Expression, ...], columns: Sequence[Column]) -> tuple[Value, ...]:
        return tuple(
            _column_value(expression, column, functions)
            for expression, column in zip(expressions, columns, strict=True)
        )

    schema = command.source.schema
    value = None if command.value is None else values(command.value, schema.value)
    timestamp = None
    if command.timestamp is not None:
        (timestamp,) = values((command.timestamp,), [Column("ROWTIME", BIGINT)])
    return InsertedRow(values(command.key, schema.key), value, timestamp)


def _column_value(
    expression: Expression, column: Column, functions: Mapping[str, Function]
) -> Value:
    compiled = compile_expression(expression, (), functions)
    value = compiled.evaluate(())
    if value is None or compiled.type is None:
        return None
    try:
        return coerced(value, compiled.type, column.type)
    except (AnalysisError, EvaluationError) as error:
        raise AnalysisError(
            f"Expected type {column.type} for field {backquoted(column.name)} but got "
            f"{compiled.type}({message_text(expression)})"
        ) from error


def coerced(value: Value, source: SqlType, target: SqlType) -> Value:
    """The value as one of a wider type; fields that only one of the types has are left out, or
    NULL.

    Text may stand for dates and times. Raises AnalysisError or EvaluationError.
    """
    if value is None or source == target:
        return value
    match source, target:
        case Struct(), Struct():
            return _struct(value, source, target)
        case Array(item), Array(wanted):
            return [coerced(part, item, wanted) for part in value]
        case Map(key, item), Map(wanted_key, wanted):
            return {
                coerced(name, key, wanted_key): coerced(part, item, wanted)
                for name, part in value.items()
            }
    if source == STRING and (target.base.is_time or target.base is BaseType.BYTES):
        return coerce_literal(value, source, target)
    wider = coerced_type(source, target, is_lax=False)
    if wider is None or wider.base is not target.base:
        raise AnalysisError(f"a {source} is no {target}")
    return coerce_literal(value, source, target)


def _struct(value: Value, source: Struct, target: Struct) -> Value:
    made = {}
    for field in target.fields:
        own = source.field(field.name)
        made[field.name] = None if own is None else coerced(value[field.name], own.type, field.type)
    return made
