"""The schemas of the benchmark, and a topic that has them from the start."""

import json
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

FIELDS = 12


def avro(name: str) -> str:
    """A record of some fields, as text."""
    fields: list[dict[str, Any]] = [
        {"name": f"field_{n}", "type": "string"} for n in range(FIELDS - 2)
    ]
    fields += [
        {"name": "happened_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": ["null", "string"], "default": None},
    ]
    record = {"type": "record", "name": name, "namespace": "bench.events", "fields": fields}
    return json.dumps(record, separators=(",", ":"))


def subject(number: int) -> str:
    """The subject of a schema that is there from the start; its id is the number."""
    return f"bench-{number}-value"


def fill_topic(bootstrap: str, topic: str, schemas: int) -> None:
    """Create the compacted topic with schemas 1 to `schemas`, each under a subject of its own.

    The records are Confluent's, which both registries read.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"cleanup.policy": "compact"}
    new = NewTopic(topic, num_partitions=1, replication_factor=1, config=config)
    for made in admin.create_topics([new]).values():
        made.result(60)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for number in range(1, schemas + 1):
        key = {"keytype": "SCHEMA", "subject": subject(number), "version": 1, "magic": 1}
        value = {
            "subject": subject(number),
            "version": 1,
            "id": number,
            "schema": avro(f"Event{number}"),
            "deleted": False,
        }
        producer.produce(topic, json.dumps(value), json.dumps(key), partition=0)
        producer.poll(0)
    if producer.flush(60):
        raise RuntimeError("records were not delivered")
