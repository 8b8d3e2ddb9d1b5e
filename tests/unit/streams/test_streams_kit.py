"""Pipelines in the test kit: formats, steps, tables and dead letters, in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from barnabas.streams import (
    Pipeline,
    PipelineError,
    avro,
    col,
    f,
    from_dataframe,
    stream,
    string,
    table,
)
from barnabas.streams.outputs import Output
from barnabas.streams.table_join import order_of
from barnabas.streams.testing import PipelineTest, Record

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
CLICKS = stream("clicks", schema="user STRING NOT NULL, page STRING, at TIMESTAMP", event_time="at")


def at(second: int, **more: Any) -> dict[str, Any]:
    return {"at": f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z", **more}


def of(output: Output, **named: Any) -> Pipeline:
    return Pipeline("test", output, **named)


@pytest.fixture
def spark_in_tokyo(spark: SparkSession) -> Iterator[SparkSession]:
    name = "spark.sql.session.timeZone"
    before = spark.conf.get(name)
    spark.conf.set(name, "Asia/Tokyo")
    yield spark
    spark.conf.set(name, before or "UTC")


def test_windows_change_survive_a_restart_and_malformed_records(
    spark_in_tokyo: SparkSession,
) -> None:
    """The tutorial's first pipeline. Late rows count as long as their window is open.

    Times are in UTC, wherever the session is.
    """
    pipeline = of(CLICKS.window("1 minute").group_by("user").count("clicks").to("counts"))
    with PipelineTest(pipeline, spark=spark_in_tokyo) as test:
        test.pipe_all("clicks", [at(5, user="ann"), at(55, user="ann"), at(7, user="bob")])
        malformed = {
            b"no JSON": "not a JSON object",
            b"": "not a JSON object",
            b'{"page": "/"}': "the field user is missing",
            b'{"user": "ann"}': "no event time",
            b'{"user": "ann", "at": "3026-01-01T00:00:00Z"}': "no event time",
            b'{"user": "ann", "at": 3.5e300}': "not a JSON object",
        }
        test.pipe_all("clicks", [*malformed, None])
        test.pipe("clicks", at(9, user="ann"), key=b"\xff", headers={"h": b"1"})
        first = {record.key: record for record in test.read("counts")}
        test.restart()
        test.pipe_all("clicks", [at(70, user="ann"), at(30, user="ann")])
        second = test.values("counts")
        letters = test.read("test-dead-letters")
    assert {key: record.value["clicks"] for key, record in first.items()} == {"ann": 2, "bob": 1}
    assert first["ann"] == Record(
        "ann",
        {
            "user": "ann",
            "window_start": "2026-01-01T00:00:00.000Z",
            "window_end": "2026-01-01T00:01:00.000Z",
            "clicks": 2,
        },
        datetime(2026, 1, 1, 0, 0, 59, 999_000, UTC),
    )
    assert sorted((row["window_start"], row["clicks"]) for row in second) == [
        ("2026-01-01T00:00:00.000Z", 3),
        ("2026-01-01T00:01:00.000Z", 1),
    ]
    found = {letter.value: letter for letter in letters}
    assert found.keys() == {
        *malformed,
        json.dumps(at(9, user="ann"), separators=(",", ":")).encode(),
    }
    for value, problem in malformed.items():
        assert (
            found[value].headers["__connect.errors.exception.message"].startswith(problem.encode())
        )
    last = letters[-1].headers
    assert last["h"] == b"1"
    assert last["__connect.errors.stage"] == b"KEY_CONVERTER"
    assert (last["__connect.errors.topic"], last["__connect.errors.offset"]) == (b"clicks", b"10")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_rows_join_what_the_table_has_at_that_time(spark: SparkSession) -> None:
    stations = table("stations", schema="name STRING, power INT").select("name", kw="power")
    joined = (
        stream("charging", schema="station STRING, kwh DOUBLE")
        .join(stations, on="station", how="left")
        .to("joined", key="station")
    )
    with PipelineTest(of(joined), spark=spark) as test:

        def charges(*moments: int) -> list[tuple[Any, ...]]:
            for moment in moments:
                test.pipe("charging", {"station": "s1", "kwh": float(moment)}, at=moment)
            rows = test.values("joined")
            return sorted((row["kwh"], row.get("name"), row.get("kw")) for row in rows)

        assert charges(1) == [(1.0, None, None)]
        test.pipe("stations", {"name": "North", "power": 50}, key="s1", at=10)
        test.pipe("stations", {"name": "South"}, key="s2", at=10)
        assert charges(9, 10, 11) == [(9.0, None, None), (10.0, "North", 50), (11.0, "North", 50)]
        test.restart()
        test.pipe("stations", {"name": "New"}, key="s1", at=20)
        test.pipe("stations", None, key="s1", at=30)
        assert charges(15, 25, 35) == [(15.0, "North", 50), (25.0, "New", None), (35.0, None, None)]
        test.pipe("charging", {"kwh": 1.0}, at=40)
        assert test.values("joined") == [{"kwh": 1.0}]


def test_steps_without_state(spark: SparkSession) -> None:
    def halves(row: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"user": row["user"], "half": row["score"] / 2}] * row["times"]

    scores = stream("scores", schema="user STRING, score DOUBLE, times INT")
    steps = (
        scores.filter((col("score") > 0) & ~col("user").isNull())
        .with_columns(user=f.upper("user"), twice="score * 2")
        .rename(points="score")
        .select("user", "points AS score", times="times", twice=lambda rows: rows.twice)
        .map(halves, "user STRING, half DOUBLE")
        .union(scores.select("user", half="CAST(-1 AS DOUBLE)").where("user = 'ann'"))
        .with_key("user")
        .transform(lambda rows: rows.where("half < 100"))
    )
    with PipelineTest(of(steps.to("out", key_schema=string())), spark=spark) as test:
        test.pipe("scores", {"user": "ann", "score": 3.0, "times": 2}, at=5)
        test.pipe("scores", {"user": "bob", "score": 0.0, "times": 2}, at=6)
        test.pipe("scores", {"user": "cid", "score": 7.0, "times": 0}, at=7)
        records = test.read("out")
    assert sorted((one.key, one.value["half"], one.at.second) for one in records) == [
        ("ANN", 1.5, 5),
        ("ANN", 1.5, 5),
        ("ann", -1.0, 5),
    ]


def test_rows_whose_function_fails_are_dead_letters(spark: SparkSession) -> None:
    """Two branches call the function; an int is a DOUBLE; what does not fit the schema fails."""

    def ratio(row: dict[str, Any]) -> dict[str, Any]:
        return {"user": row["user"], "ratio": row["a"] // row["b"]}

    mapped = stream("pairs", schema="user STRING, a INT, b INT").map(
        ratio, "user STRING NOT NULL, ratio DOUBLE"
    )
    both = mapped.filter("ratio > 1").union(mapped.filter("ratio <= 1"))
    with PipelineTest(of(both.to("out")), spark=spark) as test:
        test.pipe("pairs", {"user": "ann", "a": 6, "b": 3}, key="ann")
        test.pipe("pairs", {"user": "bob", "a": 6, "b": 0}, key="bob", headers={"h": b"1"}, at=5)
        test.pipe("pairs", {"a": 6, "b": 1})
        assert test.values("out") == [{"user": "ann", "ratio": 2.0}]
        letters = {letter.key: letter for letter in test.read("test-dead-letters")}
    assert letters.keys() == {"bob", None}
    bob = letters["bob"]
    assert json.loads(bob.value) == {"user": "bob", "a": 6, "b": 0}
    assert bob.at.second == 5
    found = {
        name.removeprefix("__connect.errors."): value.decode()
        for name, value in bob.headers.items()
    }
    assert "ZeroDivisionError" in found.pop("exception.stacktrace")
    assert found == {
        "h": "1",
        "topic": "pairs",
        "partition": "0",
        "offset": "1",
        "connector.name": "test",
        "task.id": "0",
        "stage": "TRANSFORMATION",
        "class.name": f"{ratio.__qualname__}",
        "exception.class.name": "builtins.ZeroDivisionError",
        "exception.message": "integer division or modulo by zero",
    }
    assert b"user" in letters[None].headers["__connect.errors.exception.message"]


def test_avro_with_the_registry(spark: SparkSession) -> None:
    schema = json.dumps(
        {
            "type": "record",
            "name": "Seen",
            "fields": [
                {"name": "user", "type": ["null", "string"], "default": None},
                {"name": "n", "type": ["null", "int"], "default": None},
            ],
        }
    )
    doubled = (
        stream("seen").select("user", n="n * 2").to("doubled", schema=avro(), key=["user", "n"])
    )
    with PipelineTest(of(doubled), spark=spark, schemas={"seen-value": schema}) as test:
        test.pipe("seen", {"user": "ann", "n": 2})
        test.pipe("seen", {"user": None, "n": None})  # nulls, and yet readable
        test.pipe("seen", b"\x00\x00\x00\x00\x01")
        test.pipe("seen", b"text")
        records = test.read("doubled")
        letters = test.values("test-dead-letters")
    assert [(one.key, one.value) for one in records] == [
        ({"user": "ann", "n": 4}, {"user": "ann", "n": 4}),
        ({}, {"user": None, "n": None}),
    ]
    assert letters == [b"\x00\x00\x00\x00\x01", b"text"]


def test_a_pipeline_without_dead_letters_stops(spark: SparkSession) -> None:
    pipeline = of(stream("lines", schema="a INT").to("out"), dead_letters=None)
    with PipelineTest(pipeline, spark=spark) as test:
        test.pipe("lines", b"nonsense")
        with pytest.raises(PipelineError, match="malformed record in lines, partition 0, offset 0"):
            test.read("out")
        with pytest.raises(PipelineError, match="the pipeline does not write other: it writes out"):
            test.read("other")
        with pytest.raises(PipelineError, match="the pipeline does not read out: it reads lines"):
            test.pipe("out", 1)


def test_any_frame_of_spark_is_a_stream(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", 1), ("b", 2)], "name STRING, n INT")
    step = from_dataframe(frame, key="name").filter("n > 1").select("n")
    from barnabas.streams import connect

    connect("nowhere:1", spark=spark)
    assert [row.n for row in step.df.collect()] == [2]
    both = step.union(from_dataframe(frame.withColumn("_offset", f.lit(1).column())).select("n"))
    assert sorted(row.n for row in both.df.collect()) == [1, 2, 2]
    # Rows without a time come after all changes of a table.
    assert {row[0] for row in both.df.select(order_of(both.df)).collect()} == {2**62}
    output = step.to("out").df.collect()
    assert [(bytes(row.key), bytes(row.value)) for row in output] == [(b"b", b'{"n":2}')]
