"""Long lists on the event loop: between two parts of one, others have their turn."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final, TypeVar

PART_MAX: Final = 32

T = TypeVar("T")


async def in_turns(items: Iterable[T], part: int = PART_MAX) -> AsyncIterator[T]:
    """The items, of which each is work for its reader; the loop goes on after each `part`."""
    for number, item in enumerate(items, 1):
        yield item
        if number % part == 0:
            await asyncio.sleep(0)
