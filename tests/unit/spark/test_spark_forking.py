"""A process of Spark's driver that the daemon of its workers forks, without a JVM."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest

from barnabas.spark import worker_daemon
from barnabas.spark.forking import (
    MODULE,
    SOCKET,
    fork_driver_processes,
    listen_for_clients,
    write_launcher,
)
from support.node_process import wait_until
from support.patience import PATIENCE_S

SECRET = "a secret"
PYTHON = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def launcher(tmp_path: Path) -> str:
    return write_launcher(str(tmp_path), sys.executable)


@pytest.fixture
def daemon(tmp_path: Path, launcher: str) -> Iterator[int]:
    """The process that forks."""
    code = (
        "import pyspark.worker; from barnabas.spark.forking import listen_for_clients, serve_forks;"
        f"serve_forks(listen_for_clients({str(tmp_path / 'socket')!r})).join()"
    )
    with subprocess.Popen([sys.executable, "-c", code], env=PYTHON) as process:
        try:
            wait_until(lambda: listening(process, tmp_path / "socket"), "the daemon's start")
            yield process.pid
        finally:
            process.kill()


def listening(process: subprocess.Popen[bytes], path: Path) -> bool:
    """Return whether the daemon has its socket; fails if it has ended."""
    assert process.poll() is None
    return path.exists()


class Driver:
    """Stands for Spark's JVM, to which such a process connects."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(PATIENCE_S)
        port = str(self._listening.getsockname()[1])
        told = {"PYTHON_WORKER_FACTORY_PORT": port, "PYTHON_WORKER_FACTORY_SECRET": SECRET}
        self.environment = {**PYTHON, **told}

    def run(self, launcher: str) -> tuple[int, int, str]:
        """The process's number, its parent's, and what it prints as the driver leaves it."""
        with subprocess.Popen(
            [launcher, "-m", MODULE], env=self.environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            connected, _ = self._listening.accept()
            with connected, connected.makefile("rwb") as file:
                (length,) = struct.unpack("!i", file.read(4))
                assert file.read(length).decode() == SECRET
                file.write(struct.pack("!i", 2) + b"ok")
                file.flush()
                (number,) = struct.unpack("!i", file.read(4))
                status = Path(f"/proc/{number}/stat").read_text()
                # When what it has started ends, Spark's JVM closes the pipe that this writes to.
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(0.5)
            assert process.stdout is not None
            printed = process.stdout.read()
            assert process.wait(PATIENCE_S) in (0, 1)
        self._listening.close()
        return number, int(status.rpartition(")")[2].split()[1]), printed


def test_the_daemon_forks_what_the_driver_asks_for(launcher: str, daemon: int) -> None:
    number, parent, printed = Driver().run(launcher)
    assert number != daemon
    assert parent == daemon
    assert "EOFError" in printed, "it writes where Spark reads"


def test_a_daemon_that_reads_its_modules_is_waited_for(launcher: str, tmp_path: Path) -> None:
    listening = listen_for_clients(str(tmp_path / "socket"))
    assert listening is not None
    with subprocess.Popen(
        [launcher, "-m", MODULE], env=PYTHON, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        try:
            listening.settimeout(PATIENCE_S)
            asked, _ = listening.accept()
            with asked:
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(0.5)
                assert b"client.py" in Path(f"/proc/{process.pid}/cmdline").read_bytes()
        finally:
            process.kill()
            listening.close()


def test_the_daemon_can_be_reached_before_it_reads_its_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, did = str(tmp_path / "socket"), []

    def load() -> None:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(at)
        did.append("load")

    daemon = SimpleNamespace(manager=lambda: did.append("manage"))
    monkeypatch.setattr(pyspark, "daemon", daemon, raising=False)
    monkeypatch.setattr(worker_daemon, "load", load)
    monkeypatch.setattr(worker_daemon, "serve_forks", lambda listening: listening.close())
    monkeypatch.setattr(worker_daemon, "import_installed", lambda: did.append("choose"))
    monkeypatch.setattr(worker_daemon, "keep_freed_memory", lambda: did.append("keep"))
    monkeypatch.setenv(SOCKET, at)
    worker_daemon.main()
    assert did == ["choose", "keep", "load", "manage"]


def test_workers_use_freed_memory_again() -> None:
    code = """
import resource
import numpy as np
from barnabas.spark.worker_daemon import keep_freed_memory

def run():
    # Of 16 MB together.
    return len([np.ones(100_000, np.int64) for _ in range(20)])

keep_freed_memory()
run()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    run()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    environment = {name: PYTHON[name] for name in PYTHON if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    # glibc by itself: some 20,000, one for each page of each run.
    assert int(done.stdout) < 4_000


def test_without_a_daemon_it_is_started(launcher: str, tmp_path: Path) -> None:
    _, parent, printed = Driver().run(launcher)
    assert parent == os.getpid()
    assert "EOFError" in printed
    # A daemon that has died leaves its socket.
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "socket"))
    assert Driver().run(launcher)[1] == os.getpid()


def test_everything_else_is_python(launcher: str, tmp_path: Path, daemon: int) -> None:
    code = f"import os, sys; print(os.environ[{SOCKET!r}], os.getppid(), sys.argv[1:])"
    done = subprocess.run(
        [launcher, "-c", code, "a b", "'"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"{tmp_path / 'socket'} {os.getpid()} ['a b', \"'\"]"
    assert Path(launcher).stat().st_mode & 0o777 == 0o700


def session(master: str) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master, pythonExec=sys.executable))


def test_a_session_of_this_machine_gets_one_launcher() -> None:
    local, cluster = session("local[2]"), session("spark://host:7077")
    for one in (local, cluster):
        fork_driver_processes(one)
    assert cluster.sparkContext.pythonExec == sys.executable
    launcher = local.sparkContext.pythonExec
    assert os.access(launcher, os.X_OK)
    assert Path(launcher).parent.stat().st_mode & 0o777 == 0o700
    fork_driver_processes(local)
    assert local.sparkContext.pythonExec == launcher
