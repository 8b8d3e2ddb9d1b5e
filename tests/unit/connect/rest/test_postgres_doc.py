"""What docs/connect/postgres.md shows is what a worker and its commands take."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click

from barnabas.base.config.properties import parse_properties
from barnabas.cli.connect.command import command
from barnabas.connect.worker.connector_files import read_connector
from barnabas.connect.worker.settings import check_settings

TEXT = (Path(__file__).parents[4] / "docs" / "connect" / "postgres.md").read_text()


def block(language: str) -> str:
    """The first one of a language."""
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)[0]


def test_the_connector_is_read_and_its_password_has_a_provider() -> None:
    shown = json.loads(block("json"))
    read = read_connector("shop.json", block("json"), parse_properties)
    assert (read.name, read.config["database.password"]) == ("shop", shown["database.password"])
    worker = {
        "bootstrap.servers": "localhost:9092",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "offset.storage.file.filename": "/tmp/offsets",
        **parse_properties(block("properties")),
    }
    check_settings(worker)
    assert shown["database.password"].startswith("${file:")
    assert worker["config.providers"] == "file"


def test_the_commands_exist() -> None:
    assert isinstance(command, click.Group)
    lines = [shlex.split(line) for line in block("sh").splitlines()]
    asked = [words[2] for words in lines if words[:2] == ["barnabas", "connect"]]
    assert asked == ["validate", "create", "status"]
    assert set(asked) <= set(command.commands)
    assert lines[-1][2] == "shop.public.orders"
