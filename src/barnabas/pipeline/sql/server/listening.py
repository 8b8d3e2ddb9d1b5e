"""The sockets of listeners, how many connections they take, and how HTTP is spoken there."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Iterable
from typing import Any

from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.utils import wrap_app
from starlette.types import ASGIApp

from barnabas.pipeline.sql.server.config import Listener

_BACKLOG = 1024
_HEAD_BYTES_MAX = 64 * 1024
_STOP_S = 3.0
_IDLE_S = 300.0
"""A connection on which no request is under way ends after this, even if bytes trickle in."""
_HANDSHAKE_S = 15.0
_REQUESTS_MAX = 2**30
"""A client of HTTP/2 keeps one connection for all it ever asks."""


class CannotListenError(Exception):
    """An address is taken or is none of this machine's."""


class Room:
    """How many connections there are; `limit` of them at most."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._lock = threading.Lock()

    def enter(self) -> bool:
        """Whether there was room for one more."""
        with self._lock:
            if self._count >= self._limit:
                return False
            self._count += 1
            return True

    def leave(self) -> None:
        """One is gone."""
        with self._lock:
            self._count -= 1


class _Connection(socket.socket):
    """Gives its room back when it is closed."""

    room: Room | None = None

    def close(self) -> None:
        room, self.room = self.room, None
        super().close()
        if room is not None:
            room.leave()


class ListeningSocket(socket.socket):
    """Closes a connection at once for which there is no room."""

    room: Room

    def accept(self) -> tuple[socket.socket, Any]:
        plain, address = super().accept()
        connection = _Connection(self.family, self.type, self.proto, plain.detach())
        if not self.room.enter():
            connection.close()
            raise ConnectionAbortedError("too many connections")
        connection.room = self.room
        # asyncio does so only for sockets that name their protocol.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection, address


def bound(listener: Listener, room: Room) -> ListeningSocket:
    """A socket that listens there. Raises CannotListenError."""
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    own = ListeningSocket(family, socket.SOCK_STREAM)
    own.room = room
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        own.bind((listener.host, listener.port))
        own.listen(_BACKLOG)
    except OSError as error:
        own.close()
        raise CannotListenError(f"cannot listen on {listener}: {error.strerror}") from error
    own.setblocking(False)
    return own


class _Http(TCPServer):
    """A connection that ends when its client is gone: hypercorn's own waits for its idle time."""

    async def _read_data(self) -> None:
        await super()._read_data()
        await self.idle_task.stop()


async def serve(
    app: ASGIApp,
    listeners: Iterable[tuple[Listener, socket.socket]],
    tls: ssl.SSLContext | None,
    stopping: asyncio.Event,
) -> None:
    """Speak HTTP/1.1, HTTP/2 and WebSocket on these sockets, with `tls` where they are https."""
    config, context, loop = _config(), WorkerContext(None), asyncio.get_running_loop()
    wrapped = wrap_app(app, config.wsgi_max_body_size, "asgi")  # type: ignore[arg-type]  # hypercorn has types of its own for ASGI
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        task.add_done_callback(connections.discard)
        await _Http(wrapped, loop, config, context, {}, reader, writer)

    servers = [
        await asyncio.start_server(
            connected,
            sock=own,
            backlog=_BACKLOG,
            ssl=tls if listener.is_tls else None,
            ssl_handshake_timeout=_HANDSHAKE_S if listener.is_tls else None,
        )
        for listener, own in listeners
    ]
    try:
        await stopping.wait()
    finally:
        await context.terminated.set()
        for server in servers:
            server.close()
        if connections:
            _, late = await asyncio.wait(connections, timeout=_STOP_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)


def _config() -> Config:
    config = Config()
    config.h11_max_incomplete_size = _HEAD_BYTES_MAX
    config.h2_max_header_list_size = _HEAD_BYTES_MAX
    config.keep_alive_timeout = _IDLE_S
    config.keep_alive_max_requests = _REQUESTS_MAX
    config.include_server_header = False
    config.accesslog = None
    config.errorlog = logging.getLogger("hypercorn.error")
    return config
