"""The terminal shows the true state of each of the demo's parts."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from barnabas.demo import reports, statements
from barnabas.demo.access import Access
from barnabas.demo.closing import STILL_SECONDS_MAX
from barnabas.demo.commands import console_spec
from barnabas.demo.connectors import STATIONS_CONNECTOR
from barnabas.demo.lake.lake import LakeError
from barnabas.demo.orchestrator import DemoRun
from barnabas.demo.outcome import Check, DemoFailedError
from barnabas.demo.parts import servers
from barnabas.demo.parts.generators import Generators
from barnabas.demo.parts.part import Part, RunOptions, Stage
from barnabas.demo.parts.servers import Console as ConsolePart
from barnabas.demo.parts.servers import Dashboard, Registry, SqlServer
from barnabas.demo.parts.stations import Stations
from barnabas.demo.parts.warehouse import Warehouse
from barnabas.demo.processes import Child, Children, ChildSpec
from barnabas.demo.reports import Reports
from barnabas.demo.supervisor import Supervisor
from barnabas.demo.terminal import Screen
from barnabas.demo.topics import WAREHOUSE_CONNECTOR
from barnabas.demo.workspace import Settings, Workspace
from barnabas.schemas.errors import RegistryError
from barnabas.schemas.registry_client import RegistryClient
from barnabas.sql.engine.config import RETRY_MAX_MS

RIGHT, WRONG = Check("events", "7", "7", True), Check("events", "6", "7", False)


class Terminal:
    """The stage of a run without processes, and what its terminal shows."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.page: dict[str, Any] | None = {"connectors": {}, "statements": [], "groups": []}
        self._directory = directory
        self._lines = io.StringIO()
        monkeypatch.setattr(reports, "fetch_json", lambda url: self.page)
        workspace = Workspace(str(directory))
        children = Children(workspace.path("logs"), workspace.path("pids"))
        screen = Screen(
            Console(file=self._lines),
            [
                "connect",
                "warehouse",
                "sql-server",
                "dashboard",
                "console",
                "registry",
                "generators",
            ],
        )
        found = Reports(workspace, "http://127.0.0.1:1/")
        self.stage = Stage(
            workspace,
            Settings(7, 250, 240, "id", [1], [2], 3, registry_port=4),
            RunOptions(None, None, "127.0.0.1"),
            screen,
            Supervisor(children, screen, found.refresh_page),
            found,
            "http://127.0.0.1:1/",
        )

    def lines_of(self, act: Callable[[], object]) -> list[str]:
        """Return the lines that the terminal prints during `act`, one for each change."""
        self.stage.reports.page()
        before = self._lines.tell()
        act()
        self._lines.seek(before)
        return self._lines.read().splitlines()

    def after(self, act: Callable[[], object]) -> str:
        """Return the mark and the words of the one line that the terminal prints during `act`."""
        (line,) = self.lines_of(act)
        return line

    def progress(self, published: int) -> None:
        """Let the generators report their progress."""
        line = {"published": published, "event_time_ms": 0, "done": False, "refused": ""}
        with (self._directory / "logs" / "generators.log").open("a") as log:
            log.write(json.dumps(line) + "\n")


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    return Terminal(tmp_path, monkeypatch)


CONNECTORS = {
    "RUNNING": "✓",
    "FAILED": "✗",
    "PAUSED": "·",
    "STOPPED": "·",
    "UNASSIGNED": "…",
    "RESTARTING": "…",
    "DOWN": "…",
}


@pytest.mark.parametrize("state", CONNECTORS)
@pytest.mark.parametrize(
    ("kind", "name"), [(Stations, STATIONS_CONNECTOR), (Warehouse, WAREHOUSE_CONNECTOR)]
)
def test_a_connector_is_shown_as_its_worker_says(
    terminal: Terminal, kind: type[Part], name: str, state: str
) -> None:
    terminal.stage.capture = terminal.stage.lake = cast(Any, object())
    part = kind(terminal.stage)
    part.say("done", "something else")
    assert terminal.page is not None
    terminal.page["connectors"] = {name: state}
    assert terminal.after(part.show) == f"{CONNECTORS[state]} {part.name}: {name} {state.lower()}"


def test_a_connector_that_nobody_tells_of_is_not_shown_as_running(terminal: Terminal) -> None:
    terminal.stage.lake = cast(Any, object())
    part = Warehouse(terminal.stage)
    assert terminal.after(part.show) == f"… warehouse: {WAREHOUSE_CONNECTOR} starting"
    part.say("ready", "running")
    terminal.page = None
    assert terminal.after(part.show).startswith("… warehouse: ")


@pytest.mark.parametrize(
    ("states", "mark"),
    [
        (["RUNNING", "RUNNING"], "✓"),
        (["RUNNING", "ERROR"], "✗"),
        (["DOWN", "DOWN"], "…"),
        (["RUNNING", "PAUSED"], "·"),
    ],
)
def test_the_sql_server_is_as_its_worst_statement(
    terminal: Terminal, states: list[str], mark: str
) -> None:
    part = SqlServer(terminal.stage)
    part.say("failed" if mark == "…" else "working", "before")
    assert terminal.page is not None
    terminal.page["statements"] = [
        {"name": f"query {number}", "state": state, "lag": 0} for number, state in enumerate(states)
    ]
    assert terminal.after(part.show).startswith(f"{mark} sql-server: ")
    terminal.page = None
    part.say("failed", "before")
    assert terminal.after(part.show).startswith("… sql-server: ")


@pytest.mark.parametrize(("check", "mark"), [(RIGHT, "✓"), (WRONG, "✗")])
def test_what_is_compared_at_the_end_is_done_only_where_it_is_right(
    terminal: Terminal, check: Check, mark: str
) -> None:
    class Compared:
        def is_complete(self) -> bool:
            return True

        def checks(self, *_: object) -> list[Check]:
            return [check]

    terminal.stage.capture = terminal.stage.lake = cast(Any, Compared())
    assert terminal.after(Stations(terminal.stage).checks).startswith(f"{mark} connect: ")
    truth = cast(Any, {})
    line = terminal.after(lambda: Warehouse(terminal.stage).checks(truth))
    assert line.startswith(f"{mark} warehouse: ")


def test_a_table_that_cannot_be_read_fails_the_run(terminal: Terminal) -> None:
    class Unreadable:
        def checks(self, _: object) -> list[Check]:
            raise LakeError("no bucket")

    terminal.stage.lake = cast(Any, Unreadable())
    with pytest.raises(DemoFailedError, match="no bucket"):
        Warehouse(terminal.stage).checks(cast(Any, {}))


def test_a_part_that_was_started_again_is_ready_once_it_answers(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = Registry(terminal.stage)
    part.show()
    answers = False

    def subjects(client: RegistryClient) -> list[str]:
        if not answers:
            raise RegistryError("it does not answer")
        return []

    monkeypatch.setattr(RegistryClient, "subjects", subjects)
    assert terminal.after(part.recover) == "… registry: starting again"
    assert terminal.lines_of(part.show) == []
    answers = True
    assert terminal.after(part.show) == "✓ registry: http://127.0.0.1:4"


def test_a_page_that_was_started_again_is_ready_once_it_answers(terminal: Terminal) -> None:
    part = Dashboard(terminal.stage)
    terminal.page, shown = None, terminal.page
    part.recover()
    part.show()
    terminal.page = shown
    assert terminal.after(part.show) == "✓ dashboard: http://127.0.0.1:1/"


def test_generators_that_were_started_again_are_ready_with_their_next_progress(
    terminal: Terminal,
) -> None:
    part = Generators(terminal.stage)
    terminal.progress(10)
    assert terminal.after(part.show).startswith("✓ generators: 10 events")
    assert terminal.after(part.recover) == "… generators: starting again"
    part.show()
    terminal.progress(20)
    assert terminal.after(part.show).startswith("✓ generators: 20 events")


def test_a_statement_that_failed_is_tried_again_before_the_demo_gives_up() -> None:
    assert int(statements.PROPERTIES[RETRY_MAX_MS]) / 1000 < STILL_SECONDS_MAX / 4


def test_the_console_is_ready_once_its_pages_are_there(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    part, supervisor = ConsolePart(terminal.stage), FakeSupervisor()
    monkeypatch.setattr(terminal.stage, "supervisor", supervisor)
    assert terminal.after(part.start).startswith("· console: none")
    assert supervisor.started == []
    terminal.stage.settings.console_port = 8090
    answers: list[dict[str, Any] | None] = [None, {}]
    monkeypatch.setattr(servers, "fetch_json", lambda url: answers.pop(0))
    assert terminal.after(part.start) == "… console: starting"
    assert terminal.lines_of(part.show) == []
    assert not supervisor.ready
    assert terminal.after(part.show) == "✓ console: http://127.0.0.1:8090/"
    assert supervisor.ready == ["console"]
    assert terminal.lines_of(part.show) == []


def test_the_console_is_ready_while_others_are_awaited(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = terminal.stage
    children = Children(stage.workspace.path("logs"), stage.workspace.path("pids"))
    run = DemoRun(stage.workspace, stage.settings, stage.options, children, stage.screen)
    stage.settings.console_port = 5
    monkeypatch.setattr(servers, "fetch_json", lambda url: {})
    monkeypatch.setattr(
        "barnabas.demo.parts.servers.commands.console_spec",
        lambda *_, **__: ChildSpec(
            "console", [sys.executable, "-c", "import signal; signal.pause()"]
        ),
    )
    try:
        terminal.lines_of(run._console.start)
        shown = terminal.after(run._supervisor.look)
    finally:
        children.end_all()
    assert "http://127.0.0.1:5/" in shown


def test_the_demo_goes_on_without_a_console_that_does_not_start(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = ConsolePart(terminal.stage)
    terminal.stage.settings.console_port = 8090
    monkeypatch.setattr(terminal.stage, "supervisor", FakeSupervisor())
    part.start()
    child = cast(Child, SimpleNamespace(log_path="console.log"))
    line = terminal.after(lambda: part.does_without(child))
    assert line == "· console: none: it does not start, see console.log"
    assert terminal.lines_of(part.show) == []


@pytest.mark.parametrize(("host", "is_linked"), [("127.0.0.1", True), ("0.0.0.0", False)])
def test_the_page_links_to_the_console_where_its_browsers_reach_it(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, host: str, is_linked: bool
) -> None:
    supervisor = FakeSupervisor()
    monkeypatch.setattr(terminal.stage, "supervisor", supervisor)
    terminal.stage.settings.console_port = 8090
    monkeypatch.setattr(terminal.stage, "options", RunOptions(None, None, host))
    Dashboard(terminal.stage).start()
    (spec,) = supervisor.started
    assert ("http://127.0.0.1:8090" in spec.command) == is_linked


def test_the_console_knows_the_services_and_changes_nothing_of_a_secure_cluster(
    terminal: Terminal,
) -> None:
    settings = terminal.stage.settings
    settings.console_port, settings.sql_port = 8090, 5
    plain = console_spec(settings, "b:1").command
    assert plain[-2:] == ["--sql-url", "http://127.0.0.1:5"]
    secure = console_spec(
        settings,
        "b:1",
        cast(Access, SimpleNamespace(console_file="f")),
        workers=["http://w", "http://x"],
    ).command
    assert secure[: len(plain)] == plain
    assert secure[len(plain) :] == [
        *("--connect-url", "http://w,http://x", "--command-config", "f"),
        *("--override", "console.read.only=true"),
    ]


class FakeSupervisor:
    """Notes what it is asked for, and starts nothing."""

    def __init__(self) -> None:
        self.started: list[ChildSpec] = []
        self.ready: list[str] = []

    def start(self, spec: ChildSpec, owner: Part) -> None:
        self.started.append(spec)

    def set_ready(self, *names: str) -> None:
        self.ready += names
