"""A cluster of nodes that are processes of their own: killed, paused, cut off and started again.

Every node is broker and controller. `program` says what runs: Barnabas, or Apache Kafka to hold
a test's own claims against (`support.apache_kafka`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.voters import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
)
from support import client_logins
from support.node_process import wait_until
from support.ports import free_port
from support.raw_client import RawClient
from support.secured_settings import Security

CLUSTER_ID = "x" * 22
T = TypeVar("T")
START_TIMEOUT_S = 110
"""Just below the usual limit of a test. On a busy machine a node of Apache Kafka takes more than a
minute to start; one that ends by itself is noticed at once."""
HEALTHY_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60
ANSWER_TIMEOUT_S = 20
PROPERTIES = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}
EAGER = {
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "replica.lag.time.max.ms": "3000",
}
"""Time-outs for tests that wait for them, far below the defaults."""


Sizes = dict[str | None, int]
"""Topic → number of partitions."""


class NoAnswerError(AssertionError):
    """None of the nodes that run answered in time."""


class Program(Protocol):
    """The program that runs as a node."""

    def format(self, properties: Path, cluster_id: str) -> list[str]:
        """The command that prepares the directories."""
        ...

    def start(self, properties: Path) -> list[str]:
        """The command that becomes the node."""
        ...


class Barnabas:
    """The `barnabas` command of the environment that runs the tests."""

    def format(self, properties: Path, cluster_id: str) -> list[str]:
        arguments = ["--config", str(properties), "--cluster-id", cluster_id]
        return [sys.executable, "-m", "barnabas", "storage", "format", *arguments]

    def start(self, properties: Path) -> list[str]:
        return [sys.executable, "-m", "barnabas", "start", str(properties)]


class Place(Protocol):
    """Where a node lives: its address, and how a process is started there."""

    host: str

    def command(self, command: list[str]) -> list[str]: ...


class Loopback:
    """The place of nodes that share this machine's addresses."""

    host = "127.0.0.1"

    def command(self, command: list[str]) -> list[str]:
        return command


class ClusterNode:
    """One node's directory and, while it lives, its process."""

    def __init__(self, node_id: int, directory: Path, place: Place, program: Program) -> None:
        self.node_id = node_id
        self.directory = directory
        self.place = place
        self.port = free_port()
        self.controller_port = free_port()
        self.properties = directory / "server.properties"
        self.output = directory / "node.out"
        self.data = directory / "data"
        self.is_paused = False
        self.is_wanted = False
        """True if it was started, and nobody has ended it since."""
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        return f"{self.place.host}:{self.port}"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def format(self, settings: dict[str, str], arguments: Sequence[str] = ()) -> None:
        """Write the configuration and begin to prepare the directory."""
        self.directory.mkdir(parents=True)
        self.properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self._run([*self._program.format(self.properties, CLUSTER_ID), *arguments])

    def wait_formatted(self) -> None:
        """Wait until the directory is prepared."""
        assert self.wait() == 0, self.tail()

    def _run(self, command: list[str]) -> None:
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def start(self) -> None:
        """Start the process; it is not ready when this returns."""
        assert not self.is_running
        self.is_wanted = True
        self._run(self.place.command(self._program.start(self.properties)))

    def answers(self) -> bool:
        """Return whether it accepts connections. Fails with its output if it has ended."""
        assert self.is_running, f"node {self.node_id} ended:\n{self.tail()}"
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex((self.place.host, self.port)) == 0

    def kill(self) -> None:
        """SIGKILL: nothing is flushed, closed or told. Harmless when it has ended."""
        self.is_wanted = False
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self.is_paused = False

    def pause(self) -> None:
        """SIGSTOP: it holds its connections and answers nothing."""
        os.kill(self.pid, signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        """SIGCONT: it goes on as if no time had passed."""
        os.kill(self.pid, signal.SIGCONT)
        self.is_paused = False

    def terminate(self) -> None:
        """SIGTERM, without waiting."""
        self.is_wanted = False
        if self.is_running:
            if self.is_paused:
                self.resume()
            os.kill(self.pid, signal.SIGTERM)

    def wait(self) -> int:
        """Wait for its end and return the exit code; 0 for one that was never started."""
        return 0 if self._process is None else self._process.wait(STOP_TIMEOUT_S)

    def tail(self) -> str:
        """The end of what it printed."""
        return self.output.read_text(errors="replace")[-3000:] if self.output.exists() else ""


class ClusterProcesses:
    """A context manager: the processes end in any case."""

    def __init__(
        self,
        directory: Path,
        nodes: int = 3,
        overrides: dict[str, str] | None = None,
        *,
        program: Program | None = None,
        places: Sequence[Place] = (),
        racks: bool = True,
        security: Security | None = None,
    ) -> None:
        """Clients of a secured cluster find their login in `client_logins`."""
        program = program or Barnabas()
        places = places or [Loopback()] * nodes
        self.nodes = {
            node_id: ClusterNode(node_id, directory / f"node-{node_id}", place, program)
            for node_id, place in enumerate(places, start=1)
        }
        copies = str(min(3, nodes))
        shared = PROPERTIES | {
            "controller.quorum.voters": ",".join(
                f"{node.node_id}@{node.place.host}:{node.controller_port}"
                for node in self.nodes.values()
            ),
            "default.replication.factor": copies,
            "min.insync.replicas": "2" if nodes > 1 else "1",
            "offsets.topic.replication.factor": copies,
            "share.coordinator.state.topic.replication.factor": copies,
            "share.coordinator.state.topic.min.isr": "2" if nodes > 1 else "1",
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": "2" if nodes > 1 else "1",
        }
        settings: dict[int, dict[str, str]] = {}
        for node in self.nodes.values():
            host = node.place.host
            own = {
                "node.id": str(node.node_id),
                "listeners": (
                    f"PLAINTEXT://{host}:{node.port},CONTROLLER://{host}:{node.controller_port}"
                ),
                "log.dirs": str(node.data),
            }
            if racks:
                own["broker.rack"] = f"rack-{node.node_id}"
            if security is not None:
                ports = (node.port, node.controller_port)
                own |= security.settings() | security.node(node.node_id, host, *ports)
            settings[node.node_id] = shared | own | (overrides or {})
        arguments = () if security is None else security.format_arguments()
        with self._killed_by_failures():
            for node_id, node in self.nodes.items():
                node.format(settings[node_id], arguments)
            for node in self.nodes.values():
                node.wait_formatted()

    @contextlib.contextmanager
    def _killed_by_failures(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.kill(*self.nodes)
            raise

    def __enter__(self) -> ClusterProcesses:
        with self._killed_by_failures():
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill(*self.nodes)

    # Processes

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.bootstrap_servers for node in self.nodes.values())

    @property
    def running(self) -> list[ClusterNode]:
        """The nodes that could answer."""
        return [node for node in self.nodes.values() if node.is_running and not node.is_paused]

    def start(self, *node_ids: int) -> None:
        """Start the named nodes, or all, and wait until the cluster is whole again."""
        for node_id in node_ids or self.nodes:
            self.nodes[node_id].start()
        self.wait_until_healthy(START_TIMEOUT_S)

    def kill(self, *node_ids: int) -> None:
        """SIGKILL to the named nodes, as near to each other as can be."""
        running = [self.nodes[node_id] for node_id in node_ids if self.nodes[node_id].is_running]
        for node in running:
            os.kill(node.pid, signal.SIGKILL)
        for node in running:
            node.kill()

    def pause(self, node_id: int) -> None:
        self.nodes[node_id].pause()

    def resume(self, node_id: int) -> None:
        self.nodes[node_id].resume()

    def stop(self, *node_ids: int) -> None:
        """SIGTERM to the named nodes, or all, at once; each ends with success."""
        nodes = [self.nodes[node_id] for node_id in node_ids or self.nodes]
        for node in nodes:
            node.terminate()
        for node in nodes:
            # A JVM that was asked to end by a signal says so with its exit code.
            assert node.wait() in (0, 128 + signal.SIGTERM), node.tail()

    def restart(self, node_id: int) -> None:
        """A clean end and a new start."""
        self.stop(node_id)
        self.start(node_id)

    # What the cluster says of itself

    def create_topic(
        self,
        name: str,
        partitions: int = 3,
        replication_factor: int = -1,
        config: dict[str, str] | None = None,
    ) -> None:
        """Create a topic and wait until all its replicas are in sync."""
        admin = AdminClient(client_logins.librdkafka(self.bootstrap_servers) | {"log_level": 0})
        topic = NewTopic(name, partitions, replication_factor, config=config or {})
        admin.create_topics([topic], operation_timeout=30)[name].result(60)
        self.wait_until_healthy()

    def leader_of(self, topic: str, partition: int = 0, *, asking: int | None = None) -> int:
        """The leader's node id, or -1 while none is known; `asking` names who is to be asked."""
        metadata = self._ask(_metadata_of, asking)
        for described in metadata.topics:
            if described.name == topic:
                for entry in described.partitions:
                    if entry.partition_index == partition:
                        return entry.leader_id
        return -1

    def named_brokers(self) -> set[int]:
        """The node ids of the brokers that clients hear of."""
        return {broker.node_id for broker in self._ask(_metadata_of, None).brokers}

    def in_sync(self, topic: str, partition: int = 0) -> set[int]:
        """The node ids of the in-sync replicas, as a node that answers knows them."""
        metadata = self._ask(_metadata_of, None)
        return {
            node_id
            for described in metadata.topics
            if described.name == topic
            for entry in described.partitions
            if entry.partition_index == partition
            for node_id in entry.isr_nodes
        }

    def controller(self, *, asking: int | None = None) -> int:
        """The node id of the active controller, or -1 while none is known."""
        return self._ask(_quorum_of, asking).leader_id

    def wait_for_leader(
        self, topic: str, partition: int = 0, *, other_than: int = -1, asking: int | None = None
    ) -> int:
        """Wait until a node leads the partition that is not `other_than`."""
        return self._wait_for(
            lambda: self.leader_of(topic, partition, asking=asking), other_than, "a leader"
        )

    def wait_for_controller(self, *, other_than: int = -1, asking: int | None = None) -> int:
        """Wait until there is an active controller that is not `other_than`."""
        return self._wait_for(
            lambda: self.controller(asking=asking), other_than, "an active controller"
        )

    def _wait_for(self, look: Callable[[], int], other_than: int, what: str) -> int:
        found = -1

        def is_there() -> bool:
            nonlocal found
            with contextlib.suppress(NoAnswerError):
                found = look()
            return found not in (-1, other_than)

        wait_until(is_there, what, HEALTHY_TIMEOUT_S)
        return found

    def wait_until_healthy(self, timeout_s: float = HEALTHY_TIMEOUT_S) -> None:
        """Wait until every node that runs knows all brokers, and all replicas are in sync."""
        try:
            wait_until(lambda: not self.ailments(), "a healthy cluster", timeout_s)
        except AssertionError as error:
            tails = "".join(f"\n--- {n.node_id}:\n{n.tail()}" for n in self.nodes.values())
            raise AssertionError(f"{error}: {', '.join(self.ailments())}{tails}") from None

    def ailments(self) -> list[str]:
        """Return what is not as it should be while all nodes run; empty for a healthy cluster.

        Fails with the output of a node that has ended by itself.
        """
        for node in self.nodes.values():
            assert node.is_running or not node.is_wanted, (
                f"node {node.node_id} ended by itself:\n{node.tail()}"
            )
        known: dict[int, Sizes] = {}
        found = [ailment for node in self.running for ailment in self._ailments(node, known)]
        for node_id, sizes in known.items():
            first = next(iter(known.values()))
            if sizes != first:
                differing = sorted(str(name) for name, _ in set(sizes.items()) ^ set(first.items()))
                found.append(f"node {node_id} does not agree with others on {differing}")
        return found

    def _ailments(self, node: ClusterNode, known: dict[int, Sizes]) -> Iterable[str]:
        """Those that one node shows; into `known` goes what topics it sees."""
        if not node.answers():
            return [f"node {node.node_id} does not answer"]
        try:
            metadata = _metadata_of(node)
            leader_id = _quorum_of(node).leader_id
        except (OSError, AssertionError) as error:
            return [f"node {node.node_id} does not answer: {error}"]
        known[node.node_id] = {topic.name: len(topic.partitions) for topic in metadata.topics}
        ailments = [
            f"node {node.node_id} sees {described.name}-{entry.partition_index} led by "
            f"{entry.leader_id}, in sync {entry.isr_nodes}"
            for described in metadata.topics
            for entry in described.partitions
            if entry.leader_id < 0 or len(entry.isr_nodes) < len(entry.replica_nodes)
        ]
        seen = {broker.node_id for broker in metadata.brokers}
        if missing := {other.node_id for other in self.running} - seen:
            ailments.append(f"node {node.node_id} does not see {sorted(missing)}")
        if leader_id < 0:
            ailments.append(f"node {node.node_id} knows no active controller")
        return ailments

    def _ask(self, question: Callable[[ClusterNode], T], whom: int | None) -> T:
        """The first answer of the nodes that run, or that of the named one."""
        errors = []
        for node in self.running if whom is None else [self.nodes[whom]]:
            try:
                return question(node)
            except (OSError, AssertionError) as error:
                errors.append(f"{node.node_id}: {error}")
        raise NoAnswerError(f"no node answers: {errors}")


def _metadata_of(node: ClusterNode) -> MetadataResponse:
    with RawClient(node.bootstrap_servers, ANSWER_TIMEOUT_S) as raw:
        return raw.call(MetadataRequest(topics=None), MetadataResponse)


def _quorum_of(node: ClusterNode) -> DescribeQuorumResponsePartitionData:
    """Return what a node says of the quorum; `leader_id` is -1 where it cannot say."""
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    topic = DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
    with RawClient(node.bootstrap_servers, ANSWER_TIMEOUT_S) as raw:
        answer = raw.call(DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse)
    if answer.error_code != ErrorCode.NONE or not answer.topics:
        return DescribeQuorumResponsePartitionData(leader_id=-1)
    return answer.topics[0].partitions[0]
