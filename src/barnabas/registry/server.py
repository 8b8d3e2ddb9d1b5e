"""One instance of the registry: its sockets, its store and its REST interface."""

import asyncio
import contextlib
import gc
import logging
import math
import socket
from collections.abc import Callable

import uvicorn

from barnabas.base.descriptors import DescriptorReserve, raise_limit
from barnabas.base.stop_signals import stop_on_signals
from barnabas.base.tls.contexts import configured_server
from barnabas.registry.config import HttpListener, RegistryConfig
from barnabas.registry.core.decision import Formats
from barnabas.registry.http.app import RegistryApp
from barnabas.registry.http.config import HttpConfig
from barnabas.registry.http.protection import protection
from barnabas.registry.kafka.store import KafkaStore
from barnabas.registry.listening import BoundedServer
from barnabas.web.crowd import Crowd

EXIT_FAILED = 1
BACKLOG = 2048

telemetry = logging.getLogger(__name__)


class CannotListenError(Exception):
    """An address cannot be bound. The message names it."""


class RegistryServer:
    """Start it and stop it once. `failure` of the store says when it can serve no longer."""

    def __init__(self, config: RegistryConfig, formats: Formats) -> None:
        """Bind the listeners. Raises CannotListenError and ConfigError."""
        self.config = config
        self._sockets = _bind_all(config.listeners)
        try:
            self._tls = (
                configured_server(config)
                if any(listener.scheme == "https" for listener in config.listeners)
                else None
            )
            interface_config = HttpConfig.of(config)
            self._protect = protection(config, interface_config.allowed_origins)
            port = self.listeners[config.listeners.index(config.inter_instance_listener)].port
            self.store = KafkaStore(config, formats, port)
        except BaseException:
            self._close_sockets()
            raise
        self._interface = RegistryApp(self.store, interface_config)
        self._crowd = Crowd()
        self._reserve = DescriptorReserve()
        self._serving: list[tuple[BoundedServer, asyncio.Task[None]]] = []

    @property
    def listeners(self) -> list[HttpListener]:
        """The listeners with the ports that they are bound to."""
        return [
            HttpListener(listener.name, listener.scheme, listener.host, bound.getsockname()[1])
            for listener, bound in zip(self.config.listeners, self._sockets, strict=True)
        ]

    async def start(self) -> None:
        """Read the topic, join the group, then serve. Raises StoreError."""
        try:
            await self.store.start()
        except BaseException:
            self._close_sockets()
            raise
        for listener, bound in zip(self.config.listeners, self._sockets, strict=True):
            server = BoundedServer(self._uvicorn_config(listener), self._crowd, self._reserve)
            task = asyncio.create_task(server.serve([bound]))
            self._serving.append((server, task))
            await server.up.wait()
        for listener in self.listeners:
            telemetry.info("the schema registry serves %s", listener)

    async def stop(self) -> None:
        """Answer what was asked, finish its writes, leave the group."""
        for server, _ in self._serving:
            server.should_exit = True
        await asyncio.gather(*(task for _, task in self._serving), return_exceptions=True)
        await self._interface.close()
        await self.store.stop()
        self._close_sockets()

    def _uvicorn_config(self, listener: HttpListener) -> uvicorn.Config:
        config = uvicorn.Config(
            self._protect(self._interface),
            loop="none",
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            timeout_keep_alive=math.ceil(self.config.get_int("idle.timeout.ms") / 1000),
            timeout_graceful_shutdown=math.ceil(self.config.get_int("shutdown.graceful.ms") / 1000),
        )
        config.load()
        if listener.scheme == "https":
            config.ssl = self._tls
        return config

    def _close_sockets(self) -> None:
        for bound in self._sockets:
            bound.close()


def run_registry(
    config: RegistryConfig,
    formats: Formats,
    on_ready: Callable[[RegistryServer], None] | None = None,
) -> int:
    """Run until SIGTERM, SIGINT or SIGHUP; returns the exit code, 0 after a clean stop.

    A second signal ends the process at once. Raises CannotListenError, ConfigError and StoreError
    if the instance cannot start.
    """
    raise_limit()
    for warning in config.warnings:
        telemetry.warning("%s", warning)
    with asyncio.Runner(loop_factory=_new_event_loop) as runner:
        return runner.run(_run(config, formats, on_ready))


async def _run(
    config: RegistryConfig,
    formats: Formats,
    on_ready: Callable[[RegistryServer], None] | None,
) -> int:
    stopping = asyncio.Event()
    stop_on_signals(stopping, "second signal: the registry ends at once")
    server = RegistryServer(config, formats)
    starting = asyncio.create_task(server.start())
    stop = asyncio.create_task(stopping.wait())
    await asyncio.wait((starting, stop), return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        telemetry.info("the schema registry was stopped before it had started")
        starting.cancel()
        await asyncio.wait((starting,))
        return 0
    try:
        await starting
        # What was imported and loaded lives on: without this each full collection would walk it
        # all, and stand in the way of a request for tens of milliseconds.
        gc.collect()
        gc.freeze()
        if on_ready is not None:
            on_ready(server)
        await asyncio.wait((stop, server.store.failure), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.cancel()
    telemetry.info("the schema registry stops")
    await server.stop()
    telemetry.info("the schema registry has stopped")
    return EXIT_FAILED if server.store.failure.done() else 0


def _bind_all(listeners: tuple[HttpListener, ...]) -> list[socket.socket]:
    with contextlib.ExitStack() as stack:
        bound = [stack.enter_context(_bind(listener)) for listener in listeners]
        stack.pop_all()
    return bound


def _bind(listener: HttpListener) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, protocol)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            found.setblocking(False)
        except BaseException:
            found.close()
            raise
    except OSError as error:
        why = error.strerror or str(error)
        raise CannotListenError(f"cannot listen at {listener}: {why}") from error
    return found


def _new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
