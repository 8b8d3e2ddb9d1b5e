"""LIKE: `%` is any text within a line, `_` any one character."""

from __future__ import annotations

import re
from functools import lru_cache

from barnabas.pipeline.sql.errors import EvaluationError

_NO_LINE_END = "[^\n\r\x85\u2028\u2029]"
"""What Java's `.` stands for."""


@lru_cache(maxsize=1024)
def like_pattern(pattern: str, escape: str | None) -> re.Pattern[str]:
    """What the whole text must match; after `escape`, any character stands for itself."""
    parts: list[str] = []
    is_escaped = False
    for character in pattern:
        if is_escaped:
            parts.append(re.escape(character))
            is_escaped = False
        elif character == escape:
            is_escaped = True
        elif character == "%":
            parts.append(_NO_LINE_END + "*")
        elif character == "_":
            parts.append(_NO_LINE_END)
        else:
            parts.append(re.escape(character))
    if is_escaped:
        raise EvaluationError("LIKE pattern must not end with escape character")
    return re.compile("".join(parts))


def is_like(value: str | None, pattern: str | None, escape: str | None) -> bool:
    """Whether the text is like the pattern; raises EvaluationError where either is NULL."""
    if value is None or pattern is None:
        raise EvaluationError("LIKE with NULL")
    return like_pattern(pattern, escape).fullmatch(value) is not None
