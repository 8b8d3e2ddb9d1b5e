"""A connection of the REST interface: within bounds, and its answers leave in one piece.

uvicorn writes the head of an answer and its body apart, and uvloop hands each to the system at
once: two system calls, two packets, and a client that wakes up twice.

uvicorn takes heads of any length and waits for them for ever, so both are bounded here.
"""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from barnabas.web.crowd import BODY_S, HEAD_BYTES_MAX, HEAD_S, UNREAD_S, Place

LINGER_S = 2.0
"""How long what a client still sends is taken and dropped, so that it reads why it is refused."""
_TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


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

    def write_eof(self) -> None:
        """Say that no more comes, when all is sent, where that can be said: TLS cannot."""
        self._flush()
        if self._inner.can_write_eof():
            self._inner.write_eof()

    def unread_bytes(self) -> int:
        """Return how much the other side has not taken yet."""
        return self._inner.get_write_buffer_size()

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


class _TooLongError(Exception):
    """A head has more bytes than heads may have."""


class Connection(HttpToolsProtocol):
    """uvicorn's connection, with bounds and joined writes."""

    def __init__(self, *given: Any, place: Place, **named: Any) -> None:
        super().__init__(*given, **named)
        self._place = place
        self._messages = 0
        """How many requests have begun, and how many are wholly here."""
        self._ended = 0
        self._is_in_head = False
        self._head_bytes = 0
        """What the parser has told of the head, and of trailers."""
        self._held_bytes = 0
        """What came and the parser has not told yet: it keeps the bytes of unfinished lines."""
        self._is_refused = False
        self._deadline: asyncio.TimerHandle | None = None
        self._awaited: tuple[int, bool] | None = None
        """What the deadline is for: a request, and whether its head."""
        self._unread_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        inner = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        super().connection_made(JoinedWrites(inner, self.loop))
        self._place.close = inner.abort
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._wait_until(None)
        self._forget_unread()
        self._place.leave()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        """Take bytes of requests."""
        if self._is_refused:
            return
        before = self._messages
        self._held_bytes += len(data)
        super().data_received(data)
        if self._is_refused or self.transport.is_closing():
            return
        if self._head_bytes + self._held_bytes > HEAD_BYTES_MAX:
            self._refuse()
        elif self._messages > self._ended:
            self._wait_until((self._messages, self._is_in_head))
        elif before == self._messages and (self.cycle is None or self.cycle.response_complete):
            self._wait_until((self._messages + 1, True))  # line ends before a request
        else:
            self._wait_until(None)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, or one whose head is too long."""
        if self._head_bytes > HEAD_BYTES_MAX:
            self._refuse()
        else:
            super().send_400_response(msg)

    def _refuse(self) -> None:
        self._is_refused = True
        self.transport.write(_TOO_LONG)
        cast(JoinedWrites, self.transport).write_eof()
        self._wait_until(None)
        self._deadline = self.loop.call_later(LINGER_S, self.transport.abort)

    def _wait_until(self, awaited: tuple[int, bool] | None) -> None:
        if awaited == self._awaited:
            return
        self._awaited = awaited
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if awaited is not None:
            seconds = HEAD_S if awaited[1] else BODY_S
            self._deadline = self.loop.call_later(seconds, self.transport.abort)

    # --- what the parser tells ---------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A request begins."""
        self._messages += 1
        self._is_in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A part of its target."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; those after a body are dropped, since nobody asks for them."""
        self._count(len(name) + len(value) + 4)
        if self._is_in_head:
            super().on_header(name, value)

    def _count(self, size: int) -> None:
        self._head_bytes += size
        self._held_bytes -= min(size, self._held_bytes)
        if self._head_bytes > HEAD_BYTES_MAX:
            raise _TooLongError

    def on_headers_complete(self) -> None:
        """The head is here."""
        self._is_in_head = False
        self._held_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._held_bytes = 0
        self._place.wait()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is here."""
        self._ended += 1
        self._held_bytes = 0
        if not self.cycle.response_complete:
            self._place.serve()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The answer is on its way."""
        if not self.pipeline:
            self._place.wait()
        super().on_response_complete()

    # --- answers that are not read -----------------------------------------------------------

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        if self._unread_deadline is None:
            self._unread_deadline = self.loop.call_later(UNREAD_S, self.transport.abort)
        self._place.wait()
        self._place.unread(cast(JoinedWrites, self.transport).unread_bytes())

    def resume_writing(self) -> None:
        """The client reads again."""
        self._forget_unread()
        super().resume_writing()

    def _forget_unread(self) -> None:
        if self._unread_deadline is not None:
            self._unread_deadline.cancel()
            self._unread_deadline = None
            self._place.unread(0)
