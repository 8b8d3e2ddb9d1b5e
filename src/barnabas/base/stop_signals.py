"""Signals that stop a long-running command: SIGTERM, SIGINT, and SIGHUP from a closed terminal."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable
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
