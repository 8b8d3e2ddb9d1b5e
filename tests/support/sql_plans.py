"""Plans by hand, and a bench that runs them on rows: one line in, lines out."""

from __future__ import annotations

from typing import Any

from barnabas.sql.plan import steps
from barnabas.sql.plan.steps import FormatChoice, Formats, QueryPlan, ResultKind, Step
from barnabas.sql.runtime.driver import PlanDriver
from barnabas.sql.runtime.records import Record, Row, WindowBounds
from barnabas.sql.runtime.stage import Channel
from barnabas.sql.schema import Column, Part, Schema
from barnabas.sql.syntax.expressions import (
    ColumnReference,
    Comparison,
    ComparisonOperator,
    Expression,
    FunctionCall,
    IntegerLiteral,
)
from barnabas.sql.syntax.tree import JoinKind, Window, WindowKind, Within
from barnabas.sql.types import BIGINT, SqlType
from support.sql_small_compiler import SmallCompiler

FORMATS = Formats(FormatChoice("KAFKA"), FormatChoice("JSON"))


def schema(key: str, value: str, **types: SqlType) -> Schema:
    """Columns by names with blanks between; BIGINT unless told otherwise."""
    return Schema(
        tuple(Column(name, types.get(name, BIGINT), Part.KEY) for name in key.split())
        + tuple(Column(name, types.get(name, BIGINT)) for name in value.split())
    )


def stream(topic: str, value: str, key: str = "K", **types: SqlType) -> steps.StreamSource:
    return steps.StreamSource(topic, FORMATS, schema(key, value, **types))


def table(topic: str, value: str, key: str = "K") -> steps.TableSource:
    return steps.TableSource(topic, FORMATS, schema(key, value))


def column(name: str) -> ColumnReference:
    return ColumnReference(name)


def greater(name: str, than: int) -> Expression:
    return Comparison(ComparisonOperator.GREATER_THAN, column(name), IntegerLiteral(than))


def call(name: str, *arguments: str) -> FunctionCall:
    return FunctionCall(name, tuple(map(column, arguments)))


def select(source: Step, key: str, is_table: bool = False, **selected: str) -> Step:
    """`new="OLD"`: columns of the value."""
    items = tuple(steps.SelectedColumn(new, column(old)) for new, old in selected.items())
    made = schema(key, " ".join(selected))
    kind = steps.TableSelect if is_table else steps.StreamSelect
    return kind(source, tuple(key.split()), items, made)


def aggregate(
    source: Step,
    *calls: FunctionCall,
    kept: str = "",
    key: str = "K",
    window: Window | None = None,
) -> Step:
    made = schema(key, " ".join([kept, *(f"KSQL_AGG_VARIABLE_{n}" for n in range(len(calls)))]))
    names = tuple(kept.split())
    if window is not None:
        return steps.StreamWindowedAggregate(source, names, calls, window, made)
    if isinstance(source, steps.TableGroupBy):
        return steps.TableAggregate(source, names, calls, made)
    return steps.StreamAggregate(source, names, calls, made)


def tumbling(size_ms: int, grace_ms: int | None = None, retention_ms: int | None = None) -> Window:
    return Window(WindowKind.TUMBLING, size_ms, size_ms, retention_ms, grace_ms)


def hopping(size_ms: int, advance_ms: int, grace_ms: int | None = None) -> Window:
    return Window(WindowKind.HOPPING, size_ms, advance_ms, None, grace_ms)


def session(gap_ms: int, grace_ms: int | None = None) -> Window:
    return Window(WindowKind.SESSION, gap_ms, gap_ms, None, grace_ms)


def join_streams(
    kind: JoinKind, left: Step, right: Step, before: int, after: int, grace: int | None
) -> Step:
    made = _joined(left, right)
    return steps.StreamStreamJoin(kind, "K", left, right, Within(before, after, grace), made)


def join_tables(kind: JoinKind, left: Step, right: Step) -> Step:
    return steps.TableTableJoin(kind, "K", left, right, _joined(left, right))


def join_stream_table(kind: JoinKind, left: Step, right: Step) -> Step:
    return steps.StreamTableJoin(kind, "K", left, right, _joined(left, right))


def join_foreign(kind: JoinKind, foreign_key: str, left: Step, right: Step) -> Step:
    made = Schema(left.schema.key + left.schema.value + right.schema.value)
    return steps.ForeignKeyJoin(kind, column(foreign_key), left, right, made)


def _joined(left: Step, right: Step) -> Schema:
    return Schema((Column("K", BIGINT, Part.KEY), *left.schema.value, *right.schema.value))


def plan(step: Step, *, is_table: bool = False) -> QueryPlan:
    """The step with a sink behind it."""
    sink = (steps.TableSink if is_table else steps.StreamSink)(step, "out", FORMATS, step.schema)
    kind = ResultKind.TABLE if is_table else ResultKind.STREAM
    return QueryPlan("Q", (), "OUT", kind, sink)


class Bench:
    """Runs a plan on rows. Results are texts: `key[window] value @timestamp`."""

    def __init__(self, step: Step, *, is_table: bool = False, partitions: int = 1) -> None:
        self.log: list[str] = []
        self.driver = PlanDriver(
            plan(step, is_table=is_table),
            SmallCompiler(),
            partitions=partitions,
            log=lambda message, row, cause: self.log.append(message),
        )

    def pipe(
        self,
        topic: str,
        key: Any,
        value: Any,
        at: int = 0,
        window: tuple[int, int] | None = None,
        **others: Any,
    ) -> list[str]:
        """A single value stands for a row of one column."""
        made = []
        for stage in self.driver.stages:
            for index, given in enumerate(stage.inputs):
                if isinstance(given, Channel) or given.topic != topic:
                    continue
                record = Record(
                    _row(key), _row(value), at, WindowBounds(*window) if window else None, **others
                )
                made += self.driver.pipe(stage.index, index, record)
        return [text(record) for record in made]


def _row(value: Any) -> Row | None:
    return value if value is None or isinstance(value, list) else [value]


def text(record: Record) -> str:
    window = "" if record.window is None else f"[{record.window.start_ms},{record.window.end_ms}]"
    return f"{_text(record.key)}{window} {_text(record.value)} @{record.timestamp_ms}"


def _text(row: Row | None) -> str:
    if row is None:
        return "-"
    return ",".join("null" if value is None else str(value) for value in row)
