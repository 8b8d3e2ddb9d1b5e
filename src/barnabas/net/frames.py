"""Cuts a stream into frames: four bytes of length, then that many bytes (sans-I/O).

Two ways lead a frame into memory. Small ones arrive in a scratch buffer that all connections of
a thread share, and are copied out, one `bytearray` each. One that does not fit there goes on in
a buffer of its own, into which the socket receives directly; it grows as bytes arrive, so that a
length prefix alone never allocates anything. A frame belongs to whoever gets it: it is writable
and nobody else holds it, which is what lets offsets be patched in place.
"""

import threading
from struct import Struct

from barnabas.protocol.errors import DecodeError

SCRATCH_SIZE_BYTES = 256 * 1024
GROWTH_STEP_MAX_BYTES = 4 << 20
"""A frame under way is extended by its own length, but by no more than this at a time."""

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

    __slots__ = ("_filled", "_frame", "_held", "_scratch", "_size", "frame_size_max_bytes")

    def __init__(self, frame_size_max_bytes: int) -> None:
        self.frame_size_max_bytes = frame_size_max_bytes
        self._scratch = _of_thread.scratch
        self._frame: bytearray | None = None  # a frame too large for the scratch buffer
        self._size = 0  # its whole length
        self._filled = 0  # how much of it has arrived
        self._held = b""  # less than a frame, from the last receive

    def buffer(self) -> memoryview:
        """Where the next bytes shall land; never empty."""
        frame = self._frame
        if frame is None:
            return self._scratch[len(self._held) :] if self._held else self._scratch
        if self._filled == len(frame):
            step = min(self._size - self._filled, max(self._filled, SCRATCH_SIZE_BYTES))
            frame += bytes(min(step, GROWTH_STEP_MAX_BYTES))
        return memoryview(frame)[self._filled :]

    def advance(self, size_bytes: int) -> list[bytearray]:
        """Take `size_bytes` that have landed; returns complete frames without their lengths.

        Raises DecodeError for a length that is negative or above the limit.
        """
        frame = self._frame
        if frame is not None:
            self._filled += size_bytes
            if self._filled < self._size:
                return []
            self._frame = None
            return [frame]
        held = self._held
        if held:
            self._scratch[: len(held)] = held
            size_bytes += len(held)
            self._held = b""
        elif size_bytes > 4:  # nearly always it is exactly one frame
            (size,) = _read_length(self._scratch)
            if size + 4 == size_bytes and size <= self.frame_size_max_bytes:
                return [bytearray(self._scratch[4:size_bytes])]
        return self._cut(size_bytes)

    def _cut(self, end: int) -> list[bytearray]:
        frames: list[bytearray] = []
        position = 0
        while end - position >= 4:
            (size,) = _read_length(self._scratch, position)
            if not 0 <= size <= self.frame_size_max_bytes:
                raise DecodeError(
                    f"a frame of {size} bytes is outside 0..{self.frame_size_max_bytes}"
                )
            start = position + 4
            if end - start < size:
                break
            position = start + size
            frames.append(bytearray(self._scratch[start:position]))
        if position < end:
            self._keep(position, end)
        return frames

    def _keep(self, position: int, end: int) -> None:
        """Hold the beginning of a frame: in a buffer of its own if the scratch is too small."""
        if end - position >= 4:
            (size,) = _read_length(self._scratch, position)
            if size + 4 > SCRATCH_SIZE_BYTES:
                self._frame = bytearray(self._scratch[position + 4 : end])
                self._filled = len(self._frame)
                self._size = size
                return
        self._held = bytes(self._scratch[position:end])
