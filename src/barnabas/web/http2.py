"""HTTP/2 and web socket connections with hypercorn's protocols, within limits.

`http1` hands a connection over once its client has asked for one of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

import h11
from h2.stream import StreamState
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.protocol.ws_stream import WSStream
from hypercorn.utils import wrap_app
from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.web.crowd import HEAD_BYTES_MAX, HEAD_S, UNREAD_S, Place
from barnabas.web.frame_budget import FrameBudget, TooManyFramesError

_READ_BYTES = 16 * 1024
"""Read at a time: compressed frames of a web socket may expand a thousandfold."""
_SOCKET_MESSAGE_BYTES_MAX = 64 * 1024
"""The size of a client's message on a web socket: its query is in the request already."""
_REQUESTS_MAX = 2**30
"""Effectively unlimited: a client of HTTP/2 uses one connection for all its requests."""
_ENDING_S = 0.05
_log = logging.getLogger(__name__)


Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter, Place], Awaitable[None]]


class _Stream(asyncio.StreamReaderProtocol):
    """A connection's bytes; it closes the connection of a client that does not read answers."""

    def __init__(self, place: Place, connected: Connected) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(loop=loop)

        async def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await connected(reader, writer, place)

        super().__init__(reader, begin, loop=loop)
        self._place, self._own_loop = place, loop
        self._unread_deadline: asyncio.TimerHandle | None = None
        self._own_transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        own = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self._own_transport = own
        self._place.close = own.abort
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_unread()
        self._place.leave()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        assert self._own_transport is not None
        if self._unread_deadline is None:
            self._unread_deadline = self._own_loop.call_later(UNREAD_S, self._own_transport.abort)
        self._place.unread(self._own_transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._forget_unread()
        super().resume_writing()

    def _forget_unread(self) -> None:
        if self._unread_deadline is not None:
            self._unread_deadline.cancel()
            self._unread_deadline = None
            self._place.unread(0)


class _Gone:
    """A stream whose answer is complete, while its client still sends the request."""

    idle = True

    async def handle(self, event: object) -> None:
        """Drop a part of the body."""


class _Streams(dict[int, Any]):
    """The streams of a connection: hypercorn removes one with its answer, but looks it up later."""

    def __missing__(self, stream: int) -> _Gone:
        return _Gone()


class _Http(TCPServer):
    """A connection: it reports whose turn it is, and ends when its client is gone.

    Then hypercorn's own would wait for its idle timeout, and it waits for heads forever.
    """

    place: Place

    def keep_within(self, place: Place) -> _Http:
        """Say to this place whose turn it is."""
        self.place = place
        self._is_idle = True
        self._deadline: asyncio.TimerHandle | None = None
        self._budget = FrameBudget(self.loop.time)
        return self

    async def protocol_send(self, event: Event) -> None:
        if isinstance(event, Updated):
            protocol = self.protocol.protocol
            if isinstance(protocol, H2Protocol) and not isinstance(protocol.streams, _Streams):
                protocol.streams = _Streams(protocol.streams)
            self._is_idle = event.idle
            self._look()
        await super().protocol_send(event)

    async def _read_data(self) -> None:
        try:
            while not self.reader.at_eof():
                data = await self.reader.read(_READ_BYTES)
                is_http2 = isinstance(self.protocol.protocol, H2Protocol)
                self._budget.take(data, is_http2=is_http2)
                await self.protocol.handle(RawData(data))
                if self._is_over():
                    break
                self._look(has_read=bool(data))
        except TooManyFramesError:  # with the requests that are under way, whose tasks it cancels
            self.place.close()
            raise
        except Exception as error:  # noqa: BLE001  what hypercorn makes of frames out of turn too
            _log.debug("a connection ends: %r", error)
        finally:
            self._expect(None)
            await self.protocol.handle(Closed())  # else answers wait for ever
            await self.idle_task.stop()

    def _is_over(self) -> bool:
        """Whether a web socket's message is too long: hypercorn itself would read all of it."""
        protocol = self.protocol.protocol
        streams = (
            protocol.streams.values() if isinstance(protocol, H2Protocol) else (protocol.stream,)
        )
        return any(
            isinstance(stream, WSStream) and stream.buffer.length > stream.buffer.max_length
            for stream in streams
        )

    def _look(self, *, has_read: bool = False) -> None:
        """Update whose turn it is, and the deadline of a head that has begun."""
        protocol = self.protocol.protocol
        if self._is_idle:
            waits = True
        elif isinstance(protocol, H2Protocol):
            streams = protocol.connection.streams.values()
            waits = all(
                stream.state_machine.state is not StreamState.HALF_CLOSED_REMOTE
                for stream in streams
            )
        else:
            waits = getattr(protocol.connection, "their_state", None) is h11.SEND_BODY
        if not waits:
            self.place.serve()
        elif not self._is_idle or not has_read:
            self.place.wait()
        if not self._is_idle:
            self._expect(None)
        elif has_read and self._deadline is None and isinstance(protocol, H11Protocol):
            rest, _ = protocol.connection.trailing_data
            self._expect(HEAD_S if rest else None)

    def _expect(self, seconds: float | None) -> None:
        if seconds is None and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        elif seconds is not None and self._deadline is None:
            self._deadline = self.loop.call_later(seconds, self.place.close)


class Http2:
    """Creates the protocols of connections, and ends them."""

    def __init__(self, app: ASGIApp, idle_s: float) -> None:
        """Use it on the running event loop."""
        config = _config(idle_s)
        wrapped = wrap_app(_of_one_length(app), config.wsgi_max_body_size, "asgi")  # type: ignore[arg-type]  # hypercorn has its own ASGI types
        context, loop = WorkerContext(None), asyncio.get_running_loop()
        self._context = context
        self._connections: dict[asyncio.Task[None], Place] = {}

        def made(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> _Http:
            return _Http(wrapped, loop, config, context, {}, reader, writer)

        self._made = made

    def protocol(self, place: Place) -> asyncio.Protocol:
        """Return what speaks on a connection from its first byte."""
        return _Stream(place, self._connected)

    async def stop(self, seconds: float) -> None:
        """Answer what was asked; what takes longer than this is cancelled."""
        await self._context.terminated.set()
        if not self._connections:
            return
        _, late = await asyncio.wait(self._connections, timeout=seconds)
        for task in late:  # one may wait for a client that does not read
            self._connections[task].close()
        if late:
            _, late = await asyncio.wait(late, timeout=_ENDING_S)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _connected(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: Place
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = place
        task.add_done_callback(self._connections.pop)
        try:
            await self._made(reader, writer).keep_within(place)
        except Exception as error:  # noqa: BLE001  what hypercorn makes of frames out of turn
            _log.debug("a connection ends: %r", error)
        finally:
            place.close()


def _of_one_length(app: ASGIApp) -> ASGIApp:
    """Refuse requests that give their length in two ways: a proxy may have believed the other."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        names = {name for name, _ in scope.get("headers", ())}
        if not {b"content-length", b"transfer-encoding"} <= names:
            await app(scope, receive, send)
            return
        headers = [(b"content-length", b"0"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 400, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    return checked


def _config(idle_s: float) -> Config:
    config = Config()
    config.h11_max_incomplete_size = HEAD_BYTES_MAX
    config.h2_max_header_list_size = HEAD_BYTES_MAX
    config.websocket_max_message_size = _SOCKET_MESSAGE_BYTES_MAX
    config.keep_alive_timeout = idle_s
    config.keep_alive_max_requests = _REQUESTS_MAX
    config.include_server_header = False
    config.accesslog = None
    config.errorlog = logging.getLogger("hypercorn.error")
    return config
