"""The HTTP server of every service: an ASGI application on its listeners, within limits.

uvicorn's parser and protocol speak HTTP/1.1 (`http1`). With `speaks_http2`, connections on which a
client begins HTTP/2 (chosen in the TLS handshake, by prior knowledge or by an upgrade) or a web
socket are handed to hypercorn's protocols (`http2`), which are slower: see
docs/decisions/0027-http-1-by-uvicorn-http-2-by-hypercorn.md.

Each connection has a place in a `Crowd` once it is accepted, before its TLS handshake. While the
process is short of file descriptors, new connections wait in the backlog.
"""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Sequence
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final, Protocol

import uvicorn
from uvicorn.server import ServerState

from barnabas.base.descriptors import RETRY_S, DescriptorReserve
from barnabas.web.crowd import HANDSHAKE_S, Crowd, Place
from barnabas.web.http1 import Connection
from barnabas.web.listening import BoundListener, CannotListenError, ListenAddress

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from barnabas.web.http2 import Http2

BACKLOG: Final = 2048
IDLE_S: Final = 300.0
"""A connection on which no request is under way ends after this."""
STOP_S: Final = 3.0
"""Requests that are under way at the end may take this long."""
_LOOK_S: Final = 0.05
_ENDING: Final = b'{"error_code":503,"message":"the server is shutting down"}'

_log = logging.getLogger(__name__)
ACCEPTED_AT_ONCE_MAX: Final = 64
"""Connections accepted before the event loop runs its other callbacks."""
_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\n"
    b"connection: close\r\n\r\n"
)
MakeProtocol = Callable[[Place], asyncio.Protocol]


class WebServer:
    """Serves `app` on bound listeners, from `start` to `stop`. All connections share one crowd."""

    def __init__(
        self,
        app: ASGIApp,
        bound: Sequence[BoundListener],
        crowd: Crowd | None = None,
        *,
        tls: ssl.SSLContext | Callable[[], ssl.SSLContext] | None = None,
        speaks_http2: bool = False,
        idle_s: float = IDLE_S,
        stop_s: float = STOP_S,
        reserve: DescriptorReserve | None = None,
    ) -> None:
        """`tls` is for the listeners that speak https; a function gives it for each connection."""
        self._app, self._bound, self._tls = app, bound, tls
        self._crowd = crowd or Crowd()
        self._reserve = reserve or DescriptorReserve()
        self._idle_s, self._stop_s = idle_s, stop_s
        self._speaks_http2 = speaks_http2
        self._state = ServerState()
        self._config: uvicorn.Config | None = None
        self._http2: Http2 | None = None
        self._acceptors: list[Acceptor] = []
        self._clock: asyncio.TimerHandle | None = None

    @property
    def listeners(self) -> list[ListenAddress]:
        """The listeners, with the ports that were chosen."""
        return [bound.listener for bound in self._bound]

    @property
    def connections(self) -> int:
        """The number of connections."""
        return self._crowd.count

    async def start(self) -> None:
        """Listen, on the running event loop. Raises CannotListenError."""
        self._config = _uvicorn_config(self._app, self._idle_s)
        if self._speaks_http2:
            from barnabas.web.http2 import Http2

            self._http2 = Http2(self._app, self._idle_s)
        self._tick()
        for bound in self._bound:
            try:
                bound.socket.listen(BACKLOG)
            except OSError as error:  # another process has bound the address too, and listens
                await self.stop()
                raise CannotListenError(bound.listener, error.strerror or str(error)) from error
            tls = self._tls if bound.listener.is_tls else None
            self._acceptors.append(
                Acceptor(bound.socket, self._speak, self._crowd, tls=tls, reserve=self._reserve)
            )

    async def stop(self) -> None:
        """Accept no more, and answer open requests; those that take too long are cancelled."""
        for acceptor in self._acceptors:
            acceptor.close()
        self.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        ending = [self._end_http1()]
        if self._http2 is not None:
            ending.append(self._http2.stop(self._stop_s))
        await asyncio.gather(*ending)
        for acceptor in self._acceptors:
            await acceptor.wait_closed()
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def close(self) -> None:
        """Free the addresses; `stop` does that too."""
        for bound in self._bound:
            bound.close()

    async def serve(self, stopping: asyncio.Event) -> None:
        """Serve until `stopping` is set."""
        await self.start()
        try:
            await stopping.wait()
        finally:
            await self.stop()

    async def _end_http1(self) -> None:
        state = self._state
        try:
            async with asyncio.timeout(self._stop_s):
                while state.connections or state.tasks:  # noqa: ASYNC110  uvicorn's own sets
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            late = list(state.tasks)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=_LOOK_S)
            for connection in list(state.connections):  # a task may wait for its client to read
                connection.transport.abort()
            await asyncio.gather(*late, return_exceptions=True)
            await asyncio.sleep(0)  # they end in the loop's next turn

    def _speak(self, place: Place) -> Connection:
        assert self._config is not None
        other = None if self._http2 is None else self._http2.protocol
        return Connection(self._config, self._state, place, other)

    def _tick(self) -> None:
        """Each answer has the date, which is made once a second."""
        self._state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
        self._clock = asyncio.get_running_loop().call_later(1.0, self._tick)


def _answered_at_the_end(app: ASGIApp) -> ASGIApp:
    """Answer requests that the server's end cancels: uvicorn logs them as faults, with a trace."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except asyncio.CancelledError:
            cycle: RequestResponseCycle = send.__self__  # type: ignore[attr-defined]  # its method
            if cycle.response_started:
                return  # uvicorn logs that it is not complete, and closes the connection
            _log.warning(
                "%s %s: not answered before the server stopped", scope["method"], scope["path"]
            )
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", b"%d" % len(_ENDING)),
            ]
            await send({"type": "http.response.start", "status": 503, "headers": headers})
            await send({"type": "http.response.body", "body": _ENDING})

    return answered


def _uvicorn_config(app: ASGIApp, idle_s: float) -> uvicorn.Config:
    config = uvicorn.Config(
        _answered_at_the_end(app),
        loop="none",
        http=Connection,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=math.ceil(idle_s),
    )
    config.load()
    return config


class Served(Protocol):
    """The interface of `ServerThread`'s server: a server, or a service that has one."""

    @property
    def listeners(self) -> list[ListenAddress]: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...


class ServerThread:
    """A server with its own thread and event loop, from `start` to `close`."""

    def __init__(self, server: Served, name: str) -> None:
        self.server = server
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Serve. Raises CannotListenError."""
        self._thread.start()
        try:
            self._do(self.server.start())
        except BaseException:
            self._end()
            raise

    def close(self) -> None:
        """Stop, and wait for the end."""
        self._do(self.server.stop())
        self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(asyncio.sleep(0))  # what was closed ends in one more turn


class Acceptor:
    """One listening socket; `protocol` makes the protocol of a connection that has a place.

    The protocol ends its place when the connection is lost.
    """

    def __init__(
        self,
        listening: socket.socket,
        protocol: MakeProtocol,
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
