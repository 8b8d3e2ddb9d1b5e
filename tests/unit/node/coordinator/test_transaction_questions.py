"""What a partition's leader asks another node's coordinator, and coordinators ask other leaders."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.node.coordinator.transaction.markers import RETRY_MS, Markers, MarkerSender
from barnabas.node.coordinator.transaction.verifier import TransactionVerifier
from barnabas.node.loop.promise import Promise
from barnabas.node.net.client import UnsupportedByPeerError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from sim.manual_clock import ManualClock
from support.other_brokers import HERE, THERE, OtherBrokers

PLACE = TopicPartition("t", 0)


async def turn() -> None:
    """Let everything run that can."""
    for _ in range(30):
        await asyncio.sleep(0)


class Topics:
    """The leaders of partitions, for any topic."""

    def __init__(self, leader: int) -> None:
        self.leaders: dict[TopicPartition, int] = {}
        self.leader = leader

    def partition(self, topic: str, index: int) -> Any:
        return SimpleNamespace(leader=self.leaders.get(TopicPartition(topic, index), self.leader))


# -- is a partition part of a transaction?


def verified(request: Any) -> AddPartitionsToTxnResponse:
    """Each partition is part of its transaction, but those of the id "other"."""
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id,
                topic_results=[
                    AddPartitionsToTxnTopicResult(
                        name=topic.name,
                        results_by_partition=[
                            AddPartitionsToTxnPartitionResult(
                                partition_index=index,
                                partition_error_code=ErrorCode.INVALID_TXN_STATE
                                if transaction.transactional_id == "other"
                                else ErrorCode.NONE,
                            )
                            for index in topic.partitions
                        ],
                    )
                    for topic in transaction.topics
                ],
            )
            for transaction in request.transactions
            if transaction.transactional_id != "left out"
        ]
    )


def verifier_of(others: OtherBrokers) -> TransactionVerifier:
    image: Any = SimpleNamespace(topics=Topics(THERE))
    coordinator: Any = SimpleNamespace(partition_for=lambda _: 0)
    peers: Any = others
    return TransactionVerifier(ManualClock(), peers, lambda: image, coordinator)


def question(verifier: TransactionVerifier, transactional_id: str) -> Any:
    return verifier._ask_once(transactional_id, (7, 0), [PLACE], False)


async def test_questions_to_one_coordinator_go_together() -> None:
    others = OtherBrokers(verified)
    verifier = verifier_of(others)
    asked = [question(verifier, name) for name in ("id", "other", "left out", "id")]
    answers = [(await answer)[PLACE] for answer in asked]
    assert answers == [
        ErrorCode.NONE,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NONE,
    ]
    sent = [[entry.transactional_id for entry in one.transactions] for one in others.requests]
    assert sent == [["id", "other", "left out"], ["id"]]
    await verifier.close()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (ConnectionResetError(), ErrorCode.NETWORK_EXCEPTION),
        (TimeoutError(), ErrorCode.NETWORK_EXCEPTION),
        (UnsupportedByPeerError(), ErrorCode.NONE),
        (
            AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            ErrorCode.INVALID_TXN_STATE,
        ),
        (
            AddPartitionsToTxnResponse(error_code=ErrorCode.NOT_COORDINATOR),
            ErrorCode.NOT_COORDINATOR,
        ),
    ],
    ids=str,
)
async def test_a_coordinator_that_does_not_say(answer: Any, expected: ErrorCode) -> None:
    verifier = verifier_of(OtherBrokers(lambda _: answer))
    assert await question(verifier, "id") == {PLACE: expected}


async def test_a_coordinator_without_an_address_is_not_asked() -> None:
    others = OtherBrokers(verified)
    others.is_known = False
    answer = question(verifier_of(others), "id")
    assert answer == {PLACE: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert not others.requests


async def test_who_asks_after_the_end_is_told() -> None:
    others = OtherBrokers(verified)
    verifier = verifier_of(others)
    before = question(verifier, "id")
    await verifier.close()
    assert others.is_closed
    assert before.is_settled
    assert question(verifier, "id") == {PLACE: ErrorCode.COORDINATOR_NOT_AVAILABLE}


# -- markers


def written(request: Any, error: ErrorCode = ErrorCode.NONE) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=error
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


class Sending:
    """Partition 0 is led by the other node, partition 1 here."""

    def __init__(self) -> None:
        self.others = OtherBrokers(written)
        self.clock = ManualClock()
        self.here: list[Any] = []
        self.promises: list[Promise[Any]] = []
        self.topics = Topics(THERE)
        self.topics.leaders[TopicPartition("t", 1)] = HERE
        self.done: list[str] = []
        image: Any = SimpleNamespace(topics=self.topics)
        peers: Any = self.others
        self.sender = MarkerSender(self.clock, peers, lambda: image, self.write_here)
        self.sender.on_written = lambda markers: self.done.append(markers.transactional_id)

    def write_here(self, request: Any) -> Any:
        self.here.append(request)
        self.promises.append(Promise())
        return self.promises[-1]

    def send(self, name: str, *indexes: int) -> Markers:
        missing = {TopicPartition("t", index): None for index in indexes}
        markers = Markers(0, 0, name, len(name), 0, True, 2, missing)
        self.sender.send(markers)
        return markers

    async def pass_time(self, duration_ms: int = 0) -> None:
        for _ in range(3):
            await turn()
            self.clock.advance(duration_ms)
            duration_ms = 0
        await turn()


def producers(requests: list[Any]) -> list[list[int]]:
    return [[marker.producer_id for marker in request.markers] for request in requests]


async def test_markers_for_one_node_go_together() -> None:
    sending = Sending()
    sending.send("a", 0)
    sending.send("bb", 0, 1)
    await sending.pass_time()
    assert producers(sending.others.requests) == [[1, 2]]
    assert producers(sending.here) == [[2]]
    assert sending.done == ["a"]
    sending.send("ccc", 1)
    await sending.pass_time()
    assert producers(sending.here) == [[2]], "one request at a time"
    sending.promises[0].settle(written(sending.here[0]))
    await sending.pass_time()
    assert producers(sending.here) == [[2], [3]]
    assert sending.done == ["a", "bb"]


@pytest.mark.parametrize(
    "trouble", [ConnectionResetError(), TimeoutError(), ErrorCode.NOT_LEADER_OR_FOLLOWER, None]
)
async def test_markers_find_the_leader_of_later(trouble: Any) -> None:
    sending = Sending()
    if trouble is None:
        sending.others.is_known = False
    elif isinstance(trouble, ErrorCode):
        sending.others.answer = lambda request: written(request, trouble)
    else:
        sending.others.answer = lambda _: trouble
    sending.send("a", 0)
    await sending.pass_time()
    asked = len(sending.others.requests)
    assert asked == (trouble is not None)
    assert not sending.done
    sending.topics.leader = HERE
    await sending.pass_time(RETRY_MS)
    assert producers(sending.here) == [[1]]
    assert len(sending.others.requests) == asked


async def test_markers_that_are_given_up_are_not_sent() -> None:
    sending = Sending()
    sending.send("a", 0)
    sending.sender.forget(0)
    await sending.pass_time(RETRY_MS)
    assert not sending.others.requests
    assert not sending.sender.pending


async def test_the_end_gives_up_what_waits() -> None:
    sending = Sending()
    sending.others.answer = lambda _: ConnectionAbortedError()
    sending.send("a", 0)
    await turn()
    sending.send("bb", 0)
    await sending.sender.close()
    assert sending.others.is_closed
    assert not sending.sender.pending
    asked = len(sending.others.requests)
    await sending.pass_time(10 * RETRY_MS)
    assert (len(sending.others.requests), sending.done) == (asked, [])
