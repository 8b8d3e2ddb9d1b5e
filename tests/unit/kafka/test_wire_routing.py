"""Requests about many partitions while their leaders move: how many there are, and to whom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.kafka import wire_routing
from barnabas.kafka.transaction_admin import find_hanging
from barnabas.kafka.wire import Access
from barnabas.kafka.wire_admin import AbsentError, RefusedError, WireAdmin
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import transactions as messages
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

PARTITIONS = 10_000
NODES = 3
HANGING = TopicPartition("many", 4_321)


class MovingCluster:
    """A topic whose metadata names other leaders than there are, until it was asked for so often.

    A transaction hangs in one of its partitions, and no coordinator knows of it.
    """

    def __init__(self, wrong_looks: int, moved: int = PARTITIONS) -> None:
        self.wrong_looks, self.moved = wrong_looks, moved
        self.asked: list[tuple[str, int | None]] = []

    def count(self, kind: str) -> int:
        return sum(one == kind for one, _ in self.asked)

    def ask(self, request: Any, broker: int | None = None) -> Any:
        self.asked.append((type(request).__name__, broker))
        if isinstance(request, MetadataRequest):
            wrong = self.count("MetadataRequest") <= self.wrong_looks
            return self._metadata(1 if wrong else 0)
        if isinstance(request, messages.DescribeProducersRequest):
            return self._producers(request, broker)
        assert isinstance(request, messages.ListTransactionsRequest)
        return messages.ListTransactionsResponse()

    def _metadata(self, shift: int) -> MetadataResponse:
        parts = [
            MetadataResponsePartition(
                partition_index=number,
                leader_id=(number + (shift if number < self.moved else 0)) % NODES,
                replica_nodes=[0, 1, 2],
                isr_nodes=[0, 1, 2],
            )
            for number in range(PARTITIONS)
        ]
        return MetadataResponse(topics=[MetadataResponseTopic(name="many", partitions=parts)])

    def _producers(self, request: Any, broker: int | None) -> messages.DescribeProducersResponse:
        (topic,) = request.topics
        return messages.DescribeProducersResponse(
            topics=[
                messages.TopicResponse(
                    name=topic.name,
                    partitions=[self._part(number, broker) for number in topic.partition_indexes],
                )
            ]
        )

    def _part(self, number: int, broker: int | None) -> messages.PartitionResponse:
        if number % NODES != broker:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            return messages.PartitionResponse(partition_index=number, error_code=code)
        open_one = messages.ProducerState(
            producer_id=7, producer_epoch=1, last_timestamp=0, current_txn_start_offset=5
        )
        found = [open_one] if number == HANGING.partition else []
        return messages.PartitionResponse(partition_index=number, active_producers=found)


@pytest.fixture
def admin(request: pytest.FixtureRequest) -> Iterator[tuple[WireAdmin, MovingCluster]]:
    fake = MovingCluster(*request.param)
    admin = WireAdmin(Access("127.0.0.1:1", timeout_seconds=60))
    brokers = mock.Mock(live=list(range(NODES)))

    with (
        mock.patch.object(WireAdmin, "ask", lambda _, *given: fake.ask(*given)),
        mock.patch.object(WireAdmin, "describe", return_value=brokers),
        mock.patch.object(WireAdmin, "pause"),
    ):
        admin._cluster = brokers
        yield admin, fake


def search(admin: WireAdmin) -> list[TopicPartition]:
    found = find_hanging(
        admin, topic=None, partition=None, broker=None, timeout_ms=1, now_ms=1_000_000
    )
    return [item.place for item in found]


@pytest.mark.parametrize("admin", [(1,), (3,), (2, 5)], indirect=True)
def test_partitions_that_moved_are_asked_for_together(
    admin: tuple[WireAdmin, MovingCluster],
) -> None:
    wire, fake = admin
    assert search(wire) == [HANGING]
    rounds = fake.wrong_looks + 1
    assert fake.count("MetadataRequest") == rounds
    assert fake.count("DescribeProducersRequest") <= NODES * rounds


@pytest.mark.parametrize("admin", [(0,)], indirect=True)
def test_a_request_names_a_bounded_number_of_partitions(
    admin: tuple[WireAdmin, MovingCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    wire, fake = admin
    monkeypatch.setattr(wire_routing, "PLACES_MAX", 1_000)
    assert search(wire) == [HANGING]
    assert fake.count("MetadataRequest") == 1
    assert fake.count("DescribeProducersRequest") == 4 * NODES


@pytest.mark.parametrize("admin", [(1_000_000, 1)], indirect=True)
def test_a_partition_that_no_node_leads_is_named_when_time_is_up(
    admin: tuple[WireAdmin, MovingCluster],
) -> None:
    wire, _ = admin
    wire.timeout_s = 0.0
    with pytest.raises(RefusedError) as error:
        search(wire)
    assert (error.value.code, error.value.what) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, "many-0")


@pytest.mark.parametrize("admin", [(0,)], indirect=True)
def test_a_partition_that_is_not_there(admin: tuple[WireAdmin, MovingCluster]) -> None:
    with pytest.raises(AbsentError, match="there is no partition many-10000"):
        wire_routing.leader_of(admin[0], TopicPartition("many", PARTITIONS))
