"""Traces of requests, on one node and on three: what happens to a record and to a transaction."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import barnabas
from barnabas.app import node as app_node
from barnabas.node.config.node_config import NodeConfig
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
)
from support.node_process import wait_until
from support.noted_spans import NotedSpan, NotedSpans, NotingTracer
from support.patience import PATIENCE_S
from support.raw_client import RawClient


class World:
    """A cluster whose nodes trace every request."""

    def __init__(
        self, cluster: barnabas.Cluster, noted: NotedSpans, tracers: list[NotingTracer]
    ) -> None:
        self.cluster, self.noted, self.tracers = cluster, noted, tracers
        self.count = len(tracers)

    def topic(self, name: str, partitions: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers})
        made = admin.create_topics([NewTopic(name, partitions, self.count)])
        made[name].result(PATIENCE_S)

    def producer(self, **more: Any) -> Producer:
        settings = {"bootstrap.servers": self.cluster.bootstrap_servers, "acks": "all"}
        return Producer({**settings, "client.id": "traced", "linger.ms": 0, **more})

    def await_one(self, what: Callable[[], list[NotedSpan]], name: str) -> NotedSpan:
        wait_until(lambda: bool(what()), name)
        return what()[0]


@pytest.fixture(params=[1, 3], ids=["one node", "three nodes"])
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    noted = NotedSpans()
    tracers: list[NotingTracer] = []

    def open_tracer(config: NodeConfig, _clock: object, _random: random.Random) -> NotingTracer:
        tracers.append(NotingTracer(noted, config.node_id))
        return tracers[-1]

    monkeypatch.setattr(app_node, "open_tracer", open_tracer)
    with barnabas.Cluster(request.param) as cluster:
        assert len(tracers) == request.param
        yield World(cluster, noted, tracers)
    assert all(tracer.is_closed for tracer in tracers)


def produced(noted: NotedSpans, topic: str) -> list[NotedSpan]:
    """The requests that have written to a topic."""
    return [
        span
        for span in noted.requests("PRODUCE")
        if any(part.attributes.get("messaging.destination.name") == topic for part in span.parts)
    ]


def test_a_record_for_all_replicas(world: World) -> None:
    world.topic("orders", 1)
    producer = world.producer()
    before_ns = time.perf_counter_ns()
    for number in range(3):
        # One after the other: each is a request, and the second and third repeat the first.
        producer.produce("orders", f"value {number}")
        assert producer.flush(PATIENCE_S) == 0
    wait_until(lambda: len(produced(world.noted, "orders")) == 3, "three requests")
    for number, span in enumerate(produced(world.noted, "orders")):
        append, response = span.part_named("log append"), span.part_named("response")
        queue = span.part_named("queue")
        assert append.attributes["messaging.destination.partition.id"] == "0"
        assert append.attributes["messaging.kafka.offset"] == number
        assert int(append.attributes["messaging.message.body.size"]) > 60
        assert span.attributes["messaging.client.id"] == "traced"
        assert span.attributes["client.address"] == "127.0.0.1"
        assert queue.started_ns == span.started_ns
        times = [before_ns, span.started_ns, queue.ended_ns or 0]
        times += [append.started_ns, append.ended_ns or 0]
        if world.count > 1:
            wait = span.part_named("wait for replicas")
            assert wait.attributes["barnabas.end_offset"] == number + 1
            assert int(wait.attributes["barnabas.in_sync_replicas"]) >= 2
            assert wait.error is None
            times += [wait.started_ns, wait.ended_ns or 0]
        times += [response.started_ns, response.ended_ns or 0, span.ended_ns or 0]
        assert times == sorted(times), [part.name for part in span.parts]
        names = {"queue", "log append", "response"}
        names |= {"wait for replicas"} if world.count > 1 else set()
        assert {part.name for part in span.parts} == names


def test_what_a_log_refuses_is_an_error_of_the_append(world: World) -> None:
    world.topic("small", 1)
    noted = world.noted
    producer = world.producer(**{"message.max.bytes": 10_000_000})
    failed: list[Any] = []
    producer.produce("small", b"x" * 2_000_000, on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(PATIENCE_S) == 0
    assert failed[0] is not None
    span = world.await_one(lambda: produced(noted, "small"), "the request")
    assert span.part_named("log append").error == "MESSAGE_TOO_LARGE"


@pytest.mark.parametrize("is_commit", [True, False])
def test_the_end_of_a_transaction(world: World, is_commit: bool) -> None:
    world.topic("paid", 3)
    producer = world.producer(**{"transactional.id": "till"})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for partition in range(3):
        producer.produce("paid", "value", partition=partition)
    producer.flush(PATIENCE_S)
    if is_commit:
        producer.commit_transaction(PATIENCE_S)
    else:
        producer.abort_transaction(PATIENCE_S)
    span = world.await_one(lambda: world.noted.requests("END_TXN"), "the request")

    def has_completed() -> bool:
        return any(part.name == "complete" and part.ended_ns for part in span.parts)

    wait_until(has_completed, "the end of the transaction")
    prepare, complete = span.part_named("prepare"), span.part_named("complete")
    assert prepare.attributes["barnabas.transactional_id"] == "till"
    assert prepare.attributes["barnabas.is_commit"] is is_commit
    markers = [part for part in span.parts if part.name == "write marker"]
    where = {part.attributes["messaging.destination.partition.id"] for part in markers}
    assert where == {"0", "1", "2"}
    assert len({part.attributes["barnabas.leader"] for part in markers}) == world.count
    assert all(
        prepare.started_ns <= marker.started_ns <= marker.ended_ns <= complete.ended_ns
        for marker in markers
        if marker.ended_ns and complete.ended_ns
    )
    assert {part.ended_ns is not None for part in markers} == {True}
    assert (prepare.error, complete.error, span.error) == (None, None, None)


def test_the_repeat_of_an_end_traces_no_later_one(world: World) -> None:
    world.topic("paid", 1)
    producer = world.producer(**{"transactional.id": "till"})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce("paid", "value")
    producer.commit_transaction(PATIENCE_S)
    repeat_commit(world.cluster.bootstrap_servers, "till")
    wait_until(lambda: len(world.noted.requests("END_TXN")) == 2, "two requests")
    _, repeat = world.noted.requests("END_TXN")
    for tracer in world.tracers:
        tracer.is_on = False
    producer.begin_transaction()
    producer.produce("paid", "value")
    producer.commit_transaction(PATIENCE_S)
    assert {part.name for part in repeat.parts} <= {"queue", "prepare", "response"}


def repeat_commit(bootstrap_servers: str, name: str) -> None:
    """Send the request again that has committed the last transaction."""
    found = FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
    with RawClient(bootstrap_servers) as raw:
        (place,) = raw.call(found, FindCoordinatorResponse).coordinators
    with RawClient(f"{place.host}:{place.port}") as raw:
        asked = DescribeTransactionsRequest(transactional_ids=[name])

        def described() -> Any:
            (state,) = raw.call(asked, DescribeTransactionsResponse).transaction_states
            return state

        wait_until(
            lambda: described().transaction_state == "CompleteCommit", "the end", shown=described
        )
        request = EndTxnRequest(
            transactional_id=name,
            producer_id=described().producer_id,
            producer_epoch=described().producer_epoch,
            committed=True,
        )
        assert raw.call(request, EndTxnResponse, 3).error_code == ErrorCode.NONE


def test_a_wait_that_is_no_write_is_told_from_work(world: World) -> None:
    """A group's coordinator has nothing to say of a join: it is work, and a wait."""
    from confluent_kafka import Consumer

    world.topic("read", 1)
    settings: dict[str, Any] = {
        "bootstrap.servers": world.cluster.bootstrap_servers,
        "group.id": "readers",
    }
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe(["read"])
    producer = world.producer()
    producer.produce("read", "value")
    assert producer.flush(PATIENCE_S) == 0
    deadline = time.monotonic() + PATIENCE_S
    while (record := consumer.poll(1.0)) is None:
        assert time.monotonic() < deadline
    assert record.error() is None
    consumer.commit(message=record, asynchronous=False)
    consumer.close()
    for name in ("JOIN_GROUP", "OFFSET_COMMIT"):
        span = world.await_one(lambda name=name: world.noted.requests(name), name)  # type: ignore[misc]  # mypy cannot infer a default
        assert {part.name for part in span.parts} <= {"queue", "wait", "response"}

    def has_waited() -> bool:
        return any(part.name == "wait" for s in world.noted.requests("FETCH") for part in s.parts)

    wait_until(has_waited, "a fetch that waited for more")
