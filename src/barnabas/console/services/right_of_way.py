"""Right of way for pages: searches pause while a page is being answered.

Python runs one thread at a time, so a page would otherwise wait behind every search.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

WAIT_S: Final = 0.01
"""The longest pause between two steps of long work: searches advance even under constant load."""


class RightOfWay:
    """Counts short work, for which long work waits between its steps."""

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s
        self._changed = threading.Condition()
        self._short = 0

    @contextmanager
    def short(self) -> Iterator[None]:
        """Mark the body of a `with` statement as short work."""
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
