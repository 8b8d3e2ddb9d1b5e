"""A connection of the REST interface, whose answers leave in one piece.

uvicorn writes the head of an answer and its body apart, and uvloop hands each to the system at
once: two system calls, two packets, and a client that wakes up twice.
"""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class JoinedWrites(asyncio.Transport):
    """A transport that sends together what is written in one turn of the event loop."""

    def __init__(self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        """Over the transport of a connection that is open."""
        super().__init__()
        self._inner = inner
        self._loop = loop
        self._parts: list[bytes | bytearray | memoryview] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send at the end of this turn."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._inner.is_closing():
            self._inner.write(parts[0] if len(parts) == 1 else b"".join(parts))

    def close(self) -> None:
        """Close when all is sent."""
        self._flush()
        self._inner.close()

    def abort(self) -> None:
        """Close at once."""
        self._inner.abort()

    def is_closing(self) -> bool:
        """Whether it is closed, or about to be."""
        return self._inner.is_closing()

    def pause_reading(self) -> None:
        """Stop to read."""
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        """Go on reading."""
        self._inner.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What the transport knows."""
        return self._inner.get_extra_info(name, default)


class Connection(HttpToolsProtocol):
    """uvicorn's connection, with joined writes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        inner = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        super().connection_made(JoinedWrites(inner, self.loop))
