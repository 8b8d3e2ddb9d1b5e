"""The examples of docs/connect/README.md work with a worker and its commands."""

from __future__ import annotations

import json
import re
from pathlib import Path

from barnabas.base.config.properties import parse_properties
from barnabas.cli.connect.command import command
from barnabas.connect.worker.connector_files import read_connector
from barnabas.connect.worker.settings import check_settings

ROOT = Path(__file__).parents[4]
README = (ROOT / "docs" / "connect" / "README.md").read_text()
REST = (ROOT / "docs" / "connect" / "rest.md").read_text()


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_files_are_taken() -> None:
    worker, source = map(parse_properties, blocks("properties"))
    assert check_settings(worker)["barnabas.connect.engine"] == "local"
    assert source["name"] == "lines"
    (sink,) = blocks("json")
    found = read_connector("copy.json", sink, parse_properties)
    assert (found.name, found.config["topics"]) == ("copy", "lines")


def test_commands_are_listed() -> None:
    table = README.partition("## The command line")[2]
    named = set(re.findall(r"`([^`]*)`", table))
    words = {word for name in named for word in name.split()}
    assert [name for name in command.commands if name not in words | {"start"}] == []  # type: ignore[attr-defined]


def test_requests_are_json() -> None:
    (shown,) = blocks("sh", REST)
    body = shown.partition("-d '")[2].partition("'")[0]
    assert json.loads(body)["initial_state"] == "STOPPED"


def test_documents_that_are_named_exist() -> None:
    for name in re.findall(r"\]\(([a-z-]+\.md)", README + REST):
        assert (ROOT / "docs" / "connect" / name).exists(), name
