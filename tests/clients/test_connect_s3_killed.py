"""S3's source killed in every step, and its sink where the clock ends objects: each record once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from test_connect_killed import Doomed

from barnabas.app.testing import Kafka
from barnabas.connect.connectors.s3 import bucket
from barnabas.connect.connectors.storage.source import FileSourceReader
from support.connect.s3 import S3Server, s3_server
from support.connect.tasks import TopicOffsets, place_of, read_topic
from support.spark import needs_spark

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

JSON = "org.apache.kafka.connect.json.JsonConverter"
READER = place_of(FileSourceReader)
UPLOAD = place_of(bucket._S3Upload)
OBJECTS, LINES = 3, 10
"""So many objects of so many records come before each kill."""


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


AT_LEAST_ONCE = ["sent", "acknowledged", "stored"]
EXACTLY_ONCE = [
    *("sent", "acknowledged"),
    *("before the transaction's end", "after the transaction's end"),
]
ON_SPARK = ["prepared", "decided", "committed"]


@pytest.mark.parametrize(
    ("engine", "is_exactly_once", "steps"),
    [
        pytest.param("local", False, AT_LEAST_ONCE, id="at-least-once"),
        pytest.param("local", True, EXACTLY_ONCE, id="exactly-once"),
        pytest.param("spark", True, ON_SPARK, id="spark-exactly-once", marks=needs_spark),
        pytest.param("spark", False, ["stored"], id="spark-at-least-once", marks=needs_spark),
    ],
)
def test_each_object_is_read(
    kafka: Kafka,
    server: S3Server,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    engine: str,
    is_exactly_once: bool,
    steps: Sequence[str],
) -> None:
    bucket = f"read-{request.node.callspec.id}"
    server.make_bucket(bucket)
    topic, stored = kafka.topic("rows"), kafka.topic("offsets")
    doomed = Doomed(
        kafka,
        tmp_path,
        {
            "settings": {
                "connector.class": "io.confluent.connect.s3.source.S3SourceConnector",
                "mode": "GENERIC",
                "topics.dir": "in",
                "topic.regex.list": rf"{topic}:in/.*\.json",
                "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
                "s3.poll.interval.ms": "100",
                "value.converter": JSON,
                "value.converter.schemas.enable": "false",
                **server.settings(bucket),
            },
            "offsets_topic": stored,
            "is_exactly_once": is_exactly_once,
            "engine": engine,
        },
    )
    offsets = TopicOffsets(kafka.bootstrap_servers, stored, doomed.given["name"])
    total = 0

    def put() -> int:
        first = total
        for number in range(OBJECTS):
            start = first + number * LINES
            lines = "".join(f'{{"id": {start + line}}}\n' for line in range(LINES))
            server.write(bucket, f"in/{start:06}.json", lines.encode())
        return first + OBJECTS * LINES

    for step in [f"before {READER}.partitions", *steps, f"after {READER}.commit"]:
        total = put()
        doomed.die(step)
    total = put()
    doomed.run_until(lambda: len(offsets.all()) == total // LINES)
    found = [
        json.loads(value or b"")["id"] for _, value in read_topic(kafka.bootstrap_servers, topic)
    ]
    assert set(found) == set(range(total))
    twice = {value for value, count in Counter(found).items() if count > 1}
    if is_exactly_once:
        assert not twice
    elif engine == "local":
        assert twice  # what was acknowledged, and whose offset was not stored, is read again


def test_objects_that_the_clock_ended_are_each_written_once(
    kafka: Kafka, server: S3Server, tmp_path: Path
) -> None:
    bucket, topic = "by-the-clock", kafka.topic("in", 2)
    server.make_bucket(bucket)
    settings = {
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": topic,
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "partitioner.class": "io.confluent.connect.storage.partitioner.FieldPartitioner",
        "partition.field.name": "city",
        "value.converter": JSON,
        "flush.size": "40",
        "rotate.schedule.interval.ms": "300",
        "timezone": "UTC",
        **server.settings(bucket),
    }
    # Each kill leaves objects that were not committed, and more records for the next to find.
    given = {"settings": settings, "offsets_topic": "unused", "is_exactly_once": False}
    doomed = Doomed(kafka, tmp_path, given)
    steps = [
        (f"before {UPLOAD}.complete", 2),
        (f"after {UPLOAD}.complete", 1),
        (f"after {UPLOAD}.complete", 3),
        ("before a sink's commit", 1),
        ("after a sink's commit", 1),
    ]
    fields = [{"field": "id", "type": "int64"}, {"field": "city", "type": "string"}]
    schema = {"type": "struct", "fields": fields}
    total = 0

    def produce() -> int:
        producer = kafka.producer()
        for number in range(total, total + 30):
            payload = {"id": number, "city": "ab"[number // 2 % 2]}
            value = json.dumps({"schema": schema, "payload": payload})
            producer.produce(topic, value.encode(), partition=number % 2)
        assert producer.flush(30) == 0
        return total + 30

    def found() -> list[int]:
        lines = [
            line for key in server.keys(bucket) for line in server.read(bucket, key).splitlines()
        ]
        return sorted(json.loads(line)["id"] for line in lines)

    for step, times in steps:
        total = produce()
        doomed.die(step, times)
    total = produce()
    doomed.run_until(lambda: len(found()) >= total)
    assert found() == list(range(total))
