"""Accepts the connections of HTTP servers, up to a limit.

Each connection has a place in a `Crowd` once it is accepted, before its TLS handshake. While the
process is short of file descriptors, new connections wait in the backlog.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final

from barnabas.base.descriptors import RETRY_S, DescriptorReserve
from barnabas.web.crowd import HANDSHAKE_S, Crowd, Place

ACCEPTED_AT_ONCE_MAX: Final = 64
"""Connections accepted before the event loop runs its other callbacks."""
_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\n"
    b"connection: close\r\n\r\n"
)
Protocol = Callable[[Place], asyncio.Protocol]

_log = logging.getLogger(__name__)


class Acceptor:
    """One listening socket; `protocol` makes the protocol of a connection that has a place.

    The protocol ends its place when the connection is lost.
    """

    def __init__(
        self,
        listening: socket.socket,
        protocol: Protocol,
        crowd: Crowd,
        *,
        tls: ssl.SSLContext | Callable[[], ssl.SSLContext] | None = None,
        reserve: DescriptorReserve | None = None,
    ) -> None:
        """Begin to accept on a socket that listens, in the running event loop."""
        self._listening = listening
        self.sockets = (listening,)
        self._protocol = protocol
        self._crowd = crowd
        self._tls = tls
        self._reserve = reserve or DescriptorReserve()
        self._opening: set[asyncio.Task[None]] = set()
        self._later: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._is_closed = False
        listening.setblocking(False)
        self._listen()

    def close(self) -> None:
        """Accept no more, and close the socket."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._later is not None:
            self._later.cancel()
        self._loop.remove_reader(self._listening)
        self._listening.close()
        for task in self._opening:
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait for the handshakes that `close` ended."""
        await asyncio.gather(*self._opening, return_exceptions=True)

    def _listen(self) -> None:
        self._later = None
        self._loop.add_reader(self._listening, self._accept)

    def _pause(self) -> None:
        self._loop.remove_reader(self._listening)
        self._later = self._loop.call_later(RETRY_S, self._listen)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE_MAX):
            if self._reserve.is_short():
                self._pause()
                return
            try:
                connection, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                _log.warning("cannot accept connections: %s", error)
                self._pause()
                return
            self._open(connection)

    def _open(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        place = self._crowd.enter(connection.close)
        if place is None:
            self._refuse(connection)
            return
        task = self._loop.create_task(self._greet(connection, place))

        def give_way() -> None:
            task.cancel()

        place.close = give_way
        self._opening.add(task)

        def done(_: asyncio.Task[None]) -> None:
            self._opening.discard(task)
            if task.cancelled():  # it gave way to another, perhaps before it began
                place.leave()
                connection.close()

        task.add_done_callback(done)

    def _refuse(self, connection: socket.socket) -> None:
        _log.debug("all connections are in use: one more is refused")
        with connection:
            if self._tls is None:
                try:
                    connection.send(_BUSY)
                except OSError as error:
                    _log.debug("the refusal could not be sent: %s", error)

    async def _greet(self, connection: socket.socket, place: Place) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: self._protocol(place),
                connection,
                ssl=self._tls() if callable(self._tls) else self._tls,
                ssl_handshake_timeout=None if self._tls is None else HANDSHAKE_S,
            )
        except OSError as error:  # of TLS too
            _log.debug("no connection: %s", error)
            place.leave()
            connection.close()
        except Exception:  # noqa: BLE001  of what gives TLS
            _log.exception("a connection cannot be served")
            place.leave()
            connection.close()
