"""Tests run in several processes as they do in one, and nothing that they start outlives them."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from support import type_check
from support.node_process import wait_until
from support.processes import YIELDING, Group, next_group

TESTS = Path(__file__).parents[2]
START_TIMEOUT_S = 90
"""The machine may be busy."""
ALONE_OR_NOT = pytest.mark.parametrize(
    "arguments", [(), ("--processes=1",)], ids=["alone", "processes"]
)
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
OF_ALL_KINDS = {
    "test_dying.py": """
import os, signal

def test_before(): print("seen")
def test_dies(): os.kill(os.getpid(), signal.SIGKILL)
def test_fails(): print("heard"); assert os.environ["TEST_PROCESS"] == "x"
def test_after(tmp_path): pass
""",
    "test_ends.py": """
import warnings
import pytest

@pytest.fixture(scope="session")
def broken_at_its_end():
    yield
    raise RuntimeError("cannot stop")

def test_first(broken_at_its_end): pass
def test_warns(): warnings.warn("beware", FutureWarning)
""",
}
OF_ONE_SESSION = {
    "conftest.py": (TESTS / "conftest.py").read_text()
    + """

@pytest.fixture(scope="session")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("one")
""",
    "test_first.py": "def test_it(directory): assert directory.parent.name == 'process-0'",
    "test_second.py": "def test_it(directory): assert directory.name == 'not one0'",
    "test_third.py": "def test_it(directory): pass",
}


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start pytest, as this project configures it, with one test that waits in `tmp_path`."""
    shutil.copy(TESTS / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(A_TEST)
    runs = []

    def start(*arguments: str, output: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        options = ["-p", "no:cacheprovider", f"--rootdir={tmp_path}", *arguments]
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "--disable-plugin-autoload", *options, "."],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
            stdout=output,
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


@ALONE_OR_NOT
def test_a_run_that_is_ended_stops_what_it_has_started(
    run: Callable[..., subprocess.Popen[bytes]],
    started: Callable[[], psutil.Process],
    tmp_path: Path,
    arguments: tuple[str, ...],
) -> None:
    it, process = run(*arguments), started()
    it.send_signal(signal.SIGTERM)
    assert it.wait(60) == 2  # as pytest ends that is interrupted
    assert (tmp_path / "stopped").exists()
    assert not process.is_running()


@ALONE_OR_NOT
def test_a_run_that_is_killed_leaves_nothing_behind(
    run: Callable[..., subprocess.Popen[bytes]],
    started: Callable[[], psutil.Process],
    arguments: tuple[str, ...],
) -> None:
    it, process = run(*arguments), started()
    os.killpg(it.pid, signal.SIGKILL)
    wait_until(lambda: not process.is_running(), "the end of what it started")


def test_reports_are_as_in_one_process(
    run: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    _write(tmp_path, OF_ALL_KINDS)
    it = run("--processes=2", "-v", "--durations=1", output=subprocess.PIPE)
    text = it.communicate(timeout=START_TIMEOUT_S)[0].decode()
    assert it.returncode == 1, text
    found = re.findall(r"^\[(p\d)\] \[ *\d+%\] (\w+) (\S+)", text, re.MULTILINE)
    assert sorted(found) == [
        ("p0", "FAILED", "test_dying.py::test_dies"),
        ("p0", "PASSED", "test_dying.py::test_before"),
        ("p1", "ERROR", "test_ends.py::test_warns"),
        ("p1", "PASSED", "test_ends.py::test_first"),
        ("p1", "PASSED", "test_ends.py::test_warns"),
        ("p2", "FAILED", "test_dying.py::test_fails"),
        ("p2", "PASSED", "test_dying.py::test_after"),
    ]
    assert "the process that ran test_dying.py::test_dies ended by SIGKILL" in text
    assert "heard" in text
    assert "seen" not in text
    assert "FutureWarning: beware" in text
    assert "RuntimeError: cannot stop" in text
    assert "slowest 1 durations" in text
    assert re.search(r"= 2 failed, 4 passed, 1 warning, 1 error in ", text)


def test_a_session_lasts_until_the_first_failure_if_asked_to(
    run: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    _write(tmp_path, OF_ONE_SESSION)
    it = run("--processes=1", "-x", output=subprocess.PIPE)
    text = it.communicate(timeout=START_TIMEOUT_S)[0].decode()
    assert it.returncode == 1, text
    assert "assert 'one0' == 'not one0'" in text
    assert "stopping after 1 failures" in text
    assert re.search(r"= 1 failed, 1 passed in ", text)


@pytest.mark.parametrize(
    ("has", "elsewhere", "chosen"),
    [
        (set(), set(), 0),
        (set(), {"java"}, 1),
        ({"database"}, {"java"}, 2),
        ({"java"}, {"database"}, 0),
        (set(), {"java", "database"}, 1),
    ],
)
def test_few_processes_start_the_same(has: set[str], elsewhere: set[str], chosen: int) -> None:
    groups = [Group([0], {"java"}), Group([1]), Group([2], {"database"}), Group([3], {"java"})]
    assert next_group(groups, has, elsewhere) is groups[chosen]


def test_a_process_does_not_idle_when_only_others_have_what_is_needed() -> None:
    group = Group([0], {"java"})
    assert next_group([group], set(), {"java"}) is group


def test_others_yield_to_the_longest_group(
    run: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    print_niceness = "import os\ndef test_it(): print(f'{__name__}={os.nice(0)}'); assert False"
    _write(tmp_path, {"test_short.py": print_niceness, "unit/streams/test_long.py": print_niceness})
    it = run("--processes=2", output=subprocess.PIPE)
    text = it.communicate(timeout=START_TIMEOUT_S)[0].decode()
    found = dict(re.findall(r"(test_short|test_long)=(\d+)", text))
    own = os.nice(0)
    assert found == {"test_long": str(own), "test_short": str(min(own + YIELDING, 19))}, text


@pytest.mark.parametrize("code", [0, 3])
def test_the_result_of_a_command_in_the_background(code: int) -> None:
    type_check.begin(["sh", "-c", f"echo one; echo two >&2; exit {code}"])
    assert type_check.result() == (code, "one\ntwo")


def _write(directory: Path, files: dict[str, str]) -> None:
    (directory / "test_it.py").unlink()
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
