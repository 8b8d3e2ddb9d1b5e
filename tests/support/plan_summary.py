"""A plan as text: the sink first, sources last and furthest in.

> [ SINK ] ID INTEGER KEY
  > [ PROJECT ] ID INTEGER KEY
    > [ SOURCE ] ID INTEGER KEY
"""

from __future__ import annotations

from barnabas.sql.names import quoted
from barnabas.sql.plan import steps
from barnabas.sql.plan.steps import QueryPlan, Step
from barnabas.sql.schema import Part, Schema
from barnabas.sql.syntax.printer import type_text

_OPERATIONS: dict[type, str] = {
    steps.StreamSource: "SOURCE",
    steps.TableSource: "SOURCE",
    steps.StreamFilter: "FILTER",
    steps.TableFilter: "FILTER",
    steps.StreamSelect: "PROJECT",
    steps.TableSelect: "PROJECT",
    steps.StreamSelectKey: "REKEY",
    steps.TableSelectKey: "REKEY",
    steps.StreamFlatMap: "FLAT_MAP",
    steps.StreamGroupBy: "GROUP_BY",
    steps.StreamGroupByKey: "GROUP_BY",
    steps.TableGroupBy: "GROUP_BY",
    steps.StreamAggregate: "AGGREGATE",
    steps.StreamWindowedAggregate: "AGGREGATE",
    steps.TableAggregate: "AGGREGATE",
    steps.TableSuppress: "SUPPRESS",
    steps.StreamStreamJoin: "JOIN",
    steps.StreamTableJoin: "JOIN",
    steps.TableTableJoin: "JOIN",
    steps.ForeignKeyJoin: "JOIN",
    steps.StreamSink: "SINK",
    steps.TableSink: "SINK",
}


def plan_summary(plan: QueryPlan) -> str:
    """The plan's steps, a line each."""
    return "".join(_lines(plan.step, 0))


def _lines(step: Step, depth: int) -> list[str]:
    line = f"{'  ' * depth} > [ {_OPERATIONS[type(step)]} ] {_schema_text(step.schema)}\n"
    return [line, *(line for source in _sources_of(step) for line in _lines(source, depth + 1))]


def _sources_of(step: Step) -> tuple[Step, ...]:
    """The steps that a step reads, from left to right."""
    match step:
        case steps.StreamSource() | steps.TableSource():
            return ()
        case (
            steps.StreamStreamJoin()
            | steps.StreamTableJoin()
            | steps.TableTableJoin()
            | steps.ForeignKeyJoin()
        ):
            return (step.left, step.right)
        case _:
            return (step.source,)


def _schema_text(schema: Schema) -> str:
    """The columns as a statement could declare them."""
    return ", ".join(
        f"{quoted(column.name)} {type_text(column.type)}{' KEY' * (column.part is Part.KEY)}"
        for column in schema.columns
    )
