"""Names in SQL: unquoted ones are upper case, quoted ones are taken as they stand."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[A-Z_][A-Z0-9_@]*\Z")


def quoted(name: str) -> str:
    """The name as it must be written in a statement: in back quotes unless it is plain."""
    return (
        name if _PLAIN.match(name) and name not in RESERVED else "`" + name.replace("`", "``") + "`"
    )


RESERVED: frozenset[str] = frozenset()
"""Words that cannot be names without quotes; the parser's table of words fills the set."""
