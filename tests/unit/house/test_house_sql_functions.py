"""docs/sql/functions.md lists the functions that exist."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_page_is_written_from_the_catalog() -> None:
    path = ROOT / "tools" / "sql_function_docs.py"
    spec = importlib.util.spec_from_file_location("sql_function_docs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = module.PAGE.read_text(encoding="utf-8")
    assert written == module.text(), "run python tools/sql_function_docs.py"
