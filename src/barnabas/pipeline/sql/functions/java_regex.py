"""Java's regular expressions: compiled, searched and used for replacements as Java does.

`regex_translation` makes Python's patterns of them; it tells what differs, and what is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from barnabas.pipeline.sql.errors import EvaluationError
from barnabas.pipeline.sql.functions.regex_characters import PatternError
from barnabas.pipeline.sql.functions.regex_translation import translate


@lru_cache(maxsize=512)
def compile_java(pattern: str) -> re.Pattern[str]:
    """The pattern for Python's `re`; raises PatternError."""
    try:
        return re.compile(translate(pattern))
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(f"{error}: {pattern}") from None


def find_all(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The matches that repeated calls of Java's find() give, from left to right.

    After an empty match Java goes on one character later; Python would look for a longer one there.
    """
    at = 0
    while at <= len(text) and (found := pattern.search(text, at)):
        yield found
        at = found.end() + (found.start() == found.end())


def expand(template: str, match: re.Match[str]) -> str:
    """The replacement that `$1`, `${name}` and backslashes in the template tell."""
    if "$" not in template and "\\" not in template:
        return template
    return _REFERENCE.sub(lambda found: _referenced(found, match), template)


_REFERENCE = re.compile(r"\\(.)|\$\{([a-zA-Z][a-zA-Z0-9]*)\}|\$([0-9]+)|\\|\$", re.DOTALL)


def _referenced(found: re.Match[str], match: re.Match[str]) -> str:
    if found[1] is not None:
        return found[1]
    if found[2] is not None:
        if found[2] not in match.re.groupindex:
            raise EvaluationError(f"No group with name {{{found[2]}}}")
        return match[found[2]] or ""
    if found[3] is None:
        raise EvaluationError(f"Illegal group reference in {found.string}")
    digits = found[3]  # as many of them as name a group; the first must
    size = next((n for n in range(len(digits), 1, -1) if int(digits[:n]) <= match.re.groups), 1)
    if int(digits[:size]) > match.re.groups:
        raise EvaluationError(f"No group {digits[:size]}")
    return (match[int(digits[:size])] or "") + digits[size:]
