"""Commands that run until a signal, as a person starts them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from support.patience import PATIENCE_S

BARNABAS = [sys.executable, "-m", "barnabas"]


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command that runs; killed if the test leaves it running."""
    process = subprocess.Popen(
        [*BARNABAS, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def first_line(process: subprocess.Popen[str]) -> str:
    """Return what it says first."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    return line


def end(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> int:
    """Send a signal, and return the exit code."""
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in errors
    return process.returncode
