"""A broker's life as the controller sees it: registered, unfenced, heard of, shut down.

A broker registers and is fenced. Once it has applied its own registration it asks by heartbeat to
be unfenced, and its heartbeats go on until it asks to shut down: then its leaderships move, and
when none is left it may go. They also say which of its log directories have failed, and which are
to get no new replicas. A failure that no controller hears of in time ends the broker: it would
lead for ever what it cannot read. Source: Kafka's BrokerLifecycleManager; KIP-631, 841, 858, 1066.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Protocol

from barnabas.base.clock import Clock, Timer
from barnabas.base.errors import ShownError
from barnabas.base.ids import Uuid, uuid_to_text
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.loop.pauses import pause
from barnabas.node.metadata.image import Endpoint, MetadataImage
from barnabas.node.metadata.registration import broker_registration
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.nodes import BrokerHeartbeatRequest
from barnabas.protocol.schema import Message

RETRY_MS = 100
ATTEMPT_TIMEOUT_MS = 5_000
"""A broker that finds no controller says so as often."""
SHUTDOWN_TIMEOUT_MS = 300_000
"""As long as Kafka waits for a controlled shutdown to end."""
CONTROLLER_LOST_MS = 3_000
"""A broker that shuts down waits this long for any controller to hear it."""

telemetry = logging.getLogger(__name__)


class RegistrationError(ShownError):
    """The controller refused this broker; `code` says why."""

    def __init__(self, code: ErrorCode, advice: str = "") -> None:
        super().__init__(
            f"the controller refused this broker: {code.name}, {code.message.rstrip('.')}"
            + (f". {advice}" if advice else "")
        )
        self.code = code


class UnreportedDirectoryError(Exception):
    """A log directory failed, and no controller could be told in time."""

    def __init__(self, directory_id: Uuid, timeout_ms: int) -> None:
        super().__init__(
            f"no controller has heard for {timeout_ms} ms (log.dir.failure.timeout.ms) that the "
            f"log directory {uuid_to_text(directory_id)} failed"
        )


ADVICE: Mapping[ErrorCode, str] = {
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: (
        "A live broker has this node.id: give this one another, or stop that one first"
    ),
    ErrorCode.INCONSISTENT_CLUSTER_ID: (
        "Its directories belong to another cluster: format new ones with this cluster's id, or "
        "name the right controllers"
    ),
    ErrorCode.UNSUPPORTED_VERSION: (
        "The cluster's finalized features are not supported here: run a release that has them, or "
        "change them with UpdateFeatures"
    ),
    ErrorCode.INVALID_REGISTRATION: (
        "Another broker is registered with one of its directories: do not copy directories "
        "between nodes; format new ones"
    ),
    ErrorCode.BROKER_ID_NOT_REGISTERED: "The broker was unregistered: restart it to register again",
}
FINAL = frozenset(ADVICE) - {ErrorCode.DUPLICATE_BROKER_REGISTRATION}


class Controller(Protocol):
    """The active controller, as a broker reaches it."""

    def handle(self, request: Message, *, timeout_ms: int | None = None) -> Awaitable[Any]:
        """The controller's answer; one that says REQUEST_TIMED_OUT when none was found."""


class BrokerLifecycle:
    """One broker's registration and heartbeats."""

    def __init__(
        self,
        *,
        config: NodeConfig,
        clock: Clock,
        controller: Controller,
        cluster_id: str,
        incarnation_id: Uuid,
        log_dirs: list[Uuid],
        image: Callable[[], MetadataImage],
        wait_for: Callable[[Callable[[MetadataImage], bool]], Awaitable[None]],
        on_failure: Callable[[Exception], None],
    ) -> None:
        """`wait_for` returns once the committed image fulfils a condition.

        `on_failure` gets the reason why the broker must end (UnreportedDirectoryError).
        """
        self._config = config
        self._clock = clock
        self._controller = controller
        self._cluster_id = cluster_id
        self._incarnation_id = incarnation_id
        self._log_dirs = log_dirs
        self._image = image
        self._wait_for = wait_for
        self._interval_ms = config.get_int("broker.heartbeat.interval.ms")
        self._on_failure = on_failure
        self._failure_timeout_ms = config.get_int("log.dir.failure.timeout.ms")
        self._offline: dict[Uuid, bool] = {}
        """True for each failed directory that a controller has heard of."""
        self._failure_timers: list[Timer] = []
        self.cordoned_log_dirs: list[Uuid] = []
        """What heartbeats say of `cordoned.log.dirs`; `beat` says it at once."""
        self.has_joined = False
        """True if the broker takes part, or has asked to: heartbeats say what is cordoned."""
        self._has_left = False
        self._timer: Timer | None = None
        self._beating: asyncio.Task[Any] | None = None
        self._beat_outcome = ErrorCode.NONE
        self.epoch = -1
        """The epoch of the registration, or -1."""

    async def register(self, listeners: Mapping[str, Endpoint], previous_broker_epoch: int) -> int:
        """Register, fenced, and return the epoch once this node's image has it.

        Waits for a controller as long as it takes. Raises RegistrationError when it refuses, for
        an id that a live broker holds only after `initial.broker.registration.timeout.ms`.
        """
        request = broker_registration(
            broker_id=self._config.node_id,
            cluster_id=self._cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=listeners,
            rack=self._config.get_str_or_none("broker.rack"),
            log_dirs=self._log_dirs,
            previous_broker_epoch=previous_broker_epoch,
        )
        started_ms = self._clock.monotonic_ms()
        limit_ms = self._config.get_int("initial.broker.registration.timeout.ms")
        said: ErrorCode | None = None
        while True:
            response = await self._controller.handle(request, timeout_ms=ATTEMPT_TIMEOUT_MS)
            code = ErrorCode.of(response.error_code)
            if code is ErrorCode.NONE:
                break
            if code is ErrorCode.REQUEST_TIMED_OUT:
                telemetry.warning("waiting for the controllers: no active one answers yet")
                continue
            waited_ms = self._clock.monotonic_ms() - started_ms
            if code in FINAL or (
                code is ErrorCode.DUPLICATE_BROKER_REGISTRATION and waited_ms >= limit_ms
            ):
                raise RegistrationError(code, ADVICE[code])
            if code is not said:
                advice = ADVICE.get(code, "")
                telemetry.warning("registration is delayed: %s. %s", code.name, advice)
                said = code
            await pause(self._clock, RETRY_MS)
        epoch: int = response.broker_epoch
        self.epoch = epoch
        await self._wait_for(lambda image: image.offset >= epoch)
        return epoch

    async def unfence(self) -> None:
        """Ask to take part, and return once this node's image says that it does."""
        self.has_joined = True
        node_id = self._config.node_id
        while True:
            await self.beat()
            broker = self._image().brokers.get(node_id)
            if broker is not None and broker.epoch == self.epoch and not broker.fenced:
                break
            await pause(self._clock, RETRY_MS)
        self._beat_later()

    def _beat_later(self) -> None:
        self._timer = self._clock.call_later(self._interval_ms, self._beat_now)

    def _beat_now(self) -> None:
        self._beating = asyncio.ensure_future(self._beat_and_go_on())

    async def _beat_and_go_on(self) -> None:
        self._beat_later()
        response = await self.beat()
        code = ErrorCode.of(response.error_code)
        if code is self._beat_outcome:
            return  # said once, however long it goes on
        if code is ErrorCode.NONE:
            telemetry.info("the controller accepts heartbeats again")
        else:
            telemetry.warning("the controller did not accept a heartbeat: %s", code.name)
        self._beat_outcome = code

    async def beat(self) -> Any:
        """Send a heartbeat now; returns the controller's answer."""
        request = self._request()
        response = await self._controller.handle(request, timeout_ms=self._interval_ms)
        if response.error_code == ErrorCode.NONE:
            self._offline.update(dict.fromkeys(request.offline_log_dirs, True))
        return response

    def _request(self, *, want_shut_down: bool = False) -> BrokerHeartbeatRequest:
        return BrokerHeartbeatRequest(
            broker_id=self._config.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._image().offset,
            want_fence=not self.has_joined,
            want_shut_down=want_shut_down,
            offline_log_dirs=list(self._offline),
            cordoned_log_dirs=self._cordoned(),
        )

    def _cordoned(self) -> list[Uuid] | None:
        """None where the cluster's metadata cannot say it."""
        image = self._image()
        if image.is_empty or not image.metadata_version.has_cordoned_log_dirs:
            return None
        return list(self.cordoned_log_dirs)

    async def directories_failed(self, directory_ids: list[Uuid]) -> None:
        """Tell the controller that log directories of this broker went offline.

        Each heartbeat reports it from now on, so that it cannot get lost. The broker is to
        end if no controller takes one within `log.dir.failure.timeout.ms`.
        """
        for directory_id in directory_ids:
            self._offline[directory_id] = False
            self._failure_timers.append(
                self._clock.call_later(
                    self._failure_timeout_ms, partial(self._check_reported, directory_id)
                )
            )
        await self.beat()

    def _check_reported(self, directory_id: Uuid) -> None:
        if not self._offline[directory_id] and not self._has_left:
            self._on_failure(UnreportedDirectoryError(directory_id, self._failure_timeout_ms))

    async def shut_down(self) -> None:
        """Give leaderships away and be fenced; returns when the controller agrees.

        Gives up when no controller is heard for a while: when a whole cluster ends, the last
        nodes have nobody to ask. Harmless when the broker was never registered, or has left.
        Does nothing with `controlled.shutdown.enable=false`: the controller finds the broker dead.
        """
        self._stop_beating()
        if self.epoch < 0 or self._has_left:
            return
        if not self._config.get_bool("controlled.shutdown.enable"):
            telemetry.info("stopping without moving leaderships (controlled.shutdown.enable=false)")
            return
        heard_ms = started_ms = self._clock.monotonic_ms()
        while True:
            response = await self._controller.handle(
                self._request(want_shut_down=True), timeout_ms=CONTROLLER_LOST_MS
            )
            now_ms = self._clock.monotonic_ms()
            if response.error_code == ErrorCode.NONE:
                heard_ms = now_ms
                if response.should_shut_down:
                    self._has_left = True
                    return
            elif response.error_code != ErrorCode.REQUEST_TIMED_OUT:
                name = ErrorCode.of(response.error_code).name
                telemetry.warning("the controller refused a controlled shutdown: %s", name)
                return
            if now_ms - heard_ms >= CONTROLLER_LOST_MS or now_ms - started_ms > SHUTDOWN_TIMEOUT_MS:
                telemetry.warning("no controller answers: stopping without a controlled shutdown")
                return
            await pause(self._clock, RETRY_MS)

    def _stop_beating(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def close(self) -> None:
        """Send no more heartbeats."""
        self._stop_beating()
        for timer in self._failure_timers:
            timer.cancel()
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.wait([self._beating])
