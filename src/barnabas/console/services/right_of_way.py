"""Pages before searches: long work waits a moment while short work is under way.

Python runs one thread at a time. Without this, a page would wait for its turn behind every search.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

WAIT_S: Final = 0.01
"""What a step of long work waits at most: searches go on, slowly, while pages never cease."""


class RightOfWay:
    """Counts short work, for which long work waits between its steps."""

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s
        self._changed = threading.Condition()
        self._short = 0

    @contextmanager
    def short(self) -> Iterator[None]:
        """Short work."""
        with self._changed:
            self._short += 1
        try:
            yield
        finally:
            with self._changed:
                self._short -= 1
                if not self._short:
                    self._changed.notify_all()

    def give_way(self) -> None:
        """Wait, for `wait_s` at most, until no short work is under way."""
        with self._changed:
            self._changed.wait_for(lambda: not self._short, self._wait_s)
