"""ksqlDB's executable cases, read from the directory where its repository was fetched."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

_COMMENT = re.compile(r"^\s*//.*$|(?<=[,\]}])\s*//.*$", re.MULTILINE)
_TRAILING_COMMA = re.compile(r",(\s*[\]}])")


@dataclass(frozen=True)
class Case:
    """One case: statements, records that go in, and records or an error that come out."""

    file: str
    name: str
    content: dict[str, Any]

    @property
    def title(self) -> str:
        """The case's name in reports."""
        return f"{self.file}: {self.name}"

    @property
    def statements(self) -> list[str]:
        """The texts, in order; each may hold several statements."""
        return list(self.content["statements"])

    @property
    def error(self) -> str | None:
        """Part of the expected error's message; None if no error is expected."""
        expected = self.content.get("expectedException")
        return None if expected is None else str(expected.get("message", ""))


def load(directory: Path) -> Iterator[Case]:
    """Every case of every file; one with formats is several cases, as are its statements."""
    for path in sorted(directory.glob("*.json")):
        for test in parse(path.read_text())["tests"]:
            if test.get("enabled", True) and "max" not in test.get("versions", {}):
                yield from _variants(path.stem, test)


def parse(text: str) -> Any:
    """JSON with comments and trailing commas, numbers with a point as they are written."""
    try:
        return json.loads(text, parse_float=Number)
    except json.JSONDecodeError:
        plain = _TRAILING_COMMA.sub(r"\1", _COMMENT.sub("", text))
        return json.loads(plain, parse_float=Number)


class Number(Decimal):
    """A number with a point or exponent: exact, as cases of DECIMAL need it."""


def _variants(file: str, test: dict[str, Any]) -> Iterator[Case]:
    formats = test.get("format")
    if not formats:
        yield Case(file, test["name"], test)
        return
    for name in formats:
        # A case is written with {FORMAT} in its statements, topics and messages.
        replaced = _replace(test, name)
        yield Case(file, f"{test['name']} - {name}", replaced)


def _replace(node: Any, name: str) -> Any:
    if isinstance(node, str):
        return node.replace("{FORMAT}", name)
    if isinstance(node, list):
        return [_replace(part, name) for part in node]
    if isinstance(node, dict):
        return {key: _replace(part, name) for key, part in node.items()}
    return node
