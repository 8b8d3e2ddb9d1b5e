"""A whole registry, all formats and the REST interface, as a process that a test may kill.

`python -m support.registry_process key=value…` runs one; `RegistryProcess` starts it so.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from barnabas.base.config.properties import from_flags
from barnabas.registry.config import RegistryConfig
from barnabas.registry.server import RegistryServer, run_registry
from barnabas.schemas.formats import all_formats
from support.node_process import wait_until
from support.patience import PATIENCE_S
from support.registry_member import SESSION_TIMEOUT_MS

TESTS = Path(__file__).parents[1]


class RegistryProcess:
    """An instance over its own topic, or over the one that is named."""

    def __init__(self, bootstrap_servers: str, topic: str | None = None, **settings: str) -> None:
        self.topic = topic or f"_schemas-{uuid.uuid4().hex[:8]}"
        self.settings = {
            "kafkastore.bootstrap.servers": bootstrap_servers,
            "kafkastore.topic": self.topic,
            "schema.registry.group.id": f"group-of-{self.topic}",
            "host.name": "127.0.0.1",
            "kafkastore.timeout.ms": str(int(PATIENCE_S * 1000)),
            "listeners": "http://127.0.0.1:0",
            "kafkagroup.session.timeout.ms": str(SESSION_TIMEOUT_MS),
            "kafkagroup.heartbeat.interval.ms": "200",
        } | {name.replace("_", "."): text for name, text in settings.items()}
        self.url = ""
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start, and wait until it serves."""
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "support.registry_process"),
                *(f"{name}={text}" for name, text in self.settings.items()),
            ],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        )
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
        assert readable, "the registry did not start in time"
        self.url = self.process.stdout.readline().strip()
        assert self.url, "the registry ended before it served"

    def wait_for_leader(self) -> None:
        """Wait until writes are accepted: a mode that is set again changes nothing."""
        with httpx.Client(trust_env=False, timeout=PATIENCE_S) as client:
            said: list[str] = []

            def is_accepted() -> bool:
                answer = client.put(f"{self.url}/mode", json={"mode": "READWRITE"})
                said[:] = [answer.text]
                return answer.status_code == 200

            wait_until(is_accepted, "a leader", shown=lambda: said)

    def kill(self) -> None:
        """SIGKILL: nothing is answered, written or told."""
        assert self.process is not None
        self.process.kill()
        self._gone()

    def pause(self) -> None:
        """SIGSTOP: it holds its connections and answers nothing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT: it goes on as if no time had passed."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        """SIGTERM; returns the exit code. Harmless when it has ended."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.resume()
        return self._gone()

    def _gone(self) -> int:
        assert self.process is not None
        code = self.process.wait(PATIENCE_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


@contextmanager
def registry_process(
    bootstrap_servers: str, topic: str | None = None, **settings: str
) -> Iterator[RegistryProcess]:
    """A registry that serves, and is stopped at the end."""
    registry = RegistryProcess(bootstrap_servers, topic, **settings)
    try:
        registry.start()
        yield registry
    finally:
        registry.stop()


@pytest.fixture(scope="module")
def registry_url(kafka_bootstrap_servers: str) -> Iterator[str]:
    """The URL of a registry that a module has for itself; its subjects are its tests'."""
    with registry_process(kafka_bootstrap_servers) as registry:
        yield registry.url


def say_ready(server: RegistryServer) -> None:
    print(server.listeners[0], flush=True)  # noqa: T201 - it is a protocol


if __name__ == "__main__":
    sys.exit(run_registry(RegistryConfig(from_flags(sys.argv[1:])), all_formats(), say_ready))
