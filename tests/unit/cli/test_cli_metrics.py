"""Dashboards, alert rules and runbooks name what there is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from click.testing import CliRunner

from barnabas.app.metrics.catalog import FAMILIES
from barnabas.cli.main import LazyGroup, cli
from barnabas.cli.metrics.command import alert_rules, command
from barnabas.cli.metrics.dashboards import DASHBOARDS

ROOT = Path(__file__).parents[3]
NAME = re.compile(r"\b(?:barnabas|kafka|ksql|process|http_server)_[a-z0-9_]+")
SUFFIXES = ("_count", "_sum")
PRODUCTS = {
    "kafka_schema_registry_master_slave_role": "registry/http/app.py",
    "kafka_schema_registry_schemas": "registry/http/app.py",
    "kafka_server_ssl_certificate_expiry_seconds": "app/node.py",
    "http_server_requests_total": "web/watch.py",
    "http_server_connections": "web/watch.py",
}
"""Families that are not in the catalog, and where they are made."""
PROCESS = {"process_resident_memory_bytes", "process_open_fds", "process_max_fds"}
SLUG = re.compile(r"[^a-z0-9 -]")
COMMAND = re.compile(r"`barnabas ([a-z-]+)(?: ([a-z-]+))?")


class Rule(NamedTuple):
    """An alert rule, as its lines have it."""

    alert: str
    expr: str
    severity: str
    runbook: str


def rules() -> Iterator[Rule]:
    for text in alert_rules().split("- alert: ")[1:]:
        (expr,) = re.findall(r"expr: (.*)", text)
        (severity,) = re.findall(r"labels: {severity: (.*)}", text)
        (runbook,) = re.findall(r"runbook_url: (.*)", text)
        yield Rule(text.partition("\n")[0], expr, severity, runbook)


def is_known(name: str) -> bool:
    stem = next((name.removesuffix(s) for s in SUFFIXES if name.endswith(s)), name)
    if name in FAMILIES or stem in FAMILIES or name in PROCESS or name in PRODUCTS:
        return True
    source = ROOT / "src" / "barnabas"
    if name.startswith("ksql_"):
        text = (source / "sql/server/metrics.py").read_text()
        short = stem.removesuffix("_total")
        return f'"{short}"' in text
    if name.startswith("barnabas_pipeline_"):
        text = (source / "streams/metrics.py").read_text()
        short = re.sub(r"^barnabas_pipeline_(query_)?", "", stem.removesuffix("_total"))
        return re.search(rf"[\"_]{short}\"", text) is not None
    text = (source / "connect/worker/metrics.py").read_text()
    parts = re.sub(r"_(?:total|count)$", "", name.removeprefix("kafka_connect_worker_"))
    parts = re.sub(r"_(?:running|failed)_task", "", parts)
    return all(part in text for part in parts.split("_"))


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.name)
def test_dashboards_ask_for_what_is_shown(dashboard: Any) -> None:
    names = {name for query in dashboard.queries() for name in NAME.findall(query)}
    assert names
    assert {name for name in names if not is_known(name)} == set()


def test_alerts_ask_for_what_is_shown() -> None:
    names = {name for rule in rules() for name in NAME.findall(rule.expr)}
    assert len(names) > 20
    assert {name for name in names if not is_known(name)} == set()


def test_what_others_show_is_where_it_is_said_to_be() -> None:
    for name, path in PRODUCTS.items():
        text = (ROOT / "src" / "barnabas" / path).read_text()
        stem = name.removesuffix("_total")
        assert stem in text or ("ssl-certificate" in text and "certificate" in stem)


def test_panels_do_not_overlap_and_have_a_unit() -> None:
    for dashboard in DASHBOARDS:
        taken: set[tuple[int, int]] = set()
        panels = dashboard.as_json()["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        for panel in panels:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken
            assert place["x"] + place["w"] <= 24
            taken |= cells
            assert panel["targets"]


def test_each_alert_has_a_section_of_a_runbook() -> None:
    for rule in rules():
        path, _, anchor = rule.runbook.partition("#")
        text = (ROOT / path).read_text()
        headings = {
            SLUG.sub("", line.lstrip("# ").lower()).replace(" ", "-")
            for line in text.splitlines()
            if line.startswith("#")
        }
        assert anchor in headings, rule.alert
        assert anchor == rule.alert.lower()
        assert rule.severity in ("critical", "warning")


def test_runbooks_name_commands_that_there_are() -> None:
    root = cli
    assert isinstance(root, LazyGroup)
    for path in (ROOT / "docs" / "runbooks").glob("*.md"):
        for noun, verb in COMMAND.findall(path.read_text()):
            found = root.get_command(click.Context(root), noun)
            assert found is not None, f"{path.name}: barnabas {noun}"
            if verb and isinstance(found, click.Group):
                assert verb in found.commands, f"{path.name}: barnabas {noun} {verb}"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool (package prometheus)")
def test_prometheus_takes_the_rules(tmp_path: Path) -> None:
    path = tmp_path / "alerts.yml"
    written = CliRunner().invoke(command, ["alerts", "--to", str(path)])
    assert written.exit_code == 0
    checked = subprocess.run(
        ["promtool", "check", "rules", str(path)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    assert f"{len(list(rules()))} rules found" in checked.stdout


def test_dashboards_are_written_as_json(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "dashboards"
    written = CliRunner().invoke(command, ["dashboards", "--to", str(directory)])
    assert written.exit_code == 0
    titles = {json.loads(path.read_text())["title"] for path in directory.iterdir()}
    assert titles == {dashboard.title for dashboard in DASHBOARDS}


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = CliRunner().invoke(command, ["dashboards", "--to", str(tmp_path / "file" / "x")])
    assert refused.exit_code != 0


def test_scripts_are_told_what_was_written(tmp_path: Path) -> None:
    directory, path = tmp_path / "dashboards", tmp_path / "alerts.yml"
    written = CliRunner().invoke(command, ["dashboards", "--to", str(directory), "--json"])
    answer = json.loads(written.stdout)
    assert {Path(one["path"]) for one in answer} == set(directory.iterdir())
    assert [one["title"] for one in answer] == [dashboard.title for dashboard in DASHBOARDS]
    written = CliRunner().invoke(command, ["alerts", "--to", str(path), "--json"])
    assert json.loads(written.stdout) == {"path": str(path)}
