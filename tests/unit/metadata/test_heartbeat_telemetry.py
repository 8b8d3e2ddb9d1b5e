"""A broker that no controller answers says so once, not with every heartbeat."""

import asyncio
import logging
from typing import Any, cast

import pytest

from barnabas.base.config.node import NodeConfig
from barnabas.base.ids import ZERO_UUID
from barnabas.metadata.broker_lifecycle import BrokerLifecycle
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.broker_heartbeat import BrokerHeartbeatResponse
from sim.manual_clock import ManualClock

INTERVAL_MS = 500
PROPERTIES = {
    "process.roles": "broker",
    "node.id": "1",
    "listeners": "PLAINTEXT://:9092",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "9@localhost:9093",
    "log.dirs": "/data",
    "broker.heartbeat.interval.ms": str(INTERVAL_MS),
}


class Answering:
    """A controller whose answer to each heartbeat is set."""

    code = ErrorCode.NONE
    heartbeats = 0

    async def handle(self, request: Any, *, deadline_ms: int | None = None) -> Any:
        self.heartbeats += 1
        return BrokerHeartbeatResponse(error_code=self.code)


async def test_each_change_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "barnabas")
    clock, controller = ManualClock(), Answering()
    lifecycle = BrokerLifecycle(
        config=NodeConfig.from_properties(PROPERTIES),
        clock=clock,
        controller=controller,
        cluster_id="cluster",
        incarnation_id=ZERO_UUID,
        log_dirs=[],
        image=MetadataImage,
        wait_for=cast("Any", None),
    )
    lifecycle._beat_later()  # as `unfence` does at its end
    told = []
    for code in (
        ErrorCode.NONE,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NONE,
    ):
        controller.code = code
        caplog.clear()
        for _ in range(5):
            clock.advance(INTERVAL_MS)
            await asyncio.sleep(0)
        told.append([record.getMessage() for record in caplog.records])
    assert controller.heartbeats == 20
    assert told == [
        [],
        ["the controller did not take a heartbeat: REQUEST_TIMED_OUT"],
        ["the controller did not take a heartbeat: NOT_CONTROLLER"],
        ["the controller takes heartbeats again"],
    ]
    await lifecycle.close()
