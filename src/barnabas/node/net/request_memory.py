"""The bytes of requests that have arrived, or begun to, and were not begun to be handled.

Kafka's `queued.max.request.bytes`. While there is no room, connections are not read, so that
clients wait; but a frame that was given room is read to its end, and so one that is larger than
all the room can pass. Frames count by their whole size from their first byte on. Source: KIP-72,
Kafka's SimpleMemoryPool.
"""

from collections.abc import Callable, Collection

from barnabas.node.net.frames import FrameReader


class RequestMemory:
    """The room that all connections of a server share."""

    __slots__ = ("max_bytes", "used_bytes", "waiting")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used_bytes = 0
        self.waiting: dict[RequestShare, None] = {}
        """Those that are short of room, in their order."""

    @property
    def has_room(self) -> bool:
        """True if another frame may begin to arrive."""
        return self.used_bytes < self.max_bytes

    def change(self, difference_bytes: int) -> None:
        """Count more bytes, or fewer; those that wait go on in their order while there is room."""
        self.used_bytes += difference_bytes
        while difference_bytes < 0 and self.waiting and self.has_room:
            share = next(iter(self.waiting))
            del self.waiting[share]
            share.resume()


class RequestShare:
    """One connection's share of the memory."""

    __slots__ = ("_memory", "_reader", "_resume", "_size_bytes", "has_room", "is_short")

    def __init__(
        self, memory: RequestMemory, reader: FrameReader, resume: Callable[[], None]
    ) -> None:
        """`resume` has the connection go on once it `is_short` no more."""
        self._memory = memory
        self._reader = reader
        self._resume = resume
        self._size_bytes = 0
        self.has_room = False
        """Whether the frame that is arriving may arrive to its end; the next must ask again."""
        self.is_short = False
        """Whether the connection must not be read: there is no room."""

    def arrived(self, frames: Collection[bytearray]) -> None:
        """Bytes have been read: make room for a frame that has begun, or be short."""
        memory, is_arriving = self._memory, self._reader.awaited_size_bytes > 0
        if not (is_arriving and self.has_room):
            self.has_room = is_arriving and memory.has_room
        self.count(frames)
        self.is_short = not self.has_room and not memory.has_room
        if self.is_short:
            memory.waiting[self] = None

    def count(self, frames: Collection[bytearray]) -> None:
        """Say what waits: the requests in `frames`, and the frame that has room to arrive.

        What has arrived of one that has none does not count: those that have none could otherwise
        keep each other from ever having it. It is no more than one receive brings.
        """
        size_bytes = sum(map(len, frames))
        if self.has_room:
            size_bytes += self._reader.awaited_size_bytes
        difference_bytes, self._size_bytes = size_bytes - self._size_bytes, size_bytes
        if difference_bytes:
            self._memory.change(difference_bytes)

    def resume(self) -> None:
        """There is room again."""
        self.is_short = False
        self._resume()

    def close(self) -> None:
        """The connection has gone, and with it what it held."""
        self._memory.waiting.pop(self, None)
        self.count(())
