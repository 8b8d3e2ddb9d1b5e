"""A transaction begins in a partition while the marker of the one before is still to come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.base.network import ListenerOptions
from barnabas.node.broker.apis.txn_offset_commit import handle_txn_offset_commit
from barnabas.node.broker.produce.handler import handle_produce
from barnabas.node.coordinator.group.offset_requests import txn_commit_error
from barnabas.node.log.producers.verification import Verification
from barnabas.node.metadata.image import PartitionImage
from barnabas.node.net.connection import Reply
from barnabas.node.net.request_trace import RequestTrace
from barnabas.node.replication.leadership import ReplicaContext
from barnabas.node.replication.partition import Partition
from barnabas.node.security.authorizer import ALLOW_ALL
from barnabas.protocol.codec import encode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from support.logs import TOPIC_ID, TOPIC_PARTITION, make_batch
from support.noted_spans import NotedSpan, NotedSpans
from support.verifier_world import EPOCH, NODE_ID, PRODUCER_ID, TRANSACTIONAL_ID, VerifierWorld

TURNS_MAX = 100
"""Of the event loop, by which every request is answered."""


class Broker(VerifierWorld):
    """The parts of a node that request handlers use. Its one partition also holds offsets."""

    def __init__(self, *answers: ErrorCode) -> None:
        super().__init__(*answers)
        self.trace: RequestTrace | None = None
        """Of requests whose context is made next."""
        clock = self.log.clock
        partition = Partition(
            TOPIC_PARTITION, TOPIC_ID, self.log.log, ReplicaContext(NODE_ID, clock)
        )
        partition.become_leader(
            PartitionImage((NODE_ID,), (NODE_ID,), NODE_ID, leader_epoch=0, partition_epoch=0)
        )
        known = SimpleNamespace(partitions={0: None})
        self.services: Any = SimpleNamespace(
            authorizer=ALLOW_ALL,
            clock=clock,
            replicas=SimpleNamespace(find=lambda *_: partition),
            image=SimpleNamespace(topics=SimpleNamespace(by_name={TOPIC_PARTITION.topic: known})),
            verifies_transactions=True,
            schemas=SimpleNamespace(is_needed=False),
            start=asyncio.ensure_future,
            verifier=self.verifier,
            groups=SimpleNamespace(
                partition_for=lambda group_id: 0, txn_offset_commit=self._commit
            ),
        )
        self.connection = SimpleNamespace(state=None, listener=ListenerOptions())

    def context(self, version: int) -> Any:
        return SimpleNamespace(
            api_version=version, client_id="", connection=self.connection, trace=self.trace
        )

    def _commit(
        self, request: TxnOffsetCommitRequest, verification: Verification | None
    ) -> TxnOffsetCommitResponse:
        return txn_commit_error(request, self.append(verification))


async def produce(broker: Broker) -> None:
    await answered(send(broker, 0))


async def answered(answer: Reply) -> None:
    for _ in range(TURNS_MAX):
        if answer.is_done:
            break
        await asyncio.sleep(0)


def send(broker: Broker, sequence: int) -> Reply:
    """Hand a batch of one record to the broker."""
    batch = make_batch("v", producer=(PRODUCER_ID, EPOCH, sequence), transactional=True)
    topic, index = TOPIC_PARTITION
    data = TopicProduceData(
        name=topic, partition_data=[PartitionProduceData(index=index, records=batch)]
    )
    request = ProduceRequest(
        transactional_id=TRANSACTIONAL_ID, acks=-1, timeout_ms=1500, topic_data=[data]
    )
    answer = handle_produce(broker.services, broker.context(12), bytearray(encode(request, 12)), 0)
    assert isinstance(answer, Reply)
    return answer


async def commit_offsets(broker: Broker) -> None:
    topic, index = TOPIC_PARTITION
    partition = TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=1)
    request = TxnOffsetCommitRequest(
        transactional_id=TRANSACTIONAL_ID,
        group_id="group",
        producer_id=PRODUCER_ID,
        producer_epoch=EPOCH,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    answer = handle_txn_offset_commit(broker.services, broker.context(5), request)
    assert isinstance(answer, Awaitable)
    response = await answer
    assert response.topics[0].partitions[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize("request_", [produce, commit_offsets])
@pytest.mark.parametrize("comes", ["while it waits", "while it asks"])
def test_it_begins_when_the_marker_is_there(
    request_: Callable[[Broker], Awaitable[None]], comes: str
) -> None:
    if comes == "while it waits":
        broker = Broker(ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE)
        broker.completing = [broker.mark]
    else:
        broker = Broker(ErrorCode.NONE, ErrorCode.NONE)
        broker.between = [broker.mark]

    async def run() -> None:
        await request_(broker)

    asyncio.run(run())
    assert not broker.answers
    assert broker.has_begun


def traced(broker: Broker, noted: NotedSpans) -> NotedSpan:
    """Have the next request traced; returns its span."""
    root = noted.note(NotedSpan(noted, NODE_ID, "PRODUCE", time.perf_counter_ns(), {}))
    broker.trace = RequestTrace(root, time.perf_counter_ns)
    return root


def test_a_trace_shows_the_coordinator_and_the_request_before() -> None:
    broker = Broker(ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE)
    broker.completing = [broker.mark]
    noted = NotedSpans()
    roots = []

    async def run() -> None:
        replies = []
        for sequence in range(2):
            roots.append(traced(broker, noted))
            replies.append(send(broker, sequence))
        for reply in replies:
            await answered(reply)

    asyncio.run(run())
    first, second = roots
    assert [part.name for part in first.parts] == ["verify", "log append"]
    assert [part.name for part in second.parts] == ["wait for turn", "log append"]
    verify, turn = first.part_named("verify"), second.part_named("wait for turn")
    assert verify.attributes == {"barnabas.transactional_id": TRANSACTIONAL_ID}
    assert verify.error is None
    assert verify.ended_ns is not None
    assert turn.ended_ns is not None
    assert verify.ended_ns <= first.part_named("log append").started_ns <= turn.ended_ns
    assert turn.ended_ns <= second.part_named("log append").started_ns


def test_a_trace_says_why_the_coordinator_refuses() -> None:
    broker = Broker(ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE)
    broker.completing = [broker.mark]
    root = traced(broker, NotedSpans())
    asyncio.run(produce(broker))
    assert root.part_named("verify").error == "INVALID_TXN_STATE"
    assert [part.name for part in root.parts] == ["verify"]
