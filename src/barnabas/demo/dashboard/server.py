"""The dashboard's web server: `python -m barnabas.demo.dashboard.server --bootstrap … --port …`.

`/` is the page, `/api/state` everything as JSON, `/events` the same as server-sent events with the
per-minute series cut to what the page draws. Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import time
from typing import TYPE_CHECKING, Any

import click
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from barnabas.base.loopback import is_loopback
from barnabas.demo.dashboard.brokers import BrokerMonitor
from barnabas.demo.dashboard.connectors import ConnectorMonitor
from barnabas.demo.dashboard.groups import GroupMonitor, watched_groups
from barnabas.demo.dashboard.readers import ActivityReader, OutputReader, ReaderThread
from barnabas.demo.dashboard.schemas import SchemaMonitor
from barnabas.demo.dashboard.state import MINUTES_SHOWN_MAX, DashboardState
from barnabas.demo.dashboard.statements import StatementMonitor
from barnabas.registry.listening import BoundedServer
from barnabas.schemas.registry_client import RegistryClient
from barnabas.web.crowd import Crowd
from barnabas.web.guard import is_meant_for_loopback, may_ask

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

STATIC_DIRECTORY = os.path.join(os.path.dirname(__file__), "static")
_PUSH_SECONDS = 0.5
_COST_FACTOR = 5
"""A snapshot that took s seconds to make is followed by at least this many times s of rest."""
_HEARTBEAT_SECONDS = 10.0
_STREAMS_MAX = 64
_CONNECTIONS_MAX = 256
_POLICY = (
    b"default-src 'self'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'; "
    b"base-uri 'none'; form-action 'none'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
]


class Publisher:
    """Makes one snapshot per change and hands the same bytes to every open stream."""

    def __init__(self, state: DashboardState) -> None:
        self._state = state
        self._changed = asyncio.Condition()
        self._event = b""
        self._version = -1
        self._streams = 0
        self.closing = False

    async def run(self) -> None:
        """Look for changes until cancelled, at most twice a second."""
        while True:
            started = time.monotonic()
            if self._state.version != self._version and self._streams:
                snapshot = await asyncio.to_thread(self._state.snapshot, MINUTES_SHOWN_MAX)
                data = json.dumps(snapshot, separators=(",", ":"))
                async with self._changed:
                    self._version = snapshot["version"]
                    self._event = f"event: state\ndata: {data}\n\n".encode()
                    self._changed.notify_all()
            cost_seconds = time.monotonic() - started
            await asyncio.sleep(max(_PUSH_SECONDS, cost_seconds * _COST_FACTOR))

    async def close(self) -> None:
        """End every stream."""
        async with self._changed:
            self.closing = True
            self._changed.notify_all()

    def full(self) -> bool:
        """Whether as many streams are open as are allowed."""
        return self._streams >= _STREAMS_MAX

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield server-sent events: the state now, each change, a comment when all is still."""
        self._streams += 1
        sent = -2
        try:
            yield b"retry: 1000\n\n"
            while not self.closing:
                yield await self._next(sent) or b": still here\n\n"
                sent = self._version
        finally:
            self._streams -= 1

    async def _next(self, sent: int) -> bytes:
        """Wait for an event newer than the version `sent`; empty where none came in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_HEARTBEAT_SECONDS), self._changed:
                await self._changed.wait_for(
                    lambda: self.closing or (self._event and self._version != sent)
                )
                return self._event
        return b""


class SecurityHeaders:
    """Adds headers that keep the page to its own origin, and out of frames and caches.

    On loopback, requests for other names than `localhost` are refused: DNS rebinding. So are
    requests of other pages, but a link may lead to the page.
    """

    def __init__(self, app: ASGIApp, is_on_loopback: bool = False) -> None:
        self._app = app
        self._is_on_loopback = is_on_loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, with headers added to the response's start."""

        host = b"".join(value for name, value in scope.get("headers", ()) if name == b"host")
        if scope["type"] == "http" and self._is_on_loopback and not is_meant_for_loopback(host):
            refusal = Response("the request is for another host", status_code=421)
            await refusal(scope, receive, send)
            return
        given = dict(scope.get("headers", ()))
        is_link = scope.get("path") == "/" and given.get(b"sec-fetch-mode") == b"navigate"
        if not is_link and not may_ask(given.get(b"origin"), given.get(b"sec-fetch-site"), host):
            refusal = Response("requests of other pages are not allowed", status_code=403)
            await refusal(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        await self._app(scope, receive, send_with_headers)


def create_app(
    state: DashboardState, threads: list[ReaderThread], *, is_on_loopback: bool = False
) -> Starlette:
    """Build the application; the reader threads run from its start-up to its shutdown."""
    publisher = Publisher(state)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        for thread in threads:
            thread.start()
        pushing = asyncio.create_task(publisher.run())
        try:
            yield
        finally:
            pushing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await pushing
            await asyncio.gather(*(asyncio.to_thread(thread.stop) for thread in threads))

    async def page(_: Request) -> Response:
        return FileResponse(os.path.join(STATIC_DIRECTORY, "index.html"))

    async def full_state(_: Request) -> Response:
        snapshot: dict[str, Any] = await asyncio.to_thread(state.snapshot)
        return JSONResponse(snapshot)

    async def events(_: Request) -> Response:
        if publisher.full():
            return Response("too many open streams", status_code=503)
        return StreamingResponse(publisher.stream(), media_type="text/event-stream")

    app = Starlette(
        routes=[
            Route("/", page),
            Route("/api/state", full_state),
            Route("/events", events),
            Mount("/", StaticFiles(directory=STATIC_DIRECTORY)),
        ],
        middleware=[Middleware(SecurityHeaders, is_on_loopback=is_on_loopback)],
        lifespan=lifespan,
    )
    app.state.publisher = publisher
    return app


class DashboardServer(BoundedServer):
    """Ends the open streams first when asked to stop, so that shutting down waits for nobody."""

    capture_signals = uvicorn.Server.capture_signals

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config, Crowd(_CONNECTIONS_MAX))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen where the configuration says."""
        address = (self.config.host, self.config.port)
        family = socket.AF_INET6 if ":" in self.config.host else socket.AF_INET
        await super().startup(sockets or [socket.create_server(address, family=family)])

    async def shutdown(self, sockets: Any = None) -> None:
        """Close the streams, then everything else."""
        publisher: Publisher = self.config.app.state.publisher  # type: ignore[union-attr]  # ours
        await publisher.close()
        await super().shutdown(sockets)


def build_server(
    bootstrap: str,
    registry_url: str,
    sql_url: str,
    host: str,
    port: int,
    workers: Sequence[str] = (),
    *,
    is_iceberg: bool = False,
) -> DashboardServer:
    """Return a server with its readers, not started yet."""
    state = DashboardState(bootstrap)
    threads: list[ReaderThread] = [
        OutputReader(bootstrap, RegistryClient(registry_url), state),
        ActivityReader(bootstrap, RegistryClient(registry_url), state),
        SchemaMonitor(bootstrap, RegistryClient(registry_url), state),
        GroupMonitor(bootstrap, state, watched_groups(is_iceberg=is_iceberg)),
        BrokerMonitor(bootstrap, state),
        StatementMonitor(bootstrap, sql_url, state),
    ]
    if workers:
        threads.append(ConnectorMonitor(bootstrap, workers, state))
    config = uvicorn.Config(
        create_app(state, threads, is_on_loopback=is_loopback(host)),
        host=host,
        port=port,
        log_level="warning",
        timeout_graceful_shutdown=3,
    )
    return DashboardServer(config)


@click.command()
@click.option("--bootstrap", required=True, help="Brokers, host:port[,host:port].")
@click.option("--registry", required=True, help="The schema registry's URL.")
@click.option("--sql-server", required=True, help="The SQL server's URL.")
@click.option("--connect", multiple=True, help="The URL of a worker of connectors.")
@click.option("--iceberg", is_flag=True, help="A connector keeps the warehouse.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8088, show_default=True)
def main(
    bootstrap: str,
    registry: str,
    sql_server: str,
    connect: tuple[str, ...],
    iceberg: bool,
    host: str,
    port: int,
) -> None:
    """Show the demo's figures in a browser."""
    print(f"dashboard on http://{host}:{port}, reading from {bootstrap}", flush=True)
    server = build_server(bootstrap, registry, sql_server, host, port, connect, is_iceberg=iceberg)
    server.run()


if __name__ == "__main__":
    main()
