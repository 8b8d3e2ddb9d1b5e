"""What a node holds at each stage of its life, and that it lets go of it wherever it fails."""

import asyncio
import random
import socket
from pathlib import Path
from typing import Any

import pytest

from barnabas.app.listening import CannotListenError
from barnabas.app.node import Node
from barnabas.app.standalone import format_standalone, standalone_properties
from barnabas.base.clock import SystemClock
from barnabas.base.config.node import NodeConfig
from barnabas.base.local_disk import LocalDisk

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


async def test_a_node_may_be_stopped_before_it_has_started(tmp_path: Path) -> None:
    config, disk = formatted(tmp_path, port=0, controller_port=0)
    node = await Node.open(config, disk)
    ports = [node.bound_port(name) for name in ("PLAINTEXT", "CONTROLLER")]
    await node.stop()
    assert not any(map(is_bound, ports))
    again = await Node.open(config, LocalDisk())
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
    node = await Node.open(config, LocalDisk())
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
