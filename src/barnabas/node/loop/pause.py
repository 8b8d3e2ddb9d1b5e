"""Waiting on a clock."""

import asyncio

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
