"""Children have logs and pid files, end in order, and do not outlive a killed orchestrator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.demo.identity import start_time
from barnabas.demo.processes import Children, ChildSpec, describe_exit, tail
from support.node_process import wait_until


def program(text: str) -> list[str]:
    return [sys.executable, "-c", text]


SLEEPER = program("import time; print('up', flush=True); time.sleep(600)")


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    made = Children(str(tmp_path / "logs"), str(tmp_path / "pids"))
    yield made
    made.end_all()


def await_gone(pid: int) -> None:
    wait_until(lambda: start_time(pid) is None, f"the end of process {pid}")


def test_output_goes_to_the_log_and_the_pid_to_its_file(children: Children, tmp_path: Path) -> None:
    child = children.start(ChildSpec("talker", program("print('hello'); print('world')")))
    assert child.wait() == 0
    assert child.log_tail() == "hello\nworld"
    assert child.log_tail(1) == "world"
    assert json.loads((tmp_path / "pids" / "talker.pid").read_text())["pid"] == child.identity.pid
    assert children.ended() == [child]


def test_they_end_in_reverse_order(children: Children, tmp_path: Path) -> None:
    order = tmp_path / "order"
    text = (
        "import signal, sys, time\n"
        "def end(*_):\n"
        "    open(sys.argv[1], 'a').write(sys.argv[2]); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end); print('up', flush=True); time.sleep(600)"
    )
    for name in "abc":
        child = children.start(ChildSpec(name, [*program(text), str(order), name]))
        wait_until(lambda child=child: child.log_tail() == "up", f"the start of {name}")
    children.end_all()
    assert order.read_text() == "cba"
    assert list((tmp_path / "pids").iterdir()) == []


def test_the_environment_is_handed_on(children: Children) -> None:
    spec = ChildSpec("env", program("import os; print(os.environ['WORD'])"), {"WORD": "x"})
    child = children.start(spec)
    child.wait()
    assert child.log_tail() == "x"


@pytest.mark.parametrize("niceness", [0, 3])
def test_some_stand_back_behind_the_others(children: Children, niceness: int) -> None:
    child = children.start(ChildSpec("nice", SLEEPER, niceness=niceness))
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, child.identity.pid) == min(own + niceness, 19)


def test_leftovers_of_a_killed_run_are_ended(children: Children, tmp_path: Path) -> None:
    child = children.start(ChildSpec("sleeper", SLEEPER))
    later = Children(str(tmp_path / "logs"), str(tmp_path / "pids"))
    assert later.end_leftovers() == ["sleeper"]
    assert child.wait() != 0
    assert later.end_leftovers() == []


def test_a_pid_file_that_names_somebody_else_ends_nobody(tmp_path: Path) -> None:
    stranger = subprocess.Popen(SLEEPER, start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        made = Children(str(tmp_path / "logs"), str(tmp_path / "pids"))
        (tmp_path / "pids" / "old.pid").write_text(
            json.dumps({"pid": stranger.pid, "started": "long ago"})
        )
        (tmp_path / "pids" / "torn.pid").write_text('{"pid": 1')
        assert made.end_leftovers() == []
        assert stranger.poll() is None
        assert list((tmp_path / "pids").iterdir()) == []
    finally:
        stranger.kill()
        stranger.wait()


def test_children_do_not_outlive_a_killed_orchestrator(tmp_path: Path) -> None:
    orchestrator = subprocess.Popen(
        program(
            "import sys, time\n"
            "from barnabas.demo.processes import Children, ChildSpec\n"
            f"children = Children({str(tmp_path / 'logs')!r}, {str(tmp_path / 'pids')!r})\n"
            f"child = children.start(ChildSpec('sleeper', {SLEEPER!r}))\n"
            "print(child.identity.pid, flush=True)\n"
            "time.sleep(600)"
        ),
        stdout=subprocess.PIPE,
        text=True,
    )
    with orchestrator:
        assert orchestrator.stdout is not None
        pid = int(orchestrator.stdout.readline())
        assert start_time(pid) is not None
        orchestrator.kill()
        await_gone(pid)


def test_a_killed_guardian_is_replaced(tmp_path: Path) -> None:
    text = f"""
import sys, time
from barnabas.demo.processes import Children, ChildSpec
children = Children({str(tmp_path / "logs")!r}, {str(tmp_path / "pids")!r})
first = children.start(ChildSpec("first", {SLEEPER!r}))
children._guardian.kill()
children._guardian.wait()
second = children.start(ChildSpec("second", {SLEEPER!r}))
print(first.identity.pid, second.identity.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen(program(text), stdout=subprocess.PIPE, text=True) as orchestrator:
        assert orchestrator.stdout is not None
        pids = [int(word) for word in orchestrator.stdout.readline().split()]
        orchestrator.kill()
        for pid in pids:
            await_gone(pid)


@pytest.mark.parametrize(
    ("code", "text"), [(0, "exit code 0"), (3, "exit code 3"), (-9, "signal SIGKILL")]
)
def test_an_exit_in_words(code: int, text: str) -> None:
    assert describe_exit(code) == text


def test_the_tail_of_a_long_log(tmp_path: Path) -> None:
    log = tmp_path / "long.log"
    log.write_text("".join(f"line {number}\n" for number in range(50_000)))
    assert tail(str(log), 2) == "line 49998\nline 49999"
    assert tail(str(tmp_path / "absent.log"), 2) == ""
