"""A broker's heartbeat at the controller: the end of its connection tells of the broker, too."""

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.controller.handlers import handle_broker_heartbeat
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from barnabas.security.principal import ANONYMOUS

REQUEST = BrokerHeartbeatRequest(broker_id=2, broker_epoch=7)


class Cluster:
    """A controller that notes which brokers' connections it lost, and one connection to it."""

    def __init__(self, error: ErrorCode = ErrorCode.NONE) -> None:
        self.lost: list[tuple[int, int]] = []
        self._error = error
        self.connection = SimpleNamespace(is_closed=False, on_close=None)
        self._ends_meanwhile = False

    async def heartbeat(self, *, ends_meanwhile: bool = False) -> None:
        self._ends_meanwhile = ends_meanwhile
        metadata = SimpleNamespace(
            raft=SimpleNamespace(failure=None),
            controller=SimpleNamespace(connection_lost=lambda *who: self.lost.append(who)),
            decide_here=self._decide,
        )
        services: Any = SimpleNamespace(metadata=metadata)
        context: Any = SimpleNamespace(
            principal=ANONYMOUS, api_version=1, connection=self.connection
        )
        await handle_broker_heartbeat(services, context, REQUEST)

    async def _decide(self, _request: Any, **_: Any) -> BrokerHeartbeatResponse:
        if self._ends_meanwhile:
            self.connection.is_closed = True
        return BrokerHeartbeatResponse(error_code=self._error)


async def test_the_end_of_the_connection_is_told() -> None:
    cluster = Cluster()
    await cluster.heartbeat()
    assert not cluster.lost
    assert cluster.connection.on_close is not None
    cluster.connection.on_close()
    assert cluster.lost == [(2, 7)]


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.STALE_BROKER_EPOCH])
async def test_a_connection_that_ends_before_the_answer(error: ErrorCode) -> None:
    cluster = Cluster(error)
    await cluster.heartbeat(ends_meanwhile=True)
    assert cluster.lost == ([] if error else [(2, 7)])
