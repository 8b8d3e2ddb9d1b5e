"""Options of `consume` and `produce` for records with schemas, before anything is connected."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.cli import run_cli


@pytest.mark.parametrize("module", ["confluent_kafka.schema_registry", "fastavro", "jsonschema"])
def test_a_library_that_is_missing_is_told_in_one_line(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name.startswith("confluent_kafka.schema_registry"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    result = run_cli("consume", "t", "--value-format", "avro")
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert f"need {module}, which is not installed; pip install '.[registry]'" in result.err


def test_a_group_needs_a_name() -> None:
    result = run_cli("consume", "t", "--group", "")
    assert (result.code, result.err) == (2, "barnabas: --group: the name is empty\n")


def test_one_schema_for_a_part(tmp_path: Path) -> None:
    file = tmp_path / "a.avsc"
    file.write_text('"string"')
    arguments = ("produce", "t", "--key-schema-id", "1", "--key-schema", str(file), "-v", "x")
    result = run_cli(*arguments, "-b", "127.0.0.1:1")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "give one of --key-schema-id and --key-schema, not both" in result.err
