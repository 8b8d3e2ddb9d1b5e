"""Short input: what has come to its end by the time a command would begin to send it.

The start of an idempotent producer takes half a second, and is worth it for input that lasts.
So a command reads ahead, a little and without waiting for more, and looks whether that was all.
"""

import io
import os
import select
import stat
from collections.abc import Sequence
from typing import BinaryIO, cast

SHORT_SIZE_BYTES_MAX = 256 * 1024
READ_AHEAD_WAIT_S = 0.02
"""For the end of a pipe whose writer is as quick as `echo`."""


def are_short(paths: Sequence[str]) -> bool:
    """Whether these are files, together of at most SHORT_SIZE_BYTES_MAX. Raises OSError."""
    found = [os.stat(path) for path in paths]
    total_bytes = sum(stat_result.st_size for stat_result in found)
    return all(stat.S_ISREG(stat_result.st_mode) for stat_result in found) and (
        total_bytes <= SHORT_SIZE_BYTES_MAX
    )


def read_ahead(file: BinaryIO) -> tuple[BinaryIO, bool]:
    """The input from its beginning, and whether it is short. `file` is not to be read after."""
    try:
        fd = file.fileno()
    except (OSError, ValueError):  # not a file of the system's
        return file, False
    head = bytearray()
    while len(head) <= SHORT_SIZE_BYTES_MAX:
        if not select.select([fd], [], [], READ_AHEAD_WAIT_S)[0]:
            break
        chunk = os.read(fd, SHORT_SIZE_BYTES_MAX + 1 - len(head))
        if not chunk:
            return io.BytesIO(head), True
        head += chunk
    return cast("BinaryIO", io.BufferedReader(_Continued(bytes(head), fd))), False


class _Continued(io.RawIOBase):
    """Bytes read already, then what comes after them."""

    def __init__(self, head: bytes, fd: int) -> None:
        self._head = memoryview(head)
        self._fd = fd

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object, /) -> int:
        target = memoryview(cast("bytearray", buffer))
        chunk = self._head[: len(target)] or os.read(self._fd, len(target))
        self._head = self._head[len(chunk) :]
        target[: len(chunk)] = chunk
        return len(chunk)
