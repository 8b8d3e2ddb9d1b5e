"""Processes are known by pid and start time; groups are ended whole, and only ours."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from barnabas.demo.identity import ProcessIdentity, end_group, group_members, start_time
from support.node_process import wait_until
from support.patience import PATIENCE_S

SLEEPER = "import time; time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('ready', flush=True); time.sleep(600)"
)
PARENT = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {SLEEPER!r}])
print(child.pid, flush=True)
time.sleep(600)
"""

Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def run(program: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            start_new_session=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def identity_of(process: subprocess.Popen[str]) -> ProcessIdentity:
    identity = ProcessIdentity.of(process.pid)
    assert identity is not None
    return identity


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_process_is_itself_until_it_ends(start: Start) -> None:
    process = start(SLEEPER)
    identity = identity_of(process)
    assert identity.alive()
    assert start_time(process.pid) == identity.started
    process.kill()
    process.wait()
    assert not identity.alive()
    assert ProcessIdentity.of(process.pid) is None


def test_a_zombie_does_not_count_as_alive(start: Start) -> None:
    process = start(SLEEPER)
    identity = identity_of(process)
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not identity.alive()


def test_ending_asks_first(start: Start) -> None:
    process = start(SLEEPER)
    assert end_group(identity_of(process), PATIENCE_S) == "ended"
    assert process.wait() == -signal.SIGTERM


def test_what_does_not_listen_is_killed(start: Start) -> None:
    process = start(STUBBORN)
    assert first_line(process) == "ready"
    assert end_group(identity_of(process), 0.2) == "killed"
    assert process.wait() == -signal.SIGKILL


def test_what_its_child_leaves_behind_is_ended_too(start: Start) -> None:
    process = start(PARENT)
    grandchild = int(first_line(process))
    identity = identity_of(process)
    process.kill()
    process.wait()
    assert grandchild in group_members(process.pid)
    assert end_group(identity, 0.2) == "killed"
    wait_until(lambda: start_time(grandchild) is None, "the end of the grandchild")


def test_a_reused_pid_is_left_alone(start: Start) -> None:
    process = start(SLEEPER)
    stale = ProcessIdentity(process.pid, "another boot:1")
    assert not stale.alive()
    assert end_group(stale, 0.2) == "gone"
    assert process.poll() is None


def test_a_process_that_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"], start_new_session=True)
    process.wait()
    assert end_group(ProcessIdentity(process.pid, "then"), 0.2) == "gone"
