"""The two registries: how they are started, and when they answer."""

import http.client
import os
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from bench.ending import end_group
from bench.measure import wait_until
from bench.server import free_ports
from bench.settings import ROOT

PROPERTIES = """\
listeners=http://127.0.0.1:{port}
host.name=127.0.0.1
kafkastore.bootstrap.servers={bootstrap}
kafkastore.topic={topic}
schema.registry.group.id={topic}
kafkastore.topic.replication.factor=1
"""
KARAPACE = {
    "KARAPACE_REGISTRY": "true",
    "HOST": "127.0.0.1",
    "ADVERTISED_HOSTNAME": "127.0.0.1",
    "LOG_LEVEL": "WARNING",
}
"""Environment of Karapace, without the prefix; all else is as it is by default."""


def has_karapace(python: Path) -> bool:
    """Return true if an interpreter exists and can import Karapace."""
    command = [str(python), "-c", "import karapace.api"]
    try:
        done = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": ""}, capture_output=True, check=False
        )
    except OSError:
        return False
    return done.returncode == 0


class Registry(ABC):
    """A registry over a topic. A context manager, which stops the process."""

    name: str

    def __init__(self, directory: Path, bootstrap: str, topic: str) -> None:
        self.directory = directory
        self.bootstrap = bootstrap
        self.topic = topic
        (self.port,) = free_ports(1)
        self.output = directory / "registry.log"
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    @abstractmethod
    def command(self) -> list[str]:
        """The command that starts the registry."""

    @abstractmethod
    def environment(self) -> dict[str, str]:
        """What is added to the environment."""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the process; it does not answer yet when this returns."""
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                self.command(),
                cwd=ROOT,
                env={**os.environ, **self.environment()},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def check_alive(self) -> None:
        """Raises RuntimeError with the end of the process's output if it has ended."""
        assert self._process is not None
        if self._process.poll() is not None:
            tail = self.output.read_text(errors="replace")[-3000:]
            raise RuntimeError(f"{self.name} ended with {self._process.returncode}:\n{tail}")

    def await_answer(
        self, method: str, path: str, timeout_seconds: float, body: bytes | None = None
    ) -> None:
        """Ask until the answer is 200. Raises TimeoutError, and RuntimeError if it has ended."""

        def answers() -> bool:
            self.check_alive()
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
            try:
                connection.request(method, path, body, headers)
                return connection.getresponse().status == http.HTTPStatus.OK
            except (OSError, http.client.HTTPException):
                return False
            finally:
                connection.close()

        wait_until(answers, timeout_seconds, f"{self.name} answers {method} {path}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _stop(self) -> None:
        process, self._process = self._process, None
        end_group(process)


class OwnRegistry(Registry):
    """Ours, in the virtual environment that runs the benchmark."""

    name = "barnabas"

    def command(self) -> list[str]:
        properties = self.directory / "schema-registry.properties"
        properties.write_text(
            PROPERTIES.format(port=self.port, bootstrap=self.bootstrap, topic=self.topic)
        )
        return [sys.executable, "-m", "bench.registry.own", str(properties)]

    def environment(self) -> dict[str, str]:
        return {}


class Karapace(Registry):
    """Karapace, in a separate virtual environment."""

    name = "karapace"

    def __init__(self, directory: Path, bootstrap: str, topic: str, python: Path) -> None:
        """`python` is an interpreter that can import it."""
        super().__init__(directory, bootstrap, topic)
        self._python = python

    def command(self) -> list[str]:
        return [str(self._python), "-m", "karapace"]

    def environment(self) -> dict[str, str]:
        values = {
            **KARAPACE,
            "BOOTSTRAP_URI": self.bootstrap,
            "PORT": str(self.port),
            "ADVERTISED_PORT": str(self.port),
            "TOPIC_NAME": self.topic,
            "GROUP_ID": self.topic,
        }
        return {"PYTHONPATH": "", **{f"KARAPACE_{name}": value for name, value in values.items()}}
