"""The driver over topics of bytes: formats, chains of queries, partitions."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from barnabas.sql.plan import steps
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.runtime.driver import Driver
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.syntax.tree import JoinKind, Window, WindowKind, Within
from support.sql_plans import (
    aggregate,
    call,
    column,
    plan,
    schema,
    select,
    session,
    stream,
    tumbling,
)
from support.sql_small_compiler import SmallCompiler


def long_key(key: int) -> bytes:
    return key.to_bytes(8, "big", signed=True)


def record(key: int | None, value: object, at: int = 0) -> TopicRecord:
    return TopicRecord(
        None if key is None else long_key(key),
        None if value is None else json.dumps(value).encode(),
        at,
    )


def counted(window: Window | None, sink: str, *, topic: str = "in") -> QueryPlan:
    source = steps.StreamGroupByKey(stream(topic, "V"), schema("K", "V"))
    step = select(
        aggregate(source, call("COUNT"), window=window), "K", is_table=True, C="KSQL_AGG_VARIABLE_0"
    )
    made = plan(step, is_table=True)
    assert isinstance(made.step, steps.TableSink)
    info = None
    if window is not None:
        size_ms = None if window.kind is WindowKind.SESSION else window.size_ms
        info = steps.WindowInfo(window.kind, size_ms)
    return replace(made, step=replace(made.step, topic=sink), window=info)


def test_records_are_read_and_written_by_their_formats() -> None:
    driver = Driver([counted(None, "out")], SmallCompiler())
    driver.pipe("in", record(1, {"V": 5}, 7))
    driver.pipe("in", record(1, {"v": 6}, 8))
    assert driver.topics["out"] == [
        TopicRecord(long_key(1), b'{"C":1}', 7, partition=0),
        TopicRecord(long_key(1), b'{"C":2}', 8, partition=0, offset=1),
    ]


def test_what_cannot_be_read_goes_to_the_log() -> None:
    notes: list[str] = []
    driver = Driver(
        [counted(None, "out")],
        SmallCompiler(),
        log=lambda message, row, cause: notes.append(message),
    )
    driver.pipe("in", TopicRecord(long_key(1), b"no JSON", 0))
    driver.pipe("in", TopicRecord(b"short", b'{"V": 1}', 0))
    driver.pipe("in", record(1, {"V": 1}))
    assert len(driver.topics["out"]) == 1
    assert notes == ["Failed to deserialize a record of in"] * 2


@pytest.mark.parametrize(
    ("window", "tail"),
    [
        (tumbling(10), (20).to_bytes(8, "big")),
        (session(10), (24).to_bytes(8, "big") + (24).to_bytes(8, "big")),
    ],
)
def test_keys_of_windows_bear_the_bounds(window: Window, tail: bytes) -> None:
    driver = Driver([counted(window, "out")], SmallCompiler())
    driver.pipe("in", record(1, {"V": 5}, 24))
    assert [made.key for made in driver.topics["out"]] == [long_key(1) + tail]


@pytest.mark.parametrize("partitions", [1, 3])
def test_queries_read_what_others_write(partitions: int) -> None:
    doubled = plan(select(stream("in", "V"), "K", V="V"))
    assert isinstance(doubled.step, steps.StreamSink)
    first = replace(doubled, step=replace(doubled.step, topic="middle"))
    driver = Driver(
        [first, counted(None, "out", topic="middle")], SmallCompiler(), partitions=partitions
    )
    for key in (1, 2, 3, 1, 2, 1):
        driver.pipe("in", record(key, {"V": 1}))
    places = [(r.partition, r.offset) for r in driver.topics["middle"]]
    assert len(set(places)) == 6
    assert {partition for partition, _ in places} <= set(range(partitions))
    counts = [json.loads(r.value or b"")["C"] for r in driver.topics["out"]]
    assert counts == [1, 1, 1, 2, 2, 3]


def test_a_stream_joined_to_itself_sees_each_record_on_both_sides() -> None:
    left, right = (
        select(stream("in", "V"), "K", A="V"),
        select(stream("in", "V"), "K", B="V"),
    )
    made = steps.StreamStreamJoin(
        JoinKind.INNER, "K", left, right, Within(10, 10), schema("K", "A B")
    )
    driver = Driver([plan(made)], SmallCompiler())
    driver.pipe("in", record(1, {"V": 5}))
    driver.pipe("in", record(1, {"V": 6}))
    assert [json.loads(r.value or b"") for r in driver.topics["out"]] == [
        {"A": 5, "B": 5},
        {"A": 6, "B": 5},
        {"A": 5, "B": 6},
        {"A": 6, "B": 6},
    ]


def test_repartitioned_records_keep_their_order() -> None:
    rekeyed = steps.StreamSelectKey(stream("in", "V"), (column("V"),), schema("V", "V K"))
    grouped = steps.StreamGroupByKey(rekeyed, rekeyed.schema)
    step = aggregate(grouped, call("COLLECT_LIST", "K"), key="V")
    driver = Driver(
        [plan(select(step, "V", is_table=True, KS="V"), is_table=True)], SmallCompiler()
    )
    for key in (3, 1, 2):
        driver.pipe("in", record(key, {"V": 7}))
    assert len(driver.topics["out"]) == 3
