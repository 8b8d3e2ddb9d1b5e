"""A schema registry with all its formats, in a thread of the test's process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.registry.config import RegistryConfig
from barnabas.registry.server import RegistryServer
from barnabas.schemas.formats import all_formats
from support.patience import PATIENCE_S

SETTINGS = {
    "host.name": "127.0.0.1",
    "listeners": "http://127.0.0.1:0",
    "kafkastore.timeout.ms": str(int(PATIENCE_S * 1000)),
    "kafkagroup.heartbeat.interval.ms": "200",
}


@contextmanager
def registry_of(bootstrap_servers: str, topic: str = "_schemas") -> Iterator[str]:
    """Run a registry that keeps its schemas in a cluster; gives its URL."""
    values = SETTINGS | {
        "kafkastore.bootstrap.servers": bootstrap_servers,
        "kafkastore.topic": topic,
        "schema.registry.group.id": f"registry-of-{topic}",
    }

    async def start() -> RegistryServer:
        server = RegistryServer(RegistryConfig(values), all_formats())
        await server.start()
        return server

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="registry")
    thread.start()
    try:
        server = asyncio.run_coroutine_threadsafe(start(), loop).result(PATIENCE_S)
        try:
            yield str(server.listeners[0])
        finally:
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result(PATIENCE_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
