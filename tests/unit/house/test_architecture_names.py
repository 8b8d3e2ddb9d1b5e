"""The walks in ARCHITECTURE.md name functions that exist, where they say."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)`\s+`([A-Za-z_][\w.]*)`", TEXT)))


def defined(path: str) -> set[str]:
    """Functions, classes and methods of a module."""
    names: set[str] = set()
    for node in ast.parse((ROOT / "src" / "barnabas" / path).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            functions = (ast.FunctionDef, ast.AsyncFunctionDef)
            names |= {f"{node.name}.{m.name}" for m in node.body if isinstance(m, functions)}
    return names


@pytest.mark.parametrize(("path", "name"), NAMED, ids=[name for _, name in NAMED])
def test_what_is_named_exists(path: str, name: str) -> None:
    assert name in defined(path)


def test_walks_name_functions() -> None:
    assert len(NAMED) > 15
