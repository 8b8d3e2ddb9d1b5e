"""Pipelines in Python on a real cluster and a real registry: the stories of the demo."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import SparkSession

from barnabas.app.testing import Kafka
from barnabas.pipeline import Pipeline, avro, col, f, stream, table
from barnabas.pipeline.streams.outputs import Output
from support.registry_process import registry_url
from support.spark import shared_session

__all__ = ["registry_url"]
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.slow,
    pytest.mark.timeout(400),
]
MINUTE_MS = 60_000
STATION = json.dumps(
    {
        "type": "record",
        "name": "Station",
        "fields": [{"name": "name", "type": "string"}, {"name": "city", "type": "string"}],
    }
)
CHARGING = json.dumps(
    {
        "type": "record",
        "name": "Charging",
        "fields": [
            {"name": "station", "type": "string"},
            {"name": "kwh", "type": "double"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
)


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    yield shared_session()
    gc.collect()


@pytest.fixture
def client(registry_url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry_url}) as client:
        yield client


class Topics:
    """Topics of one test, with their schemas."""

    def __init__(self, kafka: Kafka, client: SchemaRegistryClient) -> None:
        self.kafka = kafka
        self.client = client
        self.stations = kafka.topic("stations", config={"cleanup.policy": "compact"})
        self.events = kafka.topic("events", 3)
        self.energy = kafka.topic("energy", 3)
        self.letters = kafka.topic("letters")

    def put(self, topic: str, schema: str, key: str, value: dict[str, Any]) -> None:
        framed = AvroSerializer(self.client, schema)(
            value, SerializationContext(topic, MessageField.VALUE)
        )
        assert framed is not None
        self.kafka.produce(topic, [(key, framed)])

    def energy_now(self, count: int) -> list[tuple[str, str, int, float]]:
        read = AvroDeserializer(self.client)
        context = SerializationContext(self.energy, MessageField.VALUE)
        rows = [read(value, context) for value in self.kafka.consume(self.energy, count)]
        return sorted(
            (row["station"], row["city"], row["minute"], round(row["kwh"], 3)) for row in rows
        )

    def pipeline(self) -> Pipeline:
        stations = table(self.stations).select("city")
        energy = (
            stream(self.events, event_time="at")
            .filter(col("kwh") > 0)
            .join(stations, on="station")
            .window("1 minute")
            .group_by("station", "city")
            .agg(kwh=f.sum("kwh"))
            .select("station", "city", "kwh", minute="unix_millis(window_start) div 60000")
        )
        output: Output = energy.to(self.energy, schema=avro(), key="station")
        return Pipeline("energy", output, dead_letters=self.letters)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once"])
def test_energy_by_station_and_minute(
    spark: SparkSession,
    kafka: Kafka,
    registry_url: str,
    client: SchemaRegistryClient,
    tmp_path: Path,
    guarantee: str,
) -> None:
    """A restart in mid-window, a table that changes, malformed records: each counts once."""
    topics = Topics(kafka, client)
    for name, city in (("s1", "Ghent"), ("s2", "Lyon")):
        topics.put(topics.stations, STATION, name, {"name": name, "city": city})

    def charge(station: str, at: int, kwh: float = 1.5) -> None:
        event = {"station": station, "kwh": kwh, "at": at}
        topics.put(topics.events, CHARGING, station, event)

    charge("s1", 1_000)
    charge("s2", 2_000)
    kafka.produce(topics.events, [("s1", b"nonsense"), ("s2", b"\x00\x00\x00\x00\x01")])

    options = {"checkpoints": str(tmp_path), "guarantee": guarantee, "spark": spark}
    running = topics.pipeline().start(kafka.bootstrap_servers, registry_url, **options)
    running.process_available()
    running.stop()

    topics.put(topics.stations, STATION, "s2", {"name": "s2", "city": "Paris"})
    charge("s1", 30_000)
    charge("s2", 31_000)
    charge("s1", 2 * MINUTE_MS)
    charge("s2", 2 * MINUTE_MS)
    running = topics.pipeline().start(kafka.bootstrap_servers, registry_url, **options)
    running.process_available()
    charge("s1", 5 * MINUTE_MS)
    running.process_available()
    found = topics.energy_now(5)
    progress = running.progress()
    running.stop()
    assert found == [
        ("s1", "Ghent", 0, 3.0),
        ("s1", "Ghent", 2, 1.5),
        ("s2", "Lyon", 0, 1.5),
        ("s2", "Paris", 0, 1.5),
        ("s2", "Paris", 2, 1.5),
    ]
    letters = kafka.consume(topics.letters, 2)
    assert sorted(letters) == [b"\x00\x00\x00\x00\x01", b"nonsense"]
    assert progress.queries[topics.energy].lag == 0
    assert progress.queries[topics.energy].restarts == 0
