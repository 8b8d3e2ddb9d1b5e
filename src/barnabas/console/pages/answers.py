"""Answers that users share: computed once, and kept for a moment.

Only users whose roles have the same names share an answer, so nobody sees what their role hides.
Everything here runs on the event loop; threads compute the answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Final

KEPT_S: Final = 1.0
ANSWERS_MAX: Final = 256
ANSWER_BYTES_MAX: Final = 256 * 1024
"""Larger answers go only to the users who wait for them, and are not kept."""


class Answers:
    """Answers as bytes, by question."""

    def __init__(self, kept_s: float = KEPT_S, now_s: Callable[[], float] = time.monotonic) -> None:
        self._kept_s, self._now_s = kept_s, now_s
        self._kept: dict[Hashable, tuple[float, bytes]] = {}
        self._asked: dict[Hashable, asyncio.Task[bytes]] = {}
        self._forgotten = 0

    async def get(self, question: Hashable, ask: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the answer. Raises what `ask` does: a failure goes to all that wait, unkept.

        If one of those that wait is cancelled, the others still get the answer.
        """
        kept = self._kept.get(question)
        if kept is not None and self._now_s() - kept[0] <= self._kept_s:
            return kept[1]
        task = self._asked.get(question)
        if task is None:
            task = asyncio.ensure_future(self._ask(question, ask))
            self._asked[question] = task
            task.add_done_callback(lambda done: self._ended(question, done))
        return await asyncio.shield(task)

    def forget(self) -> None:
        """Drop all answers after a change, those on their way included."""
        self._forgotten += 1
        self._kept.clear()
        self._asked.clear()

    async def _ask(self, question: Hashable, ask: Callable[[], Awaitable[bytes]]) -> bytes:
        forgotten = self._forgotten
        found = await ask()
        if forgotten == self._forgotten and len(found) <= ANSWER_BYTES_MAX:
            self._kept.pop(question, None)
            while len(self._kept) >= ANSWERS_MAX:
                del self._kept[next(iter(self._kept))]  # the oldest
            self._kept[question] = self._now_s(), found
        return found

    def _ended(self, question: Hashable, task: asyncio.Task[bytes]) -> None:
        if self._asked.get(question) is task:
            del self._asked[question]
        if not task.cancelled():
            task.exception()  # retrieved, since nobody may wait for it any more
