"""A sink task's membership, when librdkafka's calls fail; the consumer is a script."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_INVALID, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Partition

from barnabas.connect.connectors.base import SinkRange, TopicPartition
from barnabas.connect.tasks import kafka_group
from barnabas.connect.tasks.kafka_group import KafkaGroup
from barnabas.schemas.data.errors import ConnectError, RetriableError

A, B = ("t", 0), ("t", 1)


def trouble(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


class Answer:
    """A partition in an answer; librdkafka's own cannot be made with an error."""

    def __init__(self, place: TopicPartition, offset: int, code: int | None = None) -> None:
        self.topic, self.partition = place
        self.offset = offset
        self.error = None if code is None else KafkaError(code)


class ScriptedConsumer:
    """Ends, beginnings and commits of partitions; `raises` are errors of the next calls by name."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self.raises: dict[str, list[KafkaException]] = {}
        self.calls: list[str] = []
        self.ends: dict[TopicPartition, int] = {A: 5, B: 7}
        self.errors: dict[TopicPartition, int] = {}
        self.stored: dict[TopicPartition, int] = {}
        self.topics: dict[str, None] = {}
        self.next: list[Callable[[], None]] = []

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.raises.get(name):
            raise self.raises[name].pop(0)

    def subscribe(self, topics: list[str], **callbacks: Any) -> None:
        self.calls.append(f"subscribe {topics}")
        self.callbacks = callbacks

    def assigns(self, *places: TopicPartition) -> None:
        """The next poll deals out partitions."""
        given = [Partition(*place) for place in places]
        self.next.append(lambda: self.callbacks["on_assign"](self, given))

    def revokes(self, *places: TopicPartition) -> None:
        given = [Partition(*place) for place in places]
        self.next.append(lambda: self.callbacks["on_revoke"](self, given))

    def poll(self, seconds: float) -> None:
        if self.next:
            self.next.pop(0)()

    def incremental_assign(self, places: Sequence[Any]) -> None:
        self._called("assign")

    def incremental_unassign(self, places: Sequence[Any]) -> None:
        self._called("unassign")

    def pause(self, places: Sequence[Any]) -> None:
        self._called("pause")

    def list_topics(self, timeout: float) -> Any:
        self._called("list_topics")
        return self

    def committed(self, places: Sequence[Any], timeout: float) -> list[Answer]:
        self._called("committed")
        found = [(one.topic, one.partition) for one in places]
        return [
            Answer(one, self.stored.get(one, OFFSET_INVALID), self.errors.get(one)) for one in found
        ]

    def offsets_for_times(self, places: Sequence[Any], timeout: float) -> list[Answer]:
        self._called("offsets")
        return [
            Answer(
                (one.topic, one.partition),
                0 if one.offset == OFFSET_BEGINNING else self.ends[one.topic, one.partition],
                self.errors.get((one.topic, one.partition)),
            )
            for one in places
        ]

    def commit(self, *, offsets: Sequence[Any], asynchronous: bool) -> list[Answer]:
        self._called("commit")
        done = []
        for one in offsets:
            place = one.topic, one.partition
            code = self.errors.get(place)
            if code is None:
                self.stored[place] = one.offset
            done.append(Answer(place, one.offset, code))
        return done

    def unsubscribe(self) -> None:
        self._called("unsubscribe")

    def close(self) -> None:
        if self.callbacks:
            for react in self.next:
                react()


class Heard:
    """A GroupListener that keeps what it hears."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.error: Exception | None = None

    def assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append(f"assigned {list(partitions)}")

    def revoked(self, partitions: Sequence[TopicPartition], *, is_lost: bool) -> None:
        self.calls.append(f"revoked {list(partitions)}")
        if self.error is not None:
            raise self.error


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_group, "Consumer", ScriptedConsumer)


def joined(heard: Heard, **connector: str) -> tuple[KafkaGroup, Any]:
    group = KafkaGroup({}, connector or {"topics": "t"}, heard)
    return group, group._consumer


def test_partitions_wait_until_their_offsets_can_be_read(heard: Heard) -> None:
    group, consumer = joined(heard)
    consumer.stored = {A: 2}
    consumer.raises["committed"] = [trouble(KafkaError._TIMED_OUT), trouble(KafkaError._TRANSPORT)]
    consumer.assigns(A, B)
    for _ in range(2):
        with pytest.raises(RetriableError, match="cannot read committed offsets"):
            group.poll(0)
        assert group.ranges() == ()
    group.poll(0)
    assert heard.calls == [f"assigned {[A, B]}"]
    assert group.ranges() == [SinkRange(*A, 2, 5), SinkRange(*B, 0, 7)]


def test_offset_of_one_partition_that_cannot_be_read_is_asked_for_again(heard: Heard) -> None:
    group, consumer = joined(heard)
    consumer.errors[B] = KafkaError.UNSTABLE_OFFSET_COMMIT
    consumer.assigns(A, B)
    with pytest.raises(RetriableError, match="cannot read committed offsets"):
        group.poll(0)
    consumer.errors.clear()
    group.poll(0)
    assert set(group.partitions) == {A, B}


def test_partitions_that_are_taken_away_before_they_were_opened_are_closed_by_nobody(
    heard: Heard,
) -> None:
    group, consumer = joined(heard)
    consumer.raises["committed"] = [trouble(KafkaError._TIMED_OUT)]
    consumer.assigns(A, B)
    with pytest.raises(RetriableError):
        group.poll(0)
    consumer.revokes(A)
    group.poll(0)
    assert heard.calls == [f"assigned {[B]}"]
    assert consumer.calls[-2:] == ["unassign", "committed"]


@pytest.mark.parametrize("call", ["assign", "pause"])
def test_partitions_that_cannot_be_taken_end_the_task_in_words(heard: Heard, call: str) -> None:
    group, consumer = joined(heard)
    consumer.raises[call] = [trouble(KafkaError._STATE)]
    consumer.assigns(A)
    with pytest.raises(ConnectError, match="cannot take partitions: "):
        group.poll(0)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.REBALANCE_IN_PROGRESS, RetriableError),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, ConnectError),
    ],
)
def test_commit_that_is_refused(heard: Heard, code: int, kind: type[ConnectError]) -> None:
    group, consumer = joined(heard)
    consumer.raises["commit"] = [trouble(code)]
    with pytest.raises(ConnectError, match="cannot commit offsets") as found:
        group.commit({A: 1})
    assert type(found.value) is kind


def test_commit_that_is_refused_of_one_partition_is_no_success(heard: Heard) -> None:
    group, consumer = joined(heard)
    consumer.errors[B] = KafkaError.UNKNOWN_TOPIC_OR_PART
    with pytest.raises(RetriableError, match="cannot commit the offset of t-1"):
        group.commit({A: 1, B: 2})
    assert consumer.stored == {A: 1}


def test_offsets_are_asked_for_all_partitions_at_once(heard: Heard) -> None:
    group, consumer = joined(heard)
    consumer.assigns(A, B)
    group.poll(0)
    consumer.calls.clear()
    group.advance(group.ranges())
    assert consumer.calls == ["offsets", "offsets"]
    assert group.ranges() == ()
    assert consumer.calls == ["offsets"] * 3, "beginnings are asked for where there is something"


def test_partition_without_a_leader_does_not_hold_up_others(
    heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    group, consumer = joined(heard)
    consumer.assigns(A, B)
    group.poll(0)
    consumer.errors[B] = KafkaError.LEADER_NOT_AVAILABLE
    for _ in range(2):
        assert group.ranges() == [SinkRange(*A, 0, 5)]
    assert caplog.text.count("cannot ask for offsets of t-1") == 1
    consumer.errors[A] = KafkaError.LEADER_NOT_AVAILABLE
    with pytest.raises(RetriableError, match="cannot ask for offsets of t-0"):
        group.ranges()
    consumer.errors = {B: KafkaError.TOPIC_AUTHORIZATION_FAILED}
    with pytest.raises(ConnectError, match="cannot ask for offsets of t-1") as found:
        group.ranges()
    assert not isinstance(found.value, RetriableError)


def test_topics_are_looked_for_again_soon_where_none_was_found(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    group, consumer = joined(heard, **{"topics.regex": r"\p{Lower}&&[^o]|t.*"})
    consumer.raises["list_topics"] = [trouble(KafkaError._TRANSPORT)]
    with pytest.raises(RetriableError, match="cannot list topics"):
        group.poll(0)
    for later in (4.9, 5.1, 10.2):
        now = 1000.0 + later
        group.poll(0)
    consumer.topics = {"t": None, "other": None}
    for later in (15.3, 300.0, 316.0):
        now = 1000.0 + later
        group.poll(0)
    assert consumer.calls == [*["list_topics"] * 4, "subscribe ['t']", "list_topics"]


def test_what_fails_while_the_group_is_left_is_logged(
    heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    group, consumer = joined(heard)
    consumer.assigns(A)
    group.poll(0)
    heard.error = ConnectError("the other system is gone")
    consumer.revokes(A)
    with caplog.at_level(logging.WARNING):
        group.close()
    assert "leaving the group: the other system is gone" in caplog.text
