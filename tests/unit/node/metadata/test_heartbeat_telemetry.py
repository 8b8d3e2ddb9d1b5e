"""A broker that no controller answers says so once; with a failed directory it ends in time."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

import pytest

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.broker_lifecycle import BrokerLifecycle, UnreportedDirectoryError
from barnabas.node.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.nodes import BrokerHeartbeatResponse
from sim.manual_clock import ManualClock

INTERVAL_MS = 500
DIRECTORY = Uuid(bytes(15) + b"\x01")
OTHER = Uuid(bytes(15) + b"\x02")
PROPERTIES = {
    "process.roles": "broker",
    "node.id": "1",
    "listeners": "PLAINTEXT://:9092",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "9@localhost:9093",
    "log.dirs": "/data",
    "broker.heartbeat.interval.ms": str(INTERVAL_MS),
    "log.dir.failure.timeout.ms": str(4 * INTERVAL_MS),
}


class Answering:
    """A controller whose answer to each heartbeat is set."""

    code = ErrorCode.NONE
    heartbeats = 0

    async def handle(self, request: Any, *, timeout_ms: int | None = None) -> Any:
        self.heartbeats += 1
        self.last = request
        return BrokerHeartbeatResponse(error_code=self.code)


def make(
    clock: ManualClock, controller: Answering, on_failure: Callable[[Exception], None]
) -> BrokerLifecycle:
    return BrokerLifecycle(
        config=NodeConfig.from_properties(PROPERTIES),
        clock=clock,
        controller=controller,
        cluster_id="cluster",
        incarnation_id=ZERO_UUID,
        log_dirs=[],
        image=MetadataImage,
        wait_for=cast("Any", None),
        on_failure=on_failure,
    )


async def test_each_change_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "barnabas")
    clock, controller = ManualClock(), Answering()
    lifecycle = make(clock, controller, cast("Any", None))
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
        ["the controller did not accept a heartbeat: REQUEST_TIMED_OUT"],
        ["the controller did not accept a heartbeat: NOT_CONTROLLER"],
        ["the controller accepts heartbeats again"],
    ]
    await lifecycle.close()


@pytest.mark.parametrize(
    ("answers", "ends"),
    [
        ("", True),
        ("00000", True),
        ("1", False),
        ("00100", False),
        ("00001", True),
        ("0001", False),
    ],
)
async def test_a_broker_ends_when_no_controller_hears_of_a_failed_directory(
    answers: str, ends: bool
) -> None:
    """`answers`: whether the controller takes what is said at once, and with each heartbeat."""
    clock, controller = ManualClock(), Answering()
    failures: list[Exception] = []
    lifecycle = make(clock, controller, failures.append)
    lifecycle._beat_later()
    for index in range(5):
        taken = index < len(answers) and answers[index] == "1"
        controller.code = ErrorCode.NONE if taken else ErrorCode.REQUEST_TIMED_OUT
        if index:
            clock.advance(INTERVAL_MS)
            await asyncio.sleep(0)
        else:
            await lifecycle.directories_failed([DIRECTORY])
        assert controller.last.offline_log_dirs == [DIRECTORY], "it is said again and again"
    assert [type(failure) for failure in failures] == [UnreportedDirectoryError] * ends
    if ends:
        assert "log.dir.failure.timeout.ms" in str(failures[0])
    await lifecycle.close()


async def test_each_failed_directory_has_its_own_time() -> None:
    clock, controller = ManualClock(), Answering()
    failures: list[Exception] = []
    lifecycle = make(clock, controller, failures.append)
    await lifecycle.directories_failed([DIRECTORY])
    controller.code = ErrorCode.STALE_BROKER_EPOCH
    clock.advance(INTERVAL_MS)
    await lifecycle.directories_failed([OTHER])
    clock.advance(4 * INTERVAL_MS - 1)
    assert failures == []
    clock.advance(1)
    assert len(failures) == 1
    await lifecycle.close()


async def test_a_broker_that_has_ended_no_longer_counts_the_time() -> None:
    clock, controller = ManualClock(), Answering()
    controller.code = ErrorCode.REQUEST_TIMED_OUT
    failures: list[Exception] = []
    lifecycle = make(clock, controller, failures.append)
    await lifecycle.directories_failed([DIRECTORY])
    await lifecycle.close()
    clock.advance(10 * INTERVAL_MS)
    assert failures == []
