"""The demo's stations in PostgreSQL: the files of worker and connector, and what they rest on."""

from __future__ import annotations

import os
import pwd
import tempfile
from pathlib import Path

import pytest

from barnabas.base.config.properties import parse_properties
from barnabas.connect.config.common import CONVERTERS
from barnabas.connect.connectors.postgres.settings import PostgresSettings
from barnabas.connect.worker.settings import check_settings, is_distributed
from barnabas.demo import connectors
from barnabas.demo.access import CONNECT, Access
from barnabas.demo.capture import Capture, NoDatabaseError
from barnabas.demo.connectors import connector_states, stations_properties, worker_spec
from barnabas.demo.database import place as places
from barnabas.demo.database.place import CAPTURE, OPERATOR, Place, Programs
from barnabas.demo.generators.charging import station_table
from barnabas.demo.topics import STATIONS
from barnabas.demo.workspace import Settings, Workspace

SETTINGS = Settings(
    7, 250, 240, "id", [1], [2], 3, registry_port=4, database_port=5432, connect_port=8083
)
OURS = Programs("initdb", "postgres", None)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(str(tmp_path))


def test_worker_and_connector_are_as_users_write_them(workspace: Workspace) -> None:
    place = Place(workspace, SETTINGS)
    place.prepare(OURS)
    spec = worker_spec(workspace, SETTINGS, "127.0.0.1:9092", place)
    worker, connector = (parse_properties(Path(path).read_text()) for path in spec.command[-2:])
    assert not is_distributed(worker)
    parsed = check_settings(worker)
    assert all(parsed[name] for name in CONVERTERS)
    settings = PostgresSettings.parse({**connector, "database.password": "secret"})
    assert settings["table.include.list"] == "public.stations"
    assert connector["transforms.topic.replacement"] == STATIONS


def test_passwords_are_in_files_of_their_owner_alone(workspace: Workspace) -> None:
    place = Place(workspace, SETTINGS)
    place.prepare(OURS)
    passwords = {place.password(role) for role in ("superuser", OPERATOR, CAPTURE)}
    assert len(passwords) == 3
    spec = worker_spec(workspace, SETTINGS, "127.0.0.1:9092", place)
    for part in (spec, place.spec()):
        assert not any(password in " ".join(part.command) for password in passwords)
    for role in ("superuser", OPERATOR, CAPTURE):
        assert Path(place.password_file(role)).stat().st_mode & 0o777 == 0o600
    for name in os.listdir(workspace.path("connect")):
        text = Path(workspace.path("connect", name)).read_text()
        assert not any(password in text for password in passwords)
    Place(workspace, SETTINGS).prepare(OURS)
    assert {place.password(role) for role in ("superuser", OPERATOR, CAPTURE)} == passwords


def test_the_worker_of_a_secure_demo_logs_in(workspace: Workspace) -> None:
    place = Place(workspace, SETTINGS)
    place.prepare(OURS)
    spec = worker_spec(workspace, SETTINGS, "a:1", place, Access(workspace.directory, "service"))
    worker = parse_properties(Path(spec.command[-2]).read_text())
    assert worker["security.protocol"] == "SASL_SSL"
    assert f'username="{CONNECT}"' in worker["sasl.jaas.config"]


def test_begun_as_root_its_directory_can_be_reached_by_postgresqls_user(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And a new run removes it, wherever it is."""
    own = Programs("initdb", "postgres", pwd.getpwuid(os.geteuid()).pw_name)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    for is_open, inside in ((True, True), (False, False)):
        monkeypatch.setattr(places, "_is_open_to_all", lambda path, answer=is_open: answer)
        settings = Settings(7, 250, 240, "id", [1], [2], 3, database_port=1)
        Place(workspace, settings).prepare(own)
        directory = settings.database_directory
        assert directory is not None
        assert directory.startswith(workspace.path("postgres")) == inside
        assert Path(directory).stat().st_mode & 0o777 == 0o700
        workspace.clear()
        assert not os.path.exists(directory)


def test_open_to_all_is_what_everybody_may_pass(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a").chmod(0o700)
    assert not places._is_open_to_all(str(tmp_path / "a" / "b"))
    assert places._is_open_to_all("/")


@pytest.mark.parametrize("port", [None, 5432])
def test_without_a_server_it_says_why(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, port: int | None
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(places, "DEBIAN", tmp_path)
    settings = Settings(7, 250, 240, "id", [1], [2], 3, database_port=port)
    wanted = "before there was one" if port is None else "not installed"
    with pytest.raises(NoDatabaseError, match=wanted):
        Capture(workspace, settings, "127.0.0.1:1")


def test_the_newest_of_debians_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for version in ("9.6", "15", "17"):
        folder = tmp_path / version / "bin"
        folder.mkdir(parents=True)
        for name in ("initdb", "postgres"):
            (folder / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(places, "DEBIAN", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    folder = tmp_path / "17" / "bin"
    wanted = Programs(str(folder / "initdb"), str(folder / "postgres"), None)
    assert places.find_programs() == wanted


def test_a_station_is_updated_every_ten_minutes() -> None:
    before = station_table(4)
    for minutes in range(10, 200, 10):
        after = station_table(4, minutes)
        changed = [row["station_id"] for row, old in zip(after, before, strict=True) if row != old]
        assert changed == [f"st-{(minutes // 10 - 1) % 4:04d}"]
        assert station_table(4, minutes + 9) == after
        before = after
    assert before[0]["firmware"] == "1.5"


def test_a_connector_is_as_its_worst_task(monkeypatch: pytest.MonkeyPatch) -> None:
    def status(*tasks: str, own: str = "RUNNING") -> dict[str, object]:
        states = [{"id": number, "state": state} for number, state in enumerate(tasks)]
        return {"status": {"connector": {"state": own}, "tasks": states}}

    answer = {
        "whole": status("RUNNING", "RUNNING"),
        "broken": status("RESTARTING", "FAILED"),
        "new": status(),
        "paused": status("PAUSED", own="PAUSED"),
    }
    monkeypatch.setattr(connectors, "fetch_json", lambda url: answer)
    assert connector_states("http://a") == {
        "whole": "RUNNING",
        "broken": "FAILED",
        "new": "UNASSIGNED",
        "paused": "PAUSED",
    }
    monkeypatch.setattr(connectors, "fetch_json", lambda url: None)
    assert connector_states("http://a") is None


def test_the_password_is_looked_up_when_it_is_needed() -> None:
    assert stations_properties(SETTINGS, "/x")["database.password"] == (
        "${directory:/x:capture.password}"
    )
