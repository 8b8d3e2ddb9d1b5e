"""SIGTERM ends a run of tests as Ctrl-C does: fixtures stop what they have started."""

from __future__ import annotations

import os
import signal
from types import FrameType


def end_by_sigterm() -> None:
    """Raise KeyboardInterrupt at SIGTERM, in this process and not in those it forks."""
    owner = os.getpid()

    def end(number: int, _: FrameType | None) -> None:
        if os.getpid() == owner:
            raise KeyboardInterrupt
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, end)
