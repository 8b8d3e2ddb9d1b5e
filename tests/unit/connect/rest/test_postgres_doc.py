"""The examples of docs/connect/postgres.md work with a worker and its commands."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click

from barnabas.base.config.properties import parse_properties
from barnabas.cli.connect.command import command
from barnabas.connect.connectors.postgres.connector import PostgresConnector
from barnabas.connect.worker.connector_files import read_connector
from barnabas.connect.worker.settings import check_settings

PAGE = (Path(__file__).parents[4] / "docs" / "connect" / "postgres.md").read_text()
QUICK_START, _, RIGHTS = PAGE.partition("\n## Configuration and rights\n")


def block(language: str, text: str = RIGHTS) -> str:
    """The first one of a language."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[0]


def asked(text: str) -> list[list[str]]:
    """Commands, each as its words without `barnabas`."""
    lines = [shlex.split(line) for line in block("sh", text).splitlines()]
    return [words[1:] for words in lines if words[0] == "barnabas"]


def test_the_quick_start_fits_together() -> None:
    read = read_connector("shop.json", block("json", QUICK_START), parse_properties)
    sql = block("sql", QUICK_START)
    values = PostgresConnector.definition.validate(read.config)
    assert {name: value.errors for name, value in values.items() if value.errors} == {}
    assert f"CREATE ROLE {read.config['database.user']} LOGIN REPLICATION" in sql
    assert f"PASSWORD '{read.config['database.password']}'" in sql
    assert "CREATE PUBLICATION dbz_publication FOR TABLE orders" in sql
    assert [words[:2] for words in asked(QUICK_START)] == [
        ["connect", "validate"],
        ["connect", "create"],
        ["consume", "shop.public.orders"],
    ]


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
    lines = asked(RIGHTS)
    named = [words[1] for words in lines if words[0] == "connect"]
    assert named == ["validate", "create", "status"]
    assert set(named) <= set(command.commands)
    assert lines[-1][1] == "shop.public.orders"
