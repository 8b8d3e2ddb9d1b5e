"""The stories' transformations on batch frames, and all of them against the generator's truth."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer
from pyspark.sql import DataFrame, SparkSession

from barnabas.demo import topics
from barnabas.demo.figures import FigureBoard
from barnabas.demo.generators.delivery import Delivery
from barnabas.demo.generators.simulation import World
from barnabas.demo.schemas import AVRO_TOPICS, EVOLVED_FIELD, evolved_schema, first_schema
from barnabas.demo.spark import charging, retail
from barnabas.demo.spark.queries import STORY_QUERIES
from barnabas.demo.spark.warehouse import schema_of
from barnabas.demo.topics import (
    CHARGING_EVENTS,
    STATION_STATUS,
    STATIONS,
    USER_ACTIVITY,
    Station,
)
from barnabas.pipeline.avro import decoded
from barnabas.pipeline.kafka_io import Decode, events_of, table_of
from barnabas.pipeline.registry_schemas import frame
from barnabas.pipeline.sink import to_json

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

NOON_MS = 1_741_003_200_000
MINUTE_MS = topics.MINUTE_MS
STATION_ROWS: list[Station] = [
    {"station_id": "st-1", "name": "Ghent Harbour", "city": "Ghent", "power_w": 22_000},
    {"station_id": "st-2", "name": "Ghent Mill", "city": "Ghent", "power_w": 22_000},
    {"station_id": "st-3", "name": "Lyon Mill", "city": "Lyon", "power_w": 50_000},
]

STATION_COLUMNS = "station_id string, name string, city string, power_w bigint"
Events = Callable[[list[dict[str, Any]], str], DataFrame]


def framed(topic: str, value: dict[str, Any]) -> bytearray:
    """A value as the generators publish it: with the second schema where it has its field."""
    schema_id, text = (2, evolved_schema()) if EVOLVED_FIELD in value else (1, first_schema(topic))
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(json.loads(text)), value)
    return bytearray(frame(schema_id) + out.getvalue())


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


@pytest.fixture
def stations(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([tuple(row.values()) for row in STATION_ROWS], STATION_COLUMNS)


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def report(station: int, sequence: int, minute: float, state: str) -> dict[str, Any]:
    return {
        "event_id": f"st-{station}-r{sequence}",
        "station_id": f"st-{station}",
        "sequence": sequence,
        "event_time_ms": NOON_MS + int(minute * MINUTE_MS),
        "state": state,
    }


def charge(station: int, kind: str, minute: float, energy_wh: int = 0) -> dict[str, Any]:
    return {
        "event_id": f"st-{station}-{kind}-{minute}",
        "station_id": f"st-{station}",
        "charge_id": f"st-{station}-c1",
        "event_time_ms": NOON_MS + int(minute * MINUTE_MS),
        "kind": kind,
        "energy_wh": energy_wh,
        "fault_code": "ground" if kind == "fault" else None,
    }


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


def test_availability_keeps_the_latest_state_of_a_window(
    events: Events, stations: DataFrame
) -> None:
    status = events(
        [
            report(1, 3, 9, "faulted"),  # the latest, though it arrives first
            report(1, 1, 1, "available"),
            report(1, 2, 4, "charging"),
            report(1, 2, 4, "charging"),
            report(1, 5, 15, "available"),  # the next window begins here
            report(1, 4, 14.99, "available"),
            report(3, 1, 2, "offline"),
        ],
        STATION_STATUS,
    )
    rows = rows_of(
        charging.station_availability(status, stations).orderBy("station_id", "window_start_ms")
    )
    assert [(r["station_id"], r["window_start_ms"] - NOON_MS, r["state"]) for r in rows] == [
        ("st-1", 0, "available"),
        ("st-1", 15 * MINUTE_MS, "available"),
        ("st-3", 0, "offline"),
    ]
    assert (rows[0]["reports"], rows[0]["available_reports"]) == (4, 2)
    assert rows[0]["state_time_ms"] == NOON_MS + int(14.99 * MINUTE_MS)
    assert rows[0]["window_end_ms"] == NOON_MS + 15 * MINUTE_MS
    assert (rows[0]["name"], rows[0]["city"]) == ("Ghent Harbour", "Ghent")


def test_two_states_of_one_millisecond_are_decided_by_their_sequence(
    events: Events, stations: DataFrame
) -> None:
    status = events([report(1, 10, 1, "available"), report(1, 9, 1, "offline")], STATION_STATUS)
    (row,) = rows_of(charging.station_availability(status, stations))
    assert (row["state"], row["state_sequence"]) == ("available", 10)


def test_energy_is_summed_per_city_and_minute_and_each_event_once(
    events: Events, stations: DataFrame
) -> None:
    frame = events(
        [
            charge(1, "start", 0.1),
            charge(1, "meter", 0.5, 100),
            charge(1, "meter", 0.5, 100),
            charge(2, "meter", 0.9, 40),
            charge(3, "meter", 0.2, 7),
            charge(1, "meter", 1.5, 60),
            charge(1, "stop", 1.7, 5),
            charge(2, "fault", 1.8),
            charge(9, "meter", 1.8, 1000),  # a station that the table does not have
        ],
        CHARGING_EVENTS,
    )
    rows = rows_of(charging.energy_per_minute(frame, stations).orderBy("city", "window_start_ms"))
    columns = ["energy_wh", "readings", "charges_started", "charges_stopped", "faults"]
    found = {
        (r["city"], (r["window_start_ms"] - NOON_MS) // MINUTE_MS): [r[c] for c in columns]
        for r in rows
    }
    assert found == {
        ("Ghent", 0): [140, 2, 1, 0, 0],
        ("Ghent", 1): [65, 1, 0, 1, 1],
        ("Lyon", 0): [7, 1, 0, 0, 0],
    }


def test_activity_is_counted_per_kind_and_minute(events: Events) -> None:
    frame = events(
        [
            act(1, 0, 0.1, "search", query="tent"),
            act(1, 1, 0.5, "click", item_id="tent"),
            act(1, 1, 0.5, "click", item_id="tent"),
            act(1, 2, 1.2, "purchase", items=["headlamp", "tent"], amount_cents=9900),
            act(2, 0, 1.9, "click", item_id="flour"),
        ],
        USER_ACTIVITY,
    )
    minutes = rows_of(retail.activity_minutes(frame).orderBy("window_start_ms"))
    counts = {
        (r["kind"], (r["window_start_ms"] - NOON_MS) // MINUTE_MS): r["events"]
        for r in retail.activity_counts(minutes)
    }
    assert counts == {("search", 0): 1, ("click", 0): 1, ("purchase", 1): 1, ("click", 1): 1}
    conversion = retail.conversion(minutes)
    assert [(r["sessions"], r["purchases"], r["revenue_cents"]) for r in conversion] == [
        (1, 0, 0),
        (1, 1, 9900),
    ]


def test_rankings_go_by_count_then_by_name(events: Events) -> None:
    queries = ["b", "a", "c", "c", *(f"q{n:02d}" for n in range(12))]
    frame = events(
        [act(n, 0, n, "search", query=query) for n, query in enumerate(queries)], USER_ACTIVITY
    )
    (row,) = retail.top_searches(rows_of(retail.interest_totals(frame)))
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
    rows = retail.recommendations(rows_of(retail.interest_totals(frame)))
    found = {r["item_id"]: [(t["item_id"], t["count"]) for t in r["together"]] for r in rows}
    assert found == {
        "a": [("b", 2), ("c", 1), ("d", 1)],
        "b": [("a", 2), ("c", 1)],
        "c": [("a", 1), ("b", 1)],
        "d": [("a", 1)],
        "e": [("a", 1)],
    }


def test_a_table_is_the_latest_value_of_each_key(spark: SparkSession) -> None:
    def record(key: str, offset: int, station: Station | None) -> tuple[Any, ...]:
        value = None if station is None else framed(STATIONS, dict(station))
        return (bytearray(key.encode()), value, offset)

    first, second, third = STATION_ROWS
    moved: Station = {**first, "city": "Bruges"}
    records = spark.createDataFrame(
        [
            record("1", 0, first),
            record("2", 1, second),
            record("1", 2, moved),
            record("2", 3, None),
            record("3", 4, third),
        ],
        "key binary, value binary, offset long",
    )
    cities = {r["station_id"]: r["city"] for r in rows_of(table_of(records, decode_of(STATIONS)))}
    assert cities == {"st-1": "Bruges", "st-3": "Lyon"}


def test_all_figures_are_the_generators_truth(spark: SparkSession) -> None:
    """The whole pipeline on everything that a run delivers, late and doubled as it comes."""
    world = World({"seed": 11, "rate": 200, "acceleration": 240, "seconds": 20})
    deliveries: list[Delivery] = []
    while not world.at_end:
        deliveries.extend(world.step())
    table = spark.createDataFrame(
        [tuple(dict(station).values()) for station in world.stations], STATION_COLUMNS
    )
    board = FigureBoard()
    for query in STORY_QUERIES:
        records = spark.createDataFrame(
            [(framed(d.topic, d.value),) for d in deliveries if d.topic == query.topic],
            "value binary",
        )
        result = rows_of(query.transform(events_of(records, decode_of(query.topic)), table))
        for output in (story_output.as_output() for story_output in query.outputs):
            for row in output.rows(result):
                board.apply(output.topic, output.key(row).encode(), to_json(row).encode())
    assert board.figures() == world.truth()["figures"]
    assert len(board.station_rows()) == len(world.stations)


def test_every_output_topic_has_one_query_and_a_documented_row() -> None:
    outputs = [output.topic for query in STORY_QUERIES for output in query.outputs]
    assert sorted(outputs) == sorted(topics.OUTPUT_TOPICS)
    assert {query.topic for query in STORY_QUERIES} == set(topics.INPUT_TOPICS)
    assert STATIONS not in outputs
    for query in STORY_QUERIES:
        assert topics.CONSUMER_GROUPS[query.group] == query.topic


def test_rows_have_the_documented_columns(spark: SparkSession) -> None:
    """What a query gives is what its table stores, column by column."""
    stations = spark.createDataFrame([tuple(row.values()) for row in STATION_ROWS], STATION_COLUMNS)
    for query in STORY_QUERIES:
        empty = events_of(spark.createDataFrame([], "value binary"), decode_of(query.topic))
        columns = query.transform(empty, stations).columns
        for output in query.outputs:
            if output.rows is list:
                assert columns == schema_of(output.row).names


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
