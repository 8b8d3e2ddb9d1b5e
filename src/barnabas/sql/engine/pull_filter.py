"""WHERE of a pull query: which rows of a table have to be looked at.

The condition is brought to a disjunction of conjunctions. Where every one of them fixes the whole
key, its rows are looked up; else the table is read whole, or a range of it. Checks and messages are
ksqlDB's: they tell users which queries would read whole tables, where that is switched off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from barnabas.sql.analysis.metastore import DataSource
from barnabas.sql.errors import FAILURES, AnalysisError, EvaluationError, SqlError
from barnabas.sql.expressions.coercion import coerce_literal, coerced_type
from barnabas.sql.expressions.compile import compile_expression
from barnabas.sql.expressions.typing import between_as_comparisons
from barnabas.sql.functions.catalog import Function
from barnabas.sql.names import backquoted
from barnabas.sql.runtime.records import Row
from barnabas.sql.runtime.rows_encoding import encode_key
from barnabas.sql.schema import WINDOW_BOUNDS, Column
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.expressions import (
    ColumnReference,
    Comparison,
    ComparisonOperator,
    Expression,
    Like,
    Logical,
    LogicalOperator,
)
from barnabas.sql.syntax.printer import message_text
from barnabas.sql.syntax.rewriting import column_references, with_parts
from barnabas.sql.types import STRING, BaseType, Value

HELP = (
    " See https://cnfl.io/queries for more info.\n"
    "Add EMIT CHANGES if you intended to issue a push query."
)
_MORE = (
    "\nPull queries require a WHERE clause that:\n"
    " - includes a key equality expression, e.g. `SELECT * FROM X WHERE <key-column>=Y;`.\n"
    " - in the case of a multi-column key, is a conjunction of equality expressions that cover all "
    "key columns.\n - to support range expressions, e.g.,"
    " SELECT * FROM X WHERE <key-column>>Y;, range scans need to be enabled by setting "
    "ksql.query.pull.range.scan.enabled=true"
    "If more flexible queries are needed, table scans can be enabled by setting "
    "ksql.query.pull.table.scan.enabled=true."
)
_COMBINED = (
    "A comparison condition on the key column cannot be combined with other comparisons such as an "
    "IN predicate."
)
_DISJUNCTS_MAX = 10_000
_RANGES = (
    ComparisonOperator.LESS_THAN,
    ComparisonOperator.LESS_THAN_OR_EQUAL,
    ComparisonOperator.GREATER_THAN,
    ComparisonOperator.GREATER_THAN_OR_EQUAL,
)
_UNKEYED = (
    ComparisonOperator.NOT_EQUAL,
    ComparisonOperator.IS_DISTINCT_FROM,
    ComparisonOperator.IS_NOT_DISTINCT_FROM,
)
_FLIPPED = {
    ComparisonOperator.LESS_THAN: ComparisonOperator.GREATER_THAN,
    ComparisonOperator.LESS_THAN_OR_EQUAL: ComparisonOperator.GREATER_THAN_OR_EQUAL,
    ComparisonOperator.GREATER_THAN: ComparisonOperator.LESS_THAN,
    ComparisonOperator.GREATER_THAN_OR_EQUAL: ComparisonOperator.LESS_THAN_OR_EQUAL,
}


@dataclass(frozen=True)
class Access:
    """The rows to look at: those of `keys`, or where that is None a range of keys, or all."""

    keys: tuple[Row, ...] | None = None
    low: Row | None = None
    high: Row | None = None

    @property
    def is_scan(self) -> bool:
        return self.keys is None and self.low is None and self.high is None


def plain_condition(expression: Expression) -> Expression:
    """The condition with BETWEEN and IN written as comparisons."""
    match expression:
        case nodes.Between(operand):
            return Logical(LogicalOperator.AND, *between_as_comparisons(expression, operand))
        case nodes.InList(operand, items):
            plain: Expression = Comparison(ComparisonOperator.EQUAL, operand, items[-1])
            for item in reversed(items[:-1]):
                equal = Comparison(ComparisonOperator.EQUAL, operand, item)
                plain = Logical(LogicalOperator.OR, equal, plain)
            return plain
        case Logical():
            return with_parts(expression, plain_condition)
    return expression


def disjuncts(condition: Expression) -> list[Expression]:
    """The conjunctions; one of them must hold; the condition alone if there would be too many."""
    conjunctions = list(_conjunctions(condition))
    if len(conjunctions) > _DISJUNCTS_MAX:
        return [condition]
    return [_joined(parts) for parts in conjunctions]


def _conjunctions(condition: Expression) -> Iterator[tuple[Expression, ...]]:
    if not isinstance(condition, Logical):
        yield (condition,)
    elif condition.operator is LogicalOperator.OR:
        yield from _conjunctions(condition.left)
        yield from _conjunctions(condition.right)
    else:
        for left, right in product(
            _conjunctions(condition.left), list(_conjunctions(condition.right))
        ):
            yield (*left, *right)


def _joined(parts: Sequence[Expression]) -> Expression:
    joined = parts[0]
    for part in parts[1:]:
        joined = Logical(LogicalOperator.AND, joined, part)
    return joined


def access(
    condition: Expression,
    source: DataSource,
    functions: Mapping[str, Function],
    *,
    may_scan: bool,
    may_range: bool,
) -> Access:
    """Return which rows a plain condition can be true for; raises AnalysisError."""
    finder = _Finder(source, functions, may_scan=may_scan)
    alternatives = disjuncts(condition)
    if any(finder.needs_scan(disjunct) for disjunct in alternatives):
        return Access()
    lookups = [finder.lookup(disjunct) for disjunct in alternatives]
    keys = [lookup.keys for lookup in lookups if lookup.keys is not None]
    if len(keys) == len(lookups):
        distinct = {encode_key(key): key for group in keys for key in group}
        return Access(tuple(distinct.values()))
    if len(lookups) == 1 and not lookups[0].is_scan and may_range and not source.is_windowed:
        return lookups[0]
    if not may_scan:
        raise AnalysisError(
            "Query requires table scan to be enabled. Table scans can be enabled by setting "
            "ksql.query.pull.table.scan.enabled=true"
        )
    return Access()


class _Finder:
    def __init__(
        self, source: DataSource, functions: Mapping[str, Function], *, may_scan: bool
    ) -> None:
        self._source = source
        self._functions = functions
        self._may_scan = may_scan
        self._key = {column.name: column for column in source.schema.key}

    # --- checks ------------------------------------------------------------------------------

    def needs_scan(self, disjunct: Expression) -> bool:
        """Whether it does not name the key as a lookup needs it; raises AnalysisError if so and
        the table may not be scanned."""
        seen: set[str] = set()
        scans = False
        is_keyed = False
        for part in _parts(disjunct):
            problem, name = self._check(part, seen)
            if problem:
                if not self._may_scan:
                    raise AnalysisError(problem + HELP + _MORE)
                scans = True
            if name is not None:
                seen.add(name)
                is_keyed = True
        if scans:
            return True
        if not is_keyed:
            self._fail_unless_scan(
                f"WHERE clause missing key column for disjunct: {message_text(disjunct)}"
            )
            return True
        if len(seen) != len(self._key):
            expected = ", ".join(f"{column} KEY" for column in self._key.values())
            self._fail_unless_scan(
                "Multi-column sources must specify every key in the WHERE clause. Specified: "
                f"[{', '.join(map(backquoted, sorted(seen)))}] Expected: [{expected}]"
            )
            return True
        return False

    def _fail_unless_scan(self, problem: str) -> None:
        if not self._may_scan:
            raise AnalysisError(problem + HELP + _MORE)

    def _check(self, part: Expression, seen: set[str]) -> tuple[str, str | None]:
        """Return the reason against a lookup, and the key column that the part is about."""
        if isinstance(part, Like):
            return self._check_like(part), None
        if not isinstance(part, Comparison):
            return f"Unsupported expression in WHERE clause: {message_text(part)}.", None
        column, other = _sides(part)
        if column is None:
            return "A comparison must directly reference a key column.", None
        if column_references(other):
            return "A comparison must be between a key column and a resolvable expression.", None
        if column.name in WINDOW_BOUNDS:
            return self._check_bound(part, column), None
        if column.name not in self._key:
            return "", None
        if part.operator in _UNKEYED:
            listed = ", ".join(f"{key} KEY" for key in self._key.values())
            return f"Bound on key columns '[{listed}]' must currently be '='. ", column.name
        if column.name in seen and not self._may_scan:
            return _COMBINED, column.name
        return "", column.name

    def _check_bound(self, part: Comparison, column: ColumnReference) -> str:
        if part.operator in _UNKEYED:
            return f"Unsupported {column.name} bounds: {part.operator.value}."
        if not self._source.is_windowed:
            raise AnalysisError(f"Cannot use WINDOWSTART/WINDOWEND on non-windowed source.{HELP}")
        return ""

    def _check_like(self, part: Like) -> str:
        if not isinstance(part.operand, ColumnReference):
            return "Like condition must be between strings."
        column = self._source.schema.find(part.operand.name)
        if column is not None and column.type.base is not BaseType.STRING:
            raise AnalysisError(
                "The column type for Like condition must be VARCHAR. The column type is "
                f"{column.type.base.value}.{HELP}"
            )
        return ""

    # --- lookups -----------------------------------------------------------------------------

    def lookup(self, disjunct: Expression) -> Access:
        """The rows that one conjunction is about."""
        fixed: dict[str, Value] = {}
        ranges: list[tuple[ComparisonOperator, str, Value]] = []
        for part in _parts(disjunct):
            if not isinstance(part, Comparison):
                continue
            column, other = _sides(part)
            if column is None or column.name not in self._key:
                continue
            value = self._key_value(self._key[column.name], other, part)
            operator = part.operator if column is part.left else _FLIPPED.get(part.operator)
            if part.operator is ComparisonOperator.EQUAL:
                fixed.setdefault(column.name, value)
            elif operator is not None:
                ranges.append((operator, column.name, value))
        if len(fixed) == len(self._key):
            return Access((tuple(fixed[name] for name in self._key),))
        return self._range(ranges)

    def _range(self, ranges: list[tuple[ComparisonOperator, str, Value]]) -> Access:
        if len(self._key) != 1 or not ranges:
            return Access()
        (column,) = self._key.values()
        if column.type.base not in (BaseType.STRING, BaseType.BYTES):
            return Access()
        low: Row | None = None
        high: Row | None = None
        for operator, _, value in ranges:
            if operator in (
                ComparisonOperator.GREATER_THAN,
                ComparisonOperator.GREATER_THAN_OR_EQUAL,
            ):
                low = (value,)
            else:
                high = (value,)
        return Access(None, low, high)

    def _key_value(self, column: Column, other: Expression, part: Comparison) -> Value:
        if isinstance(other, nodes.NullLiteral):
            raise AnalysisError(f"Primary key columns can not be NULL: {message_text(part)}")
        value = self._constant(other, column)
        if value is None:
            raise AnalysisError(f"Primary key columns can not be NULL: {message_text(part)}")
        return value

    def _constant(self, other: Expression, column: Column) -> Value:
        try:
            compiled = compile_expression(other, (), self._functions)
            value = compiled.evaluate(())
            if value is None or compiled.type is None:
                return None
            is_time_text = compiled.type == STRING and column.type.base.is_time
            if not is_time_text:
                wider = coerced_type(compiled.type, column.type, is_lax=False)
                if wider is None or wider.base is not column.type.base:
                    raise EvaluationError("no value of the key")
            return coerce_literal(value, compiled.type, column.type)
        except (*FAILURES, SqlError) as error:
            shown = message_text(other).strip("'")
            raise AnalysisError(
                f"'{shown}' can not be converted to the type of the key column: {column.name} "
                f"{column.type} KEY"
            ) from error


def _sides(part: Comparison) -> tuple[ColumnReference | None, Expression]:
    """The column of a comparison and what it is compared with."""
    if isinstance(part.right, ColumnReference):
        return part.right, part.left
    if isinstance(part.left, ColumnReference):
        return part.left, part.right
    return None, part.right


def _parts(disjunct: Expression) -> Iterator[Expression]:
    if isinstance(disjunct, Logical) and disjunct.operator is LogicalOperator.AND:
        yield from _parts(disjunct.left)
        yield from _parts(disjunct.right)
    else:
        yield disjunct
