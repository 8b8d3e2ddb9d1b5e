"""A process of its own session of Spark's, for tests that kill it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path


class SparkProcess:
    """It leads a process group: Spark's JVM and workers are killed with it."""

    def __init__(self, script: Path, arguments: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )

    def lines(self) -> Iterator[str]:
        """Its output from here on, until it ends."""
        assert self.process.stdout is not None
        # Not the file's own iterator, which would be closed with this one.
        yield from iter(self.process.stdout.readline, "")

    def ask(self) -> str:
        """Send it an empty line, and return its next one."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = next(self.lines(), None)
        assert line is not None, "the process ended"
        return line

    def kill(self) -> None:
        """End all of the group at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        self.process.wait()
