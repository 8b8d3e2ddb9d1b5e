"""The dashboard's web server: `python -m barnabas.demo.dashboard.server --bootstrap … --port …`.

`/` is the page, `/api/state` everything as JSON, `/events` the same as server-sent events with the
per-minute series cut to what the page draws. Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from typing import TYPE_CHECKING, Any

import click
from starlette.applications import Starlette
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from barnabas.base.addresses import is_loopback
from barnabas.base.descriptors import raise_limit
from barnabas.base.ending import stop_on_signals
from barnabas.demo.dashboard.groups import GroupMonitor, watched_groups
from barnabas.demo.dashboard.monitors import BrokerMonitor, SchemaMonitor, StatementMonitor
from barnabas.demo.dashboard.readers import (
    ActivityReader,
    ConnectorMonitor,
    OutputReader,
    ReaderThread,
)
from barnabas.demo.dashboard.state import MINUTES_SHOWN_MAX, DashboardState
from barnabas.schemas.registry_client import RegistryClient
from barnabas.web.crowd import Crowd
from barnabas.web.guard import Refusal
from barnabas.web.listening import BoundListener, ListenAddress
from barnabas.web.metrics import Families, metrics_text
from barnabas.web.protection import Protection, Refused, Rules
from barnabas.web.server import WebServer
from barnabas.web.watch import Watch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from starlette.requests import Request

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
_HEADERS = [(b"content-security-policy", _POLICY), (b"cache-control", b"no-store")]
_REFUSALS = {
    Refusal.OTHER_HOST: (421, "the request is for another host"),
    Refusal.OTHER_ORIGIN: (403, "requests of other pages are not allowed"),
    Refusal.NO_METHOD: (405, "Method Not Allowed"),
}
_STOP_SECONDS = 3.0


class Publisher:
    """Makes one snapshot per change and hands the same bytes to every open stream."""

    def __init__(self, state: DashboardState) -> None:
        self._state = state
        self._changed = asyncio.Condition()
        self._event = b""
        self._version = -1
        self.streams = 0
        self.closing = False

    async def run(self) -> None:
        """Look for changes until cancelled, at most twice a second."""
        while True:
            started = time.monotonic()
            if self._state.version != self._version and self.streams:
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
        """Return whether as many streams are open as are allowed."""
        return self.streams >= _STREAMS_MAX

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield server-sent events: the state now, each change, a comment when all is still."""
        self.streams += 1
        sent = -2
        try:
            yield b"retry: 1000\n\n"
            while not self.closing:
                yield await self._next(sent) or b": still here\n\n"
                sent = self._version
        finally:
            self.streams -= 1

    async def _next(self, sent: int) -> bytes:
        """Wait for an event newer than the version `sent`; empty if none came in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_HEARTBEAT_SECONDS), self._changed:
                await self._changed.wait_for(
                    lambda: self.closing or (self._event and self._version != sent)
                )
                return self._event
        return b""


def _refused(refusal: Refusal) -> Refused:
    status, text = _REFUSALS.get(refusal, (503, refusal.value))
    return Refused(status, text.encode(), b"text/plain; charset=utf-8")


class DashboardServer:
    """The page at an address, over a state that reader threads fill while it is served."""

    def __init__(
        self,
        state: DashboardState,
        threads: Sequence[ReaderThread] = (),
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        """Take the address. Raises CannotListenError."""
        self._state, self._threads = state, threads
        self._publisher = Publisher(state)
        crowd = Crowd(_CONNECTIONS_MAX)
        rules = Rules(
            own_names=() if is_loopback(host) else None,
            watch=Watch(self._metrics, self._not_ready, crowd),
            linked_paths=("/",),
            headers=_HEADERS,
        )
        self.app = Protection(self._routes(), _refused, rules)
        bound = BoundListener(ListenAddress(host, port))
        self.port = bound.listener.port
        self.is_up = False
        """True while it serves."""
        self._web = WebServer(self.app, [bound], crowd, stop_s=_STOP_SECONDS)

    def close(self) -> None:
        """Free the address of a server that was not run."""
        self._web.close()

    def run(self) -> None:
        """Serve until a signal ends it."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        stopping = asyncio.Event()
        stop_on_signals(stopping, "second signal: the dashboard ends at once")
        await self.serve(stopping)

    async def serve(self, stopping: asyncio.Event) -> None:
        """Read and serve until `stopping` is set; open streams end first."""
        for thread in self._threads:
            thread.start()
        pushing = asyncio.create_task(self._publisher.run())
        await self._web.start()
        self.is_up = True
        try:
            await stopping.wait()
        finally:
            await self._publisher.close()
            await self._web.stop()
            pushing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await pushing
            await asyncio.gather(*(asyncio.to_thread(thread.stop) for thread in self._threads))

    def _routes(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/", self._page),
                Route("/api/state", self._full_state),
                Route("/events", self._events),
                Mount("/", StaticFiles(directory=STATIC_DIRECTORY)),
            ]
        )

    async def _page(self, _: Request) -> Response:
        return FileResponse(os.path.join(STATIC_DIRECTORY, "index.html"))

    async def _full_state(self, _: Request) -> Response:
        snapshot: dict[str, Any] = await asyncio.to_thread(self._state.snapshot)
        return JSONResponse(snapshot)

    async def _events(self, _: Request) -> Response:
        if self._publisher.full():
            return Response("too many open streams", status_code=503)
        return StreamingResponse(self._publisher.stream(), media_type="text/event-stream")

    async def _metrics(self) -> bytes:
        families = Families()
        families.gauge("dashboard_streams", "Pages that are open.", self._publisher.streams)
        families.counter("dashboard_changes", "Changes of what is shown.", self._state.version)
        return metrics_text(families.all())

    async def _not_ready(self) -> str | None:
        return None if self._state.is_connected else "no broker answers"


def build_server(
    bootstrap: str,
    registry_url: str,
    sql_url: str,
    host: str,
    port: int,
    workers: Sequence[str] = (),
    *,
    is_iceberg: bool = False,
    console_url: str = "",
) -> DashboardServer:
    """Return a server with its readers, not started yet."""
    state = DashboardState(bootstrap, console_url)
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
    return DashboardServer(state, threads, host, port)


@click.command()
@click.option("--bootstrap", required=True, help="Brokers, host:port[,host:port].")
@click.option("--registry", required=True, help="The schema registry's URL.")
@click.option("--sql-server", required=True, help="The SQL server's URL.")
@click.option("--connect", multiple=True, help="The URL of a Connect worker.")
@click.option("--iceberg", is_flag=True, help="A connector keeps the warehouse.")
@click.option("--console", default="", help="The URL of a console, to which the page has a link.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8088, show_default=True)
def main(
    bootstrap: str,
    registry: str,
    sql_server: str,
    connect: tuple[str, ...],
    iceberg: bool,
    console: str,
    host: str,
    port: int,
) -> None:
    """Show the demo's figures in a browser."""
    raise_limit()
    print(f"dashboard on http://{host}:{port}, reading from {bootstrap}", flush=True)
    server = build_server(
        *(bootstrap, registry, sql_server, host, port, connect),
        is_iceberg=iceberg,
        console_url=console,
    )
    server.run()


if __name__ == "__main__":
    main()
