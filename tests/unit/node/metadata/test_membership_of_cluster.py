"""A node whose directories belong to another cluster than the controllers it asks."""

from __future__ import annotations

import asyncio
import logging
import random
from pathlib import Path

import pytest

from barnabas.app.cluster import Cluster
from barnabas.app.node import Node
from barnabas.base.clock import SystemClock
from barnabas.base.local_disk import LocalDisk
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.membership import DuplicateNodeIdError, ForeignClusterError, Membership
from barnabas.node.metadata.storage_format import (
    FormatOptions,
    format_directories,
    random_cluster_id,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)

CONTROLLERS = [("a", 1), ("b", 1), ("c", 1)]
WAIT_S = 30
RANDOM = random.Random(5)


REFUSED = FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)


def led_by(leader_id: int) -> FetchResponse:
    """The answer to a fetch of the metadata log, from any node that knows the leader."""
    partition = PartitionData(current_leader=LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=3))
    return FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])


def test_a_single_stray_controller_is_named_and_borne(caplog: pytest.LogCaptureFixture) -> None:
    membership = Membership("mine", 9, False, CONTROLLERS)
    with caplog.at_level(logging.WARNING):
        assert membership.contradiction("a", 1, REFUSED) is None
        assert membership.contradiction("a", 1, REFUSED) is None
    assert [record.getMessage() for record in caplog.records] == [
        "a:1 belongs to another cluster than this node's directories (mine)"
    ]


def test_a_majority_of_another_cluster_ends_the_node() -> None:
    membership = Membership("mine", 9, True, CONTROLLERS)
    assert membership.contradiction("a", 1, REFUSED) is None
    error = membership.contradiction("c", 1, REFUSED)
    assert isinstance(error, ForeignClusterError)
    assert "format new directories" in str(error)


def test_strangers_do_not_count() -> None:
    membership = Membership("mine", 9, True, CONTROLLERS)
    assert [membership.contradiction("x", port, REFUSED) for port in range(9)] == [None] * 9


def test_a_leader_with_this_brokers_id_is_another_node() -> None:
    broker_alone = Membership("mine", 2, False, CONTROLLERS)
    assert broker_alone.contradiction("a", 1, led_by(1)) is None
    assert isinstance(broker_alone.contradiction("a", 1, led_by(2)), DuplicateNodeIdError)


def test_a_controller_may_have_led() -> None:
    """It has restarted, and another has not heard yet."""
    assert Membership("mine", 2, True, CONTROLLERS).contradiction("a", 1, led_by(2)) is None


async def broker(cluster: Cluster, directory: Path, node_id: int, cluster_id: str) -> Node:
    """A formatted broker that asks the controllers of `cluster`."""
    properties = {
        "process.roles": "broker",
        "node.id": str(node_id),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": cluster.nodes[1].properties["controller.quorum.voters"],
        "log.dirs": str(directory),
    }
    if node_id == 1:  # its own configuration would not let it name itself as a voter
        voters = properties.pop("controller.quorum.voters")
        properties["controller.quorum.bootstrap.servers"] = voters.partition("@")[2]
    config = NodeConfig.from_properties(properties)
    disk, clock = LocalDisk(), SystemClock()
    options = FormatOptions(cluster_id=cluster_id)
    format_directories(disk, config, options, random=RANDOM, now_ms=clock.now_ms())
    return await Node.open(config, disk, clock)


async def failure_of(node: Node) -> Exception | None:
    """Why a node that cannot start must end."""
    starting = asyncio.ensure_future(node.start())
    async with asyncio.timeout(WAIT_S):
        await node.failed.wait()
    starting.cancel()
    await asyncio.wait((starting,))
    return node.failure


async def test_a_broker_of_another_cluster_does_not_wait_for_ever(tmp_path: Path) -> None:
    async with Cluster() as cluster:
        node = await broker(cluster, tmp_path, 2, random_cluster_id(RANDOM))
        assert isinstance(await failure_of(node), ForeignClusterError)


async def test_a_broker_with_the_controllers_id_does_not_wait_for_ever(tmp_path: Path) -> None:
    async with Cluster() as cluster:
        node = await broker(cluster, tmp_path, 1, cluster_id_of(cluster))
        assert isinstance(await failure_of(node), DuplicateNodeIdError)


def cluster_id_of(cluster: Cluster) -> str:
    path = Path(cluster.nodes[1].properties["log.dirs"]) / "meta.properties"
    (line,) = [line for line in path.read_text().splitlines() if line.startswith("cluster.id=")]
    return line.partition("=")[2]
