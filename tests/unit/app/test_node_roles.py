"""What a node holds at each stage of its life, and that it lets go of it wherever it fails."""

import asyncio
import os
import random
import socket
from pathlib import Path
from typing import Any

import pytest

from barnabas.app import broker_role
from barnabas.app.listening import CannotListenError
from barnabas.app.local_nodes import format_standalone, standalone_properties
from barnabas.app.node import Node
from barnabas.base.clock import SystemClock
from barnabas.base.disk import DirectoryInUseError
from barnabas.base.local_disk import LocalDisk
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.log.manager import LogManager
from barnabas.node.metadata.node import MetadataNode
from barnabas.node.security.audit import audit
from barnabas.protocol.messages.topics import CreatableTopic, CreateTopicsRequest

HOST = "127.0.0.1"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"


def free_port() -> int:
    with socket.create_server((HOST, 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def formatted(directory: Path, **ports: Any) -> tuple[NodeConfig, LocalDisk]:
    properties = standalone_properties(str(directory), host=HOST, **ports)
    config, disk = NodeConfig.from_properties(properties), LocalDisk()
    format_standalone(disk, config, random=random.Random(1), clock=SystemClock())
    return config, disk


def is_bound(port: int) -> bool:
    try:
        with socket.create_server((HOST, port)):
            return False
    except OSError:
        return True


async def test_a_node_that_is_open_is_bound_and_serves_once_it_is_started(tmp_path: Path) -> None:
    config, disk = formatted(tmp_path, port=0, controller_port=0)
    node = await Node.open(config, disk)
    port = node.bound_port("PLAINTEXT")
    assert node.bound_port("CONTROLLER") not in (0, port)
    assert node.advertised_endpoints()["PLAINTEXT"].port == port
    assert node.metadata.broker_epoch == -1
    await node.start()
    assert node.metadata.broker_epoch >= 0
    _, writer = await asyncio.open_connection(HOST, port)
    writer.close()
    await node.stop()
    assert not is_bound(port)
    disk.close()


@pytest.mark.parametrize("written", ["data", "./data", "{}/data/", "a,b", "a,b/"])
async def test_log_directories_may_be_relative_or_end_in_a_slash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.chdir(tmp_path)
    directories = written.format(tmp_path)
    config, disk = formatted(
        tmp_path, port=0, controller_port=0, overrides={"log.dirs": directories}
    )
    node = await Node.open(config, disk)
    await node.start()
    assert node.broker is not None
    held = node.broker.logs.directory_ids
    registered = node.metadata.image.brokers[config.node_id].log_dirs
    await node.stop()
    assert sorted(held) == sorted(map(os.path.abspath, directories.split(",")))
    assert sorted(held.values()) == sorted(registered)


async def test_a_node_may_be_stopped_before_it_has_started(tmp_path: Path) -> None:
    config, disk = formatted(tmp_path, port=0, controller_port=0)
    node = await Node.open(config, disk)
    ports = [node.bound_port(name) for name in ("PLAINTEXT", "CONTROLLER")]
    await node.stop()
    assert not any(map(is_bound, ports))
    disk.close()
    again = await Node.open(config)
    await again.start()
    await again.stop()


async def test_an_address_in_use_leaves_nothing_behind(tmp_path: Path) -> None:
    """The controller's listener is bound last: all else is there by then."""
    port = free_port()
    with socket.create_server((HOST, 0)) as other:
        config, disk = formatted(tmp_path, port=port, controller_port=other.getsockname()[1])
        with pytest.raises(CannotListenError, match="CONTROLLER"):
            await Node.open(config, disk)
    assert not is_bound(port)
    (data,) = config.log_dirs
    assert (Path(data) / CLEAN_SHUTDOWN).exists()
    disk.close()
    node = await Node.open(config)
    await node.start()
    await node.stop()


async def test_a_start_that_is_called_off_leaves_nothing_behind(tmp_path: Path) -> None:
    """One voter of two finds no majority: its broker waits to be registered."""
    port = free_port()
    voters = f"1@{HOST}:{port},2@{HOST}:{free_port()}"
    properties = standalone_properties(
        str(tmp_path),
        host=HOST,
        port=0,
        controller_port=port,
        overrides={"controller.quorum.voters": voters},
    )
    config, disk = NodeConfig.from_properties(properties), LocalDisk()
    format_standalone(disk, config, random=random.Random(1), clock=SystemClock())
    node = await Node.open(config, disk)
    starting = asyncio.ensure_future(node.start())
    _, writer = await asyncio.open_connection(HOST, port)  # the controller serves, the broker waits
    assert not starting.done()
    starting.cancel()
    await asyncio.wait((starting,))
    writer.close()
    assert starting.cancelled()
    assert not is_bound(port)
    assert not is_bound(node.bound_port("PLAINTEXT"))
    disk.close()


async def test_a_node_that_cannot_be_writes_no_audit_log(tmp_path: Path) -> None:
    properties = standalone_properties(
        str(tmp_path / "data"),
        host=HOST,
        port=0,
        controller_port=0,
        overrides={
            "authorizer.class.name": "StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "barnabas.audit.file": str(tmp_path / "audit.log"),
        },
    )
    with socket.create_server((HOST, 0)) as other:
        taken = f"CONTROLLER://{HOST}:{other.getsockname()[1]}"
        properties["listeners"] = f"PLAINTEXT://{HOST}:0,{taken}"
        config, disk = NodeConfig.from_properties(properties), LocalDisk()
        format_standalone(disk, config, random=random.Random(1), clock=SystemClock())
        with pytest.raises(CannotListenError, match="CONTROLLER"):
            await Node.open(config, disk)
    disk.close()
    assert not audit.handlers


async def test_a_disk_of_its_own_is_closed_by_a_node_that_cannot_be(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as other:
        config, disk = formatted(tmp_path, port=0, controller_port=other.getsockname()[1])
        disk.close()
        for _ in range(2):
            with pytest.raises(CannotListenError, match="CONTROLLER"):
                await Node.open(config)


async def test_a_disk_of_its_own_is_closed_by_a_node_that_cannot_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, disk = formatted(tmp_path, port=0, controller_port=0)
    disk.close()
    node = await Node.open(config)
    monkeypatch.setattr(node.metadata, "unfence_broker", failing)
    with pytest.raises(RuntimeError, match="of our own making"):
        await node.start()
    again = await Node.open(config)
    await again.stop()


async def test_a_disk_that_was_given_is_left_open(tmp_path: Path) -> None:
    config, disk = formatted(tmp_path, port=0, controller_port=0)
    node = await Node.open(config, disk)
    await node.start()
    await node.stop()
    with pytest.raises(DirectoryInUseError):
        await Node.open(config)
    disk.close()
    again = await Node.open(config)
    await again.stop()


async def failing(*_arguments: Any) -> None:
    raise RuntimeError("of our own making")


async def test_an_error_of_one_part_keeps_no_other_from_being_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, disk = formatted(tmp_path, port=0, controller_port=0)
    node = await Node.open(config, disk)
    await node.start()
    ports = [node.bound_port(name) for name in ("PLAINTEXT", "CONTROLLER")]
    monkeypatch.setattr(node.metadata, "controlled_shutdown", failing)
    with pytest.raises(RuntimeError, match="of our own making"):
        await node.stop()
    assert not any(map(is_bound, ports))
    (data,) = config.log_dirs
    assert (Path(data) / CLEAN_SHUTDOWN).exists()
    disk.close()
    again = await Node.open(config)
    await again.stop()


async def test_why_a_node_cannot_be_goes_before_what_fails_as_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    stop = MetadataNode.stop

    async def stop_and_fail(metadata: MetadataNode) -> None:
        await stop(metadata)
        await failing()

    monkeypatch.setattr(MetadataNode, "stop", stop_and_fail)
    with socket.create_server((HOST, 0)) as other:
        config, disk = formatted(tmp_path, port=port, controller_port=other.getsockname()[1])
        with pytest.raises(CannotListenError, match="CONTROLLER"):
            await Node.open(config, disk)
    assert not is_bound(port)
    assert "was not closed cleanly" in caplog.text
    disk.close()


async def test_a_broker_that_does_not_join_to_the_end_closes_its_coordinators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, disk = formatted(tmp_path, port=0, controller_port=0)
    node = await Node.open(config, disk)
    closed = asyncio.Event()
    monkeypatch.setattr(node.metadata, "unfence_broker", failing)
    groups = node.broker.services.groups
    close = groups.close

    async def close_and_say() -> None:
        await close()
        closed.set()

    monkeypatch.setattr(groups, "close", close_and_say)
    with pytest.raises(RuntimeError, match="of our own making"):
        await node.start()
    assert closed.is_set()
    disk.close()


async def test_logs_of_a_broker_that_cannot_be_are_let_go_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, disk = formatted(tmp_path, port=0, controller_port=0)
    node = await Node.open(config, disk)
    await node.start()
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    await node.metadata.handle(CreateTopicsRequest(topics=[topic], timeout_ms=1000))
    await node.metadata.wait_for(lambda image: "t" in image.topics.by_name)
    await node.stop()
    disk.close()
    seen: list[LogManager] = []

    def fail(_services: object, _routes: object) -> None:
        raise RuntimeError("of our own making")

    def abandon(logs: LogManager) -> None:
        assert len(logs) == 1
        let_go(logs)
        seen.append(logs)

    let_go = LogManager.abandon
    monkeypatch.setattr(LogManager, "abandon", abandon)
    with monkeypatch.context() as patched:
        patched.setattr(broker_role, "Dispatcher", fail)
        with pytest.raises(RuntimeError, match="of our own making"):
            await Node.open(config)
    assert [len(logs) for logs in seen] == [0]
    (data,) = config.log_dirs
    assert not (Path(data) / CLEAN_SHUTDOWN).exists(), "what is not whole must not pass for it"
    again = await Node.open(config)
    assert len(again.broker.logs) == 1
    await again.stop()
