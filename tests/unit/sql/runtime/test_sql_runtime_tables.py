"""Tables: sources, filters, groups and their undo, new keys."""

from __future__ import annotations

import pytest

from barnabas.sql.plan import steps
from barnabas.sql.runtime.evaluation import QueryFailedError
from barnabas.sql.syntax.expressions import (
    Comparison,
    ComparisonOperator,
    IntegerLiteral,
)
from support.sql_plans import (
    Bench,
    aggregate,
    call,
    column,
    greater,
    schema,
    select,
    stream,
    table,
)


def test_a_table_passes_tombstones_and_drops_records_without_a_key() -> None:
    bench = Bench(table("in", "V"), is_table=True)
    assert bench.pipe("in", 1, 2, 5) == ["1 2 @5"]
    assert bench.pipe("in", 1, None, 6) == ["1 - @6"]
    assert bench.pipe("in", 9, None, 6) == ["9 - @6"]
    assert bench.pipe("in", None, 5, 6) == []
    assert bench.driver.stores == {}, "nothing asks for old rows, so nothing is kept"


def test_a_table_filter_deletes_only_rows_that_were_there() -> None:
    step = steps.TableFilter(table("in", "V"), greater("V", 5), schema("K", "V"))
    bench = Bench(step, is_table=True)
    assert bench.pipe("in", 1, 3, 1) == [], "never was there"
    assert bench.pipe("in", 1, 6, 2) == ["1 6 @2"]
    assert bench.pipe("in", 1, 7, 3) == ["1 7 @3"]
    assert bench.pipe("in", 1, 3, 4) == ["1 - @4"]
    assert bench.pipe("in", 1, 2, 5) == []
    assert bench.pipe("in", 1, None, 6) == []
    assert bench.pipe("in", 1, 8, 1) == ["1 8 @1"], "out of order rows count too"
    assert bench.pipe("in", 1, None, 2) == ["1 - @2"]


def test_select_over_a_filter_keeps_old_rows_apart() -> None:
    filtered = steps.TableFilter(table("in", "V"), greater("V", 5), schema("K", "V"))
    again = steps.TableFilter(
        select(filtered, "K", is_table=True, W="V", T="ROWTIME"),
        greater("W", 7),
        schema("K", "W T"),
    )
    bench = Bench(again, is_table=True)
    assert bench.pipe("in", 1, 6, 10) == []
    assert bench.pipe("in", 1, 8, 11) == ["1 8,11 @11"]
    assert bench.pipe("in", 1, 6, 12) == ["1 - @12"]
    assert bench.pipe("in", 1, 3, 13) == []


def grouped(source: steps.Step, key: str = "G", value: str = "G V") -> steps.Step:
    return steps.TableGroupBy(source, (column("G"),), schema(key, value))


@pytest.mark.parametrize("partitions", [1, 5])
def test_a_table_aggregate_moves_rows_between_groups(partitions: int) -> None:
    step = aggregate(
        grouped(table("in", "G V")), call("COUNT"), call("SUM", "V"), kept="G", key="G"
    )
    bench = Bench(step, is_table=True, partitions=partitions)
    assert bench.pipe("in", 1, [10, 3], 1) == ["10 10,1,3 @1"]
    assert bench.pipe("in", 2, [10, 4], 5) == ["10 10,2,7 @5"]
    assert bench.pipe("in", 1, [10, 5], 4) == ["10 10,2,9 @5"], "one change in the same group"
    assert sorted(bench.pipe("in", 1, [20, 5], 6)) == ["10 10,1,4 @6", "20 20,1,5 @6"]
    assert bench.pipe("in", 2, None, 7) == ["10 10,0,0 @7"], "an empty group stays"
    assert bench.pipe("in", 2, None, 8) == []
    assert bench.pipe("in", 1, [None, 5], 9) == ["20 20,0,0 @9"]
    assert bench.pipe("in", 1, [20, 5], 9) == ["20 20,1,5 @9"]


def test_a_filter_before_a_group_takes_rows_out() -> None:
    source = steps.TableFilter(table("in", "G V"), greater("V", 5), schema("K", "G V"))
    bench = Bench(aggregate(grouped(source), call("COUNT"), key="G"), is_table=True)
    assert bench.pipe("in", 1, [10, 3], 1) == []
    assert bench.pipe("in", 1, [10, 6], 2) == ["10 1 @2"]
    assert bench.pipe("in", 1, [10, 3], 3) == ["10 0 @3"]
    assert bench.pipe("in", 1, None, 4) == []


def test_having_sends_a_tombstone_only_for_what_was_there() -> None:
    counted = aggregate(
        steps.StreamGroupByKey(stream("in", "V"), schema("K", "V")), call("SUM", "V"), kept="V"
    )
    step = steps.TableFilter(counted, greater("KSQL_AGG_VARIABLE_0", 5), counted.schema)
    bench = Bench(step, is_table=True)
    assert bench.pipe("in", 1, 3, 1) == []
    assert bench.pipe("in", 1, 4, 2) == ["1 4,7 @2"]
    assert bench.pipe("in", 1, -4, 3) == ["1 - @3"]
    assert bench.pipe("in", 1, -4, 4) == []


def test_having_that_holds_for_an_empty_group() -> None:
    """Kafka Streams gives the empty group as a new one's old row."""
    counted = aggregate(
        steps.StreamGroupByKey(stream("in", "V"), schema("K", "V")), call("SUM", "V")
    )
    small = Comparison(
        ComparisonOperator.LESS_THAN, column("KSQL_AGG_VARIABLE_0"), IntegerLiteral(5)
    )
    bench = Bench(steps.TableFilter(counted, small, counted.schema), is_table=True)
    assert bench.pipe("in", 1, 7, 1) == ["1 - @1"]
    assert bench.pipe("in", 1, 7, 2) == []
    assert bench.pipe("in", 2, 3, 3) == ["2 3 @3"]


def test_a_stream_aggregate_ignores_null_keys_and_values_and_keeps_the_latest_time() -> None:
    step = aggregate(
        steps.StreamGroupByKey(stream("in", "V"), schema("K", "V")),
        call("COUNT"),
        call("COLLECT_LIST", "V"),
    )
    bench = Bench(step, is_table=True)
    assert bench.pipe("in", 1, 3, 10) == ["1 1,[3] @10"]
    assert bench.pipe("in", None, 3) == []
    assert bench.pipe("in", 1, None) == []
    assert bench.pipe("in", 1, [None], 5) == ["1 2,[3, None] @10"]
    assert bench.pipe("in", 2, 3, 5) == ["2 1,[3] @5"]


def test_an_aggregate_that_fails_stops_the_query() -> None:
    step = aggregate(steps.StreamGroupByKey(stream("in", "V"), schema("K", "V")), call("SUM", "V"))
    bench = Bench(step, is_table=True)
    assert bench.pipe("in", 1, 3) == ["1 3 @0"]
    with pytest.raises(QueryFailedError, match="Exception caught in process"):
        bench.pipe("in", 1, "no number")


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_table_with_a_new_key(partitions: int) -> None:
    rekeyed = steps.TableSelectKey(table("in", "V"), (column("K"),), schema("K", "V"))
    counted = aggregate(
        steps.TableGroupBy(rekeyed, (column("V"),), schema("V", "V")), call("COUNT"), key="V"
    )
    bench = Bench(counted, is_table=True, partitions=partitions)
    assert bench.pipe("in", 1, 7, 1) == ["7 1 @1"]
    assert bench.pipe("in", 2, 7, 2) == ["7 2 @2"]
    assert bench.pipe("in", 1, None, 3) == ["7 1 @3"]
    assert len(bench.driver.stages) == 3


def test_a_filter_above_a_table_that_is_given_a_new_key_cannot_tell_what_was_there() -> None:
    filtered = steps.TableFilter(table("in", "V"), greater("V", 5), schema("K", "V"))
    bench = Bench(steps.TableSelectKey(filtered, (column("K"),), schema("K", "V")), is_table=True)
    assert bench.pipe("in", 1, 3, 1) == ["1 - @1"]
    assert bench.pipe("in", 1, 6, 2) == ["1 6 @2"]
