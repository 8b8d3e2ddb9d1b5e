"""What is read from others is data: nothing in the source turns it into code."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src/barnabas"
MODULES = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "jsonpickle", "code", "codeop"}
"""They make objects, or code, of what they read."""
CALLS = {"eval", "exec", "compile", "__import__"}
METHODS = {
    ("yaml", "load"),
    ("yaml", "unsafe_load"),
    ("yaml", "full_load"),
    ("os", "system"),
    ("os", "popen"),
}
ALLOWED = {
    ("streams/code.py", "cloudpickle"): "a user's own functions, on their way to Spark",
    ("protocol/schema.py", "exec"): "a constructor made of the names of declared fields",
    ("protocol/codec/source.py", "exec"): "a codec made of the names of declared fields",
}
"""Uses that read nothing of others, and why they are there."""
MAY_USE = re.compile(
    rf"\b(?:{'|'.join((*MODULES, 'shell', *(method for _, method in METHODS)))})\b"
    rf"|(?<![\w.])(?:{'|'.join(CALLS)})\s*\("
)
"""In the text of every file that uses any of these: to parse all files takes seconds."""


def modules() -> list[Path]:
    command = ["git", "ls-files", "--", "src/barnabas/**/*.py"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).exists()]


def uses(source: str) -> Iterator[str]:
    """The names of what could run what was read."""
    if not MAY_USE.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from MODULES & {alias.name.partition(".")[0]}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from MODULES & {(node.module or "").partition(".")[0]}
            yield from MODULES & {alias.name for alias in node.names}
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield from CALLS & {node.func.id}
            elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                called = (node.func.value.id, node.func.attr)
                yield from [".".join(called)] if called in METHODS else []
            for keyword in node.keywords:
                if keyword.arg == "shell" and getattr(keyword.value, "value", None) is True:
                    yield "shell=True"


def test_nothing_that_is_read_is_run() -> None:
    found = {
        (str(path.relative_to(PACKAGE)), name)
        for path in modules()
        for name in uses(path.read_text())
    }
    assert found == ALLOWED.keys()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import pickle", ["pickle"]),
        ("from pickle import loads", ["pickle"]),
        ("from pyspark import cloudpickle", ["cloudpickle"]),
        ("def f(x):\n    return eval(x)", ["eval"]),
        ("yaml.load(text)", ["yaml.load"]),
        ("x = [eval (text)]", ["eval"]),
        ("subprocess.run(text, shell=True)", ["shell=True"]),
        ("subprocess.run([text], shell=False)\nyaml.safe_load(text)\nre.compile(text)", []),
        ("from barnabas.streams.code import ship", []),
    ],
)
def test_the_rule_sees(source: str, expected: list[str]) -> None:
    assert list(uses(source)) == expected
