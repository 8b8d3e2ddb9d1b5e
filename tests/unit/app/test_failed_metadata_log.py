"""A node whose metadata log fails reports that once, even if requests continue."""

import errno
import logging
from random import Random
from typing import Any

import pytest

from barnabas.app.local_nodes import format_standalone, standalone_properties
from barnabas.app.node import Node
from barnabas.base.clock import SystemClock
from barnabas.base.ids import METADATA_TOPIC_ID
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.net.client import Peer
from barnabas.node.net.tcp import TcpNetwork
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from sim.fake_disk import FakeDisk


def fetch() -> FetchRequest:
    """The fetch request of another replica of the metadata log."""
    partition = FetchPartition(partition=0, fetch_offset=0)
    return FetchRequest(topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])])


def creation() -> CreateTopicsRequest:
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=1000)


async def test_a_full_disk_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    disk, clock = FakeDisk(), SystemClock()
    config = NodeConfig.from_properties(standalone_properties("/data"))
    format_standalone(disk, config, random=Random(1), clock=clock)
    node = await Node.open(config, disk, clock)
    await node.start()
    disk.fail("append pwrite fsync write_atomic", code=errno.ENOSPC)
    caplog.set_level(logging.WARNING)
    try:
        for request in (creation(), fetch(), fetch(), creation()):
            await refused(node, request)
        assert node.failed.is_set()
        assert [record for record in caplog.records if record.exc_info] == []
        told = [record.getMessage() for record in caplog.records]
        assert len([line for line in told if "this node must stop" in line]) == 1, told
    finally:
        disk.fault = None
        await node.stop()


async def refused(node: Node, request: Any) -> None:
    """Ask the controller, which closes the connection."""
    port = node.bound_port("CONTROLLER")
    peer = Peer(TcpNetwork(), SystemClock(), "127.0.0.1", port, client_id="test")
    try:
        with pytest.raises(ConnectionError):
            await peer.send(request)
    finally:
        peer.close()
