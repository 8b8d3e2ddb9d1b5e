"""The HTTP server of every service: an ASGI application on its listeners, within limits.

uvicorn's parser and protocol speak HTTP/1.1 (`http1`). With `speaks_http2`, connections on which a
client begins HTTP/2 (chosen in the TLS handshake, by prior knowledge or by an upgrade) or a web
socket are handed to hypercorn's protocols (`http2`), which are slower: see
docs/decisions/0027-http-1-by-uvicorn-http-2-by-hypercorn.md.
"""

from __future__ import annotations

import asyncio
import logging
import math
import ssl
import threading
from collections.abc import Callable, Coroutine, Sequence
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final, Protocol

import uvicorn
from uvicorn.server import ServerState

from barnabas.base.descriptors import DescriptorReserve
from barnabas.web.accepting import Acceptor
from barnabas.web.crowd import Crowd, Place
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
