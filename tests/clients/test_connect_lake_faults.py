"""A worker whose bucket has faults: what the status and the log say, and that it recovers alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.app.testing import Kafka
from support.connect.s3 import ACCESS_KEY, SECRET_KEY, S3Server, s3_server
from support.connect.worker import JSON_CONVERTER, OurWorker
from support.node_process import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

PATIENCE_S = 90.0
WRONG = "not-the-secret"


class Sink:
    """One connector of a worker, from a topic to a bucket."""

    def __init__(self, worker: OurWorker, name: str, settings: dict[str, str]) -> None:
        self._worker = worker
        self._name = name
        self._settings = settings

    def put(self, **changed: str) -> None:
        """Make it, or change it."""
        given = {**self._settings, **{name.replace("_", "."): v for name, v in changed.items()}}
        status, said = self._worker.ask("PUT", f"/connectors/{self._name}/config", given)
        assert status in (200, 201), said

    def wait_for(self, what: Callable[[dict[str, Any]], bool]) -> None:
        """Wait until its task's status is so."""
        wait_until(
            lambda: any(what(one) for one in self._tasks()), "the status", PATIENCE_S, self._log
        )

    def _tasks(self) -> list[dict[str, Any]]:
        status, said = self._worker.ask("GET", f"/connectors/{self._name}/status")
        return said["tasks"] if status == 200 else []

    def _log(self) -> str:
        return f"{self._tasks()}\n{self._worker.log()[-3000:]}"


def says(*texts: str) -> Callable[[dict[str, Any]], bool]:
    """Return whether a task has failed with one of the texts."""
    return lambda task: (
        task["state"] == "FAILED" and any(text in task.get("trace", "") for text in texts)
    )


def runs(task: dict[str, Any]) -> bool:
    """Return whether a task runs."""
    return bool(task["state"] == "RUNNING")


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server("versitygw") as server:
        yield server


@pytest.fixture
def worker(kafka: Kafka, tmp_path: Path) -> Iterator[OurWorker]:
    again = {
        "barnabas.connect.restart.backoff.ms": "200",
        "barnabas.connect.restart.backoff.max.ms": "400",
    }
    worker = OurWorker(tmp_path, kafka.bootstrap_servers, kafka.name("worker"), settings=again)
    try:
        worker.start()
        yield worker
    finally:
        worker.close()


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
    sink = Sink(worker, name, settings)

    def produce(first: int) -> None:
        kafka.produce(topic, [json.dumps({"id": first + n}).encode() for n in range(2)])

    def wait_for(*records: int) -> None:
        wait_until(
            lambda: found() == sorted(records),
            f"the copy of {records}",
            PATIENCE_S,
            lambda: f"{found()}\n{worker.log()[-3000:]}",
        )

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
    wait_until(lambda: "trying again in" in worker.log(), "another try", PATIENCE_S, worker.log)
    sink.wait_for(runs)
    server.start()
    wait_for(2, 3, 4, 5)

    said = worker.log()
    assert f"cannot write topics/{topic}/partition=0/" in said
    assert all(secret not in said for secret in (WRONG, SECRET_KEY, ACCESS_KEY))
