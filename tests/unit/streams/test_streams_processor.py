"""Processors: state and timers for each group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from barnabas.streams import Context, Pipeline, PipelineError, Processor, stream
from barnabas.streams.testing import PipelineTest

pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.slow,
    pytest.mark.timeout(300),
]
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Reading:
    station: str
    kwh: float | None


@dataclass
class Charge:
    since: datetime
    kwh: float
    readings: list[float]


@dataclass
class Ended:
    station: str
    since: datetime
    kwh: float
    readings: int


class Charges(Processor[Reading, Charge, Ended]):
    """A charge ends when its station has said nothing for a minute."""

    record = Reading
    state = Charge
    output = Ended

    def on_record(self, record: Reading, context: Context[Charge]) -> None:
        charge = context.state or Charge(context.time, 0.0, [])
        charge.kwh += record.kwh or 0.0
        charge.readings.append(record.kwh or 0.0)
        context.state = charge
        for timer in context.timers():
            context.cancel_timer(timer)
        context.set_timer(context.time + timedelta(minutes=1))

    def on_timer(self, at: datetime, context: Context[Charge]) -> Iterator[Ended]:
        charge = context.state
        assert charge is not None
        assert context.time == at
        yield Ended(context.key, charge.since, charge.kwh, len(charge.readings))
        context.state = None


def test_a_timer_fires_when_time_has_passed(spark: SparkSession) -> None:
    step = stream("readings", schema=Reading).group_by("station").process(Charges())
    with PipelineTest(Pipeline("charges", step.to("ended", key="station")), spark=spark) as test:
        test.pipe("readings", Reading("s1", 1.5), at=0)
        test.pipe("readings", Reading("s2", None), at=10)
        assert test.read("ended") == []
        test.restart()
        test.pipe("readings", Reading("s1", 2.0), at=40)
        test.advance(45)  # to 85: past the minute of s2 and the delay, not past that of s1
        assert test.last("ended") == {
            "s2": {"station": "s2", "since": "2026-01-01T00:00:10.000Z", "kwh": 0, "readings": 1}
        }
        test.advance("1 minute")
        assert test.last("ended") == {
            "s1": {"station": "s1", "since": "2026-01-01T00:00:00.000Z", "kwh": 3.5, "readings": 2}
        }
        test.pipe("readings", Reading("s1", 5.0))
        test.advance("2 minutes")
        assert [value["kwh"] for value in test.values("ended")] == [5.0]


class Runs(Processor[dict[str, Any], dict[str, Any], dict[str, Any]]):
    """Numbers the rows of each group; a row that says so fails."""

    state = "n BIGINT"
    output = "n BIGINT, what STRING"

    def on_record(
        self, record: dict[str, Any], context: Context[dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        if record["what"] == "fail":
            raise ValueError("this row fails")
        number = (context.state or {"n": 0})["n"] + 1
        context.state = {"n": number}
        yield {"n": number, "what": record["what"]}
        yield {"n": -number, "what": str(context.key)}


def test_rows_come_in_the_order_of_their_times(spark: SparkSession) -> None:
    step = stream("rows", schema="a INT, b STRING, what STRING").group_by("a", b="upper(b)")
    counted = step.process(Runs()).window("1 minute").agg(rows="count(*)", emit="final")
    numbered = step.process(Runs()).to("numbered")
    with PipelineTest(Pipeline("runs", numbered, counted.to("counted")), spark=spark) as test:
        for second, what in ((7, "third"), (5, "first"), (6, "second")):
            test.pipe("rows", {"a": 1, "b": "x", "what": what}, at=second)
        found = test.read("numbered")
        test.advance("3 minutes")
        assert test.values("counted")[0]["rows"] == 6
        test.pipe("rows", {"a": 1, "b": "x", "what": "fail"})
        with pytest.raises(PipelineError, match="numbered: ValueError: this row fails"):
            test.read("numbered")
    assert [(one.value["n"], one.value["what"]) for one in found] == [
        (1, "first"),
        (-1, "{'a': 1, 'b': 'X'}"),
        (2, "second"),
        (-2, "{'a': 1, 'b': 'X'}"),
        (3, "third"),
        (-3, "{'a': 1, 'b': 'X'}"),
    ]
    assert found[0].key == {"a": 1, "b": "X"}
    assert [one.at for one in found[::2]] == [START + timedelta(seconds=at) for at in (5, 6, 7)]
