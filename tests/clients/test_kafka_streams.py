"""A Kafka Streams application on a real node: its totals are exact, even after kills.

`java/streams/ChargingApp.java` counts charging sessions by station, exactly once, through a
repartition topic and a store with a changelog. Two instances share the work; one of them is killed
in the middle and comes back. Each session must be in the output once: of each station the counts
1, 2, 3 … and the sum of its energy.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from client_cluster import NODES, processes
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from support import client_logins
from support.apache_kafka import QUICK_JVM
from support.cluster_processes import EAGER
from support.java_host import (
    AVAILABLE,
    JAVA,
    LIBS,
    MISSING,
    SOURCES,
    JavaHost,
    ToolResult,
    quick_javac,
)
from support.node_process import wait_until

HAS_STREAMS = AVAILABLE and any(LIBS[-1].glob("kafka-streams-*.jar"))
pytestmark = [
    pytest.mark.timeout(600),
    *([pytest.mark.slow] if NODES == 1 else ()),  # `make test-cluster` runs it
    pytest.mark.skipif(not HAS_STREAMS, reason=f"{MISSING}, with Kafka Streams"),
]

PARTITIONS = 3
STATIONS = 7
SESSIONS = 1_500
TIMEOUT_S = 90.0
QUICK = {
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "3000",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "200",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
}
SETTINGS = {
    "streams": ("group.protocol=streams",),
    "classic": (
        "group.protocol=classic",
        "consumer.session.timeout.ms=3000",
        "consumer.heartbeat.interval.ms=300",
        "acceptable.recovery.lag=10000",
    ),
}


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled application."""
    directory = tmp_path_factory.mktemp("streams-classes")
    source = SOURCES / "streams" / "ChargingApp.java"
    options = ("-Xlint:all,-options", "-Werror", "-cp", f"{LIBS[-1]}/*", "-d", str(directory))
    subprocess.run([*quick_javac(), *options, str(source)], check=True)
    return directory


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of nodes whose members are heard often."""
    with processes(tmp_path_factory.mktemp("streams-nodes"), NODES, QUICK) as cluster:
        yield cluster.bootstrap_servers


class Instance:
    """One process of the application, with its state directory."""

    def __init__(self, classes: Path, directory: Path, *arguments: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._output = directory / "out"
        self._command = (
            str(JAVA),
            *("-Xmx256m", *QUICK_JVM),
            f"-Dlog4j2.configurationFile={SOURCES / 'log4j2.properties'}",
            *("-cp", f"{classes}:{LIBS[-1]}/*", "ChargingApp"),
            *arguments,
            f"state.dir={directory / 'state'}",
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process; see `says`."""
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                self._command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def says(self, line: str) -> bool:
        """Return whether the process has printed `line` since it was started."""
        assert self._process is not None
        text = self._output.read_text()
        assert self._process.poll() is None or line in text, text[-4000:]
        return line in text

    def await_running(self) -> None:
        """Wait until the process has its tasks."""
        wait_until(lambda: self.says("state RUNNING"), "an instance runs", TIMEOUT_S)

    def kill(self) -> None:
        """SIGKILL; harmless where it has ended."""
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def stop(self) -> None:
        """SIGTERM, upon which the application leaves its group."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGTERM)
        self._process.wait(TIMEOUT_S)
        assert self.says("closed")


class Charging:
    """The input, what must come of it, and the output so far."""

    def __init__(self, servers: str, name: str) -> None:
        self.servers = servers
        self.application = name
        self.sessions, self.energy = f"{name}-sessions", f"{name}-energy"
        admin = AdminClient(client_logins.librdkafka(self.servers))
        topics = [NewTopic(topic, PARTITIONS) for topic in (self.sessions, self.energy)]
        for created in admin.create_topics(topics).values():
            created.result()
        self._producer = Producer(client_logins.librdkafka(self.servers) | {"linger.ms": 5})
        self._random = random.Random(7)
        self.totals: dict[str, tuple[int, int]] = {}
        self.seen: dict[str, list[tuple[int, int]]] = {}
        # librdkafka 2.16's consumer can lock itself up while brokers die:
        # https://github.com/confluentinc/librdkafka/issues/5476
        self._runner = asyncio.Runner()
        self._reader = self._runner.run(self._start_reader())

    async def _start_reader(self) -> AIOKafkaConsumer:
        reader = AIOKafkaConsumer(
            **client_logins.python(self.servers),
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        reader.assign([TopicPartition(self.energy, index) for index in range(PARTITIONS)])
        await reader.start()
        return reader

    def charge(self, sessions: int) -> None:
        """Write sessions."""
        for _ in range(sessions):
            station = f"station-{self._random.randrange(STATIONS)}"
            energy = self._random.randrange(1, 50_000)
            count, total = self.totals.get(station, (0, 0))
            self.totals[station] = (count + 1, total + energy)
            key = f"session-{self.count}"
            self._producer.produce(self.sessions, f"{station},{energy}", key)
            self._producer.poll(0)
        assert self._producer.flush(30) == 0

    @property
    def count(self) -> int:
        """Number of sessions that were written."""
        return sum(count for count, _ in self.totals.values())

    def read(self) -> int:
        """Read new results; return the number of all results so far."""
        got = self._runner.run(self._reader.getmany(timeout_ms=200, max_records=500))
        for records in got.values():
            for record in records:
                count, total = record.value.decode().split(",")
                self.seen.setdefault(record.key.decode(), []).append((int(count), int(total)))
        return sum(map(len, self.seen.values()))

    def has_come(self, sessions: int) -> bool:
        """Read, and return whether there are that many results."""
        return self.read() >= sessions

    def check(self) -> None:
        """Each session once, in one order per station, and the sums right."""
        self.read()
        for station, (count, total) in self.totals.items():
            results = self.seen[station]
            assert [each for each, _ in results] == list(range(1, count + 1)), station
            assert results[-1][1] == total
        assert self.seen.keys() == self.totals.keys()

    def close(self) -> None:
        self._runner.run(self._stop_reader())
        self._runner.close()

    async def _stop_reader(self) -> None:
        """Stop it while a fetch from a killed node is under way, too.

        aiokafka lets the fetch's cancellation through then, and leaves its connections open.
        """
        try:
            await self._reader.stop()
        except asyncio.CancelledError:
            await self._reader._client.close()


Started = tuple[Charging, Instance, Instance]


@pytest.fixture
def start(classes: Path, tmp_path: Path) -> Iterator[Callable[[str, str], Started]]:
    """Two instances of the application that run."""
    ends = ExitStack()

    def run(servers: str, protocol: str) -> Started:
        charging = Charging(servers, f"charging-{protocol}")
        ends.callback(charging.close)
        topics = charging.sessions, charging.energy
        login = (f"{name}={value}" for name, value in client_logins.java(servers).items())
        arguments = (servers, charging.application, *topics, *SETTINGS[protocol], *login)
        first, second = (
            Instance(classes, tmp_path / name, *arguments) for name in ("first", "second")
        )
        for instance in (first, second):
            instance.start()
            ends.callback(instance.kill)
        for instance in (first, second):
            instance.await_running()
        return charging, first, second

    with ends:
        yield run


def work_through(
    charging: Charging,
    first: Instance,
    second: Instance,
    disturb: Callable[[], None] = lambda: None,
) -> None:
    """Charge while one instance is killed and comes back; all that comes out is exact."""
    third = SESSIONS // 3
    charging.charge(third)
    wait_until(lambda: charging.has_come(third // 2), "first results", TIMEOUT_S)
    charging.charge(third)
    first.kill()
    disturb()
    charging.charge(third)
    first.start()
    wait_until(lambda: charging.has_come(charging.count), "all results", TIMEOUT_S)
    charging.check()
    first.await_running()
    second.stop()


def test_streams_protocol(
    servers: str, start: Callable[[str, str], Started], java: JavaHost
) -> None:
    charging, first, second = start(servers, "streams")
    work_through(charging, first, second)
    check_tool(charging, first, java)


def check_tool(charging: Charging, last: Instance, java: JavaHost) -> None:
    """Check kafka-streams-groups on a group with one member: lists, descriptions, changes."""
    name = charging.application

    def result(action: str, *arguments: str) -> ToolResult:
        group = () if action == "--list" else ("--group", name)
        servers = ("--bootstrap-server", charging.servers)
        return java.run("kafka-streams-groups", *servers, action, *group, *arguments)

    def tool(action: str, *arguments: str) -> list[list[str]]:
        return result(action, *arguments).table

    # The member left takes over what the other one had.
    stable = [[name, "Stable"]]
    wait_until(lambda: tool("--list", "--state")[1:] == stable, "a stable group", TIMEOUT_S)
    (described,) = tool("--describe", "--state", "--verbose")[1:]
    assert [described[0], described[-4], described[-1]] == [name, "Stable", "1"]
    assert described[-3] == described[-2], "the group's epoch is that of its assignment"
    (member,) = tool("--describe", "--members", "--verbose")[1:]
    assert " ".join(member[8:]) == (
        "ACTIVE: 0:[0,1,2]; 1:[0,1,2]; TARGET-ACTIVE: 0:[0,1,2]; 1:[0,1,2];"
    )
    lags = tool("--describe", "--offsets")[1:]
    topics = charging.sessions, f"{name}-by-station-repartition"
    assert sorted((row[1], row[2]) for row in lags) == sorted(
        (topic, str(index)) for topic in topics for index in range(PARTITIONS)
    )
    assert {row[3] for row in lags} == {"0"}
    assert "GroupNotEmptyException:" in result("--delete").out
    last.stop()
    (described,) = tool("--describe", "--state", "--verbose")[-1:]
    assert [described[-4], described[-1]] == ["Empty", "0"]
    again = ("--all-input-topics", "--to-earliest", "--execute")
    assert {row[3] for row in tool("--reset-offsets", *again)[1:]} == {"0"}
    deleted = tool("--delete-offsets", "--input-topic", charging.sessions)
    assert [row[2] for row in deleted if row[0] == charging.sessions] == ["Successful"] * PARTITIONS
    assert "was successful" in result("--delete").out
    assert tool("--list") == []


def test_classic_protocol(servers: str, start: Callable[[str, str], Started]) -> None:
    charging, first, second = start(servers, "classic")
    work_through(charging, first, second)
    first.stop()


@pytest.mark.parametrize("protocol", SETTINGS)
def test_nodes_are_killed_too(
    protocol: str, tmp_path: Path, start: Callable[[str, str], Started]
) -> None:
    """Kill each of three nodes in turn, with the groups and partitions that it serves."""
    with processes(tmp_path / "nodes", 3, EAGER | QUICK) as cluster:
        charging, first, second = start(cluster.bootstrap_servers, protocol)

        def disturb() -> None:
            for node_id in cluster.nodes:
                cluster.kill(node_id)
                charging.charge(SESSIONS // 10)
                cluster.start(node_id)

        work_through(charging, first, second, disturb)
        first.stop()
