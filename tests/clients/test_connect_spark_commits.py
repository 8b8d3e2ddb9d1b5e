"""Commits of a source's micro-batches on Spark, as the driver and its executors make them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.app.testing import Kafka
from barnabas.connect.record import RawRecord
from barnabas.connect.tasks.kafka_transport import KafkaTransport
from barnabas.connect.tasks.spark_exactly_once import (
    BatchCommits,
    SplitTransaction,
    TransactionPlace,
    sink_options,
)
from barnabas.connect.tasks.topics import TopicCreation
from barnabas.schemas.data.errors import ConnectError
from barnabas.spark.datasource.protocol import Decision, Prepared
from barnabas.spark.datasource.task import close_connections
from support.connect.tasks import read_topic


class Task:
    """A task of a connector; each run is `started` without notice to the previous one."""

    def __init__(self, kafka: Kafka) -> None:
        self._servers = kafka.bootstrap_servers
        self._topic = kafka.topic("records")
        worker = {"bootstrap.servers": self._servers, "group.id": kafka.name("workers")}
        offsets = kafka.topic("offsets")
        self._transport = KafkaTransport(kafka.name("source"), 0, {}, worker, offsets, "run")
        self._runs: list[BatchCommits] = []

    def started(self) -> BatchCommits:
        commits = BatchCommits(self._transport, sink_options(self._transport))
        self._runs.append(commits)
        commits.take_over()
        return commits

    def close(self) -> None:
        for commits in self._runs:
            commits.close()
        close_connections()

    def send(self, place: TransactionPlace, value: bytes) -> Prepared:
        output = SplitTransaction(place, TopicCreation((), self._no_admin))
        output.send(RawRecord(topic=self._topic, value=value))
        (prepared,) = output.prepare(0)
        return prepared

    def write(self, commits: BatchCommits, value: bytes) -> None:
        place = commits.next_place()
        prepared = self.send(place, value)
        commits.commit(place, [prepared], [({"file": "a"}, {"line": 1})])

    def values(self) -> list[bytes | None]:
        return [value for _, value in read_topic(self._servers, self._topic)]

    def _no_admin(self) -> Any:
        raise AssertionError("no topic is to be created")


@pytest.fixture
def task(kafka: Kafka) -> Iterator[Task]:
    made = Task(kafka)
    yield made
    made.close()


@pytest.mark.parametrize("failures", [0, 1, 3])
def test_a_run_that_is_killed_in_a_micro_batch_is_taken_over_from(
    task: Task, failures: int
) -> None:
    killed = task.started()
    task.write(killed, b"first")
    for _ in range(failures):
        prepared = task.send(killed.next_place(), b"of a micro-batch that failed")
        killed.drop([prepared])
    task.send(killed.next_place(), b"of nobody")
    second = task.started()
    task.write(second, b"second")
    task.write(second, b"third")
    task.write(task.started(), b"fourth")
    assert task.values() == [b"first", b"second", b"third", b"fourth"]


def decided(task: Task, run: BatchCommits) -> list[Prepared]:
    """Two transactions that `run` has decided on, and did not come to commit."""
    place = run.next_place()
    made = [one for value in (b"a", b"b") if (one := task.send(place, value)) is not None]
    run._committer._journal.write(Decision(place.batch, tuple(made)))
    return made


def test_what_is_decided_is_committed_by_the_next_run(task: Task) -> None:
    decided(task, task.started())
    task.write(task.started(), b"c")
    assert sorted(task.values(), key=str) == [b"a", b"b", b"c"]


def test_what_timed_out_whole_is_read_again(task: Task) -> None:
    first = task.started()
    first._committer.drop(decided(task, first))  # as the brokers do it at the time-out
    for value in (b"again", b"more"):
        task.write(task.started(), value)
    assert task.values() == [b"again", b"more"]


def test_what_timed_out_in_part_is_told(task: Task) -> None:
    first = task.started()
    first._committer.drop(decided(task, first)[1:])
    for _ in range(2):
        with pytest.raises(ConnectError, match="1 records of tasks 0 are missing"):
            task.started()
