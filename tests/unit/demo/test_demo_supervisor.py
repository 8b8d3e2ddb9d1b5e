"""Processes of a run: those that die are started again, or the demo does without them, or fails."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from barnabas.demo.outcome import DemoEndedError, DemoFailedError
from barnabas.demo.processes import Child, Children, ChildSpec
from barnabas.demo.supervisor import RESTARTS_MAX, Supervisor
from barnabas.demo.terminal import Screen

FAILS = [sys.executable, "-S", "-c", "raise SystemExit(3)"]
ENDS_WELL = [sys.executable, "-S", "-c", ""]


class Cluster:
    """A part with several processes."""

    name = "broker"

    def __init__(self, *, is_needed: bool = True) -> None:
        self.gone: list[str] = []
        self.recoveries = 0
        self._is_needed = is_needed

    def does_without(self, child: Child) -> bool:
        if not self._is_needed:
            self.gone.append(child.spec.name)
        return not self._is_needed

    def recover(self) -> None:
        self.recoveries += 1


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    children = Children(str(tmp_path / "logs"), str(tmp_path / "pids"))
    yield children
    children.end_all()


@pytest.fixture
def supervisor(children: Children) -> Supervisor:
    screen = Screen(Console(file=io.StringIO()), ["broker"])
    return Supervisor(children, screen, lambda: None)


def look_until_it_fails(supervisor: Supervisor) -> DemoFailedError:
    def never() -> bool:
        return False

    with pytest.raises(DemoFailedError) as failure:
        supervisor.wait(never, 60.0, "broker-1")
    return failure.value


def test_a_process_that_dies_before_it_was_ready_fails_its_part(supervisor: Supervisor) -> None:
    child = supervisor.start(ChildSpec("broker-1", FAILS), Cluster())
    failure = look_until_it_fails(supervisor)
    assert "broker-1 process ended by itself (exit code 3)" in str(failure)
    assert failure.child is child
    assert supervisor.owner_of(child).name == "broker"
    assert supervisor.restarts == {}


def test_a_process_that_was_ready_is_started_again_three_times(supervisor: Supervisor) -> None:
    cluster = Cluster()
    supervisor.start(ChildSpec("broker-1", FAILS), cluster)
    supervisor.set_ready("broker-1")
    look_until_it_fails(supervisor)
    assert cluster.recoveries == RESTARTS_MAX
    assert supervisor.restarts == {"broker-1": RESTARTS_MAX}


def test_the_demo_goes_on_without_a_part_that_it_can_do_without(supervisor: Supervisor) -> None:
    cluster = Cluster(is_needed=False)
    supervisor.start(ChildSpec("broker-1", FAILS), cluster)
    supervisor.wait(lambda: bool(cluster.gone), 60.0, "broker-1")
    assert supervisor.get("broker-1") is None


def test_a_process_that_may_end_is_let_go_and_one_that_is_asked_to_must_end_well(
    supervisor: Supervisor,
) -> None:
    done = supervisor.start(ChildSpec("generators", ENDS_WELL), Cluster(), ends_itself=True)
    supervisor.set_ready("generators")
    supervisor.wait(lambda: done.exit_code() is not None, 60.0, "generators")
    supervisor.look()
    supervisor.end_well("generators")
    assert supervisor.get("generators") is None
    assert supervisor.restarts == {}
    failing = supervisor.start(ChildSpec("generators", FAILS), Cluster(), ends_itself=True)
    supervisor.set_ready("generators")
    assert failing.wait() == 3
    with pytest.raises(DemoFailedError, match="did not end well"):
        supervisor.end_well("generators")


def test_who_waits_is_told_to_end(supervisor: Supervisor) -> None:
    supervisor.ask_to_end(143)
    with pytest.raises(DemoEndedError) as ended:
        supervisor.wait(lambda: False, 60.0, "broker-1")
    assert ended.value.exit_code == 143
