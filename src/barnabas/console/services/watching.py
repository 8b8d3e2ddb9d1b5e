"""Background work that runs while somebody watches its results."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

WATCHED_S: Final = 60.0
"""Work goes on until nobody has looked for this long."""
FIRST_S: Final = 1.0
"""The pause before work that asks about every partition: the page that began it goes first."""
_JOIN_S: Final = 2.0


class WhileWatched:
    """Calls `work` repeatedly in its own thread, as long as somebody watches.

    The first call is after `first_s`. `work` is passed True for the first call of a watch, returns
    the seconds until the next call, and handles its own failures.
    """

    def __init__(
        self,
        work: Callable[[bool], float],
        name: str,
        now_s: Callable[[], float] = time.monotonic,
        *,
        first_s: float = 0.0,
    ) -> None:
        self._work, self._name, self._now_s, self._first_s = work, name, now_s, first_s
        self._watched_s = 0.0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def watch(self) -> None:
        """Go on for a minute, or begin."""
        with self._lock:
            self._watched_s = self._now_s()
            if (self._thread is None or not self._thread.is_alive()) and not self._closing.is_set():
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(_JOIN_S)

    def _run(self) -> None:
        is_first = True
        self._closing.wait(self._first_s)
        while not self._closing.is_set():
            with self._lock:
                if self._now_s() - self._watched_s > WATCHED_S:
                    self._thread = None
                    return
            pause_s = self._work(is_first)
            is_first = False
            self._closing.wait(pause_s)
