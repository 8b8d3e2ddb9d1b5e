"""Texts of pipelines are checked where they are written. Spark is not started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.streams import Pipeline, PipelineError, col, f, stream, table
from barnabas.streams.run_options import RunOptions
from support.cli import run_cli

SALES = "user STRING NOT NULL, amount DOUBLE, at TIMESTAMP, items ARRAY<STRUCT<id: INT, n: INT>>"


def sales(**more: Any) -> Any:
    return stream("sales", schema=SALES, **more)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "unit": (
        lambda: sales().window("1 minuet"),
        "minuet is not a unit of time; did you mean minute?",
    ),
    "number alone": (lambda: sales().window("10"), "a number and a unit, such as '1 minute'"),
    "no space": (lambda: sales().window("10min"), "a number and a unit"),
    "empty window": (lambda: sales().window("0 seconds"), "must be longer"),
    "months": (lambda: sales().window("1 month"), "give it in days"),
    "slide": (lambda: sales().window("1 minute", every="30 secnds"), "did you mean second?"),
    "gap": (lambda: sales().group_by("user").session_window("5 mins"), "not a unit of time"),
    "watermark": (lambda: sales(watermark="10 secs"), "not a unit of time; did you mean second?"),
    "bound": (lambda: sales().join(sales(), "user", within="1 hor"), "did you mean hour?"),
    "number": (lambda: sales().window(60), "a text such as '1 minute', not 60"),  # type: ignore[arg-type]  # as users may
    "type": (
        lambda: stream("t", schema="name STRINGG"),
        "the column name has the type STRINGG, which Spark does not have; did you mean STRING?",
    ),
    "nested type": (lambda: stream("t", schema="a MAP<STRING, STRUCT<b: INTT>>"), "INTT, which"),
    "no type": (lambda: stream("t", schema="name STRING, city"), "the column city of"),
    "type of map": (lambda: sales().map(dict, "a STRNG"), "did you mean STRING?"),
    "topic": (lambda: stream("my topic", schema=SALES), "a topic's name has ASCII letters"),
    "written topic": (lambda: sales().to("a/b"), "'a/b' does not"),
    "starting": (lambda: sales(starting="earlyest"), "did you mean earliest?"),
    "how": (
        lambda: sales().join(sales(), "user", how="lft", within="1 hour"),
        "did you mean left?",
    ),  # type: ignore[arg-type]  # as users may
    "emit": (lambda: sales().window("1 day").count(emit="finl"), "did you mean final?"),  # type: ignore[arg-type]  # as users may
    "trigger": (lambda: RunOptions.of(None, None, {"trigger": "1 sec"}), "did you mean second?"),
    "option": (lambda: RunOptions.of(None, None, {"triger": "1 day"}), "did you mean trigger?"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_spark_would_refuse_later(name: str) -> None:
    make, words = REFUSED[name]
    with pytest.raises(PipelineError) as caught:
        make()
    assert words in str(caught.value)


UNKNOWN_COLUMNS: dict[str, tuple[Callable[[], Any], str]] = {
    "filter": (
        lambda: sales().filter("amout > 0"),
        "filter: there is no column amout; did you mean amount?",
    ),
    "expression": (lambda: sales().filter(col("amout") * 2 > 1), "no column amout"),
    "case": (lambda: sales().filter("CASE WHEN usr IS NULL THEN 1 END = 1"), "no column usr"),
    "select": (lambda: sales().select("usr"), "did you mean user?"),
    "after select": (lambda: sales().select("user").filter("amount > 0"), "no column amount"),
    "with_columns": (lambda: sales().with_columns(x="upper(usr)"), "no column usr"),
    "rename": (lambda: sales().rename(who="usr"), "no column usr"),
    "renamed": (lambda: sales().rename(who="amount").with_key("amount"), "are user, who,"),
    "dropped": (lambda: sales().drop("amount").filter("amount > 0"), "no column amount"),
    "event time": (lambda: sales(event_time="att"), "event_time of sales: there is no column att"),
    "group": (lambda: sales().group_by("usr").count(), "group_by: there is no column usr"),
    "agg": (
        lambda: sales().window("1 day").group_by("user").agg(total=f.sum("amont")),
        "agg: there is no column amont; did you mean amount?",
    ),
    "nested call": (
        lambda: sales().group_by("user").agg(x=f.round(f.avg("amont"), 2)),
        "no column amont",
    ),
    "after agg": (
        lambda: sales().window("1 day").group_by("user").count().filter("cnt > 1"),
        "its columns are user, window_start, window_end, count",
    ),
    "join": (lambda: sales().join(sales(), "usr", within="1 day"), "join: there is no column usr"),
    "join table": (lambda: sales().join(table("t", schema="a INT"), "usr"), "no column usr"),
    "table": (
        lambda: sales().join(table("t", schema="a INT"), "user").filter("aa > 1"),
        "no column aa; did you mean a?",
    ),
    "distinct": (lambda: sales().distinct("usr"), "no column usr"),
    "map": (lambda: sales().map(dict, "a INT, b INT").filter("c > 1"), "its columns are a, b"),
}


COLUMNS_THAT_DO_NOT_GO_TOGETHER: dict[str, tuple[Callable[[], Any], str]] = {
    "both streams": (
        lambda: sales().join(
            stream("t", schema="user STRING, at TIMESTAMP"), "user", within="1 day"
        ),
        "both streams have at: name one's otherwise before the join, with .rename(new='at')",
    ),
    "stream and table": (
        lambda: sales().join(table("t", schema="at TIMESTAMP"), "user"),
        "the stream and the table t both have at: name the table's otherwise",
    ),
    "union": (
        lambda: (
            sales().select("user", "at").union(stream("t", schema="user STRING, time TIMESTAMP"))
        ),
        "union: one stream has the columns user, at, another user, time",
    ),
}


@pytest.mark.parametrize("name", COLUMNS_THAT_DO_NOT_GO_TOGETHER)
def test_columns_that_do_not_go_together(name: str) -> None:
    make, words = COLUMNS_THAT_DO_NOT_GO_TOGETHER[name]
    with pytest.raises(PipelineError) as caught:
        Pipeline("p", make().to("out"))
    assert words in str(caught.value)


def test_columns_that_go_together_in_another_order() -> None:
    same = sales().select("at", "user").union(sales().select("user", "at"))
    renamed = stream("t", schema="user STRING, at TIMESTAMP").rename(then="at")
    Pipeline("p", same.to("a"), sales().join(renamed, "user", within="1 day").to("b"))


@pytest.mark.parametrize("name", UNKNOWN_COLUMNS)
def test_columns_that_do_not_exist(name: str) -> None:
    make, words = UNKNOWN_COLUMNS[name]
    with pytest.raises(PipelineError) as caught:
        Pipeline("p", make().to("out"))
    assert words in str(caught.value)


def test_a_key_that_does_not_exist() -> None:
    with pytest.raises(PipelineError, match="the key of out: there is no column usr; did you mea"):
        Pipeline("p", sales().to("out", key="usr"))
    with pytest.raises(PipelineError, match=r"select of t: there is no column b"):
        table("t", schema="a INT").select("b")


def test_what_spark_takes_passes() -> None:
    for size in ("1 minute", "2 HOURS", "1 hour 30 minutes", "90 seconds", "1.5 seconds"):
        sales().window(size)
    sales().window("INTERVAL '1' MINUTE")
    sales().join(sales(), "user", within="'5' MINUTE")
    ddl = (
        "`a b` STRING NOT NULL COMMENT 'it, with a comma', d DECIMAL(10, 2), "
        "i INTERVAL DAY TO SECOND, "
        "n STRUCT<x: ARRAY<MAP<STRING, timestamp_ntz>>, y: VARCHAR(3) NOT NULL>, v variant"
    )
    several = stream("t", schema=ddl).filter("`a b` LIKE 'x%' AND n.x IS NOT NULL AND D > 1.5BD")
    made = (
        several.select(
            "upper(`a b`) AS name",
            "length(name) AS size",
            total="CAST(d AS DOUBLE) + 1L",
            day="date_trunc('DAY', current_timestamp)",
            when="extract(YEAR FROM _timestamp)",
            like=f.when(col("d") > f.lit("1"), f.date_format("_timestamp", "yyyy")),
            late="make_interval(years => 1) IS NULL",
            inner="transform(n.x, one -> map_keys(one))",
            date="DATE '2020-01-01' + INTERVAL 5 days",
        )
        .transform(lambda frame: frame)
        .filter("anything > 0")
    )
    Pipeline("p", made.to("out", key="whatever"))


def test_show_names_the_nearest_word(tmp_path: Path) -> None:
    text = 'from barnabas.streams import stream\npipeline = stream("t", schema="amount INT")'
    for more, words in (
        ('.window("1 minuet").count().to("out")', "did you mean minute?"),
        (
            '.filter("amout > 1").to("out")',
            "filter: there is no column amout; did you mean amount?",
        ),
    ):
        (tmp_path / "p.py").write_text(text + more + "\n")
        result = run_cli("pipeline", "show", str(tmp_path / "p.py"))
        assert (result.code, result.out) == (1, b"")
        assert result.err.count("\n") == 1
        assert words in result.err
