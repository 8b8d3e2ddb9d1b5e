"""The Python pipeline's rankings on batch frames, and against the generator's truth."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer
from pyspark.sql import DataFrame, SparkSession

from barnabas.demo import topics
from barnabas.demo.generators.delivery import Delivery
from barnabas.demo.generators.simulation import World
from barnabas.demo.schemas import AVRO_TOPICS, EVOLVED_FIELD, evolved_schema, first_schema
from barnabas.demo.spark.interests import interest_totals, recommendations, top_searches
from barnabas.demo.topics import (
    CHARGING_EVENTS,
    STATION_STATUS,
    STATIONS,
    USER_ACTIVITY,
)
from barnabas.schemas.wire_format import prefix_of
from barnabas.spark.avro_topic import decoded
from barnabas.spark.kafka_io import Decode, events_of

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

NOON_MS = 1_741_003_200_000
MINUTE_MS = topics.MINUTE_MS

Events = Callable[[list[dict[str, Any]], str], DataFrame]


def framed(topic: str, value: dict[str, Any]) -> bytearray:
    """A value as the generators publish it: with the second schema where it has its field."""
    schema_id, text = (2, evolved_schema()) if EVOLVED_FIELD in value else (1, first_schema(topic))
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(json.loads(text)), value)
    return bytearray(prefix_of(schema_id) + out.getvalue())


def decode_of(topic: str) -> Decode:
    first = first_schema(topic)
    return lambda value: decoded(value, {1: first, 2: evolved_schema()}, first)


@pytest.fixture
def events(spark: SparkSession) -> Events:
    """Make a frame of events the way the stream does: from Avro in Kafka records."""

    def make(values: list[dict[str, Any]], topic: str) -> DataFrame:
        rows = [(framed(topic, value),) for value in values]
        return events_of(spark.createDataFrame(rows, "value binary"), decode_of(topic))

    return make


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def act(session: int, sequence: int, minute: float, kind: str, **more: Any) -> dict[str, Any]:
    return {
        "event_id": f"se-{session}-{sequence}",
        "user_id": "u-1",
        "session_id": f"se-{session}",
        "sequence": sequence,
        "event_time_ms": NOON_MS + int(minute * MINUTE_MS),
        "kind": kind,
        "item_id": None,
        "query": None,
        "items": [],
        "amount_cents": 0,
        **more,
    }


def test_rankings_go_by_count_then_by_name(events: Events) -> None:
    queries = ["b", "a", "c", "c", *(f"q{n:02d}" for n in range(12))]
    frame = events(
        [act(n, 0, n, "search", query=query) for n, query in enumerate(queries)], USER_ACTIVITY
    )
    (row,) = top_searches(rows_of(interest_totals(frame)))
    assert [(s["query"], s["count"]) for s in row["searches"]] == [
        ("c", 2),
        ("a", 1),
        ("b", 1),
        *((f"q{n:02d}", 1) for n in range(7)),
    ]


def test_recommendations_are_what_was_bought_together_most(events: Events) -> None:
    baskets = [["a", "b"], ["a", "b", "c"], ["a", "d"], ["a", "e"], ["f"], [], ["a", "a"]]
    frame = events(
        [act(n, 1, n, "purchase", items=basket) for n, basket in enumerate(baskets)],
        USER_ACTIVITY,
    )
    rows = recommendations(rows_of(interest_totals(frame)))
    found = {r["item_id"]: [(t["item_id"], t["count"]) for t in r["together"]] for r in rows}
    assert found == {
        "a": [("b", 2), ("c", 1), ("d", 1)],
        "b": [("a", 2), ("c", 1)],
        "c": [("a", 1), ("b", 1)],
        "d": [("a", 1)],
        "e": [("a", 1)],
    }


def test_rankings_are_the_generators_truth(events: Events) -> None:
    """On everything that a run delivers, late and doubled as it comes."""
    world = World({"seed": 11, "rate": 200, "acceleration": 240, "seconds": 20})
    deliveries: list[Delivery] = []
    while not world.at_end:
        deliveries.extend(world.step())
    activity = [d.value for d in deliveries if d.topic == USER_ACTIVITY]
    totals = rows_of(interest_totals(events(activity, USER_ACTIVITY)))
    figures = world.truth()["figures"]
    assert top_searches(totals) == [{"searches": figures["top_searches"]}]
    found = {row["item_id"]: row["together"] for row in recommendations(totals)}
    assert found == figures["recommendations"]


def test_schemas_have_the_documented_fields() -> None:
    rows: dict[str, type] = {
        STATIONS: topics.Station,
        STATION_STATUS: topics.StationStatus,
        CHARGING_EVENTS: topics.ChargingEvent,
        USER_ACTIVITY: topics.UserActivity,
    }
    assert set(AVRO_TOPICS) == set(rows)
    for topic, row in rows.items():
        documented = [name for name in row.__annotations__ if name != EVOLVED_FIELD]
        assert [field["name"] for field in json.loads(first_schema(topic))["fields"]] == documented
    names = {field["name"] for field in json.loads(evolved_schema())["fields"]}
    assert names == set(topics.StationStatus.__annotations__)
