"""Power cuts of a metadata node: acknowledged changes survive, even if other writes are lost.

Each seed runs a node on a disk that loses unsynced writes, with several power cuts during requests.
Snapshots are written and old log segments are deleted at the same time.
"""

import asyncio
import errno
import random

import pytest

from barnabas.base.ids import Uuid
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.metadata.image import Endpoint
from barnabas.node.metadata.node import MetadataNode
from barnabas.node.metadata.storage_format import FormatOptions, format_directories
from barnabas.node.net.tcp import TcpNetwork
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from sim.fake_disk import FakeDisk
from sim.manual_clock import ManualClock
from support.effort import examples

SEEDS = range(examples(10))
LIVES = 4
REQUESTS_PER_LIFE_MAX = 40

CONFIG = NodeConfig.from_properties(
    {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://localhost:9292,CONTROLLER://localhost:9293",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "localhost:9293",
        "log.dirs": "/data/kafka",
        "metadata.log.max.record.bytes.between.snapshots": "1500",
        "metadata.max.retention.bytes": "3000",
    }
)


class World:
    """A disk, the node on it, and what clients were told."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.disk = FakeDisk()
        self.disk.make_dirs("/data")
        self.disk.sync_dir("/")
        self.clock = ManualClock()
        options = FormatOptions("wNy8cT3ESyCmV0WqO_SnvA", standalone=True)
        format_directories(self.disk, CONFIG, options, random=self.random, now_ms=1)
        self.topics: dict[str, Uuid | None] = {}
        """Names whose state is known for sure: the id, or None for deleted."""
        self.uncertain: set[str] = set()
        """Names with a request that was never answered."""
        self.producer_ids: list[int] = []
        self.epochs: list[int] = []
        self.tasks: set[asyncio.Future[None]] = set()

    async def live(self) -> None:
        """Start, serve requests, and die in the middle of it."""
        node = MetadataNode.open(
            config=CONFIG,
            disk=self.disk,
            clock=self.clock,
            random=self.random,
            network=TcpNetwork(),
            on_failure=lambda error: pytest.fail(f"the metadata log failed: {error}"),
        )
        await node.start()
        self.epochs.append(node.raft.epoch)
        self.check(node)
        await node.register_broker({"PLAINTEXT": Endpoint("localhost", 9292, 0)})
        await node.unfence_broker()
        for _ in range(self.random.randint(1, REQUESTS_PER_LIFE_MAX)):
            self.tasks.add(asyncio.ensure_future(self.request(node)))
            for _ in range(self.random.randint(0, 4)):
                await asyncio.sleep(0)

    async def request(self, node: MetadataNode) -> None:
        choice = self.random.random()
        name = f"t{self.random.randint(0, 12)}"
        if choice < 0.2:
            self.producer_ids.append(await node.allocate_producer_id())
            return
        # Requests for one name at a time, or nobody could say what should be there.
        if name in self.uncertain:
            return
        self.uncertain.add(name)
        if choice < 0.75:
            topic = CreatableTopic(
                name=name, num_partitions=self.random.randint(1, 3), replication_factor=1
            )
            response = await node.handle(CreateTopicsRequest(topics=[topic]))
            [result] = response.topics
            if result.error_code == ErrorCode.NONE:
                self.topics[name] = result.topic_id
            else:
                assert result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        else:
            response = await node.handle(DeleteTopicsRequest(topic_names=[name]))
            assert response.responses[0].error_code in (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            self.topics[name] = None
        self.uncertain.discard(name)

    def check(self, node: MetadataNode) -> None:
        """Hold what is there against what was answered, and learn about the rest."""
        held = {name: topic.id for name, topic in node.image.topics.by_name.items()}
        for name, topic_id in self.topics.items():
            if name not in self.uncertain:
                assert held.get(name) == topic_id, f"{name} was answered and is not there"
        self.topics = {name: held.get(name) for name in {*self.topics, *self.uncertain}}
        self.uncertain.clear()
        assert self.epochs == sorted(set(self.epochs)), "no epoch is led twice"

    async def run(self) -> None:
        for _ in range(LIVES):
            await self.live()
            self.disk.cut_power(self.random)
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert len(set(self.producer_ids)) == len(self.producer_ids)


@pytest.mark.parametrize("seed", SEEDS)
async def test_nothing_answered_is_lost(seed: int) -> None:
    await World(seed).run()


@pytest.mark.parametrize("operation", ["append", "fsync"])
async def test_a_failed_write_is_never_answered(operation: str) -> None:
    world = World(1)
    failures: list[Exception] = []
    node = MetadataNode.open(
        config=CONFIG,
        disk=world.disk,
        clock=world.clock,
        random=world.random,
        network=TcpNetwork(),
        on_failure=failures.append,
    )
    await node.start()
    await node.register_broker({"PLAINTEXT": Endpoint("localhost", 9292, 0)})
    await node.unfence_broker()
    world.disk.fail(operation, "/data", errno.EIO)
    topic = CreatableTopic(name="lost", num_partitions=1, replication_factor=1)
    for _ in range(2):
        with pytest.raises(LogDirFailure):
            await node.handle(CreateTopicsRequest(topics=[topic]))
    assert len(failures) == 1
    assert "lost" not in node.image.topics.by_name
