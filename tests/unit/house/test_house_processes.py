"""Nothing that tests start outlives them."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from support.node_process import wait_until

TESTS = Path(__file__).parents[2]
START_TIMEOUT_S = 90
"""Two processes of pytest start one after the other, and the machine may be busy."""
A_TEST = """
import subprocess, sys, time
import pytest

@pytest.fixture
def process():
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    process = subprocess.Popen(command, start_new_session=True)
    yield process
    process.kill()
    process.wait()
    open("stopped", "w").close()

def test_it(process):
    with open("pid", "w") as file:
        file.write(f"{process.pid}\\n")
    time.sleep(600)
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start pytest, as this project configures it, with one test that waits in `tmp_path`."""
    shutil.copy(TESTS / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(A_TEST)
    runs = []

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        options = ["-p", "xdist", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", *arguments]
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "--disable-plugin-autoload", *options, "."],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        runs.append(process)
        return process

    yield start
    for process in runs:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[[], psutil.Process]]:
    """Wait for the process that the test has started, and return it."""
    found = []

    def wait() -> psutil.Process:
        pid = tmp_path / "pid"
        wait_until(
            lambda: pid.exists() and pid.read_text().endswith("\n"),
            "a test that runs",
            START_TIMEOUT_S,
        )
        found.append(psutil.Process(int(pid.read_text())))
        return found[0]

    yield wait
    for process in found:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def test_a_run_that_is_ended_stops_what_it_has_started(
    run: Callable[..., subprocess.Popen[bytes]],
    started: Callable[[], psutil.Process],
    tmp_path: Path,
) -> None:
    it, process = run(), started()
    it.send_signal(signal.SIGTERM)
    assert it.wait(60) == 2  # as pytest ends that is interrupted
    assert (tmp_path / "stopped").exists()
    assert not process.is_running()


@pytest.mark.parametrize("arguments", [(), ("--numprocesses=1",)], ids=["alone", "xdist"])
def test_a_run_that_is_killed_leaves_nothing_behind(
    run: Callable[..., subprocess.Popen[bytes]],
    started: Callable[[], psutil.Process],
    arguments: tuple[str, ...],
) -> None:
    it, process = run(*arguments), started()
    os.killpg(it.pid, signal.SIGKILL)
    wait_until(lambda: not process.is_running(), "the end of what it started")
