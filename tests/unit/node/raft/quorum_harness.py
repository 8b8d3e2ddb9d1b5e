"""A quorum of replicas on virtual time: a network in memory, disks that lose what is not synced.

Requests and responses travel as bytes, in the newest version of their API. A node that is killed
takes its tasks with it; its disk may keep what was written or lose what was not synced.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from barnabas.base.ids import METADATA_TOPIC_ID, TopicPartition, Uuid
from barnabas.node.log.config import LogConfig
from barnabas.node.log.loader import create_log, open_log
from barnabas.node.log.log_directory import LogDirectory
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.raft.node import RaftNode
from barnabas.node.raft.recovery import LogBatch
from barnabas.node.raft.settings import RaftSettings
from barnabas.node.raft.snapshot_files import (
    BOOTSTRAP_SNAPSHOT,
    Snapshot,
    SnapshotId,
    encode_snapshot,
    list_snapshots,
)
from barnabas.node.raft.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from barnabas.protocol.apis import APIS
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages.connections import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from barnabas.protocol.schema import Message
from sim.clock import SimClock
from sim.fake_disk import FakeDisk
from sim.loop import Process, SimLoop

CLUSTER_ID = "wNy8cT3ESyCmV0WqO_SnvA"
DIRECTORY = "/metadata"
LOG_DIRECTORY = f"{DIRECTORY}/__cluster_metadata-0"
PORT = 9093
API_OF = {api.request: api for api in APIS.values()}


def voter(node_id: int, directory: int = 0, port: int = PORT) -> Voter:
    """Node `node_id` as a voter; another `directory` is another disk."""
    return Voter(
        ReplicaKey(node_id, Uuid(bytes([directory + 1] * 15 + [node_id]))),
        (VoterEndpoint("CONTROLLER", f"node{node_id}", port),),
    )


def voter_set(*node_ids: int) -> VoterSet:
    return VoterSet({node_id: voter(node_id) for node_id in node_ids})


class Values:
    """A listener that keeps what it is given: every value committed, in order."""

    def __init__(self, quorum: "Quorum", node_id: int) -> None:
        self.quorum = quorum
        self.node_id = node_id
        self.values: list[bytes] = []
        self.own: list[tuple[int, bytes]] = []
        self.high_watermark = 0
        self.leaders: list[tuple[int, int]] = []
        self.snapshots: list[SnapshotId] = []

    def load_snapshot(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        assert not self.own
        self.values = list(snapshot.values)
        self.snapshots.append(snapshot_id)

    def apply(self, batches: list[LogBatch]) -> None:
        for batch in batches:
            assert not self.own
            self.values += batch.values

    def committed(self, high_watermark: int) -> None:
        assert high_watermark >= self.high_watermark, "the high watermark went back"
        self.high_watermark = high_watermark
        while self.own and self.own[0][0] < high_watermark:
            self.values.append(self.own.pop(0)[1])

    def leader_changed(self, leader_id: int, epoch: int) -> None:
        assert not self.leaders or epoch >= self.leaders[-1][1]
        self.leaders.append((leader_id, epoch))
        if leader_id != self.node_id:
            self.own.clear()


class Network:
    """The links between nodes. Delays are drawn from the seed."""

    def __init__(self, quorum: "Quorum") -> None:
        self._quorum = quorum
        self.cut: set[tuple[int, int]] = set()
        """(from, to): what is sent is lost."""
        self.delay_ms = (0.2, 2.0)
        self.requests: list[tuple[int, int, str]] = []

    def isolate(self, node_id: int) -> None:
        for other in self._quorum.nodes:
            self.cut |= {(node_id, other), (other, node_id)}

    def heal(self) -> None:
        self.cut.clear()

    async def travel(self) -> None:
        low, high = self.delay_ms
        await asyncio.sleep(self._quorum.random.uniform(low, high) / 1000)

    async def lose(self, timeout_ms: int) -> Any:
        await asyncio.sleep(timeout_ms / 1000)
        raise TimeoutError


class Transport:
    """One node's way to the others (a RaftTransport)."""

    def __init__(self, quorum: "Quorum", node_id: int) -> None:
        self._quorum = quorum
        self._node_id = node_id

    def send(self, host: str, port: int, request: Message, timeout_ms: int) -> Awaitable[Any]:
        return self._send(int(host.removeprefix("node")), request, timeout_ms)

    async def _send(self, target: int, request: Message, timeout_ms: int) -> Any:
        network = self._quorum.network
        api = API_OF[type(request)]
        version = api.max_stable_version
        data = encode(request, version)
        network.requests.append((self._node_id, target, type(request).__name__))
        if (self._node_id, target) in network.cut:
            return await network.lose(timeout_ms)
        await network.travel()
        node = self._quorum.nodes[target]
        if not node.is_up:
            raise ConnectionRefusedError
        incarnation = node.process
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                response = await node.serve(decode(type(request), version, data), version)
        except Exception as error:
            if isinstance(error, TimeoutError):
                raise
            raise ConnectionResetError from error
        await network.travel()
        if node.process is not incarnation:
            raise ConnectionResetError
        if (target, self._node_id) in network.cut:
            return await network.lose(timeout_ms)
        return decode(api.response, version, response)


class QuorumNode:
    """One node: its disk, and the replica of its current incarnation."""

    def __init__(self, quorum: "Quorum", local: Voter, *, is_controller: bool = True) -> None:
        self.quorum = quorum
        self.local = local
        self.is_controller = is_controller
        self.disk = FakeDisk()
        self.disk.make_dirs(LOG_DIRECTORY)
        self.disk.sync_dir("/")
        self.disk.sync_dir(DIRECTORY)
        self.process: Process | None = None
        self.raft: RaftNode
        self.listener: Values
        self.failures: list[Exception] = []
        self.bootstrap: list[tuple[str, int]] = []
        self.static: VoterSet | None = None

    @property
    def is_up(self) -> bool:
        return self.process is not None

    def format(self, voters: VoterSet) -> None:
        """Write what `storage format` writes for a dynamic quorum."""
        data = b"".join(encode_snapshot([], now_ms=1, kraft_version=1, voters=voters))
        self.disk.write_atomic(f"{LOG_DIRECTORY}/{BOOTSTRAP_SNAPSHOT.file_name}", data)

    def _open(self) -> PartitionLog:
        clock = SimClock(self.quorum.loop)
        directory = LogDirectory(DIRECTORY, self.disk, clock)
        partition = TopicPartition("__cluster_metadata", 0)
        config = LogConfig(segment_bytes=self.quorum.segment_bytes)
        if not any(name.endswith(".log") for name in self.disk.list(LOG_DIRECTORY)):
            return create_log(directory, partition, METADATA_TOPIC_ID, config)
        snapshots = list_snapshots(self.disk, LOG_DIRECTORY)
        recovery_point = snapshots[-1].end_offset if snapshots else 0
        log, _ = open_log(
            directory, partition, config, is_clean=False, recovery_point=recovery_point
        )
        return log

    async def start(self) -> None:
        self.prepare()
        process = self.process
        assert process is not None

        async def run() -> None:
            self.make()
            await self.raft.start()

        await self.quorum.loop.create_task(run(), context=process.context)

    def prepare(self) -> None:
        """A new incarnation."""
        self.quorum.incarnations += 1
        self.process = Process(f"node{self.local.key.id}", self.quorum.incarnations)
        self.listener = Values(self.quorum, self.local.key.id)

    def make(self) -> None:
        """The replica, not started."""
        quorum = self.quorum

        def failed(error: Exception) -> None:
            self.failures.append(error)
            self.process = None

        self.raft = RaftNode(
            disk=self.disk,
            clock=SimClock(quorum.loop),
            random=random.Random(quorum.random.getrandbits(64)),
            log=self._open(),
            directory=LOG_DIRECTORY,
            cluster_id=CLUSTER_ID,
            local=self.local,
            is_controller=self.is_controller,
            static_voters=self.static,
            bootstrap=self.bootstrap,
            settings=quorum.settings,
            transport=Transport(quorum, self.local.key.id),
            listener=self.listener,
            on_failure=failed,
        )

    async def serve(self, request: Any, version: int) -> bytes:
        """Answer a request as one of this node's tasks, so that it dies with it."""
        assert self.process is not None

        async def run() -> bytes:
            if isinstance(request, ApiVersionsRequest):
                feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
                return bytes(encode(ApiVersionsResponse(supported_features=[feature]), version))
            return bytes(encode(await self.raft.handle(request, version), version))

        task = self.quorum.loop.create_task(run(), context=self.process.context)
        process = self.process
        while not task.done():
            await asyncio.wait([task], timeout=0.01)
            if not process.is_alive:
                raise ConnectionResetError
        return task.result()

    def kill(self, *, power: bool = False) -> None:
        """End it at once; with `power` its disk loses what was not synced."""
        assert self.process is not None
        self.quorum.loop.kill(self.process)
        self.process = None
        if power:
            self.disk.cut_power(self.quorum.random)

    async def stop(self) -> None:
        assert self.process is not None
        await self.quorum.loop.create_task(self.raft.stop(), context=self.process.context)
        self.process = None

    def append(self, *values: bytes) -> int:
        """As leader, append a batch; returns the offset of its last record."""
        assert self.process is not None

        def run() -> int:
            appended = self.raft.append(values)
            offsets = range(appended.base_offset, appended.last_offset + 1)
            self.listener.own += zip(offsets, values, strict=True)
            return appended.last_offset

        return self.process.context.run(run)

    async def commit(self, *values: bytes) -> None:
        """Append and wait until it is committed."""
        await self.raft.wait_committed(self.append(*values))


class Quorum:
    """Several nodes. Times are virtual."""

    def __init__(self, seed: int = 0, *, segment_bytes: int = 1 << 20, **settings: Any) -> None:
        self.loop = SimLoop()
        self.random = random.Random(seed)
        self.settings = RaftSettings(**settings)
        self.segment_bytes = segment_bytes
        self.nodes: dict[int, QuorumNode] = {}
        self.network = Network(self)
        self.incarnations = 0

    def add(self, node_id: int, *, directory: int = 0, is_controller: bool = True) -> QuorumNode:
        node = QuorumNode(self, voter(node_id, directory), is_controller=is_controller)
        self.nodes[node_id] = node
        return node

    def add_static(self, *node_ids: int) -> None:
        for node_id in node_ids:
            self.add(node_id).static = voter_set(*node_ids)

    def add_dynamic(self, *node_ids: int) -> None:
        for node_id in node_ids:
            node = self.add(node_id)
            node.format(voter_set(*node_ids))
            node.bootstrap = [(f"node{other}", PORT) for other in node_ids]

    async def start(self, *node_ids: int) -> None:
        for node_id in node_ids or tuple(self.nodes):
            await self.nodes[node_id].start()

    async def until(self, condition: Callable[[], Any], within_ms: int = 60_000) -> None:
        """Let time pass until `condition` holds."""
        end_s = self.loop.time() + within_ms / 1000
        while not condition():
            assert self.loop.time() < end_s, f"not within {within_ms} ms: {self.describe()}"
            await asyncio.sleep(0.001)

    async def leader(self, *, among: list[int] | None = None) -> QuorumNode:
        """Wait until one node leads, knows it and the others that are up follow it."""
        found: list[QuorumNode] = []

        def is_settled() -> bool:
            up = [
                node
                for node_id, node in self.nodes.items()
                if node.is_up and (among is None or node_id in among)
            ]
            found[:] = [
                node
                for node in up
                if node.raft.is_leader
                and node.listener.leaders[-1:] == [(node.local.key.id, node.raft.epoch)]
            ]
            return len(found) == 1 and all(
                (node.raft.leader_id, node.raft.epoch)
                == (found[0].local.key.id, found[0].raft.epoch)
                for node in up
            )

        await self.until(is_settled)
        return found[0]

    def describe(self) -> str:
        return "; ".join(
            f"{node_id}: {node.raft.role.name} {node.raft.epoch} leader {node.raft.leader_id} "
            f"end {node.raft.log_end_offset} hw {node.raft.high_watermark} {node.failures}"
            for node_id, node in self.nodes.items()
            if node.is_up
        )

    def run(self, scenario: Callable[["Quorum"], Awaitable[None]]) -> None:
        """Run a scenario to its end."""
        failures: list[str] = []
        self.loop.on_exception = lambda message, error: failures.append(f"{message}: {error!r}")

        async def run() -> None:
            await scenario(self)

        try:
            self.loop.run_until_complete(run())
            assert not failures, failures
            for node_id, node in self.nodes.items():
                assert not node.failures, (node_id, node.failures)
        finally:
            self.loop.close()
