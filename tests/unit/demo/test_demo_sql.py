"""The demo's statements, run in memory: what they compute, and all of it held against truth."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer

from barnabas.demo import statements, topics
from barnabas.demo.contract import Figures
from barnabas.demo.dashboard.state import FigureBoard
from barnabas.demo.generators.simulation import World
from barnabas.demo.reading import WINDOWED, AvroValues, read_row
from barnabas.demo.schemas import (
    AVRO_TOPICS,
    EVOLVED_FIELD,
    evolved_schema,
    first_schema,
    subject_of,
)
from barnabas.demo.topics import CHARGING_EVENTS, STATION_STATUS, STATIONS, USER_ACTIVITY
from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.wire_format import prefix_of
from barnabas.sql.testing import SqlTest

NOON_MS = 1_741_003_200_000
MINUTE_MS = topics.MINUTE_MS
STATION_ROWS = [("st-1", "Ghent Harbour", "Ghent"), ("st-2", "Ghent Mill", "Ghent")]


class MemoryRegistry(RegistryClient):
    """The registry of a test in memory, for readers that would ask over HTTP."""

    def __init__(self, store: Any) -> None:
        super().__init__("http://nowhere")
        self._store = store

    def resolved_avro(self, schema_id: int) -> str | None:
        text: str = self._store.by_id(schema_id).text
        return text


class DemoTest:
    """The demo's statements over topics in memory, with records as the generators publish them."""

    def __init__(self, test: SqlTest) -> None:
        self._test = test
        self.log = test.log
        self._store = test._world.schemas
        self._ids = {}
        for topic in AVRO_TOPICS:
            self._ids[topic] = self._store.register(subject_of(topic), "AVRO", first_schema(topic))
        for name in statements.FILES:
            test.execute(statements.text_of(name))
        self._evolved = self._store.register(subject_of(STATION_STATUS), "AVRO", evolved_schema())

    def publish(self, topic: str, key: str, value: dict[str, Any], timestamp_ms: int = 0) -> None:
        schema_id = self._evolved if EVOLVED_FIELD in value else self._ids[topic]
        schema = json.loads(self._store.by_id(schema_id).text)
        out = io.BytesIO()
        schemaless_writer(out, parse_schema(schema), value)
        self._test.pipe(topic, key, prefix_of(schema_id) + out.getvalue(), timestamp_ms)

    def board(self) -> FigureBoard:
        board, values = FigureBoard(), AvroValues(MemoryRegistry(self._store))
        for topic in topics.SQL_TOPICS:
            for record in self._test._driver.topics.get(topic, []):
                assert record.key is not None
                assert record.value is not None
                row = read_row(topic, record.key, record.value, values)
                assert row is not None
                board.apply(topic, record.key, row)
        return board

    def rows(self, topic: str) -> list[dict[str, Any]]:
        """Rows by key column and window, the minutes counted from noon."""
        column, _ = WINDOWED[topic]
        found = [dict(row) for row in self.board().rows[topic].values()]
        for row in found:
            row["minute"] = (row["window_start_ms"] - NOON_MS) // MINUTE_MS
        return sorted(found, key=lambda row: (row[column], row["minute"]))


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[DemoTest]:
    functions = statements.install_functions(str(tmp_path / "functions"))
    with SqlTest(properties={"ksql.extension.dir": functions}, partitions=2) as test:
        made = DemoTest(test)
        yield made


def put_stations(demo: DemoTest) -> None:
    for station_id, name, city in STATION_ROWS:
        row = {"station_id": station_id, "name": name, "city": city, "power_w": 22_000}
        demo.publish(STATIONS, station_id, row)


def report(demo: DemoTest, sequence: int, minute: float, state: str) -> None:
    demo.publish(
        STATION_STATUS,
        "st-1",
        {
            "event_id": f"st-1-r{sequence}",
            "station_id": "st-1",
            "sequence": sequence,
            "event_time_ms": NOON_MS + int(minute * MINUTE_MS),
            "state": state,
        },
    )


def charge(demo: DemoTest, station: int, kind: str, minute: float, energy_wh: int = 0) -> None:
    demo.publish(
        CHARGING_EVENTS,
        f"st-{station}",
        {
            "event_id": f"st-{station}-{kind}-{minute}",
            "station_id": f"st-{station}",
            "charge_id": f"st-{station}-c1",
            "event_time_ms": NOON_MS + int(minute * MINUTE_MS),
            "kind": kind,
            "energy_wh": energy_wh,
            "fault_code": None,
        },
    )


def act(demo: DemoTest, session: int, sequence: int, minute: float, kind: str, **more: Any) -> None:
    demo.publish(
        USER_ACTIVITY,
        "u-1",
        {
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
        },
    )


def test_availability_keeps_the_latest_state_of_a_window(demo: DemoTest) -> None:
    put_stations(demo)
    report(demo, 3, 9, "faulted")  # the latest, though it arrives first
    report(demo, 1, 1, "available")
    for _ in range(2):
        report(demo, 2, 4, "charging")
    report(demo, 5, 15, "available")  # the next window begins here
    report(demo, 4, 14.99, "available")
    first, second = demo.rows(topics.STATION_AVAILABILITY)
    assert (first["minute"], first["state"], first["state_sequence"]) == (0, "available", 4)
    assert (first["reports"], first["available_reports"]) == (4, 2)
    assert first["state_time_ms"] == NOON_MS + int(14.99 * MINUTE_MS)
    assert first["window_end_ms"] == NOON_MS + 15 * MINUTE_MS
    assert (first["name"], first["city"]) == ("Ghent Harbour", "Ghent")
    assert (second["minute"], second["state"], second["reports"]) == (15, "available", 1)


def test_energy_is_summed_per_city_and_minute_and_each_event_once(demo: DemoTest) -> None:
    put_stations(demo)
    charge(demo, 1, "start", 0.1)
    for _ in range(2):
        charge(demo, 1, "meter", 0.5, 100)
    charge(demo, 2, "meter", 0.9, 40)
    charge(demo, 1, "meter", 1.5, 60)
    charge(demo, 1, "stop", 1.7, 5)
    charge(demo, 2, "fault", 1.8)
    charge(demo, 9, "meter", 1.8, 1000)  # a station that the table does not have
    columns = ["energy_wh", "readings", "charges_started", "charges_stopped", "faults"]
    assert [
        (row["city"], row["minute"], *(row[column] for column in columns))
        for row in demo.rows(topics.ENERGY_PER_MINUTE)
    ] == [("Ghent", 0, 140, 2, 1, 0, 0), ("Ghent", 1, 65, 1, 0, 1, 1)]


def test_activity_is_counted_per_kind_and_minute(demo: DemoTest) -> None:
    act(demo, 1, 0, 0.1, "search", query="tent")
    for _ in range(2):
        act(demo, 1, 1, 0.5, "click", item_id="tent")
    act(demo, 1, 2, 1.2, "purchase", items=["headlamp", "tent"], amount_cents=9900)
    act(demo, 2, 0, 1.9, "click", item_id="flour")
    columns = ["kind", "minute", "events", "sessions", "revenue_cents"]
    assert [
        tuple(row[column] for column in columns) for row in demo.rows(topics.ACTIVITY_PER_MINUTE)
    ] == [
        ("click", 0, 1, 0, 0),
        ("click", 1, 1, 1, 0),
        ("purchase", 1, 1, 0, 9900),
        ("search", 0, 1, 1, 0),
    ]


def test_a_copy_that_comes_after_its_window_is_closed_counts_nothing(demo: DemoTest) -> None:
    grace_minutes = topics.WATERMARK_DELAY_MS // MINUTE_MS
    act(demo, 1, 0, 0.5, "click")
    act(demo, 1, 0, 0.5, "click")
    act(demo, 2, 0, grace_minutes + 2, "click")  # the same kind's partition sees time pass
    act(demo, 1, 0, 0.5, "click")
    act(demo, 3, 0, 3, "click")  # late, and still in time
    events = {row["minute"]: row["events"] for row in demo.rows(topics.ACTIVITY_PER_MINUTE)}
    assert events == {0: 1, 3: 1, grace_minutes + 2: 1}


def test_all_figures_of_sql_are_the_generators_truth(demo: DemoTest) -> None:
    """All statements on everything that a run delivers, late, doubled and evolved as it comes."""
    world = World({"seed": 11, "rate": 200, "acceleration": 240, "seconds": 20})
    for station in world.stations:
        demo.publish(STATIONS, station["station_id"], dict(station))
    while not world.at_end:
        for delivery in world.step():
            demo.publish(delivery.topic, delivery.key, delivery.value, delivery.publish_ms)
    board = demo.board()
    assert demo.log == []
    python = {"top_searches", "recommendations"}  # the Python pipeline's
    assert without(board.figures(), python) == without(world.truth()["figures"], python)
    assert len(board.station_rows()) == len(world.stations)


def without(figures: Figures, names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in figures.items() if name not in names}


def test_windows_are_those_that_readers_know() -> None:
    text = "".join(statements.text_of(name) for name in statements.FILES)
    grace = f"GRACE PERIOD {topics.WATERMARK_DELAY_MS // MINUTE_MS} MINUTES"
    assert text.count(grace) == text.count("WINDOW TUMBLING") == len(WINDOWED)
    for topic in topics.SQL_TOPICS:
        assert f"KAFKA_TOPIC = '{topic}'" in text


@pytest.mark.parametrize(
    ("topic", "key", "value", "expected"),
    [
        (topics.RECOMMENDATIONS, b"a", b'{"item_id": "a"}', {"item_id": "a"}),
        (topics.RECOMMENDATIONS, b"a", b"<xml>", None),
        (topics.RECOMMENDATIONS, b"a", b"[1]", None),
        (topics.ENERGY_PER_MINUTE, b"Ghent", b"no frame", None),
        (topics.ENERGY_PER_MINUTE, b"Ghent" + bytes(8), b"{}", None),
    ],
)
def test_what_cannot_be_read_is_no_row(
    topic: str, key: bytes, value: bytes, expected: dict[str, Any] | None
) -> None:
    assert read_row(topic, key, value, AvroValues(MemoryRegistry(None))) == expected
