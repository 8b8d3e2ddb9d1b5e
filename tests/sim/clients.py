"""Simulated clients: they treat metadata, retries, order and positions as real clients do.

Each runs as a separate process on its own machine, over the same simulated network as the nodes,
and records what it did and saw.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.node.net.client import Peer
from barnabas.node.net.dialing import Dialing
from barnabas.node.net.login import Login
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.schema import Message
from sim.clock import SimClock
from sim.loop import Process, SimLoop
from sim.sim_history import History
from sim.wire import SimNetwork, Wire

REQUEST_TIMEOUT_MS = 3_000
BACKOFF_S = (0.05, 0.4)
METADATA_AGE_MAX_S = 5.0


class ClientError(Exception):
    """A client could not do what it was told to, for longer than it may take."""


class Client:
    """Finds brokers and leaders, and talks to them. One per simulated client."""

    def __init__(
        self,
        name: str,
        wire: Wire,
        bootstrap: list[tuple[str, int]],
        random: Random,
        history: History,
    ) -> None:
        self.name = name
        self.loop: SimLoop = wire.loop
        self.history = history
        self.random = random
        self.process = Process(name, 1)
        self.clock = SimClock(wire.loop)
        self.network = SimNetwork(wire, name, self.process)
        self.topic_ids: dict[str, Uuid] = {}
        self.topic_names: dict[Uuid, str] = {}
        self.leaders: dict[TopicPartition, tuple[int, int]] = {}
        """(leader, its epoch); -1 for none."""
        self.is_stopping = False
        self.login: Login | None = None
        """Its login to brokers, if they require one."""
        self._bootstrap = list(bootstrap)
        self._brokers: dict[int, tuple[str, int]] = {}
        self._peers: dict[tuple[str, int], Peer] = {}
        self._refreshed_s = -METADATA_AGE_MAX_S

    def start(self, run: Callable[[], Awaitable[None]]) -> "asyncio.Task[None]":
        """Run the client in its own process."""
        return self.loop.create_task(_as_coroutine(run()), context=self.process.context)

    def kill(self) -> None:
        """End its process: nothing of it runs any more, and its connections are reset."""
        self.loop.kill(self.process)
        self.network.process_ended()

    async def pause(self, low_s: float, high_s: float) -> None:
        await asyncio.sleep(low_s + self.random.random() * (high_s - low_s))

    async def back_off(self) -> None:
        await self.pause(*BACKOFF_S)

    # Who is where

    def _peer(self, host: str, port: int) -> Peer:
        key = (host, port)
        if key not in self._peers:
            self._peers[key] = Peer(
                self.network,
                self.clock,
                host,
                port,
                client_id=self.name,
                request_timeout_ms=REQUEST_TIMEOUT_MS,
                connect_timeout_ms=1_000,
                dialing=Dialing(login=self.login),
            )
        return self._peers[key]

    def broker(self, node_id: int) -> Peer | None:
        """A broker by id, if it is known."""
        address = self._brokers.get(node_id)
        return None if address is None else self._peer(*address)

    def leader(self, topic_partition: TopicPartition) -> Peer | None:
        """The leader of a partition, as far as is known."""
        leader_id, _ = self.leaders.get(topic_partition, (-1, -1))
        return self.broker(leader_id)

    def mistrust_metadata(self) -> None:
        """Ask again before the next use."""
        self._refreshed_s = -METADATA_AGE_MAX_S

    async def ask_any(self, request: Message, **options: Any) -> Any:
        """The answer of some broker. Raises OSError when the one that was chosen gives none."""
        addresses = list(self._brokers.values()) or self._bootstrap
        if self.random.random() < 0.2:
            addresses = self._bootstrap
        host, port = self.random.choice(addresses)
        return await self._peer(host, port).send(request, **options)

    async def refresh(self, topics: list[str]) -> None:
        """Learn who leads the partitions of `topics`, unless that is known and fresh."""
        if self.loop.time() - self._refreshed_s < METADATA_AGE_MAX_S:
            return
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic) for topic in topics],
            allow_auto_topic_creation=False,
        )
        try:
            response = await self.ask_any(request)
        except OSError:
            return
        if response.brokers:
            self._brokers = {
                broker.node_id: (broker.host, broker.port) for broker in response.brokers
            }
        is_complete = True
        for topic in response.topics:
            if topic.error_code:
                is_complete = False
                continue
            self.topic_ids[topic.name] = topic.topic_id
            self.topic_names[topic.topic_id] = topic.name
            for partition in topic.partitions:
                topic_partition = TopicPartition(topic.name, partition.partition_index)
                _, epoch = self.leaders.get(topic_partition, (-1, -1))
                if partition.leader_epoch >= epoch:  # a lagging broker teaches nothing
                    self.leaders[topic_partition] = (partition.leader_id, partition.leader_epoch)
                is_complete = is_complete and partition.leader_id >= 0
        if is_complete:
            self._refreshed_s = self.loop.time()

    # Administration

    async def create_topic(
        self,
        name: str,
        partitions: int,
        replication_factor: int,
        configs: dict[str, str],
        *,
        within_s: float = 60.0,
    ) -> None:
        """Create a topic and see every partition led. Raises ClientError."""
        deadline_s = self.loop.time() + within_s
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        problem = "no answer"
        while self.loop.time() < deadline_s:
            try:
                request = CreateTopicsRequest(topics=[topic], timeout_ms=REQUEST_TIMEOUT_MS)
                (result,) = (await self.ask_any(request)).topics
                problem = f"{ErrorCode.of(result.error_code).name}: {result.error_message}"
                if result.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    problem = "not every partition is led"
                    self.mistrust_metadata()
                    await self.refresh([name])
                    led = [
                        self.leaders.get(TopicPartition(name, index), (-1, -1))[0] >= 0
                        for index in range(partitions)
                    ]
                    if all(led):
                        return
            except OSError as error:
                problem = str(error)
            await self.back_off()
        raise ClientError(f"topic {name} could not be created: {problem}")


async def _as_coroutine(awaitable: Awaitable[None]) -> None:
    await awaitable
