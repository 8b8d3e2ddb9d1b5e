"""A server in its group: it reports why it has no slots, and rejoins."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from barnabas.kafka import admin
from barnabas.sql.engine.cluster import ClusterError
from barnabas.sql.server import membership
from barnabas.sql.server.kafka_follower import asked
from barnabas.sql.server.membership import Membership
from support.memory_cluster import MemoryCluster
from support.node_process import wait_until


class FakeMessage:
    def __init__(self, code: int) -> None:
        self.code = code

    def error(self) -> KafkaError:
        return KafkaError(self.code)


class FakeConsumer:
    """Hands slots out; `events` come with the next polls."""

    def __init__(self, settings: Any) -> None:
        self.events: list[Callable[[], FakeMessage | None]] = []
        self.joined = 0

    def subscribe(self, topics: list[str], on_assign: Any, **given: Any) -> None:
        self.joined += 1
        self.events.append(lambda: on_assign(self, [TopicPartition("slots", 3)]))

    def unsubscribe(self) -> None: ...

    def poll(self, timeout_s: float) -> FakeMessage | None:
        return self.events.pop(0)() if self.events else None

    def incremental_assign(self, places: Any) -> None: ...

    def pause(self, places: Any) -> None: ...

    def close(self) -> None: ...


class FakeAdmin:
    """Leaves questions about groups to the test."""

    def __init__(self, settings: Any) -> None:
        self.asked: list[Future[Any]] = []

    def describe_consumer_groups(
        self, groups: list[str], request_timeout: float
    ) -> dict[str, Future[Any]]:
        assert request_timeout > 600.0  # the process ends where a coordinator comes after that
        self.asked.append(Future())
        return {groups[0]: self.asked[-1]}


@pytest.fixture
def member(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(membership, "Consumer", FakeConsumer)
    monkeypatch.setattr(admin, "AdminClient", FakeAdmin)
    owned: list[frozenset[int]] = []
    found = Membership(MemoryCluster(), {}, "test_", "http://a:1", owned.append)
    found.owned = owned  # type: ignore[attr-defined]
    found.start()
    yield found
    found.close()
    assert owned[-1] == frozenset()


def test_a_group_that_may_not_be_joined_is_told_once(
    member: Any, caplog: pytest.LogCaptureFixture
) -> None:
    refused = KafkaError.GROUP_AUTHORIZATION_FAILED
    member._consumer.events += [lambda: FakeMessage(refused)] * 3
    wait_until(lambda: not member._consumer.events, "all errors are read")
    wait_until(lambda: "Group authorization failed" in caplog.text, "it is told")
    assert caplog.text.count("Group authorization failed") == 1


def test_a_member_that_cannot_take_its_slots_joins_anew(member: Any) -> None:
    wait_until(lambda: frozenset({3}) in member.owned, "its slot")

    def fail() -> None:
        raise KafkaException(KafkaError(KafkaError._STATE))

    member._consumer.events.append(fail)
    wait_until(lambda: member._consumer.joined == 2, "it joins again")
    wait_until(lambda: member.owned[-1] == frozenset({3}), "its slot again")
    assert frozenset() in member.owned


def test_a_question_without_answer_is_waited_for_and_not_asked_again(
    member: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "_WAIT_S", 0.01)
    for _ in range(2):
        with pytest.raises(ClusterError, match=r"coordinator of the group .* does not answer"):
            member.servers()
    (question,) = member._admin.client.asked
    assignment = SimpleNamespace(topic_partitions=[TopicPartition("slots", 3)])
    servers = SimpleNamespace(client_id="barnabas-sql@http://a:1", assignment=assignment)
    others = SimpleNamespace(client_id="somebody", assignment=assignment)
    question.set_result(SimpleNamespace(members=[servers, others]))
    assert member.servers() == {"http://a:1": frozenset({3})}
    with pytest.raises(ClusterError):
        member.servers()
    again = member._admin.client.asked[1]
    again.set_exception(KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)))
    with pytest.raises(ClusterError):
        member.servers()
    assert len(member._admin.client.asked) == 2


def test_an_error_without_a_message_is_named() -> None:
    for told, words in (
        ("ConsumerGroupDescribe: ", "ConsumerGroupDescribe: COORDINATOR_LOAD_IN_PROGRESS"),
        ("ConsumerGroupDescribe: not now", "ConsumerGroupDescribe: not now"),
    ):
        error = KafkaException(KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, told))
        with pytest.raises(ClusterError, match=f"^{words}$"):
            asked(Mock(side_effect=error))
