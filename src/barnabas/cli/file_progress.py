"""The progress bar of `barnabas produce FILE`: on standard error, if that is a terminal."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any

STEP_SIZE_BYTES = 64 * 1024
"""Bytes between two updates of the bar."""


class FileProgress:
    """The bar, in a `with` block; without a terminal it shows nothing."""

    def __init__(self, files: Sequence[str]) -> None:
        self._total_bytes = sum(os.stat(path).st_size for path in files)
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> "FileProgress":
        if not sys.stderr.isatty():
            return self
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        # It goes away at the end: the summary says how many records were sent.
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("sending", total=self._total_bytes or None)
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def counted(self, file: Iterable[bytes], path: str) -> Iterator[bytes]:
        """The lines of `file`, which the bar follows."""
        if self._bar is None:
            yield from file
            return
        self._bar.update(self._task, description=os.path.basename(path))
        pending = 0
        for line in file:
            pending += len(line)
            if pending >= STEP_SIZE_BYTES:
                self._bar.advance(self._task, pending)
                pending = 0
            yield line
        self._bar.advance(self._task, pending)
