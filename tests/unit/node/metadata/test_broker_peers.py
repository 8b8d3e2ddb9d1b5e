"""Asking other brokers by their ids: whom it finds, how it dials, and how it ends."""

import asyncio
import contextlib
from collections.abc import Awaitable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from barnabas.app.local_nodes import standalone_properties
from barnabas.base.ids import Uuid
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.broker_peers import BrokerPeers, UnknownBrokerError
from barnabas.node.metadata.image import BrokerImage, Endpoint, MetadataImage
from barnabas.node.net.dialing import RECONNECT_BACKOFF_MS
from barnabas.protocol.messages.metadata import DescribeClusterRequest
from sim.manual_clock import ManualClock
from support.fake_network import FakeNetwork, FakeNode

OTHER = 2
HERE, THERE = ("here", 9092), ("there", 9093)


def broker(address: tuple[str, int], listener: str = "PLAINTEXT") -> BrokerImage:
    return BrokerImage(
        OTHER,
        1,
        Uuid(bytes(16)),
        {listener: Endpoint(*address, 0)},
        None,
        fenced=False,
        in_controlled_shutdown=False,
        log_dirs=(),
    )


class World:
    """Node 1, an image that knows broker 2, and a network."""

    def __init__(self, *nodes: tuple[str, int]) -> None:
        self.clock = ManualClock()
        self.network = FakeNetwork(*nodes)
        self.image = MetadataImage()
        self.know(broker(HERE))
        self.peers = BrokerPeers(
            NodeConfig.from_properties(standalone_properties("/data")),
            self.network,  # type: ignore[arg-type]  # options are not looked at
            self.clock,
            Random(1),
            lambda: self.image,
        )
        self.channel = self.peers.channel("test")

    def know(self, *brokers: BrokerImage) -> None:
        self.image = MetadataImage(brokers={broker.id: broker for broker in brokers})

    async def ask(self) -> Any:
        return (await self.channel.ask(OTHER, DescribeClusterRequest())).cluster_id


async def turn() -> None:
    """Let everything run that can."""
    for _ in range(30):
        await asyncio.sleep(0)


async def test_a_broker_is_asked_over_one_connection() -> None:
    world = World(HERE)
    assert world.channel.reaches(OTHER)
    assert [await world.ask(), await world.ask()] == ["here", "here"]
    assert world.network.called == [HERE]
    assert set(world.network.nodes[HERE].client_ids) == {"broker-1-test"}


async def test_each_purpose_has_a_connection_of_its_own() -> None:
    world = World(HERE)
    other = world.peers.channel("other")
    await world.ask()
    await other.ask(OTHER, DescribeClusterRequest())
    assert world.network.called == [HERE, HERE]
    other.close()
    assert await world.ask() == "here"


UNREACHABLE = {
    "unknown": (),
    "fenced": (replace(broker(HERE), fenced=True),),
    "without the listener": (broker(HERE, "EXTERNAL"),),
}


@pytest.mark.parametrize("case", UNREACHABLE)
async def test_a_broker_without_an_address_is_not_asked(case: str) -> None:
    world = World(HERE)
    world.know(*UNREACHABLE[case])
    assert not world.channel.reaches(OTHER)
    with pytest.raises(UnknownBrokerError, match="broker 2"):
        await world.ask()
    assert not world.network.called


async def test_the_image_tells_of_another_address() -> None:
    world = World(HERE, THERE)
    assert await world.ask() == "here"
    world.know(broker(THERE))
    assert await world.ask() == "there"
    await turn()
    assert [connection.is_closed for connection in world.network.nodes[HERE].connections] == [True]


async def test_connections_to_brokers_that_are_gone_are_closed() -> None:
    world = World(HERE)
    await world.ask()
    world.know(replace(broker(HERE), fenced=True))
    world.peers.brokers_changed(world.image)
    await turn()
    assert [connection.is_closed for connection in world.network.nodes[HERE].connections] == [False]
    world.know()
    world.peers.brokers_changed(world.image)
    await turn()
    assert [connection.is_closed for connection in world.network.nodes[HERE].connections] == [True]
    world.know(broker(HERE))
    assert await world.ask() == "here"


async def test_after_a_refusal_the_next_connection_waits() -> None:
    world = World()
    with pytest.raises(ConnectionRefusedError):
        await world.ask()
    again = [asyncio.ensure_future(world.ask()) for _ in range(3)]
    await turn()
    world.clock.advance(RECONNECT_BACKOFF_MS - 1)
    await turn()
    assert world.network.called == [HERE], "all of them wait"
    world.clock.advance(1)
    answers = await asyncio.gather(*again, return_exceptions=True)
    assert [type(answer) for answer in answers] == [ConnectionRefusedError] * 3
    assert world.network.called == [HERE] * 2, "for one connection"
    world.clock.advance(60_000)
    with pytest.raises(ConnectionRefusedError):
        await world.ask()


async def test_a_peer_that_closes_each_time_is_not_called_in_a_tight_loop() -> None:
    world = World(HERE)
    world.network.nodes[HERE].closes = True

    async def insist() -> None:
        while True:
            with contextlib.suppress(ConnectionError):
                await world.ask()

    task = asyncio.ensure_future(insist())
    for _ in range(1_000 // RECONNECT_BACKOFF_MS):
        await turn()
        world.clock.advance(RECONNECT_BACKOFF_MS)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert 10 <= len(world.network.called) <= 1 + 1_000 // RECONNECT_BACKOFF_MS


async def resting(world: World) -> Awaitable[Any]:
    with pytest.raises(ConnectionRefusedError):
        await world.ask()
    return asyncio.ensure_future(world.ask())


async def unanswered(world: World) -> Awaitable[Any]:
    world.network.nodes[HERE] = node = FakeNode("here")
    node.is_silent = True
    return asyncio.ensure_future(world.ask())


@pytest.mark.parametrize("asking", [resting, unanswered])
async def test_closing_ends_what_is_asked(asking: Any) -> None:
    world = World()
    answer = await asking(world)
    await turn()
    world.channel.close()
    with pytest.raises(ConnectionAbortedError):
        await answer
    with pytest.raises(ConnectionAbortedError):
        await world.ask()
    assert not world.channel.reaches(OTHER)
    world.clock.advance(60_000)
    await turn()
    assert world.network.called == [HERE]
