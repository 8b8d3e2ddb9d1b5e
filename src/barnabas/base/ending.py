"""The end of a process: signals that stop it, and closing all its parts even if some fail."""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Final

EXIT_AT_ONCE: Final = 130

telemetry = logging.getLogger(__name__)


def on_stop_signals(react: Callable[[signal.Signals], None]) -> None:
    """Call `react` on the running loop for each signal that stops; SIGHUP counts unless ignored."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
            continue  # nohup
        loop.add_signal_handler(number, react, number)


def stop_on_signals(stopping: asyncio.Event, at_once: str) -> None:
    """Set `stopping` at the first signal; a second one logs `at_once` and ends the process.

    A second SIGHUP does not: a closed terminal may send it twice.
    """

    def stop(number: signal.Signals) -> None:
        if stopping.is_set() and number is not signal.SIGHUP:
            telemetry.warning("%s", at_once)
            os._exit(EXIT_AT_ONCE)
        stopping.set()

    on_stop_signals(stop)


Step = Callable[[], Awaitable[None] | None]


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
