"""Waiting, in asyncio's loop, for conditions without an event: threads, processes, other
instances."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from support.patience import PATIENCE_S

POLL_S: Final = 0.005


async def eventually(condition: Callable[[], bool | Awaitable[bool]], what: str) -> None:
    """Poll `condition`; fails with `what` when it does not come true in time."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not await _holds(condition()):  # noqa: ASYNC110 - of what cannot call back
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise AssertionError(f"{what} did not happen within {PATIENCE_S} s") from None


async def _holds(found: bool | Awaitable[bool]) -> bool:
    return found if isinstance(found, bool) else await found
