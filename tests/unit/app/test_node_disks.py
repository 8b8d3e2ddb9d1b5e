"""A node whose disks fail or fill up: the directory goes offline, the node lives and says so."""

import asyncio
import errno
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from barnabas.app.broker_role import BrokerRole
from barnabas.app.local_nodes import format_standalone, standalone_properties
from barnabas.app.node import Node
from barnabas.base.clock import SystemClock
from barnabas.base.disk import DirectoryInUseError
from barnabas.base.local_disk import LocalDisk
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.node import MetadataNode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.protocol.messages.partitions import DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.records.records import Record, encode_batch
from sim.fake_disk import FakeDisk
from support.patience import PATIENCE_S
from support.raw_client import RawClient

PARTITIONS = 4


@asynccontextmanager
async def running(
    disk: FakeDisk, overrides: Mapping[str, str] = MappingProxyType({})
) -> AsyncIterator[Node]:
    config = NodeConfig.from_properties(
        standalone_properties(
            "/data",
            overrides={
                "log.dirs": "/data/one,/data/two",
                "metadata.log.dir": "/data/metadata",
                **overrides,
            },
        )
    )
    clock = SystemClock()
    format_standalone(disk, config, random=random.Random(1), clock=clock)
    node = await Node.open(config, disk, clock)
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


async def asking(node: Node, steps: Callable[[RawClient], Any]) -> Any:
    """Run blocking `steps` with a client of `node`, in a thread."""

    def run() -> Any:
        with RawClient(f"127.0.0.1:{node.bound_port('PLAINTEXT')}") as raw:
            return steps(raw)

    return await asyncio.to_thread(run)


def batch(size_bytes: int = 100) -> bytes:
    now_ms = int(time.time() * 1000)
    return bytes(encode_batch([Record(offset=0, timestamp=now_ms, value=b"v" * size_bytes)]))


def create(raw: RawClient) -> None:
    topic = CreatableTopic(name="t", num_partitions=PARTITIONS, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=5000)
    (result,) = raw.call(request, CreateTopicsResponse).topics
    assert result.error_code == ErrorCode.NONE


def placement(raw: RawClient) -> dict[str, set[int]]:
    """Partitions of `t` by log directory; offline ones have none."""
    response = raw.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    return {
        result.log_dir: {
            partition.partition_index
            for topic in result.topics
            if topic.name == "t"
            for partition in topic.partitions
        }
        for result in response.results
        if result.error_code == ErrorCode.NONE
    }


def produce_to_all(raw: RawClient, size_bytes: int = 100) -> dict[int, int]:
    return {
        partition: raw.produce("t", batch(size_bytes), partition=partition).error_code
        for partition in range(PARTITIONS)
    }


def leaders(raw: RawClient) -> dict[int, int]:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    (topic,) = raw.call(request, MetadataResponse).topics
    return {entry.partition_index: entry.leader_id for entry in topic.partitions}


def fetch_error(raw: RawClient, partition: int) -> int:
    request = FetchRequest(
        topics=[
            FetchTopic(
                topic_id=raw.topic_id("t"),
                partitions=[FetchPartition(partition=partition, partition_max_bytes=1000)],
            )
        ]
    )
    return raw.call(request, FetchResponse).responses[0].partitions[0].error_code


async def test_partitions_are_spread_over_the_directories_and_the_cluster_knows() -> None:
    async with running(FakeDisk()) as node:
        await asking(node, create)
        placed = await asking(node, placement)
        assert {len(partitions) for partitions in placed.values()} == {2}
        ids = {path: node.broker.logs.directory_ids[path] for path in placed}
        for path, partitions in placed.items():
            for partition in partitions:
                known = node.metadata.image.topics.partition("t", partition)
                assert known is not None
                assert known.directories == (ids[path],)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
async def test_a_failing_directory_goes_offline_and_the_rest_is_served(code: int) -> None:
    disk = FakeDisk()
    async with running(disk) as node:
        await asking(node, create)
        placed = await asking(node, placement)
        assert set((await asking(node, produce_to_all)).values()) == {ErrorCode.NONE}
        disk.fail("append", below="/data/two", code=code)
        errors = await asking(node, produce_to_all)
        lost = placed["/data/two"]
        for partition, error in errors.items():
            expected = ErrorCode.KAFKA_STORAGE_ERROR if partition in lost else ErrorCode.NONE
            assert error == expected
        assert set(await asking(node, placement)) == {"/data/one"}
        for partition in range(PARTITIONS):
            error = await asking(node, lambda raw, p=partition: fetch_error(raw, p))
            expected = ErrorCode.KAFKA_STORAGE_ERROR if partition in lost else ErrorCode.NONE
            assert error == expected
        known = await asking(node, leaders)
        assert {partition for partition, leader in known.items() if leader < 0} == lost


async def test_a_read_that_fails_takes_its_directory_offline() -> None:
    disk = FakeDisk()
    async with running(disk) as node:
        await asking(node, create)
        placed = await asking(node, placement)
        await asking(node, produce_to_all)
        for log in node.broker.logs:
            log.tail.clear()
        disk.fail("pread", below="/data/one")
        for partition in placed["/data/one"]:
            error = await asking(node, lambda raw, p=partition: fetch_error(raw, p))
            assert error == ErrorCode.KAFKA_STORAGE_ERROR
        for partition in placed["/data/two"]:
            error = await asking(node, lambda raw, p=partition: fetch_error(raw, p))
            assert error == ErrorCode.NONE


async def test_a_directory_that_fails_while_its_broker_joins_is_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = FakeDisk()
    async with running(disk) as node:
        await asking(node, create)
        lost = (await asking(node, placement))["/data/two"]
    unfence, join = MetadataNode.unfence_broker, BrokerRole.start
    brokers: list[BrokerRole] = []

    async def start(broker: BrokerRole) -> None:
        brokers.append(broker)
        await join(broker)

    async def fail_and_unfence(metadata: MetadataNode) -> None:
        disk.fail("write_atomic", below="/data/two")
        brokers[0].logs.checkpoint_step()
        assert list(brokers[0].logs.offline_dirs) == ["/data/two"]
        await unfence(metadata)

    monkeypatch.setattr(BrokerRole, "start", start)
    monkeypatch.setattr(MetadataNode, "unfence_broker", fail_and_unfence)

    def is_told(image: MetadataImage) -> bool:
        partitions = image.topics.by_name["t"].partitions
        return {index for index in range(PARTITIONS) if partitions[index].leader < 0} == lost

    async with running(disk) as node, asyncio.timeout(PATIENCE_S):
        await node.metadata.wait_for(is_told)


async def test_all_that_was_stored_is_there_after_a_restart() -> None:
    disk = FakeDisk()
    async with running(disk) as node:
        await asking(node, create)
        await asking(node, produce_to_all)
        placed = await asking(node, placement)
    async with running(disk) as node:
        assert await asking(node, placement) == placed
        for log in node.broker.logs:
            assert log.log_end_offset == 1


async def test_a_log_that_lost_its_topic_id_keeps_its_records() -> None:
    disk = FakeDisk()
    async with running(disk) as node:
        await asking(node, create)
        await asking(node, produce_to_all)
        paths = [log.directory for log in node.broker.logs]
    for path in paths:
        disk.remove(f"{path}/partition.metadata")
    async with running(disk) as node:
        topic_id = node.metadata.image.topics.by_name["t"].id
        assert [(log.log_end_offset, log.topic_id) for log in node.broker.logs] == [
            (1, topic_id)
        ] * PARTITIONS


async def test_a_directory_may_be_written_in_two_ways(tmp_path: Path) -> None:
    overrides = {"log.dirs": f"{tmp_path}/data", "metadata.log.dir": f"{tmp_path}/data/"}
    config = NodeConfig.from_properties(standalone_properties(str(tmp_path), overrides=overrides))
    disk = LocalDisk()
    format_standalone(disk, config, random=random.Random(1), clock=SystemClock())
    node = await Node.open(config, disk)
    with pytest.raises(DirectoryInUseError):
        await Node.open(config)
    await node.stop()
    disk.close()


async def test_no_two_nodes_use_one_directory(tmp_path: Path) -> None:
    config = NodeConfig.from_properties(standalone_properties(str(tmp_path)))
    first_disk, second_disk = LocalDisk(), LocalDisk()
    format_standalone(first_disk, config, random=random.Random(1), clock=SystemClock())
    first = await Node.open(config, first_disk)
    await first.start()
    with pytest.raises(DirectoryInUseError, match="in use by another node"):
        await Node.open(config, second_disk)
    await first.stop()
    first_disk.close()
    second = await Node.open(config, second_disk)
    await second.start()
    await second.stop()
    second_disk.close()
