"""Pipelines in Python on a real cluster and a real registry: the stories of the demo."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

from barnabas.app.testing import Kafka
from barnabas.streams import Pipeline, avro, col, f, stream, table
from barnabas.streams.outputs import Output
from support.registry_process import registry_url
from support.spark import shared_session

__all__ = ["registry_url"]
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.slow,
    pytest.mark.timeout(400),
]
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
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

    options: dict[str, Any] = {"checkpoints": str(tmp_path), "guarantee": guarantee, "spark": spark}
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
    assert sorted(letter or b"" for letter in letters) == [b"\x00\x00\x00\x00\x01", b"nonsense"]
    assert progress.queries[topics.energy].lag == 0
    assert progress.queries[topics.energy].restarts == 0


@dataclass
class View:
    session: str
    item: str
    seen_at_ms: int


@dataclass
class Purchase:
    session: str
    item: str
    cents: int
    bought_at_ms: int


@pytest.mark.parametrize("is_restarted", [False, True])
def test_purchases_after_views(
    spark: SparkSession, kafka: Kafka, tmp_path: Path, is_restarted: bool
) -> None:
    """Streams joined in time, then revenue by minute: a restart in mid-window changes nothing."""
    views, purchases, revenue = (kafka.topic(hint, 2) for hint in ("views", "purchases", "revenue"))
    viewed = stream(views, schema=View, event_time="seen_at_ms")
    bought = stream(purchases, schema=Purchase, event_time="bought_at_ms")
    pipeline = Pipeline(
        "retail",
        bought.join(viewed, on=["session", "item"], before="5 minutes")
        .window("1 minute")
        .agg(cents=f.sum("cents"), purchases=f.count("*"))
        .select("cents", "purchases", minute="unix_millis(window_start) div 60000")
        .to(revenue, key="minute"),
        dead_letters=kafka.topic("letters"),
    )

    def send(topic: str, *values: dict[str, Any]) -> None:
        kafka.produce(topic, [(value["session"], json.dumps(value)) for value in values])

    def view(session: str, at_s: int) -> None:
        send(views, {"session": session, "item": "tea", "seen_at_ms": HOUR_MS + at_s * 1000})

    def purchase(session: str, at_s: int, cents: int = 500) -> None:
        more = {"item": "tea", "cents": cents, "bought_at_ms": HOUR_MS + at_s * 1000}
        send(purchases, {"session": session, **more})

    options: dict[str, Any] = {"checkpoints": str(tmp_path), "spark": spark}
    options["metrics_listener"] = "http://127.0.0.1:0"
    running = pipeline.start(kafka.bootstrap_servers, **options)
    view("a", 0)
    view("b", 10)
    purchase("a", 20)
    running.process_available()
    if is_restarted:
        running.stop()
        running = pipeline.start(kafka.bootstrap_servers, **options)
    purchase("b", 40, 700)
    purchase("c", 50)  # viewed nothing
    purchase("a", 62)
    view("z", 1000)
    purchase("z", 1000)
    running.process_available()
    found = [json.loads(value or b"") for value in kafka.consume(revenue, 2)]
    url = str(running.metrics_url)
    assert read_positions(url, revenue) == {purchases: 5, views: 3}
    assert httpx.get(url.replace("/metrics", "/health/ready")).json() == {"status": "ready"}
    running.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)
    assert sorted(found, key=lambda row: row["minute"]) == [
        {"cents": 1200, "purchases": 2, "minute": 60},
        {"cents": 500, "purchases": 1, "minute": 61},
    ]


def read_positions(url: str, query: str) -> dict[str, int]:
    """How many records a query has read of each topic, by its metrics; none are left to read."""
    read: dict[str, int] = {}
    for family in text_string_to_metric_families(httpx.get(url).text):
        for sample in family.samples:
            if sample.labels.get("query") != query:
                continue
            if sample.name == "barnabas_pipeline_query_consumer_lag":
                assert sample.value == 0, sample
            if sample.name == "barnabas_pipeline_query_position":
                topic = sample.labels["topic"]
                read[topic] = read.get(topic, 0) + int(sample.value)
    return read


CLICKS = """
from barnabas.streams import Pipeline, stream

def shout(row):
    return {"user": row["user"].upper()}

shouted = stream("<read>", schema="user STRING").map(shout, "user STRING")
pipeline = Pipeline("clicks", shouted.group_by("user").count("clicks").to("<written>"))

if __name__ == "__main__":
    pipeline.run()
"""


@pytest.mark.parametrize("how", ["command", "program"])
def test_a_pipeline_as_a_program(kafka: Kafka, tmp_path: Path, how: str) -> None:
    """SIGTERM ends it with exit code 0; the next start goes on from its checkpoint."""
    read, written = kafka.topic("in"), kafka.topic("out")
    file = tmp_path / "clicks.py"
    file.write_text(CLICKS.replace("<read>", read).replace("<written>", written))
    environment = {
        **os.environ,
        "BARNABAS_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "XDG_STATE_HOME": str(tmp_path),
    }
    command = [sys.executable, str(file)]
    if how == "command":
        command = [sys.executable, "-m", "barnabas", "pipeline", "run", f"{file}:pipeline"]
    for count in (1, 2):
        kafka.produce(read, ['{"user": "ann"}'])
        with (
            open(tmp_path / "told", "w") as told,
            subprocess.Popen(command, env=environment, stderr=told) as process,
        ):
            values = kafka.consume(written, count, 200)
            process.send_signal(signal.SIGTERM)
            process.wait(100)
        assert json.loads(values[-1] or b"") == {"user": "ANN", "clicks": count}
        assert process.returncode == 0, (tmp_path / "told").read_text()[-2000:]
    assert (tmp_path / "barnabas/pipelines/clicks" / written / "commits").is_dir()
