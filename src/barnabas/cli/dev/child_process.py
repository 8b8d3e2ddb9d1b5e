"""Processes that a command starts and that must not outlive it."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

from barnabas.cli.errors import ExitCode

PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> Callable[[], None] | None:
    """Return what a new process does first, so that it is killed when this one dies; Linux only."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)

    def prepare() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before that
            os._exit(ExitCode.INTERRUPTED)

    return prepare
