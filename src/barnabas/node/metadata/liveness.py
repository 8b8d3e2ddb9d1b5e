"""Proof that a broker's process is gone.

The kernel of a machine whose process died refuses connections to its port at once. A process
that is stopped, or busy, still has its connections accepted by the kernel; a machine that is cut
off answers nothing. Only the first is proof, so a slow broker is never taken for a dead one.
"""

import asyncio

from barnabas.base.backoff import doubled
from barnabas.base.clock import Clock
from barnabas.base.network import Network, StreamHandler, Transport
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.loop.pauses import pause
from barnabas.node.metadata.broker_peers import endpoint_between_brokers
from barnabas.node.metadata.image import BrokerImage

CONNECT_TIMEOUT_MS = 1000
FIRST_PAUSE_MS = 25
"""A process that ends may close its connections before its listener: ask again, ever later."""
PAUSE_MAX_MS = 1000


class _Caller:
    """Looks whether somebody answers, and hangs up."""

    def __init__(self, transport: Transport) -> None:
        self._scratch = memoryview(bytearray(1))

    def get_buffer(self) -> memoryview:
        return self._scratch

    def received(self, size_bytes: int) -> None:
        """Nothing is expected."""

    def drained(self) -> None:
        """Nothing was sent."""

    def closed(self, error: OSError | None) -> None:
        """It was only a call."""


async def is_gone(
    broker: BrokerImage, config: NodeConfig, network: Network, clock: Clock, attempts: int
) -> bool:
    """Return whether the broker's listener refuses connections, asked up to `attempts` times."""
    endpoint = endpoint_between_brokers(broker, config.inter_broker_listener_name)
    if endpoint is None:
        endpoint = next(iter(broker.listeners.values()), None)
    if endpoint is None:
        return False
    for attempt in range(attempts):
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_MS / 1000):
                transport = await network.connect(endpoint.host, endpoint.port, _answer)
            transport.close()
        except ConnectionRefusedError:
            return True
        except OSError:  # a time-out among them: no proof of anything
            return False
        if attempt + 1 < attempts:
            await pause(clock, doubled(FIRST_PAUSE_MS, PAUSE_MAX_MS, attempt))
    return False


def _answer(transport: Transport) -> StreamHandler:
    return _Caller(transport)
