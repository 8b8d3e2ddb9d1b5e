"""Produce responses for replicated records, over connections to the leader."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

from barnabas.node.net.client import Peer
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from sim.loop import Process
from sim.wire import SimNetwork
from support.logs import make_batch
from support.replica_world import ReplicaWorld


class Producer:
    """Sends batches that differ only in their records, so that the broker learns their shape."""

    def __init__(self, world: ReplicaWorld, node_id: int) -> None:
        self.world = world
        broker = world.brokers[node_id]
        network = SimNetwork(world.wire, "client", Process("client", 1))
        self.peer = Peer(network, broker.clock, broker.name, 9092, client_id="producer")

    async def send(
        self, value: str, *, acks: int = -1, timeout_ms: int = 5000
    ) -> PartitionProduceResponse:
        topic = self.world.image.topics.by_name["t"]
        response = await self.peer.send(
            ProduceRequest(
                acks=acks,
                timeout_ms=timeout_ms,
                topic_data=[
                    TopicProduceData(
                        topic_id=topic.id,
                        partition_data=[PartitionProduceData(index=0, records=make_batch(value))],
                    )
                ],
            )
        )
        self.endpoints = response.node_endpoints
        (answer,) = response.responses[0].partition_responses
        return answer  # type: ignore[no-any-return]  # the peer decodes any message


def soon(sending: Awaitable[PartitionProduceResponse]) -> "asyncio.Future[Any]":
    return asyncio.ensure_future(sending)


def test_each_acknowledged_record_is_on_every_in_sync_replica() -> None:
    world = ReplicaWorld()

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3], min_insync_replicas="3")
        await world.leads(1)
        producer = Producer(world, 1)
        for number in range(5):
            answer = await producer.send(f"v{number}")
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, number)
            for broker in world.brokers.values():
                assert broker.partition().log.log_end_offset == number + 1
        await asyncio.gather(*(soon(producer.send("x")) for _ in range(100)))
        assert world.brokers[1].partition().high_watermark == 105

    world.run(scenario())


def test_acks_1_waits_for_nobody() -> None:
    world = ReplicaWorld()

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3])
        leader = await world.leads(1)
        producer = Producer(world, 1)
        for node_id in (2, 3):
            world.brokers[node_id].kill()
        for number in range(3):
            answer = await producer.send("v", acks=1)
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, number)
        assert leader.partition().high_watermark == 0

    world.run(scenario())


def test_time_outs_and_too_few_replicas_are_told() -> None:
    world = ReplicaWorld(replica_lag_time_max_ms="3000")

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3], min_insync_replicas="2")
        await world.leads(1)
        producer = Producer(world, 1)
        assert not (await producer.send("a")).error_code
        for node_id in (2, 3):
            world.brokers[node_id].kill()
        answer = await producer.send("b", timeout_ms=300)
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
        again = await producer.send("c", timeout_ms=300)
        assert again.error_code == ErrorCode.REQUEST_TIMED_OUT
        await world.until(lambda: world.placed().isr == (1,))
        await asyncio.sleep(0.1)
        answer = await producer.send("d")
        assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert world.brokers[1].values() == ["a", "b", "c"], "refused before it was appended"

    world.run(scenario())


def test_who_waits_when_leadership_goes_is_told_who_leads_now() -> None:
    world = ReplicaWorld()

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3], min_insync_replicas="2")
        leader = await world.leads(1)
        producer = Producer(world, 1)
        assert not (await producer.send("a")).error_code
        for node_id in (2, 3):
            world.wire.cut("broker1", f"broker{node_id}")
        waiting = [soon(producer.send(value, timeout_ms=60_000)) for value in "bc"]
        await world.until(lambda: leader.partition().log.log_end_offset == 3)
        world.fence(1)
        for sent in waiting:
            answer = await sent
            assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 1)
            (endpoint,) = producer.endpoints
            assert (endpoint.node_id, endpoint.host, endpoint.port) == (2, "broker2", 9092)

    world.run(scenario())


def test_a_commit_by_too_few_is_told_as_such() -> None:
    world = ReplicaWorld()

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3], min_insync_replicas="1")
        leader = await world.leads(1)
        producer = Producer(world, 1)
        assert not (await producer.send("a")).error_code
        world.fence(3)
        await world.until(lambda: leader.partition().isr_size == 2)
        for node_id in (2, 3):
            world.wire.cut("broker1", f"broker{node_id}")
        waiting = soon(producer.send("b", timeout_ms=60_000))
        partition = leader.partition()
        await world.until(lambda: partition.log.log_end_offset == 2)
        partition.log.config = replace(partition.log.config, min_insync_replicas=3)
        partition._advance(2)
        assert (await waiting).error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    world.run(scenario())
