"""Client quotas on a whole node: set by the API, they hold at once, and its figures tell."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from barnabas.app.local_nodes import format_standalone, standalone_properties
from barnabas.app.node import Node
from barnabas.base.clock import SystemClock
from barnabas.node.config.node_config import NodeConfig
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import encode_request
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.protocol.messages.quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.protocol.records.records import Record, encode_batch
from sim.fake_disk import FakeDisk
from support.client_quotas import alter
from support.node_process import wait_until
from support.raw_client import RawClient

T = TypeVar("T")
RECORDS = encode_batch([Record(value=b"x" * 10_000)])
QUICK = {"quota.window.num": "2", "controller.quota.window.num": "2"}
"""A second counts as elapsed at first, so that what is above a quota is soon made up for."""


@asynccontextmanager
async def running(overrides: dict[str, str] | None = None) -> AsyncIterator[Node]:
    config = NodeConfig.from_properties(standalone_properties("/data", overrides=overrides or {}))
    disk, clock = FakeDisk(), SystemClock()
    format_standalone(disk, config, random=random.Random(1), clock=clock)
    node = await Node.open(config, disk, clock)
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


async def asking(node: Node, work: Callable[[RawClient], T], listener: str = "PLAINTEXT") -> T:
    """Return the result of a client that sends requests while the node serves."""

    def ask() -> T:
        with RawClient(f"127.0.0.1:{node.bound_port(listener)}") as client:
            return work(client)

    return await asyncio.to_thread(ask)


def produce(client: RawClient, *, acks: int = -1) -> ProduceResponse:
    request = ProduceRequest(
        acks=acks,
        timeout_ms=5000,
        topic_data=[
            TopicProduceData(
                name="t", partition_data=[PartitionProduceData(index=0, records=RECORDS)]
            )
        ],
    )
    response = client.call(request, ProduceResponse, 12)
    (topic,) = response.responses
    assert topic.partition_responses[0].error_code == ErrorCode.NONE
    return response


def wait_of(client: RawClient) -> int:
    return produce(client).throttle_time_ms


def fetch(client: RawClient, *, session: tuple[int, int] = (0, -1)) -> FetchResponse:
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        session_id=session[0],
        session_epoch=session[1],
        topics=[
            FetchTopic(
                topic="t",
                partitions=[
                    FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
                ],
            )
        ],
    )
    return client.call(request, FetchResponse, 12)


def size_bytes(response: FetchResponse) -> int:
    return sum(
        len(entry.records or b"") for topic in response.responses for entry in topic.partitions
    )


def figures(node: Node, kind: str) -> dict[tuple[str, str, str], float]:
    assert node.broker is not None
    return {
        (figure.tags.get("user", ""), figure.tags.get("client-id", ""), figure.name): figure.value
        for figure in node.broker.quotas.figures()
        if figure.kind == kind
    }


async def test_what_is_set_is_described_and_held_to_at_once_and_no_longer_when_removed() -> None:
    async with running(QUICK) as node:

        def work(client: RawClient) -> None:
            client.create_topic("t")
            assert [produce(client).throttle_time_ms for _ in range(3)] == [0, 0, 0]
            alter(client, {"client-id": "raw"}, producer_byte_rate=20_000)
            described = client.call(DescribeClientQuotasRequest(), DescribeClientQuotasResponse)
            (entry,) = described.entries or []
            assert [(part.entity_type, part.entity_name) for part in entry.entity] == [
                ("client-id", "raw")
            ]
            assert [(value.key, value.value) for value in entry.values] == [
                ("producer_byte_rate", 20_000)
            ]
            while not wait_of(client):
                pass  # until it is above the quota
            alter(client, {"client-id": "raw"}, producer_byte_rate=None)
            assert [produce(client).throttle_time_ms for _ in range(3)] == [0, 0, 0]

        await asking(node, work)
        assert node.broker is not None
        assert node.broker.services.throttling is None
        assert figures(node, "Produce")["", "raw", "throttle-time"] > 0


async def test_a_throttled_connection_is_served_again_when_its_time_is_over() -> None:
    async with running(QUICK) as node:

        def work(client: RawClient) -> None:
            client.create_topic("t")
            alter(client, {"user": None}, producer_byte_rate=20_000)
            while not wait_of(client):
                pass  # until it is above the quota
            wait_of(client)  # it is answered in the end

        await asking(node, work)
        told = figures(node, "Produce")
        assert told["ANONYMOUS", "", "byte-rate"] > 0
        assert told["ANONYMOUS", "", "throttle-time"] > 0


async def test_a_consumer_above_its_quota_gets_nothing_for_now() -> None:
    async with running(QUICK) as node:

        def work(client: RawClient) -> None:
            client.create_topic("t")
            for _ in range(8):
                produce(client)
            alter(client, {"user": "ANONYMOUS"}, consumer_byte_rate=50_000)
            first = fetch(client)
            # No more than the window grants is read, but for the batch that does not fit.
            assert first.throttle_time_ms == 0
            assert 10_000 < size_bytes(first) <= 50_000
            second = fetch(client)
            while not second.throttle_time_ms:
                second = fetch(client)
            assert not second.responses
            # An existing session gets the rest afterwards; a new session does not begin.
            opened = fetch(client, session=(0, 0))
            while opened.throttle_time_ms:
                assert opened.session_id == 0
                opened = fetch(client, session=(0, 0))
            assert opened.session_id
            assert size_bytes(opened) > 10_000
            epoch, later = 1, fetch(client, session=(opened.session_id, 1))
            while later.throttle_time_ms:
                assert later.session_id == opened.session_id
                epoch += 1
                later = fetch(client, session=(opened.session_id, epoch))
            assert size_bytes(later) > 10_000

        await asking(node, work)
        assert figures(node, "Fetch")["ANONYMOUS", "", "throttle-time"] > 0


async def test_time_counts_for_every_request() -> None:
    async with running(QUICK) as node:

        def work(client: RawClient) -> None:
            alter(client, {"client-id": "raw"}, request_percentage=0.000001)
            answer = client.call(HeartbeatRequest(group_id="g", member_id="m"), HeartbeatResponse)
            assert answer.throttle_time_ms == 1000

        await asking(node, work)
        assert figures(node, "Request")["", "raw", "request-time"] > 0


async def test_topic_changes_above_the_quota_are_refused_or_throttled() -> None:
    async with running(QUICK) as node:

        def create(client: RawClient, version: int, name: str, count: int) -> CreateTopicsResponse:
            topic = CreatableTopic(name=name, num_partitions=count, replication_factor=1)
            request = CreateTopicsRequest(topics=[topic], timeout_ms=5000)
            return client.call(request, CreateTopicsResponse, version)

        def work(client: RawClient) -> None:
            alter(client, {"client-id": "raw"}, controller_mutation_rate=20)  # a burst of 40
            numbers = itertools.count()

            def second_after_first() -> CreateTopicsResponse:
                number = next(numbers)
                first = create(client, 7, f"first-{number}", 60)
                assert (first.topics[0].error_code, first.throttle_time_ms) == (ErrorCode.NONE, 0)
                return create(client, 7, f"second-{number}", 1)

            second = second_after_first()
            while not second.topics[0].error_code:  # a second passed: the quota is made up for
                second = second_after_first()
            assert second.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            assert 0 < second.throttle_time_ms <= 1000
            # Its connection was held up for so long: the quota is made up for.
            third = create(client, 5, "third", 100)
            assert third.topics[0].error_code == ErrorCode.NONE
            assert third.throttle_time_ms > 1000
            # A client without a quota is not delayed.
            with RawClient(f"127.0.0.1:{node.bound_port('PLAINTEXT')}") as other:
                other.send_frame(
                    encode_request(
                        ApiKey.DELETE_TOPICS,
                        6,
                        0,
                        "other",
                        DeleteTopicsRequest(topics=[DeleteTopicState(name="third")]),
                    )
                )
                answer = other.receive(ApiKey.DELETE_TOPICS, 6, DeleteTopicsResponse)
            assert answer.responses[0].error_code == ErrorCode.NONE
            assert answer.throttle_time_ms == 0

        await asking(node, work)
        assert node.controller is not None
        told = {
            (figure.tags["client-id"], figure.name): figure.value
            for figure in node.controller.quotas.figures()
            if figure.kind == "ControllerMutation"
        }
        assert told["raw", "mutation-rate"] > 0
        assert told["raw", "throttle-time"] > 0
        assert figures(node, "ControllerMutation") == {}  # brokers leave it to the controller


async def test_an_address_that_connects_too_fast_is_held_unserved() -> None:
    async with running(QUICK) as node:

        def limit(client: RawClient) -> None:
            alter(client, {"ip": "127.0.0.1"}, connection_creation_rate=2)

        await asking(node, limit)

        def is_served() -> bool:
            with RawClient(f"127.0.0.1:{node.bound_port('PLAINTEXT')}") as client:
                try:
                    client.call(DescribeClientQuotasRequest(), DescribeClientQuotasResponse)
                except (AssertionError, OSError):
                    return False
            return True

        def work() -> None:
            assert [is_served() for _ in range(2)] == [True, True]
            wait_until(lambda: not is_served(), "a third connection within a second")
            wait_until(is_served, "a connection after a while")

        await asyncio.to_thread(work)
        assert node.broker is not None
        counts: Any = {
            (figure.tags["listener"], figure.name): figure.value
            for figure in node.broker.quotas.figures()
            if figure.kind == "socket-server-metrics"
        }
        assert counts["PLAINTEXT", "connection-accept-rate"] > 0
