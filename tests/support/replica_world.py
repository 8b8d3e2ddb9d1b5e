"""Brokers that replicate: replica managers over simulated disks, a network and a clock.

The controller makes the real one's decisions, without a quorum: there is one image, and each broker
gets it after its own delay. Everything runs in one loop on virtual time, so a scenario is the same
in each run.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from types import SimpleNamespace
from typing import Any

from barnabas.base.disk import FileRange
from barnabas.base.ids import Uuid
from barnabas.base.network import ListenerOptions
from barnabas.node.broker.apis.cluster import handle_api_versions, refuse_version
from barnabas.node.broker.apis.log_offsets import (
    handle_list_offsets,
    handle_offset_for_leader_epoch,
)
from barnabas.node.broker.dispatch import Dispatcher
from barnabas.node.broker.fetch.handler import handle_fetch
from barnabas.node.broker.fetch.sessions import FetchSessionCache
from barnabas.node.broker.produce.handler import handle_produce
from barnabas.node.broker.route import raw_route, route
from barnabas.node.config.definitions import MOVE_RATE_KEY
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.topic import TOPIC_DEFAULT_KEYS
from barnabas.node.log.config import LogConfig
from barnabas.node.log.manager import LogManager
from barnabas.node.metadata.bootstrap import feature_records
from barnabas.node.metadata.controller.activation import activation_records
from barnabas.node.metadata.controller.decision import ControllerState
from barnabas.node.metadata.controller.handlers import DECIDE
from barnabas.node.metadata.dynamic_config import DynamicConfig
from barnabas.node.metadata.effective_config import EffectiveConfig
from barnabas.node.metadata.image import Endpoint, MetadataImage, PartitionImage
from barnabas.node.metadata.loader import ImageLoader, Published, RecordBatch
from barnabas.node.metadata.records import MetadataRecord
from barnabas.node.metadata.registration import broker_registration, recovery_report
from barnabas.node.net.server import Server, ServerLimits
from barnabas.node.replication.fetcher_manager import FETCHER_KEYS
from barnabas.node.replication.partition import Partition
from barnabas.node.replication.replica_manager import ReplicaManager
from barnabas.node.security.authorizer import ALLOW_ALL
from barnabas.protocol import apis
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import FEATURES, METADATA_VERSION, MetadataVersion
from barnabas.protocol.messages.nodes import BrokerHeartbeatRequest
from barnabas.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.records.batch import iterate_headers
from barnabas.protocol.records.records import decode_records
from sim.clock import SimClock
from sim.disk import SimDisk
from sim.loop import Process, SimLoop
from sim.wire import SimNetwork, Wire
from support.logs import make_batch

CLUSTER_ID = "wNy8cT3ESyCmV0WqO_SnvA"
PORT = 9092
LOG_DIR = "/data"


def properties(node_id: int, **overrides: str) -> dict[str, str]:
    """A broker's configuration; `_` in the name of an override stands for a dot."""
    return {
        "process.roles": "broker",
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://broker{node_id}:{PORT}",
        "advertised.listeners": f"PLAINTEXT://broker{node_id}:{PORT}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "99@controller:9093",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": LOG_DIR,
        "socket.connection.setup.timeout.max.ms": "10000",  # no jitter, as in tests/sim/plan.py
        **{name.replace("_", "."): value for name, value in overrides.items()},
    }


class Broker:
    """One broker, over all its incarnations."""

    def __init__(self, world: "ReplicaWorld", node_id: int) -> None:
        self.world = world
        self.node_id = node_id
        self.name = f"broker{node_id}"
        self.config = NodeConfig.from_properties(properties(node_id, **world.overrides))
        self.clock = SimClock(world.loop)
        self.disk = SimDisk(world.loop, self.clock, world.random)
        self.rack: str | None = None
        self.epoch = -1
        self.process: Process | None = None
        self.replicas: ReplicaManager
        self.dynamic_config: DynamicConfig
        self.logs: LogManager
        self.services: Any = None
        self.is_serving = False
        self.is_deaf = False
        """True if it is cut off from the controller (until `catch_up`)."""
        self._unheard: list[Published] = []
        self._network: SimNetwork | None = None

    def __repr__(self) -> str:
        return self.name

    def start(self, *, is_clean: bool = False) -> Awaitable[None]:
        """Start, register, take the image over, and be unfenced."""
        world = self.world
        assert self.process is None, "it runs"
        process = Process(self.name, world.next_incarnation())
        self.process = self.disk.process = process
        self._network = SimNetwork(world.wire, self.name, process)
        return world.loop.create_task(self._start(is_clean), context=process.context)

    async def _start(self, is_clean: bool) -> None:
        world = self.world
        assert self._network is not None
        self.logs = LogManager(
            self.disk,
            [LOG_DIR],
            self.clock,
            LogConfig(),
            topic_config=lambda topic: world.log_config(world.image, topic),
        )
        self.logs.load()
        previous_epoch = self.epoch if is_clean else -1
        incarnation = Uuid(world.next_incarnation().to_bytes(16, "big"))
        response = world.decide(
            broker_registration(
                broker_id=self.node_id,
                cluster_id=CLUSTER_ID,
                incarnation_id=incarnation,
                listeners={"PLAINTEXT": Endpoint(self.name, PORT, 0)},
                rack=self.rack,
                log_dirs=[Uuid(bytes([9] * 15 + [self.node_id]))],
                previous_broker_epoch=previous_epoch,
            )
        )
        assert not response.error_code, ErrorCode.of(response.error_code)
        self.epoch = response.broker_epoch
        replicas = self.replicas = ReplicaManager(
            self.node_id,
            self.logs,
            world.log_config,
            clock=self.clock,
            random=Random(self.node_id),
            config=self.config,
            network=self._network,
            ask_controller=self._ask_controller,
            broker_epoch=lambda: self.epoch,
        )
        services = self.services = SimpleNamespace(
            authorizer=ALLOW_ALL,
            replicas=replicas,
            clock=self.clock,
            config=self.config,
            image=world.image,
            throttling=None,
            fetch_max_bytes=57_671_680,
            fetch_sessions=FetchSessionCache(1000, lambda: world.random.getrandbits(31)),
            served_apis=set(),
            schemas=SimpleNamespace(is_needed=False),
            metadata=SimpleNamespace(finalized_features={}, image=world.image),
        )
        dispatcher = Dispatcher(
            services,
            (
                raw_route(apis.PRODUCE, handle_produce),
                raw_route(apis.FETCH, handle_fetch),
                route(apis.LIST_OFFSETS, handle_list_offsets),
                route(apis.API_VERSIONS, handle_api_versions, refuse_version),
                route(apis.OFFSET_FOR_LEADER_EPOCH, handle_offset_for_leader_epoch),
            ),
        )
        server = Server(self._network, self.clock, dispatcher, ServerLimits())
        server.listen(self.name, PORT, ListenerOptions("PLAINTEXT"))
        self.dynamic_config = DynamicConfig(EffectiveConfig(self.config))
        everything: Any = SimpleNamespace(configs=world.image.configs)
        self.dynamic_config.image_changed(everything, world.image)
        self.dynamic_config.on_config(FETCHER_KEYS, replicas.fetchers.configure)
        self.dynamic_config.on_config((MOVE_RATE_KEY,), replicas.moves.configure)
        self.dynamic_config.on_config(TOPIC_DEFAULT_KEYS, replicas.configure_logs)
        replicas.load(world.image)
        replicas.start()
        server.start()
        self._unheard.clear()
        self.is_serving = True
        world.heartbeat(self)
        report = recovery_report(world.image, self.node_id, self.epoch)
        if report is not None:
            world.decide(report)

    async def _ask_controller(self, request: Any) -> Any:
        await asyncio.sleep(self.world.controller_delay_s)
        if self.is_deaf or not self.world.controller_answers:
            raise ConnectionResetError("the controller is not there")
        response = self.world.decide(request)
        await asyncio.sleep(self.world.controller_delay_s)
        return response

    def hear(self, published: Published) -> None:
        """Learn of a change, later."""
        process = self.process
        if process is None or not self.is_serving:
            return
        self._unheard.append(published)
        delay_s = self.world.controller_delay_s
        self.world.loop.call_later(delay_s, self.catch_up, context=process.context)

    def catch_up(self) -> None:
        """Take over what was heard so far."""
        if self.is_deaf:
            return
        unheard, self._unheard = self._unheard, []
        for delta, image in unheard:
            self.services.image = image
            self.replicas.apply(delta, image)
            self.dynamic_config.image_changed(delta, image)

    def kill(self, *, power_cut: bool = False) -> None:
        """SIGKILL, or the loss of power; the controller is not told."""
        process = self.process
        if process is None:
            return
        self.world.loop.kill(process)
        assert self._network is not None
        self._network.process_ended()
        self.process = self.disk.process = None
        self.is_serving = self.is_deaf = False
        if power_cut:
            self.disk.cut_power(self.world.random)

    def partition(self, index: int = 0, topic: str = "t") -> Partition:
        """A partition that must be here."""
        found = self.replicas.find(topic, index)
        assert isinstance(found, Partition), found
        return found

    def values(self, index: int = 0, topic: str = "t", *, committed: bool = False) -> list[str]:
        """Return what its log holds."""
        return [value for _, value in self.records(index, topic, committed=committed)]

    def records(
        self, index: int = 0, topic: str = "t", *, committed: bool = False
    ) -> list[tuple[int, str]]:
        """(offset, value) of each record in its log."""
        partition = self.partition(index, topic)
        log = partition.log
        end_offset = partition.high_watermark if committed else log.log_end_offset
        found: list[tuple[int, str]] = []
        offset = log.log_start_offset
        while offset < end_offset:
            result = log.read(offset, 1 << 20, max_offset=end_offset)
            assert not result.error, result.error
            if not result.size_bytes:
                break
            data = b"".join(
                part.read() if isinstance(part, FileRange) else bytes(part) for part in result.parts
            )
            for at, _ in iterate_headers(data):
                found += [
                    (record.offset, (record.value or b"").decode())
                    for record in decode_records(data, at)
                ]
            offset = result.next_offset
        return found


class ReplicaWorld:
    """Some brokers and a controller."""

    def __init__(
        self,
        brokers: int = 3,
        *,
        seed: int = 1,
        elr: bool = True,
        broker_class: type[Broker] = Broker,
        **overrides: str,
    ) -> None:
        self.loop = SimLoop()
        self.loop.on_exception = self._failed
        self.failures: list[str] = []
        self.random = Random(seed)
        self.wire = Wire(self.loop, self.random)
        self.overrides = overrides
        self.controller_answers = True
        self.controller_delay_s = 0.003
        """The delay to the controller."""
        self._incarnations = 0
        self._next_offset = 0
        config = NodeConfig.from_properties(
            {
                **properties(99, **overrides),
                "process.roles": "broker,controller",
                "listeners": "PLAINTEXT://controller:9092,CONTROLLER://controller:9093",
                "advertised.listeners": "PLAINTEXT://controller:9092",
            }
        )
        self.effective = EffectiveConfig(config)
        self.loader = ImageLoader(MetadataImage(cluster_id=CLUSTER_ID))
        self.brokers = {node_id: broker_class(self, node_id) for node_id in range(1, brokers + 1)}
        level = MetadataVersion.IBP_4_3_IV0 if elr else MetadataVersion.IBP_3_9_IV0
        levels = {name: feature.default_level(level) for name, feature in FEATURES.items()}
        levels[METADATA_VERSION] = level
        self._append(activation_records(self._state(), feature_records(levels), -1))

    def _failed(self, message: str, error: BaseException | None) -> None:
        self.failures.append(f"{message}: {error!r}")

    def next_incarnation(self) -> int:
        self._incarnations += 1
        return self._incarnations

    # -- the controller

    @property
    def image(self) -> MetadataImage:
        return self.loader.image

    def placed(self, index: int = 0, topic: str = "t") -> PartitionImage:
        """A partition as the controller has it."""
        found = self.image.topics.partition(topic, index)
        assert found is not None
        return found

    def _state(self) -> ControllerState:
        return ControllerState(self.image, self.effective, 99, self.random, self._next_offset)

    def _append(self, records: list[MetadataRecord]) -> None:
        if not records:
            return
        published = self.loader.feed([RecordBatch(self._next_offset, 1, 5, records)])
        self._next_offset += len(records)
        for change in published:
            for broker in self.brokers.values():
                broker.hear(change)

    def decide(self, request: Any) -> Any:
        """Return what the controller does and answers."""
        decision = DECIDE[type(request)](self._state(), request)
        self._append(decision.records)
        return decision.response

    def heartbeat(self, broker: Broker, *, fence: bool = False) -> None:
        """Let a broker be unfenced, or fenced."""
        known = self.image.brokers[broker.node_id]
        self.decide(
            BrokerHeartbeatRequest(
                broker_id=broker.node_id,
                broker_epoch=known.epoch,
                current_metadata_offset=self.image.offset,
                want_fence=fence,
            )
        )

    def fence(self, node_id: int) -> None:
        """The controller believes that a broker is dead."""
        self.heartbeat(self.brokers[node_id], fence=True)

    def create_topic(self, *assignments: list[int], topic: str = "t", **configs: str) -> None:
        """A topic with a partition for each list of replicas."""
        response = self.decide(
            CreateTopicsRequest(
                topics=[
                    CreatableTopic(
                        name=topic,
                        num_partitions=-1,
                        replication_factor=-1,
                        assignments=[
                            CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
                            for index, replicas in enumerate(assignments)
                        ],
                        configs=[
                            CreatableTopicConfig(name=name.replace("_", "."), value=value)
                            for name, value in configs.items()
                        ],
                    )
                ]
            )
        )
        (answer,) = response.topics
        assert not answer.error_code, answer.error_message

    def log_config(self, image: MetadataImage, topic: str) -> LogConfig:
        """As a node's."""
        return LogConfig.from_topic_values(self.effective.topic(image.configs, topic))

    # -- running

    def run(self, scenario: Coroutine[Any, Any, None]) -> None:
        """Run a scenario to its end; a failure outside it fails it too."""
        try:
            self.loop.run_until_complete(scenario)
        finally:
            for broker in self.brokers.values():
                broker.kill()
            self.loop.close()
        assert not self.failures, self.failures

    async def start(self) -> None:
        """Start every broker."""
        for broker in self.brokers.values():
            await broker.start()

    async def until(self, condition: Callable[[], bool], within_s: float = 60.0) -> None:
        """Let time pass until `condition` holds."""
        deadline = self.loop.time() + within_s
        while not condition():
            assert self.loop.time() < deadline, "it did not come to pass"
            await asyncio.sleep(0.001)  # of virtual time

    def leader(self, index: int = 0, topic: str = "t") -> Broker | None:
        """The broker that leads and knows it."""
        for broker in self.brokers.values():
            if broker.is_serving:
                found = broker.replicas.find(topic, index)
                if isinstance(found, Partition) and found.is_leader:
                    placed = self.placed(index, topic)
                    if (placed.leader, placed.leader_epoch) == (
                        broker.node_id,
                        found.leader_epoch,
                    ):
                        return broker
        return None

    async def leads(self, node_id: int, index: int = 0, topic: str = "t") -> Broker:
        """Wait until a broker leads."""
        await self.until(lambda: self.leader(index, topic) is self.brokers[node_id])
        return self.brokers[node_id]

    async def in_sync(self, *node_ids: int, index: int = 0, topic: str = "t") -> None:
        """Wait until exactly those are in sync, and all of them know of the same log."""

        def is_so() -> bool:
            placed = self.placed(index, topic)
            if set(placed.isr) != set(node_ids):
                return False
            partitions = [self.brokers[node_id].partition(index, topic) for node_id in node_ids]
            return len({partition.log.log_end_offset for partition in partitions}) == 1

        await self.until(is_so)


def append(broker: Broker, *values: str, index: int = 0, topic: str = "t") -> int:
    """As a producer to the leader, one batch; returns the offset after it."""
    partition = broker.partition(index, topic)
    assert broker.process is not None
    result = broker.process.context.run(
        partition.append, make_batch(*values), broker.clock.now_ms()
    )
    assert not result.error, (result.error, result.message)
    return result.last_offset + 1


def committed(broker: Broker, end_offset: int, index: int = 0) -> Awaitable[ErrorCode]:
    """Return the answer to a producer with `acks=all`."""
    future: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
    broker.partition(index).when_committed(
        end_offset, lambda error: None if future.done() else future.set_result(error)
    )
    return future
