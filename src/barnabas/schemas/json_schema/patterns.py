"""Regular expressions of schemas.

They are written for ECMAScript and come from untrusted users, so none is ever run by a backtracking
engine: RE2 matches them, in time linear in the text. Constructs that RE2 lacks (look-ahead,
look-behind, back references) are only checked for their form, and match nothing.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

PATTERN_LENGTH_MAX = 10_000
_MEMORY_BYTES_MAX = 1 << 20

_OPENING = re.compile(r"\((?:\?(?::|=|!|<=|<!|<[^>=!]+>|[ims]*(?:-[ims]+)?:))?")
_REPEAT = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\??")


def fault_of(pattern: str) -> str | None:
    """Why the pattern is not a regular expression, or None if it is one."""
    if len(pattern) > PATTERN_LENGTH_MAX:
        return f"has more than {PATTERN_LENGTH_MAX} characters"
    if _compiled(pattern) is not None:
        return None
    return _fault_of_form(pattern)


def find(pattern: str, text: str) -> bool | None:
    """Return whether the pattern occurs in the text; None if that cannot be found out safely."""
    compiled = _compiled(pattern)
    return None if compiled is None else compiled.search(text) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> "Any":
    import re2  # type: ignore[import-untyped]  # no stubs; few schemas have patterns

    if len(pattern) > PATTERN_LENGTH_MAX:
        return None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES_MAX
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None


def _fault_of_form(pattern: str) -> str | None:
    depth = position = 0
    repeatable = False
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            if position + 1 == len(pattern):
                return "ends in a backslash"
            position, repeatable = position + 2, True
        elif char == "[":
            position = _end_of_class(pattern, position)
            if position < 0:
                return "has a [ without its ]"
            repeatable = True
        elif char == "(":
            opening = _OPENING.match(pattern, position)
            if opening is None or (opening[0] == "(" and pattern.startswith("(?", position)):
                return f"has an unknown group at character {position + 1}"
            depth, position, repeatable = depth + 1, opening.end(), False
        elif char == ")":
            depth, position, repeatable = depth - 1, position + 1, True
            if depth < 0:
                return "has a ) without its ("
        elif repeat := _REPEAT.match(pattern, position):
            if not repeatable:
                return f"repeats nothing at character {position + 1}"
            position, repeatable = repeat.end(), False
        else:
            position, repeatable = position + 1, char not in "|^"
    return "has a ( without its )" if depth else None


def _end_of_class(pattern: str, start: int) -> int:
    position = start + 1
    while position < len(pattern):
        if pattern[position] == "]":
            return position + 1
        position += 2 if pattern[position] == "\\" else 1
    return -1
