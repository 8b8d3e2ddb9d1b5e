"""Rules for the source that linters do not know."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src/barnabas"
MODULE_LINES_MAX = 600
"""A module beyond this wants to be two, unless there is a reason."""
LONGER_FOR_A_REASON: dict[str, str] = {}
"""Modules of `src/barnabas` and their reasons. A module without one is split, and a reason that is
no longer needed goes."""
IGNORE = re.compile(r"#\s*type:\s*ignore")
IGNORE_WITH_REASON = re.compile(r"#\s*type:\s*ignore\[[a-z, -]+\]\s*#\s*\S+")
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b|NotImplementedError")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(#[^)]*)?\)")


def tracked(*patterns: str) -> list[Path]:
    """Files under version control."""
    command = ["git", "ls-files", "--", *patterns]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists()]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


BY_NAME = re.compile(r"pip3? install[^\n]*\bbarnabas\b(?!-)|['\"`]barnabas\[")
"""An installation from the index, where the name belongs to another project."""


def installs_by_name(line: str) -> bool:
    """Whether a line tells somebody to install what the index has under our name."""
    found = BY_NAME.search(line)
    return found is not None and not re.search(r"install (?:-e )?'?\.", line)


def test_nothing_installs_from_the_index() -> None:
    wrong = ("pip install barnabas", "pip install 'barnabas[spark]'", "install `barnabas[sql]`")
    assert all(installs_by_name(line) for line in wrong)
    named_in = {
        f"{named(path)}:{number}: {line.strip()}"
        for path in tracked("src", "docs", "*.md", "deploy", "Makefile", ".ci", "bench", "tools")
        if path.suffix in ("", ".py", ".md", ".sh", ".toml", ".yml", ".yaml", ".sql")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if installs_by_name(line)
    }
    assert not named_in, "use barnabas.base.extras.install_hint, or a path"


def test_modules_do_one_thing() -> None:
    long = {
        str(path.relative_to(PACKAGE)): len(path.read_text().splitlines())
        for path in tracked("src/**/*.py")
    }
    long = {name: lines for name, lines in long.items() if lines > MODULE_LINES_MAX}
    assert {name: lines for name, lines in long.items() if name not in LONGER_FOR_A_REASON} == {}
    assert sorted(LONGER_FOR_A_REASON.keys() - long.keys()) == []


def test_modules_and_public_names_say_what_they_are() -> None:
    silent = []
    for path in tracked("src/**/*.py"):
        tree = ast.parse(path.read_text())
        if ast.get_docstring(tree) is None and path.read_text().strip():
            silent.append(named(path))
        for node in tree.body:
            is_public = (
                isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                and not node.name.startswith("_")
                and node.name != "main"
            )
            if is_public and "protocol/messages" not in named(path):
                assert isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                if ast.get_docstring(node) is None and len(node.body) > 1 and not described(node):
                    silent.append(f"{named(path)}:{node.name}")
    assert silent == []


def described(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a decorator puts it into the catalog of SQL functions, with a description."""
    return any(
        isinstance(decorator, ast.Call)
        and isinstance(decorator.func, ast.Name)
        and decorator.func.id.lstrip("_") in ("scalar", "table_function", "aggregate")
        for decorator in node.decorator_list
    )


def test_ignored_types_have_a_code_and_a_reason() -> None:
    bare = [
        f"{named(path)}:{number}"
        for path in tracked("src/**/*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if IGNORE.search(line) and not IGNORE_WITH_REASON.search(line)
    ]
    assert bare == []


def test_nothing_is_left_unfinished() -> None:
    found = [
        f"{named(path)}:{number}"
        for path in tracked("src/**/*.py", "bench/*.py", "tools/*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    assert found == []


def test_test_modules_have_names_of_their_own() -> None:
    names = Counter(path.name for path in tracked("tests/**/*.py") if path.name != "conftest.py")
    assert [name for name, count in names.items() if count > 1 and name != "__init__.py"] == []


def test_links_in_documents_lead_somewhere() -> None:
    broken = [
        f"{named(path)}: {target}"
        for path in tracked("*.md", "docs/**/*.md")
        for target, _ in LINK.findall(path.read_text())
        if "://" not in target and not (path.parent / target).exists()
    ]
    assert broken == []


def test_large_files_stay_out() -> None:
    large = [named(path) for path in tracked(".") if path.stat().st_size > 2_000_000]
    assert large == []
