"""One directory, one run at a time, the same settings from run to run."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from barnabas.demo.launch import Ports, SettingsConflictError, Wishes, find_settings
from barnabas.demo.workspace import (
    ICEBERG,
    PARQUET,
    Settings,
    Workspace,
    WorkspaceBusyError,
    new_cluster_id,
)


def chosen(workspace: Workspace, wishes: Wishes) -> Settings:
    """The settings of a run that has ended since."""
    with Ports() as ports:
        return find_settings(workspace, wishes, ports)


def test_a_second_run_is_kept_out_and_told_who_is_in(tmp_path: Path) -> None:
    first = Workspace(str(tmp_path))
    first.lock()
    holder = re.escape(f"pid {os.getpid()}")
    with pytest.raises(WorkspaceBusyError, match=holder):
        Workspace(str(tmp_path)).lock()
    first.close()
    again = Workspace(str(tmp_path))
    again.lock()
    again.close()


def test_the_lock_ends_with_a_killed_process(tmp_path: Path) -> None:
    program = (
        "import sys, time\nfrom barnabas.demo.workspace import Workspace\n"
        "w = Workspace(sys.argv[1]); w.lock(); print('locked', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == "locked"
        with pytest.raises(WorkspaceBusyError):
            Workspace(str(tmp_path)).lock()
        holder.kill()
    workspace = Workspace(str(tmp_path))
    workspace.lock()
    workspace.close()


def test_settings_stay_the_same(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path))
    first = chosen(workspace, Wishes(str(tmp_path), seed=5, rate=40))
    assert (first.seed, first.rate) == (5, 40)
    again = chosen(workspace, Wishes(str(tmp_path)))
    assert again == first


def test_a_directory_of_before_there_were_several_nodes(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path))
    settings = chosen(workspace, Wishes(str(tmp_path)))
    content = json.loads((tmp_path / "demo.json").read_text())
    for kind in ("broker", "controller"):
        (content[f"{kind}_port"],) = content.pop(f"{kind}_ports")
    (tmp_path / "demo.json").write_text(json.dumps(content))
    assert workspace.load_settings() == settings


def test_a_directory_of_before_there_was_a_console_has_none(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path))
    assert chosen(workspace, Wishes(str(tmp_path))).console_port is not None
    content = json.loads((tmp_path / "demo.json").read_text())
    content.pop("console_port")
    (tmp_path / "demo.json").write_text(json.dumps(content))
    assert chosen(workspace, Wishes(str(tmp_path))).console_port is None


def test_a_directory_of_before_there_was_a_bucket_keeps_its_parquet(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path))
    assert chosen(workspace, Wishes(str(tmp_path))).warehouse == ICEBERG
    content = json.loads((tmp_path / "demo.json").read_text())
    for name in ("warehouse", "bucket_port", "warehouse_port"):
        del content[name]
    (tmp_path / "demo.json").write_text(json.dumps(content))
    assert chosen(workspace, Wishes(str(tmp_path))).warehouse == PARQUET


@pytest.mark.parametrize("name", ["registry_port", "sql_port"])
def test_a_directory_of_before_results_had_this_form_is_refused(tmp_path: Path, name: str) -> None:
    workspace = Workspace(str(tmp_path))
    chosen(workspace, Wishes(str(tmp_path)))
    content = json.loads((tmp_path / "demo.json").read_text())
    del content[name]
    (tmp_path / "demo.json").write_text(json.dumps(content))
    with pytest.raises(SettingsConflictError, match=r"another form.*--fresh"):
        chosen(workspace, Wishes(str(tmp_path)))


@pytest.mark.parametrize(
    "name", ["nodes", "seed", "rate", "acceleration", "exactly_once", "warehouse"]
)
def test_other_wishes_for_an_old_directory_are_refused(tmp_path: Path, name: str) -> None:
    workspace = Workspace(str(tmp_path))
    chosen(workspace, Wishes(str(tmp_path)))
    with pytest.raises(SettingsConflictError, match=f"with {name.replace('_', '-')} .*--fresh"):
        chosen(workspace, Wishes(str(tmp_path), **{name: 12345}))  # type: ignore[arg-type]  # an int each


@pytest.mark.parametrize("nodes", [1, 3])
def test_ports_are_different_and_avoid_those_in_use(tmp_path: Path, nodes: int) -> None:
    workspace = Workspace(str(tmp_path))
    first = chosen(workspace, Wishes(str(tmp_path), nodes=nodes))
    ports = {*first.broker_ports, *first.controller_ports, first.dashboard_port}
    ports |= {first.registry_port or 0, first.sql_port or 0}
    ports |= {first.bucket_port or 0, first.warehouse_port or 0, first.console_port or 0}
    assert len(ports) == 2 * nodes + 6
    with socket.socket() as taken:
        # Connections of a demo that has just ended hold nobody up.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", first.broker_ports[0]))
        taken.listen()
        second = chosen(workspace, Wishes(str(tmp_path)))
    assert second.nodes == nodes
    assert first.broker_ports[0] not in second.broker_ports
    assert not set(second.broker_ports) & set(second.controller_ports)


def ports_of(settings: Settings) -> list[int]:
    single = [value for name, value in asdict(settings).items() if name.endswith("_port")]
    return [*settings.broker_ports, *settings.controller_ports, *single]


def test_demos_that_start_together_have_different_ports(tmp_path: Path) -> None:
    """None listens yet: nothing says so but the choices themselves."""
    workspaces = [Workspace(str(tmp_path / name)) for name in ("a", "b", "c")]
    found: list[int] = []
    with contextlib.ExitStack() as runs:
        for workspace in workspaces:
            os.makedirs(workspace.directory)
            ports = runs.enter_context(Ports())
            found += ports_of(find_settings(workspace, Wishes(workspace.directory), ports))
    assert len(found) == len(set(found)) == 3 * 10


def test_demos_of_several_processes_have_different_ports() -> None:
    program = (
        "import sys\nfrom barnabas.demo.launch import Ports\n"
        "ports = Ports(); print(*(ports.choose(23000) for _ in range(9)), flush=True); input()"
    )
    command = [sys.executable, "-c", program]
    found: list[str] = []
    with contextlib.ExitStack() as stack:
        runs = [
            stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(3)
        ]
        for run in runs:
            assert run.stdout is not None
            found += run.stdout.readline().split()
        assert len(found) == len(set(found)) == 3 * 9
        for run in runs:
            run.kill()  # and what it chose is free
    with Ports() as ports:
        assert str(ports.choose(23000)) in found


def test_a_chosen_page_keeps_its_port_from_other_demos(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path))
    with Ports() as first, Ports() as second:
        port = first.choose(23000)
        first.close()
        settings = find_settings(workspace, Wishes(str(tmp_path), port=port), first)
        assert settings.dashboard_port == port
        assert second.choose(port) != port


def test_no_free_port_is_an_error() -> None:
    with Ports() as ports, Ports() as others:
        for port in range(24000, 24200):
            others.claim(port)
        with pytest.raises(OSError, match="no free port from 24000"):
            ports.choose(24000)


def test_clearing_spares_what_is_not_the_demos(tmp_path: Path) -> None:
    for name in ("broker", "broker-3", "warehouse", "mine"):
        (tmp_path / name).mkdir()
    (tmp_path / "demo.json").write_text("{}")
    Workspace(str(tmp_path)).clear()
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_cluster_ids_have_kafkas_form() -> None:
    for _ in range(300):
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", new_cluster_id())
