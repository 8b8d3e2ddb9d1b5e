"""Apache Kafka 4.3.1 from Maven's jars, for tests that hold us against it."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata

from support.apache_kafka import LIBS, QUICK_JVM
from support.ports import free_port

CLUSTER_ID = "wNy8cT3ESyCmV0WqO_SnvA"
ATTEMPTS_MAX = 90
"""Of one second each; Kafka's start takes two to five seconds on an idle machine."""


def node_properties(directory: Path) -> dict[str, str]:
    """server.properties of a node that is broker and only controller, data in `directory`."""
    client_port, controller_port = free_port(), free_port()
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://localhost:{client_port},"
        f"CONTROLLER://localhost:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"localhost:{controller_port}",
        "log.dirs": str(directory),
    }


def format_with_kafka(properties: dict[str, str], directory: Path, *options: str) -> None:
    """Run `kafka-storage format`; the file it reads goes to `directory`."""
    path = _write(properties, directory)
    arguments = ["format", "-t", CLUSTER_ID, "-c", str(path), *options]
    command = _java("kafka.tools.StorageTool", *arguments)
    subprocess.run(command, check=True, timeout=120, stdout=subprocess.DEVNULL)


class Kafka:
    """Apache Kafka in a separate process; its files other than the data go to `directory`.

    `with` waits for the broker, and gives what a client sees.
    """

    def __init__(self, properties: dict[str, str], directory: Path) -> None:
        self._path = _write(properties, directory)
        self._output = directory / "kafka.log"
        listener = properties["listeners"].partition(",")[0]
        self.bootstrap_servers = listener.removeprefix("PLAINTEXT://")

    def __enter__(self) -> ClusterMetadata:
        with open(self._output, "wb") as output:
            self._process = subprocess.Popen(
                _java("kafka.Kafka", str(self._path)),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
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


def _java(main_class: str, *arguments: str) -> list[str]:
    return ["java", "-Xmx384m", *QUICK_JVM, "-cp", f"{LIBS[-1]}/*", main_class, *arguments]


def _write(properties: dict[str, str], directory: Path) -> Path:
    path = directory / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return path
