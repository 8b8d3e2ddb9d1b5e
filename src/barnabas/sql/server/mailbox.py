"""Hands results from the threads that make them to the event loop that sends them."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")
WAITING_MAX = 10_000
"""So many results wait for a client that reads slowly; then who makes them waits."""


class Mailbox(Generic[T]):
    """`put` in any thread, `take` in the loop that made it."""

    def __init__(self, waiting_max: int = WAITING_MAX) -> None:
        self._loop = asyncio.get_running_loop()
        self._filled = asyncio.Event()
        self._items: deque[T] = deque()
        self._has_room = threading.Condition()
        self._waiting_max = waiting_max
        self._is_closed = False

    def put(self, item: T) -> None:
        """Add an item; waits for room, and does nothing once the box is closed."""
        with self._has_room:
            self._has_room.wait_for(lambda: self._is_closed or len(self._items) < self._waiting_max)
            if self._is_closed:
                return
            self._items.append(item)
        self._loop.call_soon_threadsafe(self._filled.set)

    async def take(self) -> list[T]:
        """All that is there, at least one item."""
        await self._filled.wait()
        with self._has_room:
            items = list(self._items)
            self._items.clear()
            self._filled.clear()
            self._has_room.notify_all()
        return items

    def close(self) -> None:
        """Nobody takes any more: nobody needs to wait to put."""
        with self._has_room:
            self._is_closed = True
            self._has_room.notify_all()
