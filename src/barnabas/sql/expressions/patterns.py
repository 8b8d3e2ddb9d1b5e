"""LIKE: `%` is any text within a line, `_` any one character.

A pattern is cut at each `%`. The first piece must begin the text, the last one end it, and each of
the others is taken where it comes first behind the one before: no later place can do better, so
nothing is ever tried twice, for any pattern and text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from barnabas.sql.errors import EvaluationError

_LINE_END = re.compile("[\n\r\x85\u2028\u2029]")
_ANY = "[^\n\r\x85\u2028\u2029]"
"""What Java's `.` stands for."""


@lru_cache(maxsize=1024)
def like_matcher(pattern: str, escape: str | None) -> Callable[[str], bool]:
    """Return a function that matches a whole text; after `escape` any character is literal."""
    first, *rest = _pieces(pattern, escape)
    begin = re.compile("".join(first))
    if not rest:
        return lambda text: begin.fullmatch(text) is not None
    inner = [re.compile("".join(piece)) for piece in rest[:-1] if piece]
    return _matcher(begin, inner, re.compile("".join(rest[-1])), len(rest[-1]))


def _pieces(pattern: str, escape: str | None) -> list[list[str]]:
    """Return what stands between the `%`, each as expressions of one character."""
    pieces: list[list[str]] = [[]]
    is_escaped = False
    for character in pattern:
        if is_escaped:
            pieces[-1].append(re.escape(character))
            is_escaped = False
        elif character == escape:
            is_escaped = True
        elif character == "%":
            pieces.append([])
        elif character == "_":
            pieces[-1].append(_ANY)
        else:
            pieces[-1].append(re.escape(character))
    if is_escaped:
        raise EvaluationError("LIKE pattern must not end with escape character")
    return pieces


def _matcher(
    begin: re.Pattern[str],
    inner: Sequence[re.Pattern[str]],
    end: re.Pattern[str],
    end_length: int,
) -> Callable[[str], bool]:
    def matches(text: str) -> bool:
        match = begin.match(text)
        if match is None:
            return False
        at = match.end()
        for piece in inner:
            match = piece.search(text, at)
            if match is None or _LINE_END.search(text, at, match.start()) is not None:
                return False
            at = match.end()
        last = len(text) - end_length
        if last < at or end.fullmatch(text, last) is None:
            return False
        return _LINE_END.search(text, at, last) is None

    return matches


def is_like(value: str | None, pattern: str | None, escape: str | None) -> bool:
    """Return whether the text is like the pattern; raises EvaluationError where either is NULL."""
    if value is None or pattern is None:
        raise EvaluationError("LIKE with NULL")
    return like_matcher(pattern, escape)(value)
