"""Killed at any point and started again, the demo ends with the figures of a run never killed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.demo.commands import MissingError, check_requirements
from barnabas.demo.database.place import find_programs
from barnabas.demo.identity import start_time
from barnabas.demo.outside import fetch_json
from support.node_process import wait_until

try:
    check_requirements()
except MissingError as error:
    pytest.skip(str(error), allow_module_level=True)

SECONDS = 20
COMMAND = [sys.executable, "-m", "barnabas", "demo", "--json", "--seconds", str(SECONDS)]
HAS_DATABASE = not isinstance(find_programs(), str)
CHILDREN = (
    *("broker", "registry", "dashboard", "sql-server", "generators"),
    *(("postgres", "connect") if HAS_DATABASE else ()),
    *("bucket", "warehouse"),
)
NODES = ("broker-1", "broker-2", "broker-3")
databases: set[str] = set()
"""Directories of PostgreSQL, some of them outside of the tests' own."""

# The demo's warehouse yields to other processes: beside busy ones Spark does not start in time.
pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(900)]


@contextlib.contextmanager
def demo(directory: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A run in a directory; it is gone when the block ends, and so is all that it started."""
    with (directory.parent / f"{directory.name}.log").open("ab") as log:
        process = subprocess.Popen(
            [*COMMAND, "--directory", str(directory), *options], stdout=subprocess.PIPE, stderr=log
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(60)
            assert process.stdout is not None
            process.stdout.close()
            settings = json.loads((directory / "demo.json").read_text())
            if settings["database_directory"]:
                databases.add(settings["database_directory"])


@pytest.fixture(scope="module", autouse=True)
def no_database_left() -> Iterator[None]:
    """If the tests run as root, PostgreSQL's user may not enter their directories."""
    yield
    for database in databases:
        shutil.rmtree(database, ignore_errors=True)


def outcome(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    answer = json.loads(process.stdout.read())
    assert process.wait(60) == answer["exit_code"]
    return dict(answer)


def truth(directory: Path) -> dict[str, Any]:
    return dict(json.loads((directory / "generators" / "truth.json").read_text()))


def events_published(directory: Path) -> int:
    path = directory / "generators" / "truth.json"
    return sum(truth(directory)["events"].values()) if path.exists() else 0


def records_processed(directory: Path) -> int:
    """By the statements, as the page says."""
    path = directory / "demo.json"
    port = json.loads(path.read_text())["dashboard_port"] if path.exists() else None
    page = None if port is None else fetch_json(f"http://127.0.0.1:{port}/api/state")
    return 0 if page is None else sum(one["position"] for one in page["statements"])


def await_that(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    def is_met() -> bool:
        assert process.poll() is None, "the demo ended before its time"
        return condition()

    wait_until(is_met, "what the demo comes to", timeout_s=240)


def pid_of(directory: Path, name: str) -> int | None:
    path = directory / "pids" / f"{name}.pid"
    return int(json.loads(path.read_text())["pid"]) if path.exists() else None


def live_children(directory: Path) -> set[str]:
    pids = {name: pid_of(directory, name) for name in CHILDREN}
    return {name for name, pid in pids.items() if pid and start_time(pid) is not None}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("undisturbed") / "demo"
    with demo(directory) as process:
        ended = outcome(process)
    assert ended["exit_code"] == 0, ended
    captured = {"name": "stations as in PostgreSQL", "right": True, "shown": "46", "truth": "46"}
    assert (captured in ended["checks"]) == HAS_DATABASE
    assert [one["name"] for one in ended["checks"] if one["name"].endswith("in the warehouse")] == [
        *("events in the warehouse", "revenue cents in the warehouse"),
        "records twice in the warehouse",
    ]
    return {**truth(directory), "checks": ended["checks"]}


def test_killed_as_a_whole_and_started_again(undisturbed: dict[str, Any], tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    with demo(directory) as process:
        await_that(lambda: events_published(directory) > 1000, process)
        await_that(lambda: records_processed(directory) > 0, process)
        names = live_children(directory)
        assert names == set(CHILDREN)
        process.kill()
        process.wait()
    with demo(directory) as process:
        ended = outcome(process)
    assert ended["exit_code"] == 0
    assert truth(directory)["figures"] == undisturbed["figures"]
    assert truth(directory)["events"] == undisturbed["events"]
    assert ended["checks"] == undisturbed["checks"]


def test_nothing_outlives_a_killed_run(tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    with demo(directory) as process:
        await_that(lambda: pid_of(directory, "sql-server") is not None, process)
        process.kill()
        process.wait()
    wait_until(lambda: not live_children(directory), "the end of every part")


def test_each_part_killed_in_its_turn(undisturbed: dict[str, Any], tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    with demo(directory) as process:
        await_that(lambda: events_published(directory) > 300, process)
        for name in CHILDREN:
            await_that(lambda: live_children(directory) == set(CHILDREN), process)
            pid = pid_of(directory, name)
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            await_that(lambda n=name, p=pid: pid_of(directory, n) != p, process)
        ended = outcome(process)
    assert ended["exit_code"] == 0
    assert ended["restarts"] == dict.fromkeys(CHILDREN, 1)
    assert truth(directory)["figures"] == undisturbed["figures"]
    assert ended["checks"] == undisturbed["checks"]


def test_any_node_of_three_killed_changes_no_figure(
    undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    directory = tmp_path / "demo"
    with demo(directory, "--nodes", "3") as process:
        published = 300
        for name in NODES:
            await_that(lambda n=published: events_published(directory) > n, process)
            published = events_published(directory) + 300
            pid = pid_of(directory, name)
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            await_that(lambda n=name, p=pid: pid_of(directory, n) != p, process)
        ended = outcome(process)
    assert ended["exit_code"] == 0
    assert ended["restarts"] == dict.fromkeys(NODES, 1)
    assert truth(directory)["figures"] == undisturbed["figures"]
    assert ended["checks"] == undisturbed["checks"]


def test_results_are_written_once_while_spark_and_nodes_are_killed(tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    with demo(directory, "--nodes", "3", "--exactly-once", "--seconds", "60") as process:
        await_that(lambda: records_processed(directory) > 0, process)
        published = 0
        for name in ("sql-server", *NODES, "sql-server"):
            await_that(lambda n=published: events_published(directory) > n, process)
            published = events_published(directory) + 1000
            pid = pid_of(directory, name)
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            await_that(lambda n=name, p=pid: pid_of(directory, n) != p, process)
        ended = outcome(process)
    assert ended["exit_code"] == 0
    # librdkafka may crash when a broker vanishes: a page that was started again is no matter here.
    restarts = {name: count for name, count in ended["restarts"].items() if name != "dashboard"}
    assert restarts == {**dict.fromkeys(NODES, 1), "sql-server": 2}
    *_, records, batches = ended["checks"]
    assert (records["name"], batches["name"]) == ("result records", "parts whole and once")


def test_a_wrong_figure_is_told_by_the_exit_code(tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    ranking = {"item_id": "nothing", "together": [{"item_id": "nothing else", "count": 1}]}
    with demo(directory) as process:
        await_that(lambda: events_published(directory) > 0, process)
        port = json.loads((directory / "demo.json").read_text())["broker_ports"][0]
        intruder = Producer({"bootstrap.servers": f"127.0.0.1:{port}"})
        intruder.produce("recommendations", json.dumps(ranking), "nothing")
        assert intruder.flush(30) == 0
        ended = outcome(process)
    assert ended["exit_code"] == 5
    wrong = {check["name"] for check in ended["checks"] if not check["right"]}
    assert wrong == {"bought together"}


@pytest.mark.parametrize(
    ("signals", "code"), [([signal.SIGTERM], 143), ([signal.SIGINT, signal.SIGINT], 130)]
)
def test_asked_to_end_at_once_it_leaves_nothing(
    tmp_path: Path, signals: list[signal.Signals], code: int
) -> None:
    directory = tmp_path / "demo"
    with demo(directory) as process:
        await_that(lambda: events_published(directory) > 0, process)
        pids = {name: pid_of(directory, name) for name in CHILDREN}
        for number in signals:
            process.send_signal(number)

            if number is signals[0] and len(signals) > 1:
                await_that(lambda: "catching up" in progress_of(directory), process)
        ended = outcome(process)
    assert ended["exit_code"] == code
    assert [name for name, pid in pids.items() if pid and start_time(pid)] == []
    assert list((directory / "pids").iterdir()) == []


def test_ctrl_c_checks_what_there_is(tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    with demo(directory) as process:
        await_that(lambda: events_published(directory) > 100, process)
        process.send_signal(signal.SIGINT)
        ended = outcome(process)
    assert ended["exit_code"] == 0
    assert not truth(directory)["done"]
    assert ended["events"] == truth(directory)["events"]


def progress_of(directory: Path) -> str:
    return (directory.parent / f"{directory.name}.log").read_text()


def test_over_tls_with_rights_for_each_part_every_figure_is_right(tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    with demo(directory, "--secure") as process:
        found = outcome(process)
    assert found["exit_code"] == 0, found
    log = (directory / "logs" / "broker.log").read_text()
    assert " is denied " not in log.lower()
