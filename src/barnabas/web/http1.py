"""A connection of HTTP/1.1, with bounds; the head and body of an answer leave together.

uvicorn writes the head and the body of an answer separately, and uvloop passes each to the system
at once: two system calls, two packets, and a client that wakes up twice.

uvicorn accepts heads of any length and waits for them forever, so both are limited here. `bodies`
limits bodies; the rest of a body whose request was already answered has a time limit here.
"""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import httptools
import uvicorn
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from barnabas.base.peer_lines import peer_logger
from barnabas.web.crowd import BODY_S, HEAD_BYTES_MAX, HEAD_S, UNREAD_S, Place
from barnabas.web.frame_budget import PREFACE

LINGER_S = 2.0
"""After a refusal, input is read and dropped for this long, so that the client can read why."""
PIPELINED_MAX = 200
"""Requests that a client may send before the answer to an earlier one; with more it is cut off."""
_UPGRADES = (b"websocket", b"h2c")
_TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)

peer_logger("uvicorn.error")  # clients cause what it warns of, as often as they like


class JoinedWrites(asyncio.Transport):
    """A transport that sends together what is written in one turn of the event loop."""

    def __init__(self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        """Over the transport of a connection that is open."""
        super().__init__()
        self.inner = inner
        self._loop = loop
        self._parts: list[bytes | bytearray | memoryview] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send at the end of this turn."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self.inner.is_closing():
            self.inner.write(parts[0] if len(parts) == 1 else b"".join(parts))

    def write_eof(self) -> None:
        """Send all, then end the sending direction, where the transport can (TLS cannot)."""
        self._flush()
        if self.inner.can_write_eof():
            self.inner.write_eof()

    def unread_bytes(self) -> int:
        """Return how much the other side has not taken yet."""
        return self.inner.get_write_buffer_size()

    def close(self) -> None:
        """Close when all is sent."""
        self._flush()
        self.inner.close()

    def abort(self) -> None:
        """Close at once."""
        self.inner.abort()

    def is_closing(self) -> bool:
        """Return whether it is closed, or about to be."""
        return self.inner.is_closing()

    def pause_reading(self) -> None:
        """Stop reading."""
        self.inner.pause_reading()

    def resume_reading(self) -> None:
        """Go on reading."""
        self.inner.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """The transport's details."""
        return self.inner.get_extra_info(name, default)


class _TooLongError(Exception):
    """A head has more bytes than heads may have."""


class _TooManyError(Exception):
    """A client has sent more requests than may wait for their answers."""


class _NoProxyError(Exception):
    """A client asks for a tunnel."""


class Connection(HttpToolsProtocol):
    """uvicorn's connection, with bounds and joined writes.

    `other` creates the protocol for clients that want HTTP/2 or a web socket, to which the
    connection is handed over; None if neither is supported.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        state: ServerState,
        place: Place,
        other: Callable[[Place], asyncio.Protocol] | None = None,
    ) -> None:
        super().__init__(config=config, server_state=state, app_state={})
        self._place = place
        self._other = other
        self._is_new = other is not None
        """True if it may still turn out to be HTTP/2."""
        self._first = b""
        self._messages = 0
        """The numbers of requests that have begun, and that have arrived in full."""
        self._ended = 0
        self._is_in_head = False
        self._head_bytes = 0
        """The head and trailers, as parsed so far."""
        self._held_bytes = 0
        """Bytes that the parser holds without having reported them: those of unfinished lines."""
        self._is_over = False
        """True if nothing more is read here: refused, or handed over."""
        self._running: RequestResponseCycle | None = None
        """The request that is being answered, or the last one; `cycle` is the last that came."""
        self._may_not_send = False
        """True if the client waits to hear if it may send the body of `cycle`."""
        self._deadline: asyncio.TimerHandle | None = None
        self._awaited: tuple[int, bool] | None = None
        """What the deadline is for: the number of a request, and whether it is for its head."""
        self._unread_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        inner = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        super().connection_made(JoinedWrites(inner, self.loop))
        self._place.close = inner.abort
        own = None if self._other is None else inner.get_extra_info("ssl_object")
        if own is not None and own.selected_alpn_protocol() == "h2":
            self._hand_over(b"")
            return
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._wait_until(None)
        self._forget_unread()
        self._place.leave()
        running = self._running
        if running is not None and not running.response_complete:  # uvicorn ends `cycle` alone
            running.disconnected = True
            running.message_event.set()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        """Take bytes of requests."""
        if self._is_over:
            return
        if self._is_new:
            data = self._first + data
            if PREFACE.startswith(data[: len(PREFACE)]):
                if len(data) >= len(PREFACE):
                    self._hand_over(data)
                else:
                    self._first = data
                    self._unset_keepalive_if_required()
                    self._wait_until((1, True))
                return
            self._is_new = False
        before = self._messages
        self._held_bytes += len(data)
        self._parse(data)
        if self._is_over or self.transport.is_closing():
            return
        if self._head_bytes + self._held_bytes > HEAD_BYTES_MAX:
            self._refuse()
        elif self._messages > self._ended:
            is_awaited = self._is_in_head or self.cycle.response_complete
            self._wait_until((self._messages, self._is_in_head) if is_awaited else None)
        elif before == self._messages and (self.cycle is None or self.cycle.response_complete):
            self._wait_until((self._messages + 1, True))  # line ends before a request
        else:
            self._wait_until(None)

    def _parse(self, data: bytes) -> None:
        """Feed the parser.

        It takes what follows the head of a request that asks for an upgrade for another protocol.
        If neither is spoken, it gets the request again without that header, and reads its body.
        """
        self._unset_keepalive_if_required()
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserError:
                self.logger.warning("Invalid HTTP request received.")
                self.send_400_response("Invalid HTTP request received.")
            except httptools.HttpParserUpgrade as upgrade:
                data = data[upgrade.args[0] :]
                if self._is_for_other():
                    self._hand_over(self._head(b"") + data)
                else:
                    data = self._head(b"upgrade") + data
                    continue
            return

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not a request, or one whose head is too long."""
        if self._is_over:
            return
        if self._head_bytes > HEAD_BYTES_MAX:
            self._refuse()
        elif self._is_answering():
            self.transport.close()
        else:
            super().send_400_response(msg)

    def _is_answering(self) -> bool:
        """Return whether a refusal would be read as an answer to another request, or a part of
        it."""
        running = self._running
        if running is None or running.response_complete:
            return False
        is_in_its_body = running is self.cycle and self._messages > self._ended
        return running.response_started or self._is_in_head or not is_in_its_body

    def _refuse(self) -> None:
        self._is_over = True
        if self._is_answering():
            self.transport.close()
            return
        self.transport.write(_TOO_LONG)
        cast(JoinedWrites, self.transport).write_eof()
        self._wait_until(None)
        self._deadline = self.loop.call_later(LINGER_S, self.transport.abort)

    # --- other protocols ----------------------------------------------------------------------

    def _is_for_other(self) -> bool:
        """Return whether a request, with none before it and no body, asks for another protocol."""
        if self._other is None or not (self.cycle is None or self.cycle.response_complete):
            return False
        return self._get_upgrade() in _UPGRADES and not any(map(_is_of_body, self.headers))

    def _head(self, without: bytes) -> bytes:
        """The head of the request that asks for an upgrade, without a header."""
        version = self.parser.get_http_version().encode()
        parts = [self.parser.get_method(), b" ", self.url, b" HTTP/", version]
        for name, value in self.headers:
            if name != without:
                parts += [b"\r\n", name, b": ", value]
        return b"".join((*parts, b"\r\n\r\n"))

    def _hand_over(self, data: bytes) -> None:
        """Let the other protocol read on, beginning with `data`."""
        assert self._other is not None
        self._is_over = True
        self.connections.discard(self)
        self._unset_keepalive_if_required()
        self._wait_until(None)
        inner = cast(JoinedWrites, self.transport).inner
        protocol = self._other(self._place)
        inner.set_protocol(protocol)
        protocol.connection_made(inner)
        if data:
            protocol.data_received(data)

    # --- deadlines ----------------------------------------------------------------------------

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
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise _NoProxyError
            return
        super().on_headers_complete()
        if len(self.pipeline) > PIPELINED_MAX:
            self._is_over = True
            self.transport.abort()
            raise _TooManyError
        # A client that is refused before it has sent its body may send it or not. Nobody could
        # say where its next request begins, so the connection ends with the refusal.
        self._may_not_send = self.expect_100_continue and self.cycle.keep_alive
        if self._may_not_send:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._held_bytes = 0
        if self._may_not_send:
            self._may_not_send = False
            self.cycle.keep_alive = not self.cycle.response_started
        self._place.wait()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is here."""
        self._ended += 1
        self._held_bytes = 0
        if self.parser.should_upgrade():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self._place.serve()
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """The answer is on its way."""
        if not self.pipeline:
            self._place.wait()
        super().on_response_complete()

    def shutdown(self) -> None:
        """Answer what was asked, and end."""
        self._may_not_send = False
        super().shutdown()

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
        if self._running is not None and not self._running.response_complete:
            self._place.serve()
        super().resume_writing()

    def _forget_unread(self) -> None:
        if self._unread_deadline is not None:
            self._unread_deadline.cancel()
            self._unread_deadline = None
            self._place.unread(0)


def _is_of_body(header: tuple[bytes, bytes]) -> bool:
    name, value = header
    return name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0") != b"")
