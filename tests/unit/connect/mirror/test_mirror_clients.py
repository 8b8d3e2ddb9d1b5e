"""Mirroring with clusters that do not answer, played by fake clients."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future
from threading import Event
from typing import Any, ClassVar

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException

from barnabas.connect.connectors.base import SinkRange, TaskContext
from barnabas.connect.connectors.mirror import (
    checkpoint,
    cluster,
    connector,
    ranges,
    settings,
)
from barnabas.connect.connectors.mirror.checkpoint import CheckpointReader
from barnabas.connect.connectors.mirror.connector import Schedule
from barnabas.connect.connectors.mirror.flow import Flow
from barnabas.connect.tasks import kafka_ranges
from barnabas.kafka import admin
from barnabas.schemas.data.errors import RetriableError
from support.stale_admin import StaleAdmin

GIVEN = {
    "name": "mirror",
    "source.cluster.alias": "west",
    "target.cluster.alias": "east",
    "source.cluster.bootstrap.servers": "127.0.0.1:1",
    "target.cluster.bootstrap.servers": "127.0.0.1:1",
}


def test_what_failed_at_the_start_is_followed_up_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector, "RETRY_SECONDS", 0.0)
    tries: list[str] = []
    is_done = Event()

    def load() -> None:
        tries.append("load")
        raise RetriableError("no answer")

    def load_and_ask() -> None:
        tries.append("ask")
        is_done.set()

    made = Schedule("test")
    made.once(load, "loading", later=load_and_ask)
    made.start()
    assert is_done.wait(60)
    made.stop()
    assert tries == ["load", "ask"]


def test_an_answer_that_does_not_come_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        def __init__(self, _: object) -> None: ...

        def list_offsets(self, asked: Any, **_: object) -> dict[Any, Future[Any]]:
            return {place: Future() for place in asked}

    monkeypatch.setattr(admin, "AdminClient", Silent)
    monkeypatch.setattr(cluster, "_MARGIN_SECONDS", 0.0)
    with pytest.raises(RetriableError, match="west does not answer"):
        cluster.Cluster("west", {}, 0.01).offsets([("t", 0)], is_latest=True)


@pytest.fixture
def stale(monkeypatch: pytest.MonkeyPatch) -> type[StaleAdmin]:
    monkeypatch.setattr(admin, "AdminClient", StaleAdmin)
    return StaleAdmin


def test_leaders_that_moved_are_asked_for_anew(stale: type[StaleAdmin]) -> None:
    stale.begin(KafkaException(KafkaError(KafkaError.FENCED_LEADER_EPOCH)), 7)
    source = cluster.Cluster("west", {}, 5.0)
    with pytest.raises(RetriableError):
        source.offsets([("t", 0)], is_latest=True)
    assert source.offsets([("t", 0)], is_latest=True) == {("t", 0): 7}


def test_a_leader_that_is_dead_is_not_waited_for_long(stale: type[StaleAdmin]) -> None:
    dead = KafkaException(KafkaError(KafkaError._TIMED_OUT))
    stale.begin(dead, OFFSET_INVALID, dead, 7)
    source = cluster.Cluster("west", {}, 15.0)
    for _ in range(3):
        with pytest.raises(RetriableError):
            source.offsets([("t", 0)], is_latest=True)
    for _ in range(2):
        assert source.offsets([("t", 0)], is_latest=True) == {("t", 0): 7}
    assert stale.asked_s == [5.0, 10.0, 15.0, 15.0, 5.0]


def test_topics_that_are_gone_need_no_new_client(stale: type[StaleAdmin]) -> None:
    stale.begin(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
    source = cluster.Cluster("west", {}, 5.0)
    for _ in range(2):
        assert source.offsets([("t", 0)], is_latest=True) == {}


def test_a_broker_that_is_dead_is_not_waited_for_long(stale: type[StaleAdmin]) -> None:
    late = KafkaError(KafkaError._TIMED_OUT)
    stale.begin(KafkaException(late), ("shop", late), ("shop", "cafe"))
    source = cluster.Cluster("west", {}, 60.0)
    for _ in range(2):
        with pytest.raises(RetriableError, match="groups on west"):
            source.groups()
    for _ in range(2):
        assert source.groups() == {"shop", "cafe"}
    assert stale.asked_s == [5.0, 10.0, 20.0, 5.0]


def test_a_broker_that_never_answers_is_passed_over(stale: type[StaleAdmin]) -> None:
    late = KafkaError(KafkaError._TIMED_OUT)
    refused = KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED)
    stale.begin(("shop", late), ("shop", late, refused))
    source = cluster.Cluster("west", {}, 10.0)
    with pytest.raises(RetriableError):
        source.groups()
    assert source.groups() == {"shop"}


class Log:
    """A LogReader; those that read topics of the `failing` names fail as often as it says."""

    made: ClassVar[list[Log]] = []
    failing: ClassVar[dict[str, int]] = {}

    def __init__(self, _: object, topic: str) -> None:
        self.made.append(self)
        self.topic = topic
        self.is_open = True

    def read_to_end(self, _: float) -> Iterator[tuple[bytes, bytes | None]]:
        if self.failing.get(self.topic, 0) > 0:
            self.failing[self.topic] -= 1
            raise RetriableError("no leader")
        return iter(())

    def close(self) -> None:
        self.is_open = False


SYNCS, CHECKPOINTS = "mm2-offset-syncs.east.internal", "west.checkpoints.internal"


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> CheckpointReader:
    monkeypatch.setattr(checkpoint, "LogReader", Log)
    monkeypatch.setattr(Log, "made", [])
    monkeypatch.setattr(Log, "failing", {})
    context = TaskContext("mirror", 0, {**GIVEN, "task.assigned.groups": "shop"})
    return CheckpointReader(context, Flow.read(GIVEN, settings.CHECKPOINT))


def test_a_task_that_begins_again_leaves_no_client_open(reader: CheckpointReader) -> None:
    Log.failing[SYNCS] = 1
    with pytest.raises(RetriableError):
        reader.initialOffset()
    assert reader.initialOffset() == {"round": 0}
    reader.stop()
    assert [one.topic for one in Log.made] == [SYNCS, CHECKPOINTS]
    assert not any(one.is_open for one in Log.made)


def test_earlier_checkpoints_are_read_again_for_a_while(reader: CheckpointReader) -> None:
    Log.failing[CHECKPOINTS] = 3
    for _ in range(2):
        with pytest.raises(RetriableError):
            reader.initialOffset()
    driver = reader._driver
    assert driver is not None
    driver._load_until_s = 0.0
    assert reader.initialOffset() == {"round": 0}
    assert driver._known().only_last  # without them
    reader.stop()
    assert [one.topic for one in Log.made] == [SYNCS, *[CHECKPOINTS] * 3]
    assert not any(one.is_open for one in Log.made)


def test_consumers_of_tasks_that_went_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    class Consumer:
        def __init__(self, given: dict[str, str]) -> None:
            self._name = given["client.id"]

        def close(self) -> None:
            closed.append(self._name)

    monkeypatch.setattr(ranges, "Consumer", Consumer)
    monkeypatch.setattr(ranges, "_CONSUMERS", {})
    empty = [SinkRange("t", 0, 0, 0)]
    monkeypatch.setattr(Consumer, "incremental_assign", lambda *_: None, raising=False)
    for name in ("gone", "here"):
        assert list(ranges.read_ranges(name, {"client.id": name}, empty)) == []
    found = ranges._CONSUMERS[os.getpid(), "gone"]
    found.used_s -= kafka_ranges.IDLE_SECONDS_MAX + 1
    assert list(ranges.read_ranges("here", {"client.id": "another"}, empty)) == []
    assert closed == ["gone"]
