"""Values in a registry's framing: each is read with the schema that it was written with."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from fastavro import parse_schema, schemaless_writer
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from barnabas.app.testing import Kafka
from barnabas.schemas.errors import RegistryError
from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.wire_format import prefix_of, schema_id_of
from barnabas.spark.avro_topic import AvroTopic, SchemaAbsentError, decoded, new_schema_id
from barnabas.spark.kafka_io import events_of, read_stream
from support.registry_thread import registry_of

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


def schema(*more: dict[str, Any]) -> str:
    fields = [{"name": "event_id", "type": "string"}, {"name": "event_time_ms", "type": "long"}]
    return json.dumps({"type": "record", "name": "Seen", "fields": [*fields, *more]})


FIRST = schema({"name": "city", "type": ["null", "string"], "default": None})
# The new field stands first: bytes of the one schema are no prefix of the other's.
SECOND = json.dumps(
    {
        "type": "record",
        "name": "Seen",
        "fields": [
            {"name": "temperature_c", "type": ["null", "int"], "default": None},
            *json.loads(FIRST)["fields"],
        ],
    }
)


def written(schema_id: int, text: str, value: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(json.loads(text)), value)
    return prefix_of(schema_id) + out.getvalue()


def event(number: int, **more: Any) -> dict[str, Any]:
    return {"event_id": f"e{number}", "event_time_ms": number, **more}


def records(spark: SparkSession, *values: bytes | None) -> DataFrame:
    rows = [(None if value is None else bytearray(value),) for value in values]
    return spark.createDataFrame(rows, "value binary")


def rows_of(frame_of_rows: DataFrame) -> list[tuple[Any, ...]]:
    return [
        tuple(row) for row in frame_of_rows.select("event_id", "event_time_ms", "city").collect()
    ]


def test_each_value_is_read_with_its_own_schema(spark: SparkSession) -> None:
    old = written(7, FIRST, event(1, city="Ghent"))
    new = written(70_000, SECOND, event(2, city="Lyon", temperature_c=30))
    events = events_of(
        records(spark, old, new, old),
        lambda value: decoded(value, {7: FIRST, 70_000: SECOND}, FIRST),
    )
    assert events.columns == ["event_id", "event_time_ms", "city", "event_time"]
    assert rows_of(events) == [("e1", 1, "Ghent"), ("e2", 2, "Lyon"), ("e1", 1, "Ghent")]


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"\x00\x00\x00\x00",
        b"\x00\x00\x00\x00\x07",
        b"\x00\x00\x00\x00\x07\x02",
        b"\x00\x00\x00\x00\x08anything",
        b'{"event_id": "x", "event_time_ms": 5}',
        b"\x01" + written(7, FIRST, event(2))[1:],
    ],
)
def test_a_value_that_cannot_be_read_is_left_out(spark: SparkSession, value: bytes | None) -> None:
    writers = {7: FIRST, 8: None}
    good = written(7, FIRST, event(1, city="Ghent"))
    events = events_of(records(spark, good, value), lambda v: decoded(v, writers, FIRST))
    assert rows_of(events) == [("e1", 1, "Ghent")]


def test_an_unknown_schema_fails_the_query_and_is_named(spark: SparkSession) -> None:
    value = written(70_000, FIRST, event(1, city="Ghent"))
    events = events_of(records(spark, value), lambda v: decoded(v, {7: FIRST}, FIRST))
    with pytest.raises(PySparkException) as raised:
        events.collect()
    assert new_schema_id(raised.value) == 70_000
    assert new_schema_id(None) is new_schema_id(ValueError("id 70000")) is None


@pytest.mark.parametrize(("value", "expected"), [(prefix_of(70_000) + b"x", 70_000), (b"", None),
                                                 (b"\x01\x00\x00\x00\x07", None)])  # fmt: skip
def test_the_id_of_a_value(value: bytes, expected: int | None) -> None:
    assert schema_id_of(value) == expected


@pytest.fixture
def registry(kafka: Kafka) -> Iterator[str]:
    with registry_of(
        kafka.bootstrap_servers, kafka.topic(config={"cleanup.policy": "compact"})
    ) as url:
        yield url


@pytest.fixture
def client(registry: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry}) as client:
        yield client


def test_a_stream_goes_on_over_an_evolution(
    spark: SparkSession,
    kafka: Kafka,
    registry: str,
    client: SchemaRegistryClient,
    tmp_path: Path,
) -> None:
    """It stops at the first record of the new schema, learns it, and misses and repeats nothing."""
    topic = kafka.topic()

    def publish(text: str, value: dict[str, Any]) -> None:
        serializer = AvroSerializer(client, text)
        framed = serializer(value, SerializationContext(topic, MessageField.VALUE))
        assert framed is not None
        kafka.produce(topic, [("k", framed)])

    values = AvroTopic(RegistryClient(registry), topic, FIRST)
    with pytest.raises(SchemaAbsentError, match=f"{topic}-value"):
        values.refresh()
    publish(FIRST, event(1, city="Ghent"))
    values.refresh()
    seen: list[tuple[Any, ...]] = []

    def run(after_the_start: Any = None) -> None:
        events = read_stream(spark, kafka.bootstrap_servers, topic, values.decode)
        query = (
            events.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .foreachBatch(lambda frame_of_rows, _: seen.extend(rows_of(frame_of_rows)))
            .start()
        )
        try:
            if after_the_start is not None:
                query.processAllAvailable()
                after_the_start()
            query.processAllAvailable()
        finally:
            query.stop()

    with pytest.raises(StreamingQueryException) as raised:
        run(lambda: publish(SECOND, event(2, city="Lyon", temperature_c=30)))
    schema_id = new_schema_id(raised.value)
    assert schema_id is not None
    assert seen == [("e1", 1, "Ghent")]
    values.learn(schema_id)
    run(lambda: publish(FIRST, event(3, city="Turin")))
    assert seen == [("e1", 1, "Ghent"), ("e2", 2, "Lyon"), ("e3", 3, "Turin")]


def test_what_the_registry_has(registry: str, client: SchemaRegistryClient) -> None:
    number = client.register_schema("numbers", Schema('{"type": "object"}', "JSON"))
    first = client.register_schema("a b/c-value", Schema(FIRST, "AVRO"))
    second = client.register_schema("a b/c-value", Schema(SECOND, "AVRO"))
    schemas = RegistryClient(registry + "/")
    assert schemas.subjects() == ["a b/c-value", "numbers"]
    assert [version["id"] for version in schemas.versions("a b/c-value")] == [first, second]
    assert [*schemas.resolved_avro_of("a b/c-value")] == [first, second]
    assert json.loads(schemas.resolved_avro(first) or "") == json.loads(FIRST)
    assert schemas.resolved_avro(number) is schemas.resolved_avro(99_999) is None
    assert schemas.versions("nobody") == []


def test_a_registry_that_does_not_answer() -> None:
    with pytest.raises(RegistryError, match=r"http://127.0.0.1:1 does not answer"):
        RegistryClient("http://127.0.0.1:1").subjects()
