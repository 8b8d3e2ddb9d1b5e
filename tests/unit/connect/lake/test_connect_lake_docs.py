"""The examples of the documents are right: they run, or their settings are those of the classes."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from barnabas.connect.allowed_plugins import allow
from barnabas.connect.plugins import load
from barnabas.connect.testing import ConnectKit

allow(["FilesSource", "FilesSink"])
DOCS = Path(__file__).parents[4] / "docs/connect"
COMMON = (
    *("name", "tasks.max", "topics", "connector.class", "key.converter", "value.converter"),
    "transforms",
)
FREE = ("iceberg.catalog.", "iceberg.hadoop.", "delta.storage.", "value.converter.")


def examples(document: str) -> list[dict[str, str]]:
    text = (DOCS / document).read_text()
    joined = text.replace("\\\n", " ")
    commands = re.findall(r"^barnabas connect create (.*)$", joined, re.MULTILINE)
    found = [json.loads(one)["config"] for one in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    found += [
        dict(line.split("=", 1) for line in block.splitlines())
        for block in re.findall(r"```properties\n(.*?)```", text, re.DOTALL)
    ]
    for command in commands:
        found.append(dict(word.split("=", 1) for word in shlex.split(command)[1:]))
    return [one for one in found if "connector.class" in one]


@pytest.mark.parametrize("document", ["s3.md", "files.md", "lakes.md"])
def test_settings_of_examples_are_defined_and_valid(document):
    for config in examples(document):
        connector = load(config["connector.class"])()
        for name in config:
            is_known = name in connector.definition.settings or name.startswith((*COMMON, *FREE))
            assert is_known, name
        values = connector.definition.validate(config)
        assert {name: value.errors for name, value in values.items() if value.errors} == {}
        assert connector.validate(config) == {}


def test_files_and_delta_run_as_they_are_shown(tmp_path):
    sink, source = examples("files.md")
    (delta,) = [one for one in examples("lakes.md") if "delta.storage.AWS_REGION" in one]
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.json").write_bytes(b'{"id": 1}\n')
    with ConnectKit() as kit:
        for number in range(3):
            kit.produce("orders", b'{"id": %d}' % number)
        kit.start("out", {**sink, "files.directory": str(tmp_path / "lake")})
        kit.start("in", {**source, "files.directory": str(tmp_path / "in")})
        kit.wait_until(lambda: kit.committed("out") == {("orders", 0): 3})
        kit.wait_for_records("rows", 1)
        schemaless = {"value.converter.schemas.enable": "false"}
        kit.start("delta", {**delta, **schemaless, "delta.location": str(tmp_path / "tables")})
        kit.wait_until(lambda: kit.committed("delta") == {("orders", 0): 3})
    name = "lake/topics/orders/partition=0/orders+0+0000000000.json"
    assert (tmp_path / name).read_bytes() == b'{"id":0}\n{"id":1}\n{"id":2}\n'
    assert (tmp_path / "tables/shop/orders/_delta_log").is_dir()
