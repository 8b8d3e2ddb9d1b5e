"""What a node's configuration does to its connections: buffers, limits, times."""

import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.app.listening import connection_limits
from barnabas.app.local_nodes import format_standalone, standalone_properties
from barnabas.app.node import Node
from barnabas.base.clock import SystemClock
from barnabas.base.network import SYSTEM_OPTIONS, SocketOptions
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.controller_channel import ControllerCall, ControllerChannel
from barnabas.node.metadata.image import ConfigResourceType
from barnabas.node.metadata.peers import ControllerPeers
from barnabas.node.net.connection_quotas import ListenerLimits
from barnabas.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.nodes import BrokerHeartbeatRequest
from barnabas.protocol.messages.quorum import VoteRequest
from sim.fake_disk import FakeDisk

SET, DELETE = 0, 1


def standalone_config(overrides: Mapping[str, str] | None = None) -> NodeConfig:
    return NodeConfig.from_properties(standalone_properties("/data", overrides=overrides or {}))


@asynccontextmanager
async def running(config: NodeConfig) -> AsyncIterator[Node]:
    disk, clock = FakeDisk(), SystemClock()
    format_standalone(disk, config, random=random.Random(1), clock=clock)
    node = await Node.open(config, disk, clock)
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


async def alter(node: Node, name: str, operation: int, **values: str) -> None:
    resource = AlterConfigsResource(
        resource_type=ConfigResourceType.BROKER,
        resource_name=name,
        configs=[
            AlterableConfig(name=key.replace("_", "."), config_operation=operation, value=value)
            for key, value in values.items()
        ],
    )
    response = await node.metadata.handle(IncrementalAlterConfigsRequest(resources=[resource]))
    assert [result.error_code for result in response.responses] == [0]


async def test_limits_of_connections_follow_the_dynamic_configuration() -> None:
    config = standalone_config({"max.connections": "90"})
    async with running(config) as node:
        servers = node.broker.server, node.controller.server
        for server in servers:
            limits = server._quotas.limits
            assert (limits.connections_max, limits.creation_rate_max) == (90, 2**31 - 1)
            # A listener without its own value has the broker's.
            assert limits.listeners["PLAINTEXT"] == ListenerLimits(90, 2**31 - 1)
            assert limits.protected_listener == "PLAINTEXT"
        await alter(node, "", SET, max_connection_creation_rate="7", max_connections_per_ip="80")
        await alter(node, "1", SET, listener_name_plaintext_max_connection_creation_rate="3")
        for server in servers:
            limits = server._quotas.limits
            assert (limits.connections_max, limits.creation_rate_max) == (90, 7)
            assert limits.connections_per_ip_max == 80
            assert limits.listeners["PLAINTEXT"] == ListenerLimits(90, 3)
            assert limits.listeners["CONTROLLER"] == ListenerLimits(90, 7)
        await alter(node, "", DELETE, max_connection_creation_rate="")
        assert node.broker.server._quotas.limits.creation_rate_max == 2**31 - 1


async def test_limits_that_were_set_hold_after_a_start() -> None:
    config = standalone_config()
    disk, clock = FakeDisk(), SystemClock()
    format_standalone(disk, config, random=random.Random(1), clock=clock)
    for is_first in (True, False):
        node = await Node.open(config, disk, clock)
        await node.start()
        if is_first:
            await alter(node, "", SET, max_connections="44")
        assert node.broker.server._quotas.limits.connections_max == 44
        await node.stop()


def test_a_listener_may_have_more_than_the_others() -> None:
    config = standalone_config(
        {"max.connections": "5", "listener.name.plaintext.max.connections": "9"}
    )
    limits = connection_limits(config)
    assert limits.listeners["PLAINTEXT"].connections_max == 9
    assert limits.listeners["CONTROLLER"].connections_max == 5


# -- connections to other nodes

QUORUM = SocketOptions(70_001)


class Recorder:
    """Stands for a network; each connection is refused."""

    def __init__(self) -> None:
        self.options: list[SocketOptions] = []

    async def connect(
        self, _host: str, _port: int, _factory: Any, options: SocketOptions, _tls: object
    ) -> Any:
        self.options.append(options)
        raise ConnectionRefusedError


async def test_the_quorums_connections_have_the_sockets_buffers_and_no_others() -> None:
    config = standalone_config({"socket.receive.buffer.bytes": "70001"})
    network = Recorder()
    peers = ControllerPeers(
        config,
        network,  # type: ignore[arg-type]  # it only connects
        SystemClock(),
        random.Random(1),
        lambda *_: None,
    )
    for request in (FetchRequest(), VoteRequest(), BrokerHeartbeatRequest()):
        with pytest.raises(ConnectionRefusedError):
            await peers.send("nowhere", 1, request, 100)
    assert network.options == [QUORUM, QUORUM, SYSTEM_OPTIONS]
    peers.close()


class Controller:
    """Stands for the quorum and for the way to its leader."""

    leader_endpoint, leader_id = ("nowhere", 1), 2

    def __init__(self) -> None:
        self.timeouts_ms: list[int] = []

    async def send(self, _host: str, _port: int, _request: Any, timeout_ms: int) -> Any:
        self.timeouts_ms.append(timeout_ms)
        raise TimeoutError


@pytest.mark.parametrize(
    ("configured", "asked", "expected"),
    [(None, 60_000, 30_000), ("500", 60_000, 500), ("500", 400, 400), ("90000", 60_000, 60_000)],
)
async def test_a_controller_is_waited_for_as_long_as_is_configured(
    configured: str | None, asked: int, expected: int
) -> None:
    overrides = {} if configured is None else {"controller.socket.timeout.ms": configured}
    controller: Any = Controller()
    config = standalone_config(overrides)
    channel = ControllerChannel(config, SystemClock(), random.Random(1), controller, controller)
    assert await channel.ask(ControllerCall(BrokerHeartbeatRequest()), asked) is None
    assert controller.timeouts_ms == [expected]
