"""Plans as JSON: every step and expression comes back, and stored plans stay readable."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.sql import types
from barnabas.sql.errors import Place
from barnabas.sql.plan import steps
from barnabas.sql.plan.encoding import (
    PlanFormatError,
    decode_plan,
    encode_plan,
    plan_to_json,
)
from barnabas.sql.plan.steps import QueryPlan, Step
from barnabas.sql.schema import Column, Part, Schema
from barnabas.sql.syntax import expressions as nodes
from barnabas.sql.syntax.tree import Emit, JoinKind, Window, WindowKind, Within
from support.effort import examples
from support.sql_plans import aggregate, call, greater, plan, schema, select, stream, tumbling

names = st.text(max_size=8)
sql_types = st.recursive(
    st.sampled_from([types.BIGINT, types.STRING, types.Decimal(4, 2), types.TIMESTAMP]),
    lambda inner: st.one_of(
        st.builds(types.Array, inner),
        st.builds(types.Map, inner, inner),
        st.builds(
            types.Struct, st.lists(st.builds(types.Field, names, inner), max_size=3).map(tuple)
        ),
    ),
    max_leaves=4,
)
columns = st.builds(Column, names, sql_types, st.sampled_from(Part), st.none() | names)
schemas = st.builds(Schema, st.lists(columns, max_size=3).map(tuple))

LEAVES: list[st.SearchStrategy[Any]] = [
    st.builds(nodes.NullLiteral),
    st.builds(nodes.IntegerLiteral, st.integers(-(2**31), 2**31 - 1)),
    st.builds(nodes.LongLiteral, st.integers(-(2**63), 2**63 - 1)),
    st.builds(nodes.DoubleLiteral, st.floats(allow_nan=False, allow_infinity=False)),
    st.builds(nodes.DecimalLiteral, st.decimals(allow_nan=False, allow_infinity=False)),
    st.builds(nodes.StringLiteral, names),
    st.builds(nodes.BooleanLiteral, st.booleans()),
    st.builds(nodes.BytesLiteral, st.binary(max_size=5)),
    st.builds(nodes.ColumnReference, names, st.none() | names),
    st.builds(nodes.IntervalUnit, names),
    st.builds(nodes.LambdaVariable, names),
]


def many(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, max_size=2).map(tuple)


def branches(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    whens = many(st.builds(nodes.When, inner, inner))
    return st.one_of(
        st.builds(nodes.Arithmetic, st.sampled_from(nodes.ArithmeticOperator), inner, inner),
        st.builds(nodes.Comparison, st.sampled_from(nodes.ComparisonOperator), inner, inner),
        st.builds(nodes.Logical, st.sampled_from(nodes.LogicalOperator), inner, inner),
        st.builds(nodes.Sign, st.booleans(), inner),
        st.builds(nodes.Not, inner),
        st.builds(nodes.IsNull, inner),
        st.builds(nodes.IsNotNull, inner),
        st.builds(nodes.Between, inner, inner, inner),
        st.builds(nodes.InList, inner, many(inner)),
        st.builds(nodes.Like, inner, inner, st.none() | names),
        st.builds(nodes.SearchedCase, whens, st.none() | inner),
        st.builds(nodes.SimpleCase, inner, whens, st.none() | inner),
        st.builds(nodes.Cast, inner, sql_types),
        st.builds(nodes.Subscript, inner, inner),
        st.builds(nodes.Dereference, inner, names),
        st.builds(nodes.ArrayConstructor, many(inner)),
        st.builds(nodes.MapConstructor, many(st.tuples(inner, inner))),
        st.builds(nodes.StructConstructor, many(st.tuples(names, inner))),
        st.builds(nodes.Lambda, many(names), inner),
        st.builds(nodes.FunctionCall, names, many(inner)),
    )


expressions = st.recursive(st.one_of(LEAVES), branches, max_leaves=5)
calls = st.builds(nodes.FunctionCall, names, many(expressions))
whole = st.integers(0, 10**12)
windows = st.builds(
    Window,
    st.sampled_from(WindowKind),
    whole,
    whole,
    st.none() | whole,
    st.none() | whole,
    st.none() | names,
)
choices = st.builds(
    steps.FormatChoice, names, st.dictionaries(names, names, max_size=2), st.none() | st.booleans()
)
formats = st.builds(steps.Formats, choices, choices)
timestamps = st.none() | st.builds(steps.TimestampColumn, names, st.none() | names)
infos = st.none() | st.builds(
    steps.WindowInfo,
    st.sampled_from(WindowKind),
    st.none() | whole,
    st.sampled_from(Emit),
)
within = st.builds(Within, whole, whole, st.none() | whole)
kinds = st.sampled_from(JoinKind)


def stages(source: st.SearchStrategy[Step]) -> st.SearchStrategy[Any]:
    selected = many(st.builds(steps.SelectedColumn, names, expressions))
    keys, group = many(names), many(expressions)
    return st.one_of(
        *(
            st.builds(k, source, expressions, schemas)
            for k in (steps.StreamFilter, steps.TableFilter)
        ),
        *(
            st.builds(k, source, keys, selected, schemas)
            for k in (steps.StreamSelect, steps.TableSelect)
        ),
        *(
            st.builds(k, source, group, schemas)
            for k in (
                steps.StreamSelectKey,
                steps.TableSelectKey,
                steps.StreamGroupBy,
                steps.TableGroupBy,
            )
        ),
        st.builds(steps.StreamGroupByKey, source, schemas),
        st.builds(steps.TableSuppress, source, schemas),
        st.builds(steps.StreamFlatMap, source, many(calls), schemas),
        st.builds(steps.StreamAggregate, source, keys, many(calls), schemas),
        st.builds(steps.TableAggregate, source, keys, many(calls), schemas),
        st.builds(steps.StreamWindowedAggregate, source, keys, many(calls), windows, schemas),
        st.builds(steps.StreamStreamJoin, kinds, names, source, source, within, schemas),
        st.builds(steps.StreamTableJoin, kinds, names, source, source, schemas),
        st.builds(steps.TableTableJoin, kinds, names, source, source, schemas),
        st.builds(steps.ForeignKeyJoin, kinds, expressions, source, source, schemas),
        *(
            st.builds(k, source, names, formats, schemas, timestamps)
            for k in (steps.StreamSink, steps.TableSink)
        ),
    )


sources = st.one_of(
    *(
        st.builds(k, names, formats, schemas, timestamps, infos)
        for k in (steps.StreamSource, steps.TableSource)
    )
)
plans = st.builds(
    QueryPlan,
    names,
    many(names),
    st.none() | names,
    st.sampled_from(steps.ResultKind),
    st.recursive(sources, stages, max_leaves=3),
    infos,
)


@settings(max_examples=examples(15))
@given(plans)
def test_every_plan_comes_back(made: QueryPlan) -> None:
    assert decode_plan(encode_plan(made)) == made


@settings(max_examples=examples(15))
@given(expressions)
def test_every_expression_comes_back(expression: nodes.Expression) -> None:
    made = plan(steps.StreamFilter(stream("in", "V"), expression, schema("K", "V")))
    assert repr(decode_plan(encode_plan(made))) == repr(made)


def test_no_step_or_expression_is_forgotten() -> None:
    """A new class needs a strategy above, and then its number here."""
    assert len(get_args(Step)) == 22
    assert len(get_args(nodes.Expression)) == 31


def test_places_are_not_kept() -> None:
    step = stream("in", "V")
    with_place = nodes.ColumnReference("V", place=Place(3, 4))
    made = plan(steps.StreamFilter(step, with_place, step.schema))
    text = encode_plan(made)
    assert "place" not in text
    assert decode_plan(text) == made


STORED = (
    '{"version":1,"plan":{"query_id":"Q","sources":["IN"],"sink":"OUT","kind":"WINDOWED_TABLE",'
    '"step":{"is":"TableSink","source":{"is":"TableSelect","source":{"is":"StreamWindowedAggregate",'
    '"source":{"is":"StreamGroupByKey","source":{"is":"StreamFilter","source":{"is":"StreamSource",'
    '"topic":"in","formats":{"key":{"name":"KAFKA"},"value":{"name":"JSON"}},"schema":{"columns":'
    '[{"name":"K","type":"BIGINT","part":"KEY"},{"name":"V","type":"BIGINT"}]}},"condition":'
    '{"is":"Comparison","operator":"GREATER_THAN","left":{"is":"ColumnReference","name":"V"},'
    '"right":{"is":"IntegerLiteral","value":5}},"schema":{"columns":[{"name":"K","type":"BIGINT",'
    '"part":"KEY"},{"name":"V","type":"BIGINT"}]}},"schema":{"columns":[{"name":"K","type":"BIGINT",'
    '"part":"KEY"},{"name":"V","type":"BIGINT"}]}},"kept":["V"],"functions":[{"name":"COUNT",'
    '"arguments":[{"is":"ColumnReference","name":"V"}]}],"window":{"kind":"TUMBLING","size_ms":10,'
    '"advance_ms":10},"schema":{"columns":[{"name":"K","type":"BIGINT","part":"KEY"},{"name":"V",'
    '"type":"BIGINT"},{"name":"KSQL_AGG_VARIABLE_0","type":"BIGINT"}]}},"key_names":["K"],'
    '"selected":[{"name":"C","expression":{"is":"ColumnReference","name":"KSQL_AGG_VARIABLE_0"}}],'
    '"schema":{"columns":[{"name":"K","type":"BIGINT","part":"KEY"},{"name":"C","type":"BIGINT"}]}},'
    '"topic":"out","formats":{"key":{"name":"KAFKA"},"value":{"name":"JSON"}},"schema":{"columns":'
    '[{"name":"K","type":"BIGINT","part":"KEY"},{"name":"C","type":"BIGINT"}]}},'
    '"window":{"kind":"TUMBLING","size_ms":10}}}'
)


def test_a_stored_plan_stays_readable() -> None:
    """Never change this text: command topics hold such."""
    filtered = steps.StreamFilter(stream("in", "V"), greater("V", 5), schema("K", "V"))
    grouped = steps.StreamGroupByKey(filtered, filtered.schema)
    counted = aggregate(grouped, call("COUNT", "V"), kept="V", window=tumbling(10))
    selected = select(counted, "K", is_table=True, C="KSQL_AGG_VARIABLE_0")
    expected = replace(
        plan(selected, is_table=True),
        sources=("IN",),
        kind=steps.ResultKind.WINDOWED_TABLE,
        window=steps.WindowInfo(WindowKind.TUMBLING, 10),
    )
    assert decode_plan(STORED) == expected
    assert encode_plan(expected) == STORED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(version=2), "plan of version 2, this program reads 1"),
        (lambda data: data.pop("plan"), "not a plan"),
        (lambda data: data["plan"].update(colour=1), "QueryPlan has no colour"),
        (
            lambda data: data["plan"]["step"].update({"is": "Nothing"}),
            "expression: Nothing",
        ),
        (lambda data: data["plan"]["step"].pop("topic"), "topic"),
        (lambda data: data["plan"].update(kind="HEAP"), "HEAP"),
        (lambda data: data["plan"].update(step=7), "not a plan"),
    ],
)
def test_what_is_no_plan(change: Any, message: str) -> None:
    data = plan_to_json(plan(stream("in", "V")))
    change(data)
    with pytest.raises(PlanFormatError, match=message):
        decode_plan(json.dumps(data))


def test_text_that_is_no_json() -> None:
    with pytest.raises(PlanFormatError, match="is not JSON"):
        decode_plan("{")


def test_numbers_keep_their_digits() -> None:
    literal = nodes.DecimalLiteral(Decimal("1.20"))
    made = plan(steps.StreamFilter(stream("in", "V"), literal, schema("K", "V")))
    assert '"1.20"' in encode_plan(made)
