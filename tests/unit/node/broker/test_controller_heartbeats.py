"""A broker's heartbeat at the controller, which also notices the end of its connection."""

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.base.network import ListenerOptions
from barnabas.node.broker.controller.handlers import handle_broker_heartbeat
from barnabas.node.net.connection import Connection
from barnabas.node.security.principal import ANONYMOUS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.nodes import BrokerHeartbeatRequest, BrokerHeartbeatResponse

REQUEST = BrokerHeartbeatRequest(broker_id=2, broker_epoch=7)


class Cluster:
    """A controller that notes which brokers' connections it lost, and one connection to it."""

    def __init__(self, error: ErrorCode = ErrorCode.NONE) -> None:
        self.lost: list[tuple[int, int]] = []
        self._error = error
        transport: Any = SimpleNamespace(peer_host="broker")
        service: Any = None
        self.connection = Connection(
            transport, service, ListenerOptions("CONTROLLER"), lambda _: None
        )
        self._controller = SimpleNamespace(connection_lost=lambda *who: self.lost.append(who))
        self._ends_meanwhile = False

    async def heartbeat(self, *, ends_meanwhile: bool = False) -> None:
        self._ends_meanwhile = ends_meanwhile
        metadata = SimpleNamespace(
            raft=SimpleNamespace(failure=None),
            controller=self._controller,
            decide_here=self._decide,
        )
        services: Any = SimpleNamespace(metadata=metadata)
        context: Any = SimpleNamespace(
            principal=ANONYMOUS,
            api_version=1,
            client_id="broker",
            client_host="broker",
            connection=self.connection,
        )
        await handle_broker_heartbeat(services, context, REQUEST)

    async def _decide(self, _request: Any, **_: Any) -> BrokerHeartbeatResponse:
        if self._ends_meanwhile:
            self.connection.closed(None)
        return BrokerHeartbeatResponse(error_code=self._error)


async def test_the_end_of_the_connection_is_told_once_however_many_heartbeats_it_brought() -> None:
    cluster = Cluster()
    for _ in range(3):
        await cluster.heartbeat()
    assert not cluster.lost
    cluster.connection.closed(None)
    assert cluster.lost == [(2, 7)]


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.STALE_BROKER_EPOCH])
async def test_a_connection_that_ends_before_the_answer(error: ErrorCode) -> None:
    cluster = Cluster(error)
    await cluster.heartbeat(ends_meanwhile=True)
    assert cluster.lost == ([] if error else [(2, 7)])
