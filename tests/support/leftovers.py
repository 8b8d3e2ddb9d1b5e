"""Processes that outlive the tests that started them: a watcher kills them.

Fixtures end what they have started, unless pytest is killed before. So each process that runs
tests has a watcher, which waits until that process is gone. What the tests started is known by a
variable of its environment, which the processes that it starts inherit. Linux only.
"""

from __future__ import annotations

import os
import signal
import sys
import uuid
from contextlib import suppress
from pathlib import Path

MARK = "STARTED_BY_TESTS"
"""The variable; its value belongs to one process that runs tests."""


def kill_what_outlives_us() -> None:
    """Start a watcher, and mark what this process starts from now on."""
    if sys.platform != "linux":
        return
    mark = uuid.uuid4().hex
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    reading, _ = os.pipe()  # nobody writes: the other end closes however this process ends
    os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", __file__, mark],
        environment,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, reading, 0),
            # A reader of what the tests print does not wait for the watcher.
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ],
        setsid=True,
    )
    os.close(reading)
    os.environ[MARK] = mark


def marked(mark: str) -> list[int]:
    """The processes that run with this mark."""
    variable = f"{MARK}={mark}".encode()
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            with suppress(OSError):  # it has just ended, or is another user's
                if variable in (directory / "environ").read_bytes().split(b"\0"):
                    found.append(int(directory.name))
    return found


def main() -> None:
    """Wait for the end of standard input, then kill until there is nothing left."""
    (mark,) = sys.argv[1:]
    sys.stdin.read()
    while pids := marked(mark):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
