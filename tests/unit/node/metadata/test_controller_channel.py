"""The way to a controller on another node, where that closes the connection, or is not there."""

import asyncio
import itertools
import logging
from random import Random
from typing import Any

import pytest

from barnabas.app.local_nodes import format_standalone, standalone_properties
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.asker import OWN, Asker
from barnabas.node.metadata.controller_channel import (
    LOSSES_MAX,
    RETRY_MS,
    ControllerCall,
    ControllerChannel,
)
from barnabas.node.metadata.node import FORWARD_TIMEOUT_MS, MetadataNode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.connections import EnvelopeRequest, EnvelopeResponse
from barnabas.protocol.messages.partitions import AlterPartitionRequest, AlterPartitionResponse
from barnabas.protocol.messages.topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.voters import DescribeQuorumRequest
from sim.fake_disk import FakeDisk
from sim.manual_clock import ManualClock
from support.fake_network import FakeNetwork


class Controller:
    """Stands for the quorum, and for the connections to its leader; each try ends with `error`."""

    leader_id = 2

    def __init__(self, clock: ManualClock, error: Exception) -> None:
        self.leader_endpoint: tuple[str, int] | None = ("there", 9093)
        self.clock = clock
        self.error = error
        self.tries_ms: list[int] = []
        self.requests: list[Any] = []

    async def send(self, _host: str, _port: int, request: Any, _timeout_ms: int) -> Any:
        self.tries_ms.append(self.clock.monotonic_ms())
        self.requests.append(request)
        raise self.error


class World:
    """Node 1, whose controller is node 2."""

    def __init__(self, error: Exception) -> None:
        self.clock = ManualClock()
        self.controller = Controller(self.clock, error)
        config = NodeConfig.from_properties(standalone_properties("/data"))
        self.channel = ControllerChannel(
            config,
            self.clock,
            Random(1),
            self.controller,  # type: ignore[arg-type]  # all of the quorum that it looks at
            self.controller,  # type: ignore[arg-type]  # all of the connections that it uses
        )
        disk = FakeDisk()
        format_standalone(disk, config, random=Random(1), clock=self.clock)
        self.node = MetadataNode.open(
            config=config,
            disk=disk,
            clock=self.clock,
            random=Random(1),
            network=FakeNetwork(),  # type: ignore[arg-type]  # never used
            on_failure=lambda _: None,
        )
        self.node._channel = self.channel

    async def handle(self, request: Any) -> Any:
        """Send a request to the node; return its final answer."""
        is_own = type(request) is AlterPartitionRequest
        asker = OWN if is_own else Asker("User:alice", "10.0.0.1", "app")
        task = asyncio.ensure_future(self.node.handle(request, asker=asker))
        for _ in range(2 * FORWARD_TIMEOUT_MS // 10):
            for _ in range(3):
                await asyncio.sleep(0)
            if task.done():
                break
            self.clock.advance(10)
        return await task

    @property
    def pauses_ms(self) -> list[int]:
        tries = self.controller.tries_ms
        return [after - before for before, after in itertools.pairwise(tries)]


async def test_a_request_that_ends_each_connection_is_given_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(ConnectionResetError("the connection to there:9093 was lost"))
    with caplog.at_level(logging.INFO):
        response = await world.handle(DescribeQuorumRequest())
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(world.controller.tries_ms) == LOSSES_MAX
    pauses = world.pauses_ms
    assert all(before < after for before, after in itertools.pairwise(pauses)), pauses
    assert all(type(request) is EnvelopeRequest for request in world.controller.requests)
    (line,) = caplog.records
    assert line.exc_info is None
    assert line.getMessage() == (
        "giving up on DescribeQuorumRequest after 5 tries: the connection to there:9093 was lost"
    )


async def test_what_a_node_asks_for_itself_is_not_given_up() -> None:
    world = World(ConnectionResetError())
    response = await world.handle(AlterPartitionRequest())
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    per_second = len(world.controller.tries_ms) * 1000 / FORWARD_TIMEOUT_MS
    assert 0.8 <= per_second <= 1.5, "it rests, ever longer"


@pytest.mark.parametrize("error", [ConnectionRefusedError(), ConnectionAbortedError()])
async def test_a_controller_that_is_not_there_is_waited_for(error: Exception) -> None:
    world = World(error)
    response = await world.handle(DescribeQuorumRequest())
    assert response.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert set(world.pauses_ms) == {RETRY_MS}


async def test_another_controller_is_asked_as_often() -> None:
    world = World(ConnectionResetError())
    call = ControllerCall(DescribeQuorumRequest())
    for _ in range(LOSSES_MAX - 1):
        assert await world.channel.ask(call, 1000) is None
    world.controller.leader_endpoint = ("elsewhere", 9093)
    assert await world.channel.ask(call, 1000) is None
    assert call.losses == 1


async def test_a_node_that_is_refused_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    node = World(ConnectionResetError()).node
    refused = AlterPartitionResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    for response in (refused, refused, AlterPartitionResponse(), refused):
        node._check_response("there", 9093, response)
    lines = [line for line in caplog.messages if "super.users" in line]
    assert len(lines) == 2
    assert "the controller at there:9093 refuses this node's requests" in lines[0]


async def test_an_envelope_that_is_refused_is_not_sent_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(ConnectionResetError())

    async def refuse(*_: Any) -> EnvelopeResponse:
        world.controller.tries_ms.append(world.clock.monotonic_ms())
        return EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    world.controller.send = refuse  # type: ignore[method-assign,assignment]
    response = await world.handle(DescribeQuorumRequest())
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(world.controller.tries_ms) == 1


async def test_a_node_asks_for_topics_in_its_own_name() -> None:
    """An envelope would ask for them in the name of nobody."""
    world = World(ConnectionResetError())
    answers = [ErrorCode.NOT_CONTROLLER, ErrorCode.NONE]

    async def answer(_host: str, _port: int, request: Any, _timeout_ms: int) -> Any:
        world.controller.requests.append(request)
        return CreateTopicsResponse(topics=[CreatableTopicResult(error_code=answers.pop(0))])

    world.controller.send = answer  # type: ignore[method-assign]
    call = ControllerCall(CreateTopicsRequest())
    assert await world.channel.ask(call, 1000) is None, "another node must be asked"
    assert (await world.channel.ask(call, 1000)).topics[0].error_code == ErrorCode.NONE
    assert all(type(request) is CreateTopicsRequest for request in world.controller.requests)
