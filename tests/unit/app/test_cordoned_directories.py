"""Log directories that get no new replicas (KIP-1066), and directories that fail unheard of."""

import errno
from typing import Any

import pytest
from test_node_disks import asking, create, placement, running

from barnabas.app.node import Node
from barnabas.node.metadata.image import ConfigResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import configs as legacy
from barnabas.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.partitions import DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from sim.fake_disk import FakeDisk
from support.raw_client import RawClient

KEY = "cordoned.log.dirs"
ONE, TWO = "/data/one", "/data/two"
SET, DELETE, APPEND = range(3)


async def cordon(node: Node, operation: int, value: str | None) -> tuple[int, str | None]:
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=ConfigResourceType.BROKER,
                resource_name=str(node.config.node_id),
                configs=[AlterableConfig(name=KEY, config_operation=operation, value=value)],
            )
        ]
    )

    def ask(raw: RawClient) -> Any:
        return raw.call(request, IncrementalAlterConfigsResponse).responses[0]

    answer = await asking(node, ask)
    return answer.error_code, answer.error_message


async def replace(node: Node, value: str) -> tuple[int, str | None]:
    request = legacy.AlterConfigsRequest(
        resources=[
            legacy.AlterConfigsAlterConfigsResource(
                resource_type=ConfigResourceType.BROKER,
                resource_name=str(node.config.node_id),
                configs=[legacy.AlterConfigsAlterableConfig(name=KEY, value=value)],
            )
        ]
    )

    def ask(raw: RawClient) -> Any:
        return raw.call(request, legacy.AlterConfigsResponse).responses[0]

    answer = await asking(node, ask)
    return answer.error_code, answer.error_message


def shown(raw: RawClient) -> dict[str, bool]:
    response = raw.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    return {result.log_dir: result.is_cordoned for result in response.results}


def create_another(raw: RawClient) -> int:
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name="u", num_partitions=1, replication_factor=1)], timeout_ms=5000
    )
    return raw.call(request, CreateTopicsResponse).topics[0].error_code


async def told(node: Node, *paths: str) -> None:
    """Return once the controller knows that these directories of the node are cordoned."""
    ids = tuple(node.broker.logs.directory_ids[path] for path in paths)
    node_id = node.config.node_id
    await node.metadata.wait_for(lambda image: image.brokers[node_id].cordoned_log_dirs == ids)


async def test_a_cordoned_directory_gets_no_new_replicas() -> None:
    async with running(FakeDisk()) as node:
        assert await cordon(node, SET, TWO) == (ErrorCode.NONE, None)
        await told(node, TWO)
        assert await asking(node, shown) == {ONE: False, TWO: True}
        await asking(node, create)
        assert await asking(node, placement) == {ONE: {0, 1, 2, 3}, TWO: set()}
        await cordon(node, DELETE, None)
        await told(node)
        assert await asking(node, create_another) == ErrorCode.NONE
        assert [log.log_dir for log in node.broker.logs if log.topic_partition.topic == "u"] == [
            TWO
        ]


async def test_a_broker_with_all_directories_cordoned_gets_no_new_replicas() -> None:
    async with running(FakeDisk()) as node:
        for value in ("*", f"{TWO},{ONE}"):
            assert await cordon(node, SET, value) == (ErrorCode.NONE, None)
            await told(node, ONE, TWO)
            assert await asking(node, shown) == {ONE: True, TWO: True}
            assert await asking(node, create_another) == ErrorCode.INVALID_REPLICATION_FACTOR
            await cordon(node, DELETE, None)
            await told(node)


@pytest.mark.parametrize(
    ("operation", "value", "words"),
    [
        (SET, "/elsewhere", "/elsewhere is not in log.dirs"),
        (SET, f"*,{ONE}", "beside *"),
        (APPEND, "/elsewhere", "/elsewhere is not in log.dirs"),
    ],
)
async def test_what_cannot_be_cordoned_is_refused(operation: int, value: str, words: str) -> None:
    async with running(FakeDisk()) as node:
        code, message = await cordon(node, operation, value)
        assert code == ErrorCode.INVALID_REQUEST
        assert words in (message or "")
        assert await asking(node, shown) == {ONE: False, TWO: False}
        if operation == SET:
            assert (await replace(node, value))[0] == ErrorCode.INVALID_REQUEST


async def test_what_the_file_cordons_is_so_from_the_start() -> None:
    async with running(FakeDisk(), {KEY: ONE}) as node:
        await told(node, ONE)
        await asking(node, create)
        assert await asking(node, placement) == {ONE: set(), TWO: {0, 1, 2, 3}}


async def test_a_directory_that_failed_before_the_start_was_done_is_reported() -> None:
    disk = FakeDisk()
    async with running(disk) as node:
        await asking(node, create)
        ids = {path: node.broker.logs.directory_ids[path] for path in (ONE, TWO)}

    def fault(operation: str, path: str) -> None:
        if path.startswith(f"{TWO}/t-"):
            raise OSError(errno.EIO, "I/O error", path)

    disk.fault = fault
    async with running(disk) as node:
        broker = node.metadata.image.brokers[node.config.node_id]
        assert broker.log_dirs == (ids[ONE],)
        led = {
            partition.directories[0]: partition.leader
            for partition in node.metadata.image.topics.by_name["t"].partitions.values()
        }
        assert led == {ids[ONE]: node.config.node_id, ids[TWO]: -1}
        disk.fault = None
