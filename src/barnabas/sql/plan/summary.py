"""A plan as text, as EXPLAIN shows it: the sink first, sources last and furthest in.

     > [ SINK ] | Schema: ID INTEGER KEY | Logger: CSAS_T_0.T
             > [ PROJECT ] | Schema: ID INTEGER KEY | Logger: CSAS_T_0.Project
                     > [ SOURCE ] | Schema: ID INTEGER KEY | Logger: CSAS_T_0.KsqlTopic.Source

The layout is ksqlDB's, indented by tabs.
"""

from __future__ import annotations

from barnabas.sql.names import quoted
from barnabas.sql.plan import steps
from barnabas.sql.plan.steps import QueryPlan, Step
from barnabas.sql.schema import Part, Schema
from barnabas.sql.syntax.printer import type_text

_OPERATIONS: dict[type, tuple[str, str]] = {
    steps.StreamSource: ("SOURCE", "KsqlTopic.Source"),
    steps.TableSource: ("SOURCE", "KsqlTopic.Source"),
    steps.StreamFilter: ("FILTER", "WhereFilter"),
    steps.TableFilter: ("FILTER", "WhereFilter"),
    steps.StreamSelect: ("PROJECT", "Project"),
    steps.TableSelect: ("PROJECT", "Project"),
    steps.StreamSelectKey: ("REKEY", "PartitionBy"),
    steps.TableSelectKey: ("REKEY", "PartitionBy"),
    steps.StreamFlatMap: ("FLAT_MAP", "FlatMap"),
    steps.StreamGroupBy: ("GROUP_BY", "Aggregate.GroupBy"),
    steps.StreamGroupByKey: ("GROUP_BY", "Aggregate.GroupBy"),
    steps.TableGroupBy: ("GROUP_BY", "Aggregate.GroupBy"),
    steps.StreamAggregate: ("AGGREGATE", "Aggregate.Aggregate"),
    steps.StreamWindowedAggregate: ("AGGREGATE", "Aggregate.Aggregate"),
    steps.TableAggregate: ("AGGREGATE", "Aggregate.Aggregate"),
    steps.TableSuppress: ("SUPPRESS", "Suppress"),
    steps.StreamStreamJoin: ("JOIN", "Join"),
    steps.StreamTableJoin: ("JOIN", "Join"),
    steps.TableTableJoin: ("JOIN", "Join"),
    steps.ForeignKeyJoin: ("JOIN", "Join"),
    steps.StreamSink: ("SINK", ""),
    steps.TableSink: ("SINK", ""),
}
"""The name of each step, and of its logger within the query's."""


def plan_summary(plan: QueryPlan) -> str:
    """The plan's steps, a line each."""
    return "".join(_lines(plan, plan.step, 0))


def _lines(plan: QueryPlan, step: Step, depth: int) -> list[str]:
    operation, logger = _OPERATIONS[type(step)]
    indent = "\t" * (2 * depth)
    name = f"{plan.query_id}.{logger or plan.sink}"
    line = f"{indent} > [ {operation} ] | Schema: {schema_text(step.schema)} | Logger: {name}\n"
    below = [line for source in sources_of(step) for line in _lines(plan, source, depth + 1)]
    return [line, *below]


def sources_of(step: Step) -> tuple[Step, ...]:
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


def schema_text(schema: Schema) -> str:
    """The columns as a statement could declare them."""
    return ", ".join(
        f"{quoted(column.name)} {type_text(column.type)}{' KEY' * (column.part is Part.KEY)}"
        for column in schema.columns
    )
