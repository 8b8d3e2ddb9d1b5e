"""Pauses of a task on the event loop: for a time, or between parts of long work."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final, TypeVar

from barnabas.base.clock import Clock


async def pause(clock: Clock, duration_ms: float) -> None:
    """Return after `duration_ms` of the clock's time."""
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end() -> None:
        if not over.done():
            over.set_result(None)

    timer = clock.call_later(duration_ms, end)
    try:
        await over
    finally:
        timer.cancel()


PART_MAX: Final = 32

T = TypeVar("T")


async def in_turns(items: Iterable[T], part: int = PART_MAX) -> AsyncIterator[T]:
    """The items, of which each is work for its reader; the loop goes on after each `part`."""
    for number, item in enumerate(items, 1):
        yield item
        if number % part == 0:
            await asyncio.sleep(0)
