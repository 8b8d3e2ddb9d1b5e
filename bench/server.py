"""A broker under measurement: its configuration, its process, and its end."""

import base64
import os
import shutil
import signal
import socket
import subprocess
import uuid
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

STOP_TIMEOUT_SECONDS = 60.0

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class Server(ABC):
    """A single node in a process of its own, in a fresh directory.

    Use as a context manager: whatever happens, the process ends and its data goes. Subclasses
    say how to format and start.
    """

    name: str
    version: str

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.properties = directory / "server.properties"
        self.output = directory / "server.log"
        self.port, controller_port = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        self.properties.write_text(
            PROPERTIES.format(port=self.port, controller_port=controller_port, data=self.data)
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
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def format(self) -> None:
        """Format the storage. Raises RuntimeError with what the tool printed."""
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        done = subprocess.run(
            self.format_command(cluster_id),
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

    def check_alive(self) -> None:
        """Raises RuntimeError with the end of the server's output if it has ended."""
        assert self._process is not None
        if self._process.poll() is not None:
            tail = self.output.read_text(errors="replace")[-3000:]
            raise RuntimeError(f"{self.name} ended with {self._process.returncode}:\n{tail}")

    def stop(self) -> None:
        """SIGTERM, and SIGKILL for one that does not listen; its process group only."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(STOP_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


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
