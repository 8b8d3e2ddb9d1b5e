"""Three nodes of one server on this machine, and what the benchmark asks of them."""

import contextlib
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Self, cast

from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.voters import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from bench.measure import cpu_seconds, memory_megabytes, wait_until
from bench.server import Seat, Server, free_ports, new_cluster_id
from bench.wire import CREATE_TOPICS_VERSION, ERRORS, METADATA_VERSION, WireClient

NODES = 3
READY_SECONDS = 120.0
ANSWER_SECONDS = 5.0
DESCRIBE_QUORUM_VERSION = 0
PROPERTIES = """\
controller.quorum.voters={voters}
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
"""

MakeServer = Callable[[Path, Seat], Server]


class Cluster:
    """Three nodes, each broker and controller, in fresh directories, with default time-outs.

    A context manager: at its end, the processes are stopped and their data is deleted.
    """

    def __init__(self, make: MakeServer, directory: Path, properties: str = "") -> None:
        ports = free_ports(2 * NODES)
        voters = ",".join(
            f"{node_id}@127.0.0.1:{ports[NODES + node_id - 1]}" for node_id in range(1, NODES + 1)
        )
        shared = PROPERTIES.format(voters=voters) + properties
        self.directory = directory
        self.nodes = {
            node_id: make(
                directory / str(node_id),
                Seat(node_id, ports[node_id - 1], ports[NODES + node_id - 1], shared),
            )
            for node_id in range(1, NODES + 1)
        }
        self._running: set[int] = set()

    @property
    def name(self) -> str:
        return self.nodes[1].name

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes.values())

    def format(self) -> None:
        """Format all directories. Raises RuntimeError with what the tool printed."""
        cluster_id = new_cluster_id()
        for node in self.nodes.values():
            node.format(cluster_id)

    def start(self, *node_ids: int) -> None:
        """Start the named nodes, or all; they are not ready when this returns."""
        for node_id in node_ids or self.nodes:
            self.nodes[node_id].start()
            self._running.add(node_id)

    def kill(self, *node_ids: int) -> None:
        """SIGKILL to the named nodes."""
        for node_id in node_ids:
            self._running.discard(node_id)
            self.nodes[node_id].kill()

    def stop(self, *node_ids: int) -> None:
        """A clean end of the named nodes."""
        for node_id in node_ids:
            self._running.discard(node_id)
            self.nodes[node_id].stop()

    @property
    def running(self) -> list[Server]:
        return [self.nodes[node_id] for node_id in sorted(self._running)]

    def check_alive(self) -> None:
        """Raises RuntimeError with the output of a node that has ended by itself."""
        for node in self.running:
            node.check_alive()

    def cpu_seconds(self) -> float:
        """Of all nodes that run."""
        return sum(cpu_seconds(node.pid) for node in self.running)

    def memory_megabytes(self) -> float:
        """Of one node, the mean of those that run."""
        return sum(memory_megabytes(node.pid) for node in self.running) / len(self._running)

    # What the cluster says

    def create_topics(self, names: list[str], partitions: int) -> None:
        """Create topics on all nodes, and wait until all replicas are in sync everywhere."""
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(name=name, num_partitions=partitions, replication_factor=NODES)
                for name in names
            ]
        )
        with WireClient(self.running[0].port, READY_SECONDS) as client:
            response = cast(
                "CreateTopicsResponse", client.request(19, CREATE_TOPICS_VERSION, request)
            )
        for topic in response.topics:
            if topic.error_code:
                raise RuntimeError(f"{topic.name}: {ERRORS[topic.error_code].name}")
        self.wait_in_sync(names, len(names) * partitions)

    def wait_in_sync(self, topics: list[str], partitions: int) -> None:
        """Wait until every running node sees so many partitions with all replicas in sync."""
        for node in self.running:
            wait_until(
                partial(are_in_sync, node, topics, partitions),
                READY_SECONDS,
                f"{self.name}: {partitions} partitions in sync on node {node.node_id}",
            )

    def write_to_all(self, topics: list[str]) -> None:
        """Write a record to every partition, acks=all, until each took one. Raises TimeoutError."""
        led: dict[int, set[tuple[str, int]]] = {}
        for topic in metadata_of(self.running[0], topics).topics:
            for partition in topic.partitions:
                places = led.setdefault(partition.leader_id, set())
                places.add((topic.name or "", partition.partition_index))
        deadline = time.monotonic() + READY_SECONDS
        for node_id, left in led.items():
            with WireClient(self.nodes[node_id].port, READY_SECONDS) as client:
                while left:
                    client.produce_to_each(left)
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"{self.name}: {len(left)} partitions take no record")

    def wait_all_brokers(self) -> None:
        """Wait until every running node sees all that run."""
        for node in self.running:
            wait_until(
                partial(knows_brokers, node, self._running),
                READY_SECONDS,
                f"{self.name}: all brokers on node {node.node_id}",
            )

    def leaders(self, topic: str) -> dict[int, int]:
        """Partition → node id of its leader, as any running node knows it."""
        for node in self.running:
            with contextlib.suppress(OSError):
                return {p.partition_index: p.leader_id for p in partitions_of(node, [topic])}
        raise RuntimeError(f"{self.name}: no node answers")

    def controller(self) -> int:
        """The node id of the active controller, -1 while none is known."""
        for node in self.running:
            with contextlib.suppress(OSError):
                return _quorum_leader(node)
        return -1

    def wait_for_controller(self) -> int:
        wait_until(lambda: self.controller() > 0, READY_SECONDS, "an active controller")
        return self.controller()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for node_id in list(self._running):
            self.kill(node_id)
        shutil.rmtree(self.directory, ignore_errors=True)


def metadata_of(node: Server, topics: list[str]) -> MetadataResponse:
    """Return a node's metadata of topics. Raises OSError if the node does not answer."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=False,
    )
    with WireClient(node.port, ANSWER_SECONDS) as client:
        return cast("MetadataResponse", client.request(3, METADATA_VERSION, request))


def partitions_of(node: Server, topics: list[str]) -> list[MetadataResponsePartition]:
    response = metadata_of(node, topics)
    return [partition for topic in response.topics for partition in topic.partitions]


def knows_brokers(node: Server, node_ids: set[int]) -> bool:
    """Return true if a node answers and knows all of these nodes."""
    try:
        return node_ids <= {broker.node_id for broker in metadata_of(node, []).brokers}
    except OSError:
        return False


def are_in_sync(node: Server, topics: list[str], count: int) -> bool:
    """Return true if a node sees `count` partitions with a leader and all replicas in sync."""
    try:
        found = partitions_of(node, topics)
    except OSError:
        return False
    return count == sum(p.leader_id > 0 and len(p.isr_nodes) == NODES for p in found)


def _quorum_leader(node: Server) -> int:
    topic = DescribeQuorumRequestTopicData(
        topic_name="__cluster_metadata",
        partitions=[DescribeQuorumRequestPartitionData(partition_index=0)],
    )
    with WireClient(node.port, ANSWER_SECONDS) as client:
        response = cast(
            "DescribeQuorumResponse",
            client.request(55, DESCRIBE_QUORUM_VERSION, DescribeQuorumRequest(topics=[topic])),
        )
    if response.error_code or not response.topics:
        return -1
    return response.topics[0].partitions[0].leader_id
