"""The HTTP server of a node's metrics and health. It has its own thread and event loop, and asks
the node's loop.

Names of figures are those under which the JMX exporter shows Kafka's: `kafka.server:type=Produce`,
attribute `byte-rate`, becomes `kafka_server_produce_byte_rate`.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from barnabas.app.metrics.access import LISTENER_NAME, Access
from barnabas.app.metrics.collecting import Show, exposition
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.tls import TlsSide
from barnabas.node.security.quotas.client_quotas import Figure
from barnabas.web.listening import ListenAddress
from barnabas.web.metrics import Families, metrics_text
from barnabas.web.server import ServerThread
from barnabas.web.watch import METRICS
from barnabas.web.watch_server import serve_watch

Answer = TypeVar("Answer")
_Series = tuple[str, str, tuple[tuple[str, str], ...]]
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Watched(Protocol):
    """A node, as far as it is watched. All is called on its event loop."""

    def figures(self) -> Iterator[Figure]:
        """Figures of quotas, logins and certificates."""

    def not_ready(self) -> str | None:
        """Why it cannot serve clients now; None if it can."""

    async def collect(self) -> list[Show]:
        """All other figures, to be made a text of on any thread."""


class MetricsEndpoint:
    """Shows figures and health from `open` to `close`."""

    def __init__(self, server: ServerThread) -> None:
        """Use `open`."""
        self._server = server
        listener = server.server.listeners[0]
        self.port = listener.port
        self.url = f"{listener}{METRICS}"

    @classmethod
    def open(
        cls, config: NodeConfig, access: Access, node: Callable[[], Watched | None]
    ) -> "MetricsEndpoint":
        """Serve what `node` gives on the running loop; None: it is not opened yet.

        Raises ConfigError for TLS that cannot be used, and CannotListenError.
        """
        tls = TlsSide(config, LISTENER_NAME, "SSL", is_server=True) if access.is_encrypted else None
        loop = asyncio.get_running_loop()

        async def figures() -> tuple[list[Figure], list[Show]]:
            running_node = node()
            return (
                ([], [])
                if running_node is None
                else (list(running_node.figures()), await running_node.collect())
            )

        async def not_ready() -> str | None:
            running_node = node()
            return "the node is starting" if running_node is None else running_node.not_ready()

        scraping = asyncio.Lock()

        async def metrics() -> bytes:
            async with scraping:
                running_node, shows = await _on(loop, figures())
                parts = [figure_text(running_node)]
                for part in exposition(shows).parts():
                    parts.append(part)
                    await asyncio.sleep(0)  # between parts the node's thread can go on
                return b"".join(parts)

        async def ready() -> str | None:
            return await _on(loop, not_ready())

        thread = serve_watch(
            ListenAddress(access.host, access.port, access.is_encrypted),
            metrics,
            ready,
            name="barnabas-metrics",
            login=access.login,
            tls=None if tls is None else tls.context,
        )
        return cls(thread)

    def close(self) -> None:
        """Serve no more."""
        self._server.close()


async def _on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Answer]) -> Answer:
    """Do something on the node's loop."""
    try:
        future = asyncio.run_coroutine_threadsafe(work, loop)
    except RuntimeError:  # the node has ended
        work.close()
        raise
    return await asyncio.wrap_future(future)


def figure_text(figures: Iterable[Figure]) -> bytes:
    """The text that a scrape gets."""
    families = Families()
    for (kind, name, tags), value in _summed(figures).items():
        labels = {_snake(key): text for key, text in tags}
        families.gauge(_name(kind, name), f"{kind}: {name}", value, **labels)
    return metrics_text(families.all())


def _summed(figures: Iterable[Figure]) -> dict[_Series, float]:
    """Each series once: both roles of a node may measure the same client at their listeners."""
    values: dict[_Series, float] = {}
    for figure in figures:
        series = figure.kind, figure.name, tuple(sorted(figure.tags.items()))
        values[series] = values.get(series, 0.0) + figure.value
    return values


def _name(kind: str, name: str) -> str:
    return f"kafka_server_{_snake(kind)}_{_snake(name)}"


def _snake(text: str) -> str:
    return _NOT_IN_NAMES.sub("_", _HUMP.sub("_", text).lower()).strip("_")
