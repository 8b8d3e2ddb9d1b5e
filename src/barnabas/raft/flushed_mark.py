"""The `flushed-offset` file: how far the metadata log was known to be on the medium.

It is written after each fsync of the log, and not synced itself: what it says was always true
when it was written, so a power cut can only make it say too little. A log that is found shorter
than its mark was damaged (a flipped bit, a truncated file), and its voter may have acknowledged
what it does not have. Such a voter neither votes nor stands until it has a leader's log again;
else a damaged voter and others that are merely behind could elect a leader that lacks what was
committed. Kafka has no such file, and leaves it alone.
"""

import logging

from barnabas.base.disk import Disk

FILE_NAME = "flushed-offset"

telemetry = logging.getLogger(__name__)


class FlushedMark:
    """The mark of one log. Methods that write raise OSError."""

    __slots__ = ("_disk", "_path", "offset")

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._path = f"{directory}/{FILE_NAME}"
        self.offset = 0
        """What the file says; 0 where there is none that can be read."""

    def read(self) -> int:
        """Read the file, and return its offset."""
        try:
            text = self._disk.read(self._path).decode("ascii").strip()
        except (FileNotFoundError, UnicodeDecodeError):
            text = ""
        self.offset = int(text) if text.isdecimal() else 0
        return self.offset

    def raise_to(self, offset: int) -> None:
        """Everything before `offset` is on the medium."""
        if offset > self.offset:
            self._write(offset, sync=False)

    def lower_to(self, offset: int) -> None:
        """The log is about to be cut there. On the medium before that is done."""
        if offset < self.offset:
            self._write(offset, sync=True)

    def _write(self, offset: int, *, sync: bool) -> None:
        self._disk.write_atomic(self._path, b"%d\n" % offset, sync=sync)
        self.offset = offset
