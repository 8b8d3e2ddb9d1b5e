"""Controlled shutdown: a stopping broker first hands over its leadership, if that is enabled."""

import asyncio
from typing import Any, cast

import pytest

from barnabas.base.ids import ZERO_UUID
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.broker_lifecycle import BrokerLifecycle
from barnabas.node.metadata.image import MetadataImage
from barnabas.protocol.messages.nodes import BrokerHeartbeatResponse
from sim.manual_clock import ManualClock

PROPERTIES = {
    "process.roles": "broker",
    "node.id": "1",
    "listeners": "PLAINTEXT://:9092",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "9@localhost:9093",
    "log.dirs": "/data",
}


class Agreeing:
    """A controller that lets a broker go at once."""

    def __init__(self) -> None:
        self.asked: list[bool] = []

    async def handle(self, request: Any, *, timeout_ms: int | None = None) -> Any:
        self.asked.append(request.want_shut_down)
        return BrokerHeartbeatResponse(should_shut_down=True)


@pytest.mark.parametrize(("enabled", "asked"), [(None, [True]), ("true", [True]), ("false", [])])
async def test_a_broker_asks_before_it_goes(enabled: str | None, asked: list[bool]) -> None:
    setting = {} if enabled is None else {"controlled.shutdown.enable": enabled}
    clock, controller = ManualClock(), Agreeing()
    lifecycle = BrokerLifecycle(
        config=NodeConfig.from_properties(PROPERTIES | setting),
        clock=clock,
        controller=controller,
        cluster_id="cluster",
        incarnation_id=ZERO_UUID,
        log_dirs=[],
        image=MetadataImage,
        wait_for=cast("Any", None),
        on_failure=cast("Any", None),
    )
    lifecycle.epoch = 5
    lifecycle._beat_later()
    await lifecycle.shut_down()
    assert controller.asked == asked
    clock.advance(60_000)  # heartbeats would keep it from being found dead
    await asyncio.sleep(0)
    assert controller.asked == asked
    await lifecycle.close()
