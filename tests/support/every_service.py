"""Every service of the platform at a port of this machine, each by its own rules for requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from barnabas.app.local_nodes import standalone_properties
from barnabas.app.metrics.access import metrics_access
from barnabas.app.metrics.collecting import Show
from barnabas.app.metrics.endpoint import MetricsEndpoint
from barnabas.connect.rest.app import protected as protected_worker
from barnabas.demo.dashboard.server import DashboardServer
from barnabas.demo.dashboard.state import DashboardState
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.security.quotas.client_quotas import Figure
from barnabas.registry.config import RegistryConfig
from barnabas.registry.http.app import RegistryApp
from barnabas.registry.http.protection import PASSWORD_FILE as REGISTRY_PASSWORDS
from barnabas.registry.http.protection import protected as protected_registry
from barnabas.sql.server.app import KsqlApi
from barnabas.sql.server.protection import PASSWORD_FILE as SQL_PASSWORDS
from barnabas.sql.server.protection import protected as protected_sql
from barnabas.web.crowd import Crowd
from barnabas.web.listening import BoundListener, ListenAddress
from barnabas.web.passwords import METHOD, Passwords
from barnabas.web.protection import Protection
from barnabas.web.server import WebServer
from support.connect.rest_world import RestWorld
from support.eventually import eventually
from support.registry_service import MemoryService
from support.sql_server_world import SqlWorld

USER = ("ann", "secret")


@asynccontextmanager
async def at_port(app: Protection, *, speaks_http2: bool) -> AsyncIterator[int]:
    """An application at a port."""
    bound = BoundListener(ListenAddress("127.0.0.1", 0))
    server = WebServer(app, [bound], Crowd(), speaks_http2=speaks_http2)
    await server.start()
    try:
        yield bound.listener.port
    finally:
        await server.stop()


def _password_file(folder: Path) -> str:
    path = folder / "passwords"
    path.write_text(":".join(USER) + "\n")
    return str(path)


@asynccontextmanager
async def registry(folder: Path, *, asks: bool) -> AsyncIterator[int]:
    """A schema registry."""
    values = {
        "kafkastore.bootstrap.servers": "localhost:9092",
        "listeners": "http://127.0.0.1:8081",
    }
    if asks:
        values |= {METHOD: "BASIC", REGISTRY_PASSWORDS: _password_file(folder)}
    app = RegistryApp(MemoryService(leader_url="http://127.0.0.1:8081"))
    guarded = protected_registry(app, RegistryConfig(values), app.watch(Crowd()))
    async with at_port(guarded, speaks_http2=False) as port:
        yield port
    await app.close()


@asynccontextmanager
async def sql(folder: Path, *, asks: bool) -> AsyncIterator[int]:
    """A SQL server."""
    world = SqlWorld()
    values = {METHOD: "BASIC", SQL_PASSWORDS: _password_file(folder)} if asks else {}
    api = KsqlApi(world.engine)
    guarded = protected_sql(api.app(), values, is_on_loopback=True, watch=api.watch(Crowd()))
    async with at_port(guarded, speaks_http2=True) as port:
        yield port
    await world.close()


@asynccontextmanager
async def connect(folder: Path, *, asks: bool) -> AsyncIterator[int]:
    """A Connect worker."""
    world = RestWorld(folder)
    guarded = protected_worker(
        world.rest,
        {},
        passwords=Passwords(_password_file(folder)) if asks else None,
        is_on_loopback=True,
        watch=world.resources.watch(Crowd()),
    )
    async with at_port(guarded, speaks_http2=True) as port:
        yield port
    world.close()


@asynccontextmanager
async def dashboard(folder: Path, *, asks: bool) -> AsyncIterator[int]:
    """The demo's page, which asks nobody for a password."""
    state, stopping = DashboardState("broker:9092"), asyncio.Event()
    state.set_connection("connected")
    server = DashboardServer(state)
    serving = asyncio.create_task(server.serve(stopping))
    await eventually(lambda: server.is_up, "the page")
    try:
        yield server.port
    finally:
        stopping.set()
        await serving


class _Node:
    def figures(self) -> Iterator[Figure]:
        yield Figure("socket-server-metrics", {"listener": "A"}, "connection-count", 7)

    async def collect(self) -> list[Show]:
        return []

    def not_ready(self) -> str | None:
        return None


@asynccontextmanager
async def node(folder: Path, *, asks: bool) -> AsyncIterator[int]:
    """A node's metrics."""
    keys = {"barnabas.metrics.listener": "http://127.0.0.1:0"}
    if asks:
        keys["barnabas.metrics.users"] = ":".join(USER)
    config = NodeConfig.from_properties(standalone_properties(str(folder), overrides=keys))
    access = metrics_access(config)
    assert access is not None
    endpoint = MetricsEndpoint.open(config, access, _Node)
    try:
        yield endpoint.port
    finally:
        await asyncio.to_thread(endpoint.close)


Opened = Callable[..., AbstractAsyncContextManager[int]]
SERVICES: dict[str, Opened] = {
    "registry": registry,
    "sql": sql,
    "connect": connect,
    "dashboard": dashboard,
    "node": node,
}
SPEAK_HTTP2 = {"sql", "connect"}
ASK_FOR_PASSWORDS = set(SERVICES) - {"dashboard"}
