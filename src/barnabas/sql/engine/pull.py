"""Pull queries: the present rows of a table that meet a condition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.sql.analysis.commands import PullQueryCommand
from barnabas.sql.analysis.metastore import DataSource
from barnabas.sql.analysis.query import plan_expression
from barnabas.sql.analysis.schemas import build_schema
from barnabas.sql.analysis.timestamps import with_timestamps
from barnabas.sql.engine.config import PULL_LIMIT, PULL_TABLE_SCAN
from barnabas.sql.engine.pull_filter import HELP, Access, access, plain_condition
from barnabas.sql.engine.tables import TableRow, TableView
from barnabas.sql.errors import AnalysisError
from barnabas.sql.expressions.compile import Compiled, compile_expression
from barnabas.sql.functions.catalog import Function
from barnabas.sql.runtime.evaluation import EVALUATION_ERRORS
from barnabas.sql.schema import ROWTIME, WINDOW_BOUNDS, Column, Part, Schema
from barnabas.sql.syntax.expressions import ColumnReference, Comparison, Dereference, Expression
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.syntax.rewriting import walk
from barnabas.sql.syntax.tree import AllColumns, Query, SingleColumn, StructAll
from barnabas.sql.types import BIGINT, STRING, Struct, Value


@dataclass(frozen=True)
class PullQuery:
    """A compiled query: `schema` is that of its rows."""

    source: DataSource
    schema: Schema
    limit: int | None
    _access: Access
    _condition: Compiled | None
    _selected: tuple[Callable[[Sequence[Value]], Value], ...]

    def rows(self, view: TableView) -> list[list[Value]]:
        """The rows as the table has them now."""
        rows = view.rows()
        with view.lock:
            if self._access.keys is not None:
                rows_read = [row for key in self._access.keys for row in rows.of_key(key)]
            else:
                rows_read = rows.between(self._access.low, self._access.high)
        return list(self._results(rows_read))

    def _results(self, rows: Iterable[TableRow]) -> Iterable[list[Value]]:
        count = 0
        for row in rows:
            if self.limit is not None and count >= self.limit:
                return
            flat = [*row.key, *row.value, row.timestamp_ms, *(row.window or ())]
            if self._condition is not None and not _is_true(self._condition, flat):
                continue
            count += 1
            yield [select(flat) for select in self._selected]


def _is_true(condition: Compiled, row: Sequence[Value]) -> bool:
    try:
        return condition.evaluate(row) is True
    except EVALUATION_ERRORS:
        return False


def compile_pull(
    command: PullQueryCommand, functions: Mapping[str, Function], settings: Mapping[str, Any]
) -> PullQuery:
    """The query, ready to be answered; raises AnalysisError."""
    query, source = command.query, command.source
    columns = _columns(source)
    check_limit(query, settings)
    may_scan = bool(settings.get(PULL_TABLE_SCAN, True))
    condition, key_access = None, Access()
    made, selected = _selection(command, columns, functions)
    schema = build_schema(made)
    if query.where is None:
        if not may_scan:
            raise AnalysisError(f"Missing WHERE clause.{HELP}")
    else:
        where = with_timestamps(plan_expression(query.where, is_join=False))
        _check_comparisons(where, columns, functions)
        plain = plain_condition(where)
        may_range = bool(settings.get("ksql.query.pull.range.scan.enabled", True))
        key_access = access(plain, source, functions, may_scan=may_scan, may_range=may_range)
        condition = _compile_condition(plain, columns, functions)
    return PullQuery(source, schema, query.limit, key_access, condition, selected)


def check_limit(query: Query, settings: Mapping[str, Any]) -> None:
    """Raise AnalysisError if the query has a LIMIT and that is switched off."""
    if query.limit is not None and not settings.get(PULL_LIMIT, True):
        raise AnalysisError(
            "LIMIT clause in pull queries is currently disabled. You can enable them by setting "
            f"{PULL_LIMIT}=true.{HELP}"
        )


def _check_comparisons(
    condition: Expression, columns: tuple[Column, ...], functions: Mapping[str, Function]
) -> None:
    """Raise AnalysisError for a comparison, as it was written, of what cannot be compared."""
    for part in walk(condition):
        if not isinstance(part, Comparison):
            continue
        try:
            compile_expression(part, columns, functions)
        except AnalysisError as error:
            raise AnalysisError(
                f"Error in WHERE expression: {error.message}\nStatement: {message_text(part)}"
            ) from error


def _columns(source: DataSource) -> tuple[Column, ...]:
    """A row as conditions and selected expressions see it."""
    schema = source.schema
    columns = [*schema.key, *schema.value, *schema.headers, Column(ROWTIME, BIGINT)]
    if source.is_windowed:
        columns += [Column(name, kind) for name, kind in WINDOW_BOUNDS.items()]
    return tuple(columns)


def _compile_condition(
    condition: Expression, columns: tuple[Column, ...], functions: Mapping[str, Function]
) -> Compiled:
    try:
        return compile_expression(condition, columns, functions)
    except AnalysisError as error:
        raise AnalysisError(
            f"Invalid expression: {error.message}\nexpression: {message_text(condition)}"
        ) from error


def _selection(
    command: PullQueryCommand, columns: tuple[Column, ...], functions: Mapping[str, Function]
) -> tuple[list[Column], tuple[Callable[[Sequence[Value]], Value], ...]]:
    made: list[Column] = []
    selected: list[Callable[[Sequence[Value]], Value]] = []
    items = command.query.select
    if any(isinstance(item, AllColumns) for item in items) and len(items) > 1:
        raise AnalysisError(
            "Pull queries only support wildcards in the projects if they are the only expression"
        )

    def add(name: str, expression: Expression) -> None:
        compiled = compile_expression(expression, columns, functions)
        part, header = _part(command.source, name)
        made.append(Column(name, compiled.type or STRING, part, header))
        selected.append(_value_or_none(compiled))

    for item in items:
        if isinstance(item, AllColumns):
            for column in _of_star(command.source):
                add(column.name, ColumnReference(column.name))
        elif isinstance(item, StructAll):
            base = plan_expression(item.base, is_join=False)
            kind = compile_expression(base, columns, functions).type
            if not isinstance(kind, Struct):
                raise AnalysisError(f"{message_text(base)} is not a STRUCT")
            for field in kind.fields:
                add(field.name, Dereference(base, field.name))
        elif isinstance(item, SingleColumn):
            add(str(item.alias), plan_expression(item.expression, is_join=False))
    return made, tuple(selected)


def _of_star(source: DataSource) -> list[Column]:
    columns = list(source.schema.key)
    if source.is_windowed:
        columns += [Column(name, kind) for name, kind in WINDOW_BOUNDS.items()]
    return [*columns, *source.schema.value, *source.schema.headers]


def _part(source: DataSource, name: str) -> tuple[Part, str | None]:
    """Columns with the names of the key's are in the result's key; those of headers too."""
    column = source.schema.find(name)
    if name in WINDOW_BOUNDS:
        return Part.KEY, None
    return (Part.VALUE, None) if column is None else (column.part, column.header)


def _value_or_none(compiled: Compiled) -> Callable[[Sequence[Value]], Value]:
    def evaluate(row: Sequence[Value]) -> Value:
        try:
            return compiled.evaluate(row)
        except EVALUATION_ERRORS:
            return None

    return evaluate
