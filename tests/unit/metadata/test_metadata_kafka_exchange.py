"""Apache Kafka 4.3.1 starts from our directories, and we from those of its storage tool."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata
from node_harness import CLUSTER_ID, NodeHarness

LIBS = Path(__file__).resolve().parents[3] / ".cache" / "kafka-4.3.1" / "libs"
ATTEMPTS_MAX = 90
"""Of one second each; Kafka's start takes about four seconds on an idle machine."""

pytestmark = [
    pytest.mark.skipif(
        not LIBS.is_dir() or shutil.which("java") is None,
        reason="needs java and Kafka 4.3.1 in .cache",
    ),
    pytest.mark.timeout(240),
]


def java(main_class: str, *arguments: str) -> list[str]:
    options = ["-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    return ["java", *options, "-cp", f"{LIBS}/*", main_class, *arguments]


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [bound.getsockname()[1] for bound in sockets]
    for bound in sockets:
        bound.close()
    return ports


@pytest.fixture
def properties(tmp_path: Path) -> Iterator[Path]:
    """A server.properties for a node in `tmp_path/data`."""
    client_port, controller_port = free_ports(2)
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\n"
        "node.id=1\n"
        f"listeners=PLAINTEXT://localhost:{client_port},CONTROLLER://localhost:{controller_port}\n"
        "controller.listener.names=CONTROLLER\n"
        f"controller.quorum.bootstrap.servers=localhost:{controller_port}\n"
        f"log.dirs={tmp_path / 'data'}\n"
    )
    return path


def client_port(properties: Path) -> int:
    [line] = [text for text in properties.read_text().splitlines() if text.startswith("listeners=")]
    return int(line.partition(",")[0].rpartition(":")[2])


class Kafka:
    """Apache Kafka in a process of its own, from a properties file."""

    def __init__(self, properties: Path) -> None:
        self._properties = properties
        self._output = properties.with_suffix(".log")

    def __enter__(self) -> ClusterMetadata:
        with open(self._output, "wb") as output:
            self._process = subprocess.Popen(
                java("kafka.Kafka", str(self._properties)),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        admin = AdminClient(
            {"bootstrap.servers": f"localhost:{client_port(self._properties)}", "log_level": 0}
        )
        for _ in range(ATTEMPTS_MAX):
            if self._process.poll() is not None:
                break
            try:
                metadata = admin.list_topics(timeout=1)
            except KafkaException:
                continue
            if metadata.brokers:
                return metadata
        pytest.fail(f"Kafka did not start: {self._output.read_text()[-2000:]}")

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait(timeout=60)


async def test_kafka_starts_from_a_directory_that_we_formatted(
    tmp_path: Path, properties: Path
) -> None:
    harness = NodeHarness(str(tmp_path / "data"))
    harness.format()
    harness.disk.close()
    with Kafka(properties) as metadata:
        assert metadata.cluster_id == CLUSTER_ID
        assert list(metadata.brokers) == [1]


async def test_kafka_goes_on_where_we_stopped_and_we_where_it_did(
    tmp_path: Path, properties: Path
) -> None:
    data = str(tmp_path / "data")
    async with NodeHarness(data, metadata_log_max_record_bytes_between_snapshots="2500") as harness:
        await harness.join()
        for number in range(8):
            assert (await harness.create(f"topic-{number}", 2)).error_code == 0
        assert harness.node.raft.snapshot_id is not None
        await harness.node.controlled_shutdown()
    with Kafka(properties) as metadata:
        assert metadata.cluster_id == CLUSTER_ID
        assert {f"topic-{number}" for number in range(8)} <= set(metadata.topics)
        leaders = {
            partition.leader
            for topic in metadata.topics.values()
            for partition in topic.partitions.values()
        }
        assert leaders == {1}
    async with NodeHarness(data) as harness:
        assert harness.node.raft.epoch > 2
        assert {f"topic-{number}" for number in range(8)} <= set(harness.node.image.topics.by_name)
        await harness.join()
        assert (await harness.create("and-back")).error_code == 0


def format_with_kafka(properties: Path, *, standalone: bool) -> None:
    """Run Kafka's storage tool, for a dynamic quorum or a static one."""
    arguments = ["format", "-t", CLUSTER_ID, "-c", str(properties)]
    if standalone:
        arguments.append("--standalone")
    else:
        lines = properties.read_text().splitlines()
        static = [line for line in lines if "bootstrap.servers" not in line]
        static.append("controller.quorum.voters=1@localhost:9293")
        properties.write_text("\n".join(static) + "\n")
    subprocess.run(java("kafka.tools.StorageTool", *arguments), check=True, timeout=120)


@pytest.mark.parametrize("standalone", [True, False])
async def test_we_start_from_a_directory_that_kafka_formatted(
    tmp_path: Path, properties: Path, standalone: bool
) -> None:
    format_with_kafka(properties, standalone=standalone)
    async with NodeHarness(str(tmp_path / "data"), standalone=standalone) as harness:
        assert harness.node.cluster_id == CLUSTER_ID
        assert harness.node.image.features["metadata.version"] == 30
        assert harness.node.image.features["transaction.version"] == 2
        await harness.join()
        assert (await harness.create("first")).error_code == 0
