"""Replicas that move between a node's log directories while they are used (KIP-113, KIP-858)."""

import asyncio
import errno
from collections.abc import Callable
from typing import Any

import pytest
from test_node_disks import asking, batch, create, leaders, placement, produce_to_all, running

from barnabas.app.node import Node
from barnabas.base.clock import SystemClock
from barnabas.base.ids import TopicPartition
from barnabas.node.loop.pauses import pause
from barnabas.node.metadata.image import ConfigResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.partitions import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from barnabas.protocol.messages.topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from sim.fake_disk import FakeDisk
from support.logs import read_values
from support.patience import PATIENCE_S
from support.raw_client import RawClient

ONE, TWO = "/data/one", "/data/two"
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
CLOCK = SystemClock()
Codes = dict[tuple[str, int], int]


def move(raw: RawClient, path: str, *indexes: int, topic: str = "t") -> Codes:
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=list(indexes))]
            )
        ]
    )
    response = raw.call(request, AlterReplicaLogDirsResponse)
    return {
        (result.topic_name, partition.partition_index): partition.error_code
        for result in response.results
        for partition in result.partitions
    }


def futures(raw: RawClient) -> dict[tuple[str, int], DescribeLogDirsPartition]:
    response = raw.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    return {
        (result.log_dir, partition.partition_index): partition
        for result in response.results
        for topic in result.topics
        for partition in topic.partitions
        if partition.is_future_key
    }


async def throttle(node: Node, rate: int | None) -> None:
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=ConfigResourceType.BROKER,
                resource_name="",
                configs=[
                    AlterableConfig(
                        name=RATE,
                        config_operation=1 if rate is None else 0,
                        value=None if rate is None else str(rate),
                    )
                ],
            )
        ]
    )

    def ask(raw: RawClient) -> Any:
        return raw.call(request, IncrementalAlterConfigsResponse).responses[0].error_code

    assert await asking(node, ask) == ErrorCode.NONE


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await pause(CLOCK, 5)


def directory_of(node: Node, index: int, topic: str = "t") -> str:
    log = node.broker.logs.get(TopicPartition(topic, index))
    assert log is not None
    return log.log_dir


def other_than(path: str) -> str:
    return TWO if path == ONE else ONE


def known_directory(node: Node, index: int) -> str | None:
    """Return the replica's directory, as far as the controller knows."""
    image = node.metadata.image.topics.partition("t", index)
    assert image is not None
    directory_id = image.directory_of(node.config.node_id)
    return next(
        (path for path, each in node.broker.logs.directory_ids.items() if each == directory_id),
        None,
    )


def values(node: Node, index: int) -> list[str]:
    log = node.broker.logs.get(TopicPartition("t", index))
    assert log is not None
    return read_values(log)


async def test_a_replica_moves_while_it_is_written() -> None:
    disk = FakeDisk()
    async with running(disk) as node:
        await asking(node, create)
        written = 0

        def produce(raw: RawClient) -> int:
            result = raw.produce("t", batch(), partition=0)
            assert result.error_code == ErrorCode.NONE
            return int(result.base_offset)

        for _ in range(5):
            assert await asking(node, produce) == written
            written += 1
        source = directory_of(node, 0)
        target = other_than(source)
        assert await asking(node, lambda raw: move(raw, target, 0)) == {("t", 0): ErrorCode.NONE}
        while directory_of(node, 0) == source:
            assert await asking(node, produce) == written
            written += 1
        for _ in range(3):
            assert await asking(node, produce) == written
            written += 1
        assert len(values(node, 0)) == written
        assert 0 in (await asking(node, placement))[target]
        assert await asking(node, futures) == {}
        await until(lambda: known_directory(node, 0) == target)
        names = disk.list(source) + disk.list(target)
        assert [name for name in names if name.startswith("t-0")].count("t-0") == 1
        assert not [name for name in names if name.endswith("-future")]
    async with running(disk) as node:
        assert directory_of(node, 0) == target
        assert len(values(node, 0)) == written


async def test_how_far_a_move_is_can_be_seen_and_it_can_be_called_off() -> None:
    disk = FakeDisk()
    async with running(disk) as node:
        await asking(node, create)
        for _ in range(4):
            await asking(node, produce_to_all)
        await throttle(node, 10)
        source = directory_of(node, 1)
        target = other_than(source)
        assert await asking(node, lambda raw: move(raw, target, 1)) == {("t", 1): ErrorCode.NONE}
        log = node.broker.logs.get(TopicPartition("t", 1))
        assert log is not None
        await until(lambda: [each.log_end_offset for each in node.broker.logs.futures] == [1])
        for _ in range(2):  # once more changes nothing
            [(key, found)] = (await asking(node, futures)).items()
            assert key == (target, 1)
            assert (found.offset_lag, found.is_future_key) == (3, True)
            assert found.partition_size == log.size_bytes // 4
            await asking(node, lambda raw: move(raw, target, 1))
        assert log.is_moving
        assert await asking(node, lambda raw: move(raw, source, 1)) == {("t", 1): ErrorCode.NONE}
        assert await asking(node, futures) == {}
        assert not log.is_moving
        assert not [name for name in disk.list(target) if name.endswith("-future")]
        assert len(values(node, 1)) == 4
        # And then after all.
        await throttle(node, None)
        await asking(node, lambda raw: move(raw, target, 1))
        await until(lambda: directory_of(node, 1) == target)
        assert len(values(node, 1)) == 4


async def test_a_move_goes_on_after_a_restart() -> None:
    disk = FakeDisk()
    async with running(disk) as node:
        await asking(node, create)
        for _ in range(4):
            await asking(node, produce_to_all)
        await throttle(node, 10)
        source = directory_of(node, 2)
        target = other_than(source)
        await asking(node, lambda raw: move(raw, target, 2))
        await until(lambda: [each.log_end_offset for each in node.broker.logs.futures] == [1])
    async with running(disk) as node:
        assert directory_of(node, 2) == source
        [future] = node.broker.logs.futures
        assert future.log_end_offset >= 1
        await throttle(node, None)
        await until(lambda: directory_of(node, 2) == target)
        assert len(values(node, 2)) == 4
        await until(lambda: known_directory(node, 2) == target)


REFUSED = {
    "no such directory": ("t", 0, "/data/three", ErrorCode.LOG_DIR_NOT_FOUND),
    "no such topic": ("u", 0, ONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "no such partition": ("t", 9, ONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "a name that would be too long": ("x" * 214, 0, ONE, ErrorCode.INVALID_TOPIC_EXCEPTION),
    "the longest name": ("x" * 213, 0, ONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "a cordoned directory": ("t", 0, TWO, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
}


@pytest.mark.parametrize(("topic", "index", "path", "code"), REFUSED.values(), ids=REFUSED)
async def test_what_cannot_move(topic: str, index: int, path: str, code: ErrorCode) -> None:
    async with running(FakeDisk(), {"cordoned.log.dirs": TWO}) as node:
        await asking(node, create)
        answer = await asking(node, lambda raw: move(raw, path, index, topic=topic))
        assert answer == {(topic, index): code}
        assert len(node.broker.logs.futures) == 0


async def test_a_replica_that_comes_later_goes_where_it_was_to_go() -> None:
    async with running(FakeDisk()) as node:
        for path in (ONE, TWO):
            answer = await asking(node, lambda raw, p=path: move(raw, p, 0, 1, 2))
            assert set(answer.values()) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        await asking(node, create)
        assert [directory_of(node, index) for index in range(3)] == [TWO] * 3
        assert node.broker.logs.preferred_dirs == {}


@pytest.mark.parametrize("fails", ["source", "target"])
async def test_a_directory_that_fails_ends_the_moves_from_and_to_it(fails: str) -> None:
    disk = FakeDisk()
    async with running(disk) as node:
        await asking(node, create)
        for _ in range(4):
            await asking(node, produce_to_all)
        await throttle(node, 10)
        source = directory_of(node, 0)
        target = other_than(source)
        await asking(node, lambda raw: move(raw, target, 0))
        await until(lambda: [each.log_end_offset for each in node.broker.logs.futures] == [1])
        failing = source if fails == "source" else target
        disk.fail("append", below=failing, code=errno.EIO)
        await asking(node, produce_to_all)
        assert node.broker.logs.offline_dirs == {failing}
        assert len(node.broker.logs.futures) == 0
        assert len(node.broker.replicas.moves) == 0
        answer = await asking(node, lambda raw: move(raw, failing, 0))
        assert set(answer.values()) == {ErrorCode.KAFKA_STORAGE_ERROR}
        answer = await asking(node, lambda raw: move(raw, other_than(failing), 0))
        expected = ErrorCode.KAFKA_STORAGE_ERROR if fails == "source" else ErrorCode.NONE
        assert set(answer.values()) == {expected}
        led = await asking(node, leaders)
        assert led[0] == (-1 if fails == "source" else node.config.node_id)
    disk.fault = None
    async with running(disk) as node:
        await throttle(node, None)
        await until(lambda: directory_of(node, 0) == target)
        assert len(values(node, 0)) >= 4


async def test_what_is_deleted_does_not_move_on() -> None:
    disk = FakeDisk()
    async with running(disk) as node:
        await asking(node, create)
        for _ in range(4):
            await asking(node, produce_to_all)
        await throttle(node, 10)
        for index in range(4):
            target = other_than(directory_of(node, index))
            await asking(node, lambda raw, i=index, p=target: move(raw, p, i))
        assert len(node.broker.logs.futures) == 4

        def delete(raw: RawClient) -> None:
            request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=5000)
            raw.call(request, DeleteTopicsResponse)

        await asking(node, delete)
        assert len(node.broker.logs.futures) == 0
        assert len(node.broker.replicas.moves) == 0
        for path in (ONE, TWO):
            left = [name for name in disk.list(path) if name.startswith("t-")]
            assert all(name.endswith("-delete") for name in left)
