"""A worker whose bucket has faults: what the status and the log say, and that it recovers alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.app.testing import Kafka
from support.connect.one_connector import OneConnector, quick_worker, runs, says
from support.connect.s3 import ACCESS_KEY, SECRET_KEY, S3Server, s3_server
from support.connect.tasks import read_topic
from support.connect.worker import JSON_CONVERTER, OurWorker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # the first run builds the server

WRONG = "not-the-secret"


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server("versitygw") as server:
        yield server


@pytest.fixture
def worker(kafka: Kafka, tmp_path: Path) -> Iterator[OurWorker]:
    with quick_worker(tmp_path, kafka.bootstrap_servers, kafka.name("worker")) as worker:
        yield worker


def test_a_bucket_with_faults_is_written_to_once_it_is_well(
    kafka: Kafka, server: S3Server, worker: OurWorker
) -> None:
    bucket, topic, name = "faults", kafka.topic("in"), kafka.name("sink")
    settings = {
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": topic,
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "value.converter": JSON_CONVERTER,
        "value.converter.schemas.enable": "false",
        "flush.size": "2",
        "s3.part.retries": "0",
        "errors.retry.delay.max.ms": "400",
        "consumer.override.auto.offset.reset": "earliest",
        **server.settings(bucket),
    }
    sink = OneConnector(worker, name, settings)

    def produce(first: int) -> None:
        kafka.produce(topic, [json.dumps({"id": first + n}).encode() for n in range(2)])

    def wait_for(*records: int) -> None:
        sink.wait_until(lambda: found() == sorted(records))

    def found() -> list[int]:
        lines = [line for key in server.keys(bucket) for line in read(key).splitlines()]
        return sorted(json.loads(line)["id"] for line in lines)

    def read(key: str) -> bytes:
        return server.read(bucket, key)

    # The keys are wrong: the task fails, and starts once they are right.
    server.make_bucket(bucket)
    produce(0)
    sink.put(aws_secret_access_key=WRONG)
    sink.wait_for(says("cannot find bucket faults: 403"))
    sink.put()
    wait_for(0, 1)
    sink.wait_for(runs)

    # The bucket vanishes with all that was in it; once it is there the task goes on by itself.
    server.drop_bucket(bucket)
    produce(2)
    sink.wait_for(says("NoSuchBucket", "Non-existent S3 bucket: faults"))
    server.make_bucket(bucket)
    wait_for(2, 3)
    sink.wait_for(runs)

    # The server is away for a while: the task waits.
    server.stop()
    produce(4)
    sink.wait_until(lambda: "trying again in" in worker.log())
    sink.wait_for(runs)
    server.start()
    wait_for(2, 3, 4, 5)

    said = worker.log()
    assert f"cannot write topics/{topic}/partition=0/" in said
    assert all(secret not in said for secret in (WRONG, SECRET_KEY, ACCESS_KEY))


def test_a_bucket_with_faults_is_read_once_it_is_well(
    kafka: Kafka, server: S3Server, worker: OurWorker
) -> None:
    bucket, topic, name = "sources", kafka.topic("rows"), kafka.name("source")
    settings = {
        "connector.class": "io.confluent.connect.s3.source.S3SourceConnector",
        "mode": "GENERIC",
        "topics.dir": "in",
        "topic.regex.list": rf"{topic}:in/.*\.json",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "value.converter": JSON_CONVERTER,
        "value.converter.schemas.enable": "false",
        "s3.poll.interval.ms": "100",
        "s3.part.retries": "0",
        "errors.retry.delay.max.ms": "400",
        **server.settings(bucket),
    }
    source = OneConnector(worker, name, settings)

    def put(number: int) -> None:
        server.write(bucket, f"in/{number}.json", b'{"id": %d}\n' % number)

    def wait_for(*records: int) -> None:
        source.wait_until(lambda: len(found()) >= len(records))
        assert found() == list(records)

    def found() -> list[int]:
        records = read_topic(kafka.bootstrap_servers, topic)
        return sorted(json.loads(value or b"")["id"] for _, value in records)

    # There is no bucket yet, and the keys are wrong.
    source.put()
    source.wait_for(says("Non-existent S3 bucket: sources"))
    server.make_bucket(bucket)
    put(0)
    wait_for(0)
    source.put(aws_secret_access_key=WRONG)
    source.wait_for(says("cannot find bucket sources: 403"))
    put(1)
    source.put()
    wait_for(0, 1)
    source.wait_for(runs)

    # It vanishes, and comes back with another object.
    server.drop_bucket(bucket)
    source.wait_for(says("NoSuchBucket", "Non-existent S3 bucket: sources"))
    server.make_bucket(bucket)
    put(2)
    wait_for(0, 1, 2)

    # The server is away for a while: the task waits.
    server.stop()
    source.wait_until(lambda: "cannot list bucket sources" in worker.log())
    server.start()
    put(3)
    wait_for(0, 1, 2, 3)
    assert all(secret not in worker.log() for secret in (WRONG, SECRET_KEY, ACCESS_KEY))
