"""Nothing that tests start outlives them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from support.node_process import wait_until

TESTS = Path(__file__).parents[2]
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

def test_it(process):
    with open("pid", "w") as file:
        file.write(f"{process.pid}\\n")
    time.sleep(600)
"""


def test_a_run_that_is_ended_stops_what_it_has_started(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "from support.ended_by_sigterm import end_by_sigterm\n"
        "def pytest_configure():\n    end_by_sigterm()\n"
    )
    (tmp_path / "test_it.py").write_text(A_TEST)
    pid = tmp_path / "pid"
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "--disable-plugin-autoload", f"--rootdir={tmp_path}", "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdout=subprocess.DEVNULL,
    ) as run:
        wait_until(lambda: pid.exists() and pid.read_text().endswith("\n"), "a test that runs")
        started = psutil.Process(int(pid.read_text()))
        run.send_signal(signal.SIGTERM)
        assert run.wait(60) == 2  # as pytest ends that is interrupted
    was_left = started.is_running()
    if was_left:
        started.kill()
    assert not was_left
