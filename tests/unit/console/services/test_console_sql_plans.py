"""Plans of queries as graphs, from both servers' texts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.console.services.sql_plans import STEPS_MAX, plan_of

KSQLDB = (
    " > [ SINK ] | Schema: `CITY` STRING KEY, `TOTAL` BIGINT | Logger: CTAS_TOTALS_1.TOTALS\n"
    "\t\t > [ PROJECT ] | Schema: `CITY` STRING KEY, `A` INTEGER, `B` INTEGER, `C` INTEGER | "
    "Logger: CTAS_TOTALS_1.Project\n"
    "\t\t\t\t > [ GROUP_BY ] | Schema: `CITY` STRING KEY | Logger: CTAS_TOTALS_1.GroupBy\n"
    "\t\t\t\t\t\t > [ STREAM_JOIN ] | Schema: `ID` STRING KEY | Logger: CTAS_TOTALS_1.Join\n"
    "\t\t\t\t\t\t\t\t > [ SOURCE ] | Schema: `ID` STRING KEY | Logger: CTAS_TOTALS_1.Left\n"
    "\t\t\t\t\t\t\t\t > [ FILTER ] | Schema: `ID` STRING KEY | Logger: CTAS_TOTALS_1.Filter\n"
    "\t\t\t\t\t\t\t\t\t\t > [ SOURCE ] | Schema: `ID` STRING KEY | Logger: CTAS_TOTALS_1.Right\n"
)


def column(name: str) -> dict[str, str]:
    return {"name": name, "type": "STRING"}


def test_a_tree_of_steps_from_its_sources_to_its_sink() -> None:
    left = {"is": "StreamSource", "topic": "orders"}
    right = {"is": "TableSource", "topic": "customers"}
    join = {"is": "StreamTableJoin", "kind": "INNER", "left": left, "right": right}
    schema = {"columns": [column(name) for name in "ABCDE"]}
    chosen = {"is": "StreamSelect", "source": join, "schema": schema}
    functions = [{"name": "SUM"}, {"name": "SUM"}, {"name": "COUNT"}]
    grouped = {"is": "StreamAggregate", "source": chosen, "functions": functions}
    plan = {"version": 1, "plan": {"step": {"is": "TableSink", "source": grouped}}}
    found = plan_of(json.dumps(plan), "TOTALS")
    assert [(one.kind, one.title, one.detail, one.inputs) for one in found] == [
        ("source", "Stream source", "orders", ()),
        ("source", "Table source", "customers", ()),
        ("step", "Stream table join", "INNER", (0, 1)),
        ("step", "Stream select", "A, B, C and 2 more", (2,)),
        ("step", "Stream aggregate", "SUM, COUNT", (3,)),
        ("sink", "Table sink", "TOTALS", (4,)),
    ]


def test_the_lines_of_ksqldb() -> None:
    found = plan_of(KSQLDB, "TOTALS")
    assert [(one.kind, one.title, one.inputs) for one in found] == [
        ("source", "Source", ()),
        ("step", "Filter", (0,)),
        ("source", "Source", ()),
        ("step", "Stream join", (2, 1)),
        ("step", "Group by", (3,)),
        ("step", "Project", (4,)),
        ("sink", "Sink", (5,)),
    ]
    assert (found[-1].detail, found[-2].detail) == ("TOTALS", "CITY, A, B and 1 more")


def deep(count: int) -> dict[str, Any]:
    step: dict[str, Any] = {"is": "StreamSource", "topic": "t"}
    for _ in range(count - 1):
        step = {"is": "StreamFilter", "source": step}
    return {"plan": {"step": step}}


def test_a_plan_that_is_too_large_is_not_drawn() -> None:
    assert len(plan_of(json.dumps(deep(STEPS_MAX)), None)) == STEPS_MAX
    assert plan_of(json.dumps(deep(STEPS_MAX + 1)), None) == ()
    lines = "\n".join(f"{' ' * depth}> [ FILTER ]" for depth in range(STEPS_MAX + 1))
    assert plan_of(lines, None) == ()


@pytest.mark.parametrize("odd", [1, "x", [1], {"columns": 1}, {"columns": [1]}, None])
def test_a_step_with_members_of_other_types_is_drawn_without_them(odd: Any) -> None:
    step = {"is": "StreamSelect", "functions": odd, "schema": odd, "source": {"is": "StreamSource"}}
    (_, drawn) = plan_of(json.dumps({"plan": {"step": step}}), None)
    assert (drawn.title, drawn.detail) == ("Stream select", "")


@pytest.mark.parametrize(
    "text",
    ["", "Topologies:", "null", "[1]", "{}", '{"plan": 1}', '{"plan": {"step": []}}', "[" * 90_000],
    ids=lambda text: text[:20] or "nothing",
)
def test_what_is_no_plan_has_no_steps(text: str) -> None:
    assert plan_of(text, "S") == ()
