"""How a node ends: every part is closed, even if earlier ones failed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

Step = Callable[[], Awaitable[None] | None]

telemetry = logging.getLogger(__name__)


async def take_all(*steps: Step) -> None:
    """Take every step, in order, and then raise the first error; the others are logged.

    Cancelling it waits until the last step is done.
    """
    first: Exception | asyncio.CancelledError | None = None
    for step in steps:
        try:
            waiting = step()
            if waiting is not None:
                await waiting
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # raised below
            if first is None:
                first = error
            else:
                telemetry.error("another part was not closed cleanly", exc_info=error)
    if first is not None:
        raise first


async def give_up(*steps: Step) -> None:
    """Take every step after a failure, which the caller raises: errors here are only logged."""
    try:
        await take_all(*steps)
    except (Exception, asyncio.CancelledError):  # noqa: BLE001  # the failure itself goes first
        telemetry.exception("a part was not closed cleanly")
