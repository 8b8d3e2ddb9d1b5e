"""Offsets of leaders that may be dead, with clients that are no network's."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import NewTopic, OffsetSpec

from barnabas.app.testing import Kafka
from barnabas.kafka.admin import Admin, OffsetLister, answer_of, told_offset
from support.stale_admin import StaleAdmin

ENDS: dict[TopicPartition, OffsetSpec] = {TopicPartition("t", 0): OffsetSpec.latest()}


def answer(offset: int) -> Any:
    return SimpleNamespace(offset=offset)


def test_an_offset_that_no_leader_told_is_none() -> None:
    assert [told_offset(answer(offset)) for offset in (7, 0, -1)] == [7, 0, -1]
    with pytest.raises(KafkaException) as raised:
        told_offset(answer(OFFSET_INVALID))
    assert raised.value.args[0].code() == KafkaError._TIMED_OUT


@pytest.mark.parametrize(
    "failure", [OFFSET_INVALID, KafkaException(KafkaError(KafkaError.FENCED_LEADER_EPOCH))]
)
def test_a_client_that_failed_is_asked_no_more(failure: Any) -> None:
    StaleAdmin.begin(failure, 7)
    made: list[weakref.ref[Any]] = []

    def make() -> Any:
        client = StaleAdmin()
        made.append(weakref.ref(client))
        return client

    lister = OffsetLister(make)
    with pytest.raises(KafkaException) as raised:
        lister.list(ENDS, 5.0)
    # The garbage collector may come by in a thread of the client's own: it is gone before.
    assert raised.value is not None
    assert made[0]() is None
    for _ in range(2):
        assert lister.list(ENDS, 5.0) == {("t", 0): 7}
    assert len(made) == 2


def test_an_error_keeps_nothing_of_those_it_passed() -> None:
    kept: list[weakref.ref[StaleAdmin]] = []

    def ask() -> None:
        StaleAdmin.begin(None)
        client = StaleAdmin()
        kept.append(weakref.ref(client))
        future: Future[None] = Future()
        future.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
        try:
            answer_of(future)
        except KafkaException:
            return

    gc.disable()
    try:
        ask()
        assert kept[0]() is None
    finally:
        gc.enable()


def test_a_cluster_is_administrated(kafka: Kafka) -> None:
    admin = Admin(kafka.client_config)
    there, absent = kafka.topic(partitions=2), "admin-absent"
    new = NewTopic("admin-new", 3, 1, config={"cleanup.policy": "compact"})
    assert admin.create([new, NewTopic(there, 1, 1)]) == ["admin-new"]
    assert admin.create([]) == []
    assert set(admin.describe([there, absent, "admin-new"])) == {there, "admin-new"}
    assert absent not in admin.partition_counts()
    assert admin.configuration("admin-new")["cleanup.policy"] == "compact"
    kafka.produce(there, [b"a", b"b"])
    asked = {TopicPartition(there, number): OffsetSpec.latest() for number in range(2)}
    assert sum(admin.offsets(asked).values()) == 2
    admin.delete("admin-new")
    admin.delete(absent)
    assert admin.create([new]) == ["admin-new"]
    with pytest.raises(KafkaException) as raised:
        admin.delete_group("nobody")
    assert raised.value.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND
    assert admin.metadata().cluster_id
    admin.close()
