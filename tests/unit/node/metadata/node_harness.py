"""A metadata node in a directory, with a disk whose fsync and writes a test can hold up."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from barnabas.base.clock import SystemClock
from barnabas.base.disk import DiskFile
from barnabas.base.local_disk import LocalDisk
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.image import Endpoint
from barnabas.node.metadata.node import MetadataNode
from barnabas.node.metadata.storage_format import FormatOptions, format_directories
from barnabas.node.net.tcp import TcpNetwork
from barnabas.protocol.messages.topics import CreatableTopic, CreateTopicsRequest

CLUSTER_ID = "wNy8cT3ESyCmV0WqO_SnvA"


class GatedDisk(LocalDisk):
    """fsync waits until `gate` is open; `failure`, if set, is what the next fsync raises."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.fsync_count = 0
        self.failure: OSError | None = None

    def fsync_soon(
        self, files: Sequence[DiskFile], directories: Sequence[str] = ()
    ) -> Awaitable[None]:
        return self._wait(super().fsync_soon, files, directories)

    async def _wait(
        self,
        fsync: Callable[[Sequence[DiskFile], Sequence[str]], Awaitable[None]],
        files: Sequence[DiskFile],
        directories: Sequence[str],
    ) -> None:
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        self.fsync_count += 1
        await fsync(files, directories)


def node_config(directory: str, **overrides: str) -> NodeConfig:
    return NodeConfig.from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "PLAINTEXT://localhost:9292,CONTROLLER://localhost:9293",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "localhost:9293",
            "log.dirs": directory,
            **{name.replace("_", "."): value for name, value in overrides.items()},
        }
    )


class NodeHarness:
    """`async with NodeHarness(path)`: formatted if need be, started, stopped at the end."""

    def __init__(self, directory: str, *, standalone: bool = True, **overrides: str) -> None:
        if not standalone:
            overrides.setdefault("controller.quorum.voters", "1@localhost:9293")
        self.config = node_config(directory, **overrides)
        self.standalone = standalone
        self.disk = GatedDisk()
        self.failures: list[Exception] = []
        self.node: MetadataNode

    async def start(self) -> None:
        """Open the node in what is formatted, and start it."""
        self.node = MetadataNode.open(
            config=self.config,
            disk=self.disk,
            clock=SystemClock(),
            random=random.SystemRandom(),
            network=TcpNetwork(),
            on_failure=self.failures.append,
        )
        await self.node.start()

    def format(self) -> list[str]:
        options = FormatOptions(CLUSTER_ID, standalone=self.standalone, ignore_formatted=True)
        return format_directories(
            self.disk, self.config, options, random=random.Random(6), now_ms=1
        )

    async def __aenter__(self) -> "NodeHarness":
        self.format()
        await self.start()
        return self

    @asynccontextmanager
    async def started(self) -> AsyncIterator[None]:
        """As the harness itself, with what is formatted left as it is."""
        await self.start()
        try:
            yield
        finally:
            await self.__aexit__()

    async def __aexit__(self, *_: object) -> None:
        self.disk.gate.set()
        self.disk.failure = None
        await self.node.stop()
        self.disk.close()

    async def join(self, previous_broker_epoch: int = -1) -> int:
        """Register and unfence the node's broker; returns its epoch."""
        epoch = await self.node.register_broker(
            {"PLAINTEXT": Endpoint("localhost", 9292, 0)},
            previous_broker_epoch=previous_broker_epoch,
        )
        await self.node.unfence_broker()
        return epoch

    async def create(self, name: str, partitions: int = 1, **fields: Any) -> Any:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, **fields)
        response = await self.node.handle(CreateTopicsRequest(topics=[topic]))
        return response.topics[0]
