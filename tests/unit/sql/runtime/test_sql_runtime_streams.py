"""Steps of streams without state, and the ends of plans."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas.sql.plan import steps
from barnabas.sql.plan.steps import TimestampColumn
from barnabas.sql.runtime.driver import PlanDriver
from barnabas.sql.runtime.evaluation import QueryFailedError
from barnabas.sql.schema import Column, Part, Schema
from barnabas.sql.syntax.expressions import (
    Arithmetic,
    ArithmeticOperator,
    IntegerLiteral,
    NullLiteral,
)
from barnabas.sql.syntax.tree import WindowKind
from barnabas.sql.types import BIGINT, BYTES, STRING, Array
from support.sql_plans import (
    FORMATS,
    Bench,
    aggregate,
    call,
    column,
    greater,
    schema,
    select,
    stream,
)
from support.sql_small_compiler import SmallCompiler


def by(source: steps.Step, key: str, value: str, *expressions: object) -> steps.Step:
    return steps.StreamSelectKey(source, tuple(expressions), schema(key, value))  # type: ignore[arg-type]


def test_filter_passes_what_holds_and_logs_what_fails() -> None:
    bench = Bench(steps.StreamFilter(stream("in", "V"), greater("V", 5), schema("K", "V")))
    assert bench.pipe("in", 1, 6, 10) == ["1 6 @10"]
    assert bench.pipe("in", 1, 5) == []
    assert bench.pipe("in", 1, [None]) == []
    assert bench.pipe("in", 1, None) == []
    assert bench.log == []
    assert bench.pipe("in", 1, "text") == []
    assert bench.log == ["Error evaluating predicate"]


def test_select_calculates_columns_of_value_key_and_pseudo_columns() -> None:
    step = select(
        stream("in", "V"), "KEY", A="V", B="K", T="ROWTIME", P="ROWPARTITION", O="ROWOFFSET"
    )
    bench = Bench(step)
    assert bench.pipe("in", 1, 6, 10, partition=3, offset=77) == ["1 6,1,10,3,77 @10"]
    assert bench.pipe("in", None, 6, 10) == ["- 6,null,10,0,0 @10"]
    assert bench.pipe("in", 1, None, 11) == ["1 - @11"]


def test_a_failing_column_is_null() -> None:
    division = Arithmetic(ArithmeticOperator.DIVIDE, IntegerLiteral(6), column("V"))
    step = steps.StreamSelect(
        stream("in", "V"), ("K",), (steps.SelectedColumn("D", division),), schema("K", "D")
    )
    bench = Bench(step)
    assert bench.pipe("in", 1, 2) == ["1 3 @0"]
    assert bench.pipe("in", 1, 0) == ["1 null @0"]
    assert bench.log == ["Error computing expression for column D"]


def test_select_can_drop_columns_of_the_key() -> None:
    source = stream("in", "V", key="A B")
    step = steps.StreamSelect(source, ("B",), (), schema("B", ""))
    assert Bench(step).pipe("in", [1, 2], 3) == ["2  @0"]
    step = steps.StreamSelect(source, (), (), schema("", ""))
    assert Bench(step).pipe("in", [1, 2], 3) == ["-  @0"]


def test_headers_are_columns_and_travel_on() -> None:
    columns = Schema(
        (
            Column("K", BIGINT, Part.KEY),
            Column("V", BIGINT),
            Column("ALL", Array(STRING), Part.HEADERS),
            Column("ONE", BYTES, Part.HEADERS, "a"),
        )
    )
    source = steps.StreamSource("in", FORMATS, columns)
    bench = Bench(select(source, "K", ALL="ALL", ONE="ONE"))
    assert bench.pipe("in", 1, 2, headers=(("a", b"1"), ("b", None))) == [
        "1 [{'KEY': 'a', 'VALUE': b'1'}, {'KEY': 'b', 'VALUE': None}],b'1' @0"
    ]
    assert bench.pipe("in", 1, 2) == ["1 [],null @0"]
    twice = bench.pipe("in", 1, 2, headers=(("a", b"1"), ("a", b"2")))
    assert twice[0].endswith("b'2' @0")


def test_windowed_sources_have_bounds() -> None:
    source = stream("in", "V")
    source = replace(source, window=steps.WindowInfo(WindowKind.TUMBLING, 10))
    bench = Bench(select(source, "K", S="WINDOWSTART", E="WINDOWEND"))
    assert bench.pipe("in", 1, 5, 12, (10, 20)) == ["1[10,20] 10,20 @12"]


class TestSelectKey:
    def test_by_a_column(self) -> None:
        bench = Bench(by(stream("in", "A B"), "A", "A B", column("A")))
        assert bench.pipe("in", 1, [2, 3], 4) == ["2 2,3 @4"]
        assert bench.pipe("in", 1, [None, 3]) == ["null null,3 @0"]
        assert bench.pipe("in", 1, None) == ["null - @0"]

    def test_by_null(self) -> None:
        bench = Bench(by(stream("in", "A"), "", "A K", NullLiteral()))
        assert bench.pipe("in", 1, 2) == ["- 2,1 @0"]

    def test_by_the_key_alone_when_the_value_is_null(self) -> None:
        sum_ = Arithmetic(ArithmeticOperator.ADD, column("K"), IntegerLiteral(1))
        bench = Bench(by(stream("in", "A"), "NEW", "A K NEW", sum_))
        assert bench.pipe("in", 1, None) == ["2 - @0"]
        assert bench.pipe("in", 1, 5) == ["2 5,1,2 @0"]

    def test_a_failing_expression_gives_a_null_key(self) -> None:
        division = Arithmetic(ArithmeticOperator.DIVIDE, IntegerLiteral(6), column("A"))
        bench = Bench(by(stream("in", "A"), "D", "A", division))
        assert bench.pipe("in", 1, 0) == ["null 0 @0"]
        assert bench.log == ["Error computing new key from expression"]

    def test_keeps_the_window(self) -> None:
        source = stream("in", "A")
        source = replace(source, window=steps.WindowInfo(WindowKind.TUMBLING, 10))
        bench = Bench(by(source, "A", "A K", column("A")))
        assert bench.pipe("in", 1, 2, 0, (0, 10)) == ["2[0,10] 2,1 @0"]

    def test_cuts_stages_only_where_keys_must_meet(self) -> None:
        rekeyed = by(stream("in", "A"), "A", "A", column("A"))
        assert len(Bench(rekeyed).driver.stages) == 1
        grouped = steps.StreamGroupByKey(rekeyed, rekeyed.schema)
        counted = Bench(aggregate(grouped, call("COUNT"), key="A"), partitions=4)
        assert len(counted.driver.stages) == 2
        assert [counted.pipe("in", key, key % 3)[-1] for key in range(1, 7)] == [
            "1 1 @0",
            "2 1 @0",
            "0 1 @0",
            "1 2 @0",
            "2 2 @0",
            "0 2 @0",
        ]
        assert counted.pipe("in", 1, [None]) == []


def test_flat_map_zips_and_fills_with_null() -> None:
    source = stream("in", "A B", A=Array(BIGINT), B=Array(BIGINT))
    made = schema("K", "A B KSQL_SYNTH_0 KSQL_SYNTH_1")
    step = steps.StreamFlatMap(source, (call("EXPLODE", "A"), call("EXPLODE", "B")), made)
    bench = Bench(select(step, "K", X="KSQL_SYNTH_0", Y="KSQL_SYNTH_1", T="ROWTIME"))
    assert bench.pipe("in", 1, [[1, 2], [3]], 5) == ["1 1,3,5 @5", "1 2,null,5 @5"]
    assert bench.pipe("in", 1, [[], None]) == []
    assert bench.pipe("in", 1, None) == []
    assert bench.pipe("in", 1, [7, [8]]) == ["1 null,8,0 @0"]
    assert bench.log == ["Table function EXPLODE threw an exception"]


def test_group_by_leaves_out_null_and_failing_groups() -> None:
    division = Arithmetic(ArithmeticOperator.DIVIDE, IntegerLiteral(6), column("B"))
    grouped = steps.StreamGroupBy(
        stream("in", "A B"), (column("A"), division), schema("A D", "A B")
    )
    bench = Bench(aggregate(grouped, call("COUNT"), kept="A", key="A D"), partitions=3)
    assert bench.pipe("in", 1, [1, 2], 5) == ["1,3 1,1 @5"]
    assert bench.pipe("in", 2, [1, 2], 4) == ["1,3 1,2 @5"]
    assert bench.pipe("in", 2, [None, 2]) == []
    assert bench.pipe("in", 2, [1, 0]) == []
    assert bench.pipe("in", 2, None) == []
    assert bench.log == [
        "Group-by column with index 0 resolved to null",
        "Error calculating group-by column with index 1",
    ]


@pytest.mark.parametrize(
    ("name", "format_", "value", "timestamp_ms"),
    [
        ("V", None, 1234, 1234),
        ("V", "epoch", "77", 77),
        ("V", None, None, None),
        ("V", None, -5, None),
        ("V", "epoch", "no number", None),
    ],
)
def test_timestamps_come_from_columns(
    name: str, format_: str | None, value: object, timestamp_ms: int | None
) -> None:
    source = stream("in", "V", V=STRING if format_ else BIGINT)
    bench = Bench(replace(source, timestamp=TimestampColumn(name, format_)))
    expected = [] if timestamp_ms is None else [f"1 {value} @{timestamp_ms}"]
    assert bench.pipe("in", 1, [value], 5) == expected
    assert len(bench.log) == (timestamp_ms is None)


def test_a_sink_takes_timestamps_from_columns_and_stream_time_for_tombstones() -> None:
    source = stream("in", "V")
    bench = Bench(source)
    sink = bench.driver.plan.step
    assert isinstance(sink, steps.StreamSink)
    timed = replace(sink, timestamp=TimestampColumn("V"))
    bench.driver = PlanDriver(replace(bench.driver.plan, step=timed), SmallCompiler())
    assert bench.pipe("in", 1, 500, 20) == ["1 500 @500"]
    assert bench.pipe("in", 1, None, 10) == ["1 - @20"]
    assert bench.pipe("in", 1, [None], 30) == []


def test_a_plan_without_a_sink_gives_the_rows_of_its_last_step() -> None:
    bench = Bench(stream("in", "V"))
    selected = select(stream("in", "V"), "K", W="V", T="ROWTIME")
    pushed = replace(bench.driver.plan, sink=None, step=selected)
    bench.driver = PlanDriver(pushed, SmallCompiler())
    assert bench.pipe("in", 1, 2, 3) == ["1 2,3 @3"]


def test_columns_that_nothing_mentions_are_not_carried() -> None:
    """A step's schema may list the key of its source; only who reads it makes rows hold it."""
    selected = select(stream("in", "A B"), "K", A="A")
    grouped = steps.StreamGroupBy(selected, (column("A"),), schema("A", "K"))
    counted = aggregate(grouped, call("COUNT"), key="A")
    assert Bench(counted).pipe("in", 1, [7, 8]) == ["7 1 @0"]
    kept = aggregate(grouped, call("COUNT"), kept="K", key="A")
    assert Bench(kept).pipe("in", 1, [7, 8]) == ["7 1,1 @0"]


def test_a_query_can_ask_to_stop_at_a_record_without_a_timestamp() -> None:
    class Strict(SmallCompiler):
        fails_on_timestamps = True

    bench = Bench(stream("in", "V"))
    timed = replace(stream("in", "V"), timestamp=TimestampColumn("V"))
    bench.driver = PlanDriver(replace(bench.driver.plan, sink=None, step=timed), Strict())
    assert bench.pipe("in", 1, 7) == ["1 7 @7"]
    with pytest.raises(QueryFailedError, match="TimestampExtractor callback for record 3 of"):
        bench.pipe("in", 1, [None], offset=3)
