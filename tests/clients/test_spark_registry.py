"""Spark's `from_avro` and `to_avro` with the registry's wire format.

Spark knows no registry: its queries cut off what stands before the body, a zero and the id of the
schema in four bytes, and the schema is fetched beforehand. `from_protobuf` is left out: its jar,
spark-protobuf, does not resolve everywhere, and one that does not keeps Spark from starting.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro, to_avro

from barnabas.app.testing import Kafka
from support.registry_process import registry_url
from support.spark import shared_session

__all__ = ["registry_url"]
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

OLD = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
NEW = OLD | {
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "colour", "type": "string", "default": "none"},
    ]
}


BODY = "substring(value, 6, length(value) - 5)"


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    yield shared_session()
    gc.collect()


@pytest.fixture
def client(registry_url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry_url}) as client:
        yield client


def values_of(spark: SparkSession, kafka: Kafka, topic: str) -> DataFrame:
    """A topic's values, and the id of each one's schema."""
    records = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("subscribe", topic)
        .load()
    )
    return records.select(
        "value", f.expr("cast(conv(hex(substring(value, 2, 4)), 16, 10) as int)").alias("id")
    )


def text_of(client: SchemaRegistryClient, schema_id: int) -> str:
    text = client.get_schema(schema_id).schema_str
    assert text is not None
    return text


def test_avro_of_two_versions(
    spark: SparkSession, client: SchemaRegistryClient, kafka: Kafka
) -> None:
    topic, copy = kafka.topic(), kafka.topic("copy")
    context = SerializationContext(topic, MessageField.VALUE)
    serializers = [AvroSerializer(client, json.dumps(schema)) for schema in (OLD, NEW)]
    orders: list[dict[str, Any]] = [{"id": 1}, {"id": 2, "colour": "red"}]
    sent = [
        serializer(order, context) for serializer, order in zip(serializers, orders, strict=True)
    ]
    kafka.produce(topic, [value for value in sent if value is not None])

    values = values_of(spark, kafka, topic)
    latest = client.get_latest_version(f"{topic}-value")
    reader = {"mode": "FAILFAST", "avroSchema": str(latest.schema.schema_str)}
    parts = [
        values.where(f.col("id") == row.id).select(
            from_avro(f.expr(BODY), text_of(client, row.id), reader).alias("order")
        )
        for row in values.select("id").distinct().orderBy("id").collect()
    ]
    read = parts[0].unionByName(parts[1])
    rows = read.select("order.*").orderBy("id").collect()
    assert [row.asDict() for row in rows] == [{"id": 1, "colour": "none"}, orders[1]]

    made = client.register_schema(f"{copy}-value", latest.schema)
    framed = f.concat(
        f.unhex(f.lit(f"00{made:08x}")), to_avro("order", str(latest.schema.schema_str))
    )
    options = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": copy}
    read.select(framed.alias("value")).write.format("kafka").options(**options).save()
    context = SerializationContext(copy, MessageField.VALUE)
    deserializer = AvroDeserializer(client)
    found = [deserializer(value, context) for value in kafka.consume(copy, 2)]
    assert sorted(order["id"] for order in found) == [1, 2]
    assert {order["colour"] for order in found} == {"none", "red"}
