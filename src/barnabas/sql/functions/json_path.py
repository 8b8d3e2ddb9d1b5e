"""Paths into JSON, as EXTRACTJSONFIELD takes them: `$.a.b[0]["c d"]`, names and indexes only."""

from __future__ import annotations

import re
from functools import lru_cache

from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.json_text import Json

_STEP = re.compile(
    r"""\.(?P<name>[\w:@]+)        # .name
    | \[ (?P<index>\w+) \]         # [0], or [name]
    | \[ "(?P<quoted>(?:[^"\\]|\\["\\])*)" \]""",
    re.VERBOSE,
)
_ESCAPED = re.compile(r"\\(.)")


@lru_cache(maxsize=1024)
def parse_path(path: str) -> tuple[str, ...]:
    """The names and indexes that lead from the root; raises EvaluationError."""
    if not path.startswith("$"):
        raise EvaluationError(f"Invalid JSON path: '{path}'")
    tokens = []
    at = 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise EvaluationError(f"Invalid JSON path: '{path}'")
        quoted = step["quoted"]
        token = step["name"] or step["index"] if quoted is None else _ESCAPED.sub(r"\1", quoted)
        tokens.append(token)
        at = step.end()
    return tuple(tokens)


def follow(value: Json, tokens: tuple[str, ...]) -> tuple[bool, Json]:
    """Whether the path leads to a value, and the value (JSON's null is one)."""
    for token in tokens:
        if isinstance(value, dict):
            if token not in value:
                return False, None
            value = value[token]
        elif isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            value = value[int(token)]
        else:
            return False, None
    return True, value
