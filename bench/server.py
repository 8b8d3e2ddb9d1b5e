"""A broker under measurement: its configuration, its process, and its end."""

import base64
import os
import shutil
import signal
import socket
import subprocess
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from bench.certificate import make_certificate
from bench.ending import end_group
from bench.scram_client import SCRAM_USER

PROPERTIES = """\
process.roles=broker,controller
node.id={node_id}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
group.initial.rebalance.delay.ms=0
"""
ALONE = """\
controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""
SECURED = """\
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port},SSL://127.0.0.1:{tls_port},SASL://127.0.0.1:{sasl_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{tls_port},SASL://127.0.0.1:{sasl_port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,SASL:SASL_PLAINTEXT
ssl.keystore.type=PEM
ssl.keystore.location={certificate}
listener.name.sasl.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl.scram-sha-512.sasl.jaas.config=\\
org.apache.kafka.common.security.scram.ScramLoginModule required;
"""
"""The same for a server with a TLS and a SCRAM listener."""


@dataclass(frozen=True, slots=True)
class Seat:
    """The place of a node in its cluster: what is its own, and what all nodes share."""

    node_id: int
    port: int
    controller_port: int
    properties: str
    """Further lines; the same for all nodes."""


class Server(ABC):
    """A node in a separate process with a fresh directory, alone or at its seat in a cluster.

    A context manager: at its end, the process is stopped and its data is deleted. Subclasses
    say how to format and start.
    """

    name: str
    version: str

    def __init__(self, directory: Path, seat: Seat | None = None, *, tls: bool = False) -> None:
        """`tls`: it has listeners with TLS and with logins by SCRAM too."""
        self.directory = directory
        self.is_alone = seat is None
        self.data = directory / "data"
        self.properties = directory / "server.properties"
        self.output = directory / "server.log"
        if seat is None:
            port, controller_port = free_ports(2)
            seat = Seat(1, port, controller_port, ALONE + (SECURED if tls else ""))
        self.is_secured = tls
        self.tls_port, self.sasl_port = free_ports(2)
        self.certificate = directory / "certificate.pem"
        self.node_id, self.port = seat.node_id, seat.port
        self._process: subprocess.Popen[bytes] | None = None
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        if tls:
            make_certificate(self.certificate)
        self.properties.write_text(
            (PROPERTIES + seat.properties).format(
                node_id=seat.node_id,
                port=seat.port,
                controller_port=seat.controller_port,
                data=self.data,
                tls_port=self.tls_port,
                sasl_port=self.sasl_port,
                certificate=self.certificate,
            )
        )

    @abstractmethod
    def format_command(self, cluster_id: str) -> list[str]:
        """What formats the storage."""

    @abstractmethod
    def start_command(self) -> list[str]:
        """What becomes the broker's process."""

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def tls(self) -> str:
        """The address of its listener with TLS."""
        return f"127.0.0.1:{self.tls_port}"

    def tls_client(self) -> dict[str, Any]:
        """What a Java client needs for that."""
        return {
            "security_protocol": "SSL",
            "ssl_truststore_type": "PEM",
            "ssl_truststore_location": str(self.certificate.with_suffix(".crt")),
        }

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def format(self, cluster_id: str | None = None) -> None:
        """Format the storage. Raises RuntimeError with what the tool printed."""
        cluster_id = cluster_id or new_cluster_id()
        done = subprocess.run(
            [
                *self.format_command(cluster_id),
                *(["--standalone"] if self.is_alone else []),
                *(["--add-scram", SCRAM_USER] if self.is_secured else []),
            ],
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{self.name}: format failed:\n{done.stdout}{done.stderr}")

    def start(self) -> None:
        """Start the process; it is not ready when this returns."""
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                self.start_command(),
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self) -> None:
        """SIGKILL; it can be started again."""
        process, self._process = self._process, None
        assert process is not None
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def check_alive(self) -> None:
        """Raises RuntimeError with the end of the server's output if it has ended."""
        assert self._process is not None
        if self._process.poll() is not None:
            tail = self.output.read_text(errors="replace")[-3000:]
            raise RuntimeError(f"{self.name} ended with {self._process.returncode}:\n{tail}")

    def stop(self) -> None:
        """SIGTERM, and SIGKILL for one that does not listen; its process group only."""
        process, self._process = self._process, None
        end_group(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


def new_cluster_id() -> str:
    """In Kafka's form, and not to be taken for an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody listens on just now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
