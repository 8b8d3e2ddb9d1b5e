"""HTTP services as processes, attacked as anybody can who reaches their port.

Each has 1,024 descriptors. A head of 40 MB is sent, and connections that say nothing are held open:
the other clients are served, memory stays within what was sent, and the process lives.
"""

from __future__ import annotations

import contextlib
import http.client
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import barnabas
from support.node_process import wait_until
from support.ports import free_port

DESCRIPTORS = 1024
HEAD_BYTES = 40 << 20
SILENT = 1500
ASKED = 100
SLACK_S = 1.0
"""Beside four services and their attacker a machine of two cores is slow at times."""
MEMORY_SLACK_BYTES = 32 << 20
CONNECT = """
bootstrap.servers={servers}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
offset.storage.file.filename={directory}/offsets
barnabas.connect.engine=local
listeners=http://127.0.0.1:{port}
"""
Command = Callable[[str, int, Path], list[str]]

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(600)]


def registry(servers: str, port: int, directory: Path) -> list[str]:
    return ["barnabas", "registry", "start", "-b", servers, "-l", f"http://127.0.0.1:{port}"]


def sql(servers: str, port: int, directory: Path) -> list[str]:
    local = ["-o", "barnabas.sql.runner=local"]
    return ["barnabas", "sql", "server", "-b", servers, "-l", f"http://127.0.0.1:{port}", *local]


def connect(servers: str, port: int, directory: Path) -> list[str]:
    properties = directory / "worker.properties"
    properties.write_text(CONNECT.format(servers=servers, port=port, directory=directory))
    return ["barnabas", "connect", "start", str(properties)]


def dashboard(servers: str, port: int, directory: Path) -> list[str]:
    nowhere = ["--registry", "http://127.0.0.1:1", "--sql-server", "http://127.0.0.1:1"]
    module = "barnabas.demo.dashboard.server"
    return [module, "--bootstrap", servers, "--port", str(port), *nowhere]


SERVICES: dict[str, tuple[Command, str]] = {
    "registry": (registry, "/subjects"),
    "sql": (sql, "/info"),
    "connect": (connect, "/connectors"),
    "dashboard": (dashboard, "/api/state"),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[barnabas.Cluster]:
    with barnabas.Cluster() as running:
        yield running


def waits(port: int, path: str) -> list[float]:
    """Return the durations of many requests, each over a separate connection."""
    found = []
    for _ in range(ASKED):
        started_s = time.monotonic()
        asking = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        asking.request("GET", path)
        assert asking.getresponse().status == 200
        asking.close()
        found.append(time.monotonic() - started_s)
    return sorted(found)


def answers(port: int, path: str) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException, AssertionError):
        asking = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        with contextlib.closing(asking):
            asking.request("GET", path)
            return asking.getresponse().status == 200
    return False


def send_head(port: int) -> None:
    """A request whose head does not end; the server may close at any time."""
    line = b"x-filler: " + b"a" * 1000 + b"\r\n"
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port), timeout=30) as sending,
    ):
        sending.sendall(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n")
        for _ in range(HEAD_BYTES // len(line)):
            sending.sendall(line)


@contextlib.contextmanager
def silent(port: int, stack: contextlib.ExitStack) -> Iterator[None]:
    """Connections that say nothing; those beyond what the server takes wait in its backlog."""
    for _ in range(SILENT):
        with contextlib.suppress(OSError):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=1))
    yield


def memory_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


@pytest.fixture(autouse=True)
def many_descriptors() -> Iterator[None]:
    """This process holds the other ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("name", SERVICES)
def test_others_are_served(cluster: barnabas.Cluster, tmp_path: Path, name: str) -> None:
    command, path = SERVICES[name]
    port = free_port()
    limited = f'ulimit -n {DESCRIPTORS}; exec "$@"'
    arguments = command(cluster.bootstrap_servers, port, tmp_path)
    with (tmp_path / "out").open("wb") as out, contextlib.ExitStack() as stack:
        process = subprocess.Popen(
            ["sh", "-c", limited, "sh", sys.executable, "-m", *arguments],
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=tmp_path,
        )
        stack.callback(process.wait)
        stack.callback(process.terminate)
        wait_until(lambda: answers(port, path), name, 90, (tmp_path / "out").read_text)
        calm_s = waits(port, path)[ASKED * 99 // 100 - 1]
        before = memory_bytes(process.pid)
        send_head(port)
        allowed = 1.5 * HEAD_BYTES + MEMORY_SLACK_BYTES
        assert memory_bytes(process.pid) - before <= allowed
        with silent(port, stack):
            attacked_s = waits(port, path)[ASKED * 99 // 100 - 1]
        assert attacked_s <= 2 * calm_s + SLACK_S, f"{attacked_s:.3f} s, {calm_s:.3f} s before"
        assert memory_bytes(process.pid) - before <= allowed
        assert process.poll() is None
