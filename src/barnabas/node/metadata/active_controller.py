"""The controller at work: it decides requests while this node leads the quorum.

A request is decided against an image that includes what is appended but not committed; its
records go to the log, are replayed at once into that image, and when the quorum has committed
them, brokers get the change and then the requester its response. Decisions do not wait for each
other's fsync: those that are taken while one is under way share the next.

It also watches the brokers. One that is silent for `broker.session.timeout.ms` is fenced. One
whose connection ends is looked up: if its listener refuses a connection the process is gone, and
it is fenced at once; if it answers, or nothing at all is heard, it has the rest of its time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from itertools import islice
from typing import Any, Final, NamedTuple

from barnabas.base.clock import Clock, Timer
from barnabas.base.ids import Uuid
from barnabas.base.network import Network
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.controller.activation import activation_records
from barnabas.node.metadata.controller.brokers import fence_records, register_broker
from barnabas.node.metadata.controller.decision import (
    NO_MUTATION_QUOTA,
    ControllerState,
    Decision,
    MutationQuota,
)
from barnabas.node.metadata.controller.delegation_tokens import remove_expired_tokens
from barnabas.node.metadata.controller.elections import balance_leaders, elect_unclean_leaders
from barnabas.node.metadata.controller.handlers import DECIDE
from barnabas.node.metadata.controller.sessions import BrokerSessions
from barnabas.node.metadata.effective_config import EffectiveConfig
from barnabas.node.metadata.ids import RandomSource
from barnabas.node.metadata.image import BrokerImage
from barnabas.node.metadata.liveness import is_gone
from barnabas.node.metadata.loader import RecordBatch
from barnabas.node.metadata.publisher import ImagePublisher
from barnabas.node.metadata.records import MetadataRecord, encode_record
from barnabas.node.raft.interfaces import NotLeaderError
from barnabas.node.raft.node import RaftNode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.nodes import BrokerHeartbeatRequest, BrokerRegistrationRequest
from barnabas.protocol.well_known import ANONYMOUS

RECORDS_PER_BATCH_MAX = 10_000
"""A decision that need not be atomic is appended in batches of this size."""
SESSION_CHECKS_PER_TIMEOUT = 18
"""As often as every half second with the default session time-out."""

telemetry = logging.getLogger(__name__)


class ActiveController:
    """The controller of one node; idle until `activate`."""

    def __init__(
        self,
        *,
        config: NodeConfig,
        effective: EffectiveConfig,
        raft: RaftNode,
        publisher: ImagePublisher,
        bootstrap: Callable[[], list[MetadataRecord]],
        clock: Clock,
        random: RandomSource,
        network: Network,
        incarnation_id: Uuid,
        on_appended: Callable[[int], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        """`bootstrap` reads what `storage format` left; `on_appended` gets sizes in bytes.

        `incarnation_id` is this node's own broker's.
        """
        self._config = config
        self._effective = effective
        self._raft = raft
        self._publisher = publisher
        self._bootstrap = bootstrap
        self._clock = clock
        self._random = random
        self._network = network
        self._incarnation_id = incarnation_id
        self._on_appended = on_appended
        self._on_failure = on_failure
        self._sessions = BrokerSessions(config.get_int("broker.session.timeout.ms"))
        self._timers: dict[str, Timer] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self.is_active = False

    # -- leadership

    def activate(self) -> None:
        """This node leads the quorum, and has applied all that came before.

        Raises BootstrapError.
        """
        self._publisher.lead()
        records = activation_records(
            self._state(), self._bootstrap(), self._publisher.transaction_offset
        )
        self.is_active = True
        if records:
            try:
                self._append(records)
            except NotLeaderError:
                return  # that was noticed only now
        telemetry.info("node %d is the active controller", self._config.node_id)
        brokers = list(self._publisher.latest.brokers.values())
        self._sessions.start(brokers, self._clock.monotonic_ms())
        for broker in brokers:
            if not broker.fenced and broker.id != self._config.node_id:
                self._start(self._look_after(broker, attempts=1))
        self._schedule_check()
        for periodic in PERIODIC:
            self._schedule(periodic)

    def deactivate(self) -> None:
        """This node leads no more: what it appended and was not committed is forgotten."""
        if not self.is_active:
            return
        self.is_active = False
        telemetry.info("node %d is no longer the active controller", self._config.node_id)
        self._publisher.revert()
        self._stop()

    def _stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Decide nothing more."""
        self.is_active = False
        self._stop()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # -- requests

    async def handle(
        self,
        request: Any,
        timeout_ms: int | None = None,
        *,
        requester: str = ANONYMOUS,
        mutations: MutationQuota = NO_MUTATION_QUOTA,
    ) -> Any:
        """Decide a request and return its response once it is committed.

        Raises NotLeaderError when this controller is not, or no longer, the active one;
        TimeoutError when `timeout_ms` milliseconds are over, and the change may still happen;
        and the failure of the metadata log.
        """
        if not self.is_active:
            raise NotLeaderError
        decision = self._decide(request, requester, mutations)
        last_offset = self._take(decision)
        async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
            await self._raft.wait_committed(last_offset)
        return decision.response

    def _decide(self, request: Any, requester: str, mutations: MutationQuota) -> Decision[Any]:
        now_ms = self._clock.monotonic_ms()
        if isinstance(request, BrokerRegistrationRequest):
            return self._register(request, now_ms)
        if isinstance(request, BrokerHeartbeatRequest):
            broker = self._publisher.latest.brokers.get(request.broker_id)
            if broker is not None and broker.epoch == request.broker_epoch:
                self._sessions.heard(request.broker_id, request.broker_epoch, now_ms)
        return DECIDE[type(request)](self._state(requester, mutations), request)

    def _register(self, request: BrokerRegistrationRequest, now_ms: int) -> Decision[Any]:
        # This node's own former process is gone, even if its session has not ended.
        is_own = request.incarnation_id == self._incarnation_id
        has_session = not is_own and self._sessions.holds_id(request.broker_id, now_ms)
        decision = register_broker(self._state(), request, has_session=has_session)
        if decision.response.error_code == ErrorCode.NONE:
            self._sessions.heard(request.broker_id, decision.response.broker_epoch, now_ms)
        return decision

    def _take(self, decision: Decision[Any]) -> int:
        """Append what was decided; returns the offset that its response waits for."""
        if decision.kraft_version is not None:
            self._raft.upgrade(decision.kraft_version)
        if decision.records:
            return self._append(decision.records, is_atomic=decision.is_atomic)
        # The records that it was decided on may be uncommitted.
        return self._raft.log_end_offset - 1

    def _state(
        self, requester: str = ANONYMOUS, mutations: MutationQuota = NO_MUTATION_QUOTA
    ) -> ControllerState:
        return ControllerState(
            image=self._publisher.latest,
            effective=self._effective,
            node_id=self._config.node_id,
            random=self._random,
            next_offset=self._raft.log_end_offset,
            mutations=mutations,
            kraft_version=self._raft.kraft_version,
            requester=requester,
            now_ms=self._clock.now_ms(),
            kraft_version_refusal=self._raft.upgrade_refusal,
        )

    def _append(self, records: list[MetadataRecord], *, is_atomic: bool = True) -> int:
        """Append and replay a decision's records; returns the offset of the last."""
        size = len(records) if is_atomic else RECORDS_PER_BATCH_MAX
        iterator = iter(records)
        last_offset = -1
        while batch := list(islice(iterator, size)):
            values = [encode_record(record) for record in batch]
            epoch = self._raft.epoch
            appended = self._raft.append(values)
            if not self._raft.is_leader or self._raft.epoch != epoch:
                raise NotLeaderError  # lost in the act: whether it holds, the next leader says
            self._publisher.appended(
                RecordBatch(appended.base_offset, epoch, self._clock.now_ms(), batch)
            )
            last_offset = appended.last_offset
            self._on_appended(sum(map(len, values)))
        # A sole voter may have committed while it appended, before there was what to publish.
        self._publisher.committed(self._raft.high_watermark)
        return last_offset

    # -- what happens without a request

    def _schedule(self, periodic: PeriodicDecision, *, at_once: bool = False) -> None:
        def decide() -> None:
            decision = periodic.decide(self._state())
            if decision is not None:
                telemetry.info("%s", periodic.name)
                self.carry_out(decision)
            if self.is_active:
                self._schedule(periodic, at_once=decision is not None and decision.response)

        period_ms = 0 if at_once else periodic.period_ms(self._config)
        self._timers[periodic.name] = self._clock.call_later(period_ms, decide)

    def _schedule_check(self) -> None:
        period_ms = max(self._sessions.timeout_ms // SESSION_CHECKS_PER_TIMEOUT, 1)
        self._timers["sessions"] = self._clock.call_later(period_ms, self._check_sessions)

    def _check_sessions(self) -> None:
        now_ms = self._clock.monotonic_ms()
        # The node's own broker lives as long as its controller does.
        self._refresh_own(now_ms)
        for broker in self._sessions.overdue(self._publisher.latest.brokers.values(), now_ms):
            self._fence(broker, f"no heartbeat for {self._sessions.timeout_ms} ms")
        if self.is_active:
            self._schedule_check()

    def _refresh_own(self, now_ms: int) -> None:
        own = self._publisher.latest.brokers.get(self._config.node_id)
        if own is not None and own.incarnation_id == self._incarnation_id and not own.fenced:
            self._sessions.heard(own.id, own.epoch, now_ms)

    def _fence(self, broker: BrokerImage, reason: str, *, before_its_time: bool = False) -> None:
        telemetry.warning("fencing broker %d: %s", broker.id, reason)
        self._sessions.end(broker.id, broker.epoch)
        records = fence_records(self._state(), broker, before_its_time=before_its_time)
        self.carry_out(Decision(None, records, is_atomic=False))

    def carry_out(self, decision: Decision[Any]) -> None:
        """Append a decision that nobody waits for."""
        try:
            self._take(decision)
        except NotLeaderError:
            return  # the next controller decides it for itself
        except Exception as error:  # noqa: BLE001  # the metadata log failed: the node must end
            self._on_failure(error)

    def connection_lost(self, broker_id: int, broker_epoch: int) -> None:
        """The connection over which a broker sent its heartbeats has ended."""
        broker = self._publisher.latest.brokers.get(broker_id)
        self._sessions.disconnected(broker_id, broker_epoch)
        if self.is_active and broker is not None and broker.epoch == broker_epoch:
            self._start(self._look_after(broker))

    async def _look_after(self, broker: BrokerImage, attempts: int = 5) -> None:
        """Fence a broker whose process is gone."""
        heard_ms = self._sessions.heard_ms(broker.id)
        if not await is_gone(broker, self._config, self._network, self._clock, attempts):
            return
        current = self._publisher.latest.brokers.get(broker.id)
        if (
            self.is_active
            and current is not None
            and current.epoch == broker.epoch
            and self._sessions.heard_ms(broker.id) == heard_ms
        ):
            self._sessions.end(broker.id, broker.epoch)
            if not current.fenced:
                reason = "its process is gone: its listener refuses connections"
                self._fence(current, reason, before_its_time=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks[task] = None
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            telemetry.error("watching a broker failed", exc_info=task.exception())


# -- periodic decisions of the active controller
#
# Left out of Kafka's list: fencing of silent brokers, which is due when a session ends
# (sessions.py), and NoOpRecords while idle.


class PeriodicDecision(NamedTuple):
    """`decide(state)` is due every `period_ms(config)`, first one period after activation.

    It returns None if there is nothing to do. The response of its decision says whether more
    remains: then it is due again at once.
    """

    name: str
    period_key: str
    unit_ms: int
    decide: Callable[[ControllerState], Decision[bool] | None]

    def period_ms(self, config: NodeConfig) -> int:
        """The interval between two decisions."""
        return config.get_int(self.period_key) * self.unit_ms


PERIODIC: Final = (
    PeriodicDecision(
        "balance leaders", "leader.imbalance.check.interval.seconds", 1000, balance_leaders
    ),
    PeriodicDecision(
        "elect unclean leaders", "unclean.leader.election.interval.ms", 1, elect_unclean_leaders
    ),
    PeriodicDecision(
        "remove expired delegation tokens",
        "delegation.token.expiry.check.interval.ms",
        1,
        remove_expired_tokens,
    ),
)
