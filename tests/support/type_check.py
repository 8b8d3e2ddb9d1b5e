"""Runs mypy over the product and the tests, in the background.

While pytest collects tests, one core is idle. `make test` starts mypy then. It writes to a pipe,
from which a process that is forked later reads the result.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
MYPY = (sys.executable, "-m", "mypy")
IN_BACKGROUND = '{ "$@"; echo $?; } 2>&1 &'
"""For a shell that ends at once: the command, and its exit code as the last line."""
_pipes: list[int] = []


def begin(command: Sequence[str] = MYPY) -> None:
    """Start mypy."""
    reading, writing = os.pipe()
    subprocess.run(
        ["sh", "-c", IN_BACKGROUND, "sh", *command],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=writing,
        check=True,
    )
    os.close(writing)
    _pipes.append(reading)


def result() -> tuple[int, str]:
    """Wait for mypy, which starts now if it has not begun. Returns its exit code and output."""
    if not _pipes:
        begin()
    with open(_pipes.pop(), encoding="utf-8") as pipe:
        *lines, code = pipe.read().splitlines()
    return int(code), "\n".join(lines)
