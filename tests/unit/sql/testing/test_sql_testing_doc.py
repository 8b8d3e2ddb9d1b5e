"""The examples of docs/sql/testing.md work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from support.cli import run_cli

PAGE = (Path(__file__).parents[4] / "docs" / "sql" / "testing.md").read_text()


def block(kind: str) -> str:
    found = re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_python_example() -> None:
    names: dict[str, Any] = {}
    exec(block("python"), names)
    names["test_clicks_are_counted_by_minute"]()


def test_the_file_example(tmp_path: Path) -> None:
    path = tmp_path / "tests.sql"
    path.write_text(block("sql"))
    result = run_cli("sql", "test", str(path))
    assert result.code == 0, result.err
