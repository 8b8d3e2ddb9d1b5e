"""Why a query of Spark's failed, in a line."""

from __future__ import annotations

import re
from typing import Final

_NOISE: Final = re.compile(r"^(\[\w+(\.\w+)*\]|org\.apache\.spark\.\S+:|java\.\S+Exception:)\s*")
_RAISED: Final = re.compile(r"^\s*((?:\w+\.)*\w*(?:Error|Exception)\b: .+)$", re.MULTILINE)
_LENGTH_MAX: Final = 500


def why(error: BaseException) -> str:
    """Return the line of an error that says what is wrong: the last of Python's, if one was."""
    text = str(error)
    # The worker's traceback ends with the exception, at the left margin.
    python = _RAISED.findall(text)
    if "Traceback (most recent call last)" in text and python:
        return str(python[-1]).strip()[:_LENGTH_MAX]
    malformed = re.search(r"malformed record in [^\n]+", text)
    if malformed:
        return malformed[0].split(" SQLSTATE")[0][:_LENGTH_MAX]
    text = text.rpartition("terminated with exception: ")[2]
    line = next((one for one in text.splitlines() if one.strip()), type(error).__name__)
    return _NOISE.sub("", line.strip())[:_LENGTH_MAX]
