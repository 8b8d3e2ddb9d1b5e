"""A node as a separate process, which a test may kill."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from support.patience import PATIENCE_S
from support.ports import free_port

POLL_S = 0.02


def wait_until(
    condition: Callable[[], bool],
    what: str,
    timeout_s: float = PATIENCE_S,
    shown: Callable[[], object] = str,
) -> None:
    """Poll `condition`; fails with `what`, and what is `shown`, when it stays untrue."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        late = time.monotonic() >= deadline
        assert not late, f"{what} did not happen within {timeout_s} s {shown()}"
        time.sleep(POLL_S)  # between two looks at another process, which cannot call back


class NodeProcess:
    """`barnabas start` over one directory; it can be killed and started again."""

    def __init__(self, directory: Path, overrides: dict[str, str] | None = None) -> None:
        self.directory = directory
        self.port = free_port()
        self.controller_port = free_port()
        self.output = directory / "node.out"
        self.process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)
        self.properties = directory / "server.properties"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": (
                f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}"
            ),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "log.dirs": str(directory / "data"),
            "offsets.topic.num.partitions": "4",
            "offsets.topic.replication.factor": "1",
            "share.coordinator.state.topic.num.partitions": "4",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "transaction.state.log.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        } | (overrides or {})
        self.properties.write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
        self.cli("storage", "format", "--config", str(self.properties), "--cluster-id", "x" * 22)

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def cli(self, *arguments: str) -> str:
        """Run a `barnabas` command to its end; fails if it does."""
        done = subprocess.run(
            [sys.executable, "-m", "barnabas", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self) -> None:
        """Start, and wait until the node answers on its port."""
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "barnabas", "start", str(self.properties)],
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        wait_until(self._answers, "the node's start")

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.output.read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        """SIGKILL: nothing is flushed, closed or told."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM; returns the exit code. Harmless when it has ended."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGTERM)
        return self.process.wait(PATIENCE_S)
