"""How long a mirror waits for brokers' answers, of which one may be dead."""

from __future__ import annotations

from typing import Final

PATIENCE_SECONDS: Final = 5.0
"""How long they are waited for at first."""


class Patience:
    """Each try that follows one that failed waits twice as long as that, up to a limit."""

    def __init__(self) -> None:
        self._seconds = PATIENCE_SECONDS

    def begin(self, limit_s: float) -> float:
        """Begin a try; returns how long it may wait."""
        seconds = min(self._seconds, limit_s)
        self._seconds = seconds * 2
        return seconds

    def answered(self) -> None:
        """The try went well."""
        self._seconds = PATIENCE_SECONDS
