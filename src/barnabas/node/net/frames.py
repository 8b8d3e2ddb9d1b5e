"""Cuts a stream into frames: four bytes of length, then that many bytes (sans-I/O).

Everything arrives in a scratch buffer that all connections of a thread share, and is copied out,
one `bytearray` for each frame. That of a frame that is still arriving grows by what has arrived:
neither a length prefix nor a slow sender allocates more than was sent. A frame belongs to its
receiver: it is writable and nobody else holds it, which is what lets offsets be patched in place.
"""

import threading
from struct import Struct

from barnabas.base.tls.words import what_it_looks_like
from barnabas.protocol.errors import DecodeError

SCRATCH_SIZE_BYTES = 256 * 1024
"""Bytes of one receive at most. It fits a core's cache, so that copying out of it is cheap."""
_LENGTH_SIZE_BYTES = 4

_read_length = Struct(">i").unpack_from


class _OfThread(threading.local):
    """Each thread's scratch; it holds bytes only between `buffer` and the end of `advance`.

    A program may run several loops, each in a thread: a receive lets go of the interpreter's
    lock, so what two of them shared would be overwritten.
    """

    def __init__(self) -> None:
        self.scratch = memoryview(bytearray(SCRATCH_SIZE_BYTES))


_of_thread = _OfThread()


class FrameReader:
    """The receiving half of a connection.

    `frame_size_max_bytes` is Kafka's `socket.request.max.bytes`. The owner calls `buffer()`,
    receives into it, calls `advance(n)` and gets the frames that are now complete, all in the
    thread that made the reader.
    """

    __slots__ = ("_held", "_partial", "_scratch", "_size", "frame_size_max_bytes")

    def __init__(self, frame_size_max_bytes: int) -> None:
        self.frame_size_max_bytes = frame_size_max_bytes
        self._scratch = _of_thread.scratch
        self._partial: bytearray | None = None  # what has arrived of a frame
        self._size = 0  # that frame's whole length
        self._held = b""  # less than a length, from the last receive

    @property
    def held_size_bytes(self) -> int:
        """Bytes of memory that wait here for the rest of their frame."""
        return len(self._held) + (0 if self._partial is None else self._partial.__sizeof__())

    @property
    def awaited_size_bytes(self) -> int:
        """The whole length of the frame that has begun to arrive; 0: none has."""
        return 0 if self._partial is None else self._size

    def buffer(self) -> memoryview:
        """The buffer for the next bytes; it is never empty."""
        return self._scratch[len(self._held) :] if self._held else self._scratch

    def advance(self, size_bytes: int) -> list[bytearray]:
        """Take `size_bytes` that have landed; returns complete frames without their lengths.

        Raises DecodeError for a length that is negative or above the limit.
        """
        scratch = self._scratch
        partial = self._partial
        if partial is not None:
            missing = self._size - len(partial)
            if size_bytes < missing:
                partial += scratch[:size_bytes]
                return []
            partial += scratch[:missing]
            self._partial = None
            frames = [partial]
            if size_bytes > missing:
                self._cut(missing, size_bytes, frames)
            return frames
        held = self._held
        if held:
            scratch[: len(held)] = held
            size_bytes += len(held)
            self._held = b""
        elif size_bytes > _LENGTH_SIZE_BYTES:  # nearly always it is exactly one frame
            (size,) = _read_length(scratch)
            if size + _LENGTH_SIZE_BYTES == size_bytes and size <= self.frame_size_max_bytes:
                return [bytearray(scratch[_LENGTH_SIZE_BYTES:size_bytes])]
        frames = []
        self._cut(0, size_bytes, frames)
        return frames

    def _cut(self, position: int, end: int, frames: list[bytearray]) -> None:
        """Copy what lies in [position, end) of the scratch into frames, the last one in part."""
        scratch = self._scratch
        while end - position >= _LENGTH_SIZE_BYTES:
            (size,) = _read_length(scratch, position)
            if not 0 <= size <= self.frame_size_max_bytes:
                guess = what_it_looks_like(scratch[position : position + _LENGTH_SIZE_BYTES])
                raise DecodeError(
                    f"a frame of {size} bytes is outside 0..{self.frame_size_max_bytes}"
                    + (f"; {guess}" if guess else "")
                )
            start = position + _LENGTH_SIZE_BYTES
            position = start + size
            if position > end:
                self._partial = bytearray(scratch[start:end])
                self._size = size
                return
            frames.append(bytearray(scratch[start:position]))
        self._held = bytes(scratch[position:end])

    def clear(self) -> None:
        """Let go of what has arrived of a frame: the rest will not come."""
        self._partial = None
        self._held = b""
