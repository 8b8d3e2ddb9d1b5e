"""A node that ends waits for nobody who may not answer."""

import asyncio
import random
from typing import Any

import pytest

from barnabas.app.local_nodes import format_standalone, standalone_properties
from barnabas.app.node import Node
from barnabas.base.clock import SystemClock
from barnabas.node.config.node_config import NodeConfig
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.streams_groups import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from barnabas.protocol.messages.topics import CreateTopicsRequest
from barnabas.protocol.schema import Message
from sim.fake_disk import FakeDisk
from support.patience import PATIENCE_S
from support.raw_client import RawClient
from support.streams_world import joining


async def test_topics_that_no_controller_creates_do_not_keep_a_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk, clock = FakeDisk(), SystemClock()
    overrides = {"offsets.topic.num.partitions": "1"}
    config = NodeConfig.from_properties(standalone_properties("/data", overrides=overrides))
    format_standalone(disk, config, random=random.Random(1), clock=clock)
    node = await Node.open(config, disk, clock)
    await node.start()
    bootstrap = f"127.0.0.1:{node.bound_port('PLAINTEXT')}"
    await asyncio.to_thread(prepare, bootstrap)
    asked = asyncio.Event()
    handle = node.metadata.handle

    async def without_controller(request: Message, **how: Any) -> Any:
        if isinstance(request, CreateTopicsRequest):
            asked.set()
            await asyncio.get_running_loop().create_future()
        return await handle(request, **how)

    monkeypatch.setattr(node.metadata, "handle", without_controller)
    await asyncio.to_thread(join_streams_group, bootstrap)
    async with asyncio.timeout(PATIENCE_S):
        await asked.wait()
        await node.stop()


def prepare(bootstrap: str) -> None:
    """Have the topic that the group reads, and the one that keeps groups."""
    with RawClient(bootstrap) as raw:
        raw.create_topic("in")
        raw.call(FindCoordinatorRequest(coordinator_keys=["g"]), FindCoordinatorResponse)


def join_streams_group(bootstrap: str) -> None:
    """Join by a topology whose internal topics are missing."""
    request = StreamsGroupHeartbeatRequest(group_id="g", **joining("m"))
    with RawClient(bootstrap) as raw:
        error: int = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        while error in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
            error = raw.call(request, StreamsGroupHeartbeatResponse).error_code
    assert error == ErrorCode.NONE
