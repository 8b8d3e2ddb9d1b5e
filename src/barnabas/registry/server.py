"""One instance of the registry: its sockets, its store and its REST interface."""

import asyncio
import gc
import logging
from collections.abc import Callable

from barnabas.base.descriptors import raise_limit
from barnabas.base.ending import stop_on_signals
from barnabas.base.event_loop import new_event_loop
from barnabas.base.tls.contexts import configured_server
from barnabas.registry.config import RegistryConfig
from barnabas.registry.core.decision import Formats
from barnabas.registry.http.app import RegistryApp
from barnabas.registry.http.config import HttpConfig
from barnabas.registry.http.protection import protected
from barnabas.registry.kafka.store import KafkaStore
from barnabas.web.crowd import Crowd
from barnabas.web.listening import bind_all
from barnabas.web.server import WebServer

EXIT_FAILED = 1

telemetry = logging.getLogger(__name__)


class RegistryServer:
    """Start it and stop it once. `failure` of the store says when it can serve no longer."""

    def __init__(self, config: RegistryConfig, formats: Formats) -> None:
        """Bind the listeners. Raises CannotListenError and ConfigError."""
        self.config = config
        bound = bind_all(config.listeners)
        self.listeners = [one.listener for one in bound]
        """Its addresses, with the ports that were chosen."""
        try:
            tls = None
            if any(listener.is_tls for listener in config.listeners):
                tls = configured_server(config)
            port = self.listeners[config.listeners.index(config.inter_instance_listener)].port
            self.store = KafkaStore(config, formats, port)
            self._interface = RegistryApp(self.store, HttpConfig.of(config))
            crowd = Crowd()
            self._web = WebServer(
                protected(self._interface, config, self._interface.watch(crowd)),
                bound,
                crowd,
                tls=tls,
                idle_s=config.get_int("idle.timeout.ms") / 1000,
                stop_s=config.get_int("shutdown.graceful.ms") / 1000,
            )
        except BaseException:
            for one in bound:
                one.close()
            raise

    async def start(self) -> None:
        """Read the topic, join the group, then serve. Raises StoreError."""
        try:
            await self.store.start()
        except BaseException:
            self._web.close()
            raise
        await self._web.start()
        for listener in self.listeners:
            telemetry.info("the schema registry serves %s", listener)

    async def stop(self) -> None:
        """Answer what was asked, finish its writes, leave the group."""
        await self._web.stop()
        await self._interface.close()
        await self.store.stop()


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
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
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
        # all, and delay a request by tens of milliseconds.
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
