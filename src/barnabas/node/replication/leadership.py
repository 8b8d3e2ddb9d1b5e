"""The other replicas of a partition that this node leads: who is in sync, what is committed.

The ISR belongs to the controller. The leader proposes another one (AlterPartition) and, until it
knows the outcome, must be right with either: the high watermark waits for the *maximal* ISR,
every replica that is in the committed one or may be by now. So a replica that shall join counts
at once, and one that shall leave counts until it has left (KIP-497).

    committed ──(a follower caught up)──▶ expanding ──▶ committed
        └─────(a follower lags)─────────▶ shrinking ──▶ committed

A refusal that says that nothing was changed leads back to the committed state. After any other
one, the state stays as it is until the image tells.

Source: Kafka's Partition and PartitionState; KIP-497, 841, 903, 966.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.metadata.image import BrokerImage, LeaderRecoveryState, PartitionImage
from barnabas.node.replication.followers import FetchSource, Follower
from barnabas.node.replication.traffic import Traffic
from barnabas.protocol.errors import ErrorCode

ANY_BROKER_EPOCH = -1
NOT_APPLIED = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
"""The controller refused knowing this very partition epoch: it was not changed."""
AWAIT_IMAGE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""This node is behind; what is true comes with the image."""

telemetry = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class IsrProposal:
    """An ISR that a leader asks for. Compared by identity: an answer is to one question."""

    leadership: Leadership
    topic_id: Uuid
    index: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    """(broker, broker epoch)"""
    joins: int | None
    """The replica that is to join; None: some are to leave."""


def _refuse(proposal: IsrProposal) -> bool:
    """For partitions outside a replica manager."""
    return False


@dataclass(slots=True, eq=False)
class ReplicaContext:
    """State and settings that the partitions of one node share. One per replica manager."""

    node_id: int
    clock: Clock
    lag_max_ms: int = 30_000
    """`replica.lag.time.max.ms`"""
    broker_epoch: Callable[[], int] = lambda: -1
    propose_isr: Callable[[IsrProposal], bool] = _refuse
    """Ask the controller; False if it is asked about that partition already."""
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    """As the image has them now."""
    incomplete: dict[Leadership, None] = field(default_factory=dict)
    """Those that have a replica outside their ISR."""
    traffic: Traffic = field(default_factory=Traffic)
    """The traffic counters of this node."""


class LedPartition(Protocol):
    """The partition, as far as its leadership reads and changes it."""

    topic_partition: TopicPartition
    topic_id: Uuid
    log: PartitionLog
    leader_epoch: int
    leader_epoch_start: int
    partition_epoch: int
    isr_size: int

    @property
    def high_watermark(self) -> int:
        """The first offset that consumers may not read."""

    @property
    def effective_min_isr(self) -> int:
        """The number of replicas in sync below which nothing is committed."""

    def commit(self) -> None:
        """Raise the high watermark to what is committed now."""


class Leadership:
    """Followers and ISR of one partition, for one leader epoch and on."""

    __slots__ = ("_by_id", "_context", "_partition", "followers", "isr", "pending")

    def __init__(self, partition: LedPartition, context: ReplicaContext) -> None:
        self._partition = partition
        self._context = context
        self._by_id: dict[int, Follower] = {}
        self.followers: list[Follower] = []
        """Every replica but this one, in assignment order."""
        self.isr: tuple[int, ...] = ()
        """The committed in-sync replicas, this one among them."""
        self.pending: IsrProposal | None = None

    def assign(self, placed: PartitionImage) -> None:
        """Take replicas and ISR over from the image."""
        known = self._by_id
        self._by_id = {
            broker_id: known.get(broker_id) or Follower(broker_id)
            for broker_id in placed.replicas
            if broker_id != self._context.node_id
        }
        self.followers = list(self._by_id.values())
        if placed.partition_epoch != self._partition.partition_epoch or placed.isr != self.isr:
            self.pending = None
        self.isr = placed.isr
        self._mark()

    def start_epoch(self, now_ms: int, leader_end_offset: int, *, is_new_leader: bool) -> None:
        """A leader epoch begins at the end of the log."""
        for follower in self.followers:
            follower.reset(
                now_ms,
                leader_end_offset,
                is_new_leader=is_new_leader,
                is_in_isr=follower.is_in_isr,
            )

    def _mark(self) -> None:
        """Note on each follower whether it counts, and on the partition how many do."""
        isr, pending = self.isr, self.pending
        joins = None if pending is None else pending.joins
        for follower in self.followers:
            follower.is_in_isr = follower.broker_id in isr
            follower.holds_watermark = follower.is_in_isr or follower.broker_id == joins
        self._partition.isr_size = len(isr)
        if len(isr) > len(self.followers):
            self._context.incomplete.pop(self, None)
        else:
            self._context.incomplete[self] = None

    @property
    def maximal_isr_size(self) -> int:
        """The number of replicas that are in the ISR, or may have joined it by now."""
        pending = self.pending
        return len(self.isr) + (pending is not None and pending.joins is not None)

    def follower(self, broker_id: int) -> Follower | None:
        """Return the state of a replica as a follower; None if it is not one."""
        return self._by_id.get(broker_id)

    # -- fetches

    def fetched(
        self,
        follower: Follower,
        fetch_offset: int,
        log_start_offset: int,
        broker_epoch: int,
        source: FetchSource | None,
    ) -> bool:
        """Take note of a follower's fetch; False from an incarnation that is over (KIP-903).

        The next one may have fetched already while this node's image does not know of it yet.
        """
        if broker_epoch != ANY_BROKER_EPOCH:
            broker = self._context.brokers.get(follower.broker_id)
            if broker is not None and broker.epoch > broker_epoch:
                return False
            if follower.broker_epoch is not None and follower.broker_epoch > broker_epoch:
                return False
        now_ms = self._context.clock.monotonic_ms()
        follower.record(
            fetch_offset,
            log_start_offset,
            now_ms,
            self._partition.log.log_end_offset,
            broker_epoch,
            source,
        )
        if not follower.is_in_isr:
            self._maybe_expand(follower)
        return True

    def appended(self, old_end_offset: int) -> None:
        """The leader's log grew from `old_end_offset`."""
        for follower in self.followers:
            if follower.log_end_offset == old_end_offset:
                follower.fell_behind()

    # -- what is committed

    def committable(self, local_end_offset: int) -> int:
        """Up to where all have it who must; -1 while that is not known, or too few are in sync.

        A replica outside the ISR that is caught up is waited for too: it is about to join, and
        a watermark that ran ahead of it would keep it out.
        """
        partition = self._partition
        if len(self.isr) < partition.effective_min_isr:
            return -1
        offset = local_end_offset
        for follower in self.followers:
            if follower.log_end_offset < offset and (
                follower.holds_watermark or self._is_about_to_join(follower)
            ):
                offset = follower.log_end_offset
        return offset

    def _is_about_to_join(self, follower: Follower) -> bool:
        context = self._context
        return follower.is_caught_up(
            self._partition.log.log_end_offset, context.clock.monotonic_ms(), context.lag_max_ms
        ) and self._is_eligible(follower)

    def low_watermark(self) -> int:
        """The first offset that some live replica still has (for DeleteRecords)."""
        offset = self._partition.log.log_start_offset
        brokers = self._context.brokers
        for follower in self.followers:
            broker = brokers.get(follower.broker_id)
            if broker is not None and not broker.fenced:
                offset = min(offset, follower.log_start_offset)
        return offset

    # -- the ISR

    def _is_eligible(self, follower: Follower) -> bool:
        """Return whether its broker may join: alive, staying, and the one that sent the fetch."""
        broker = self._context.brokers.get(follower.broker_id)
        return (
            broker is not None
            and broker.is_active
            and follower.broker_epoch is not None
            and follower.broker_epoch in (ANY_BROKER_EPOCH, broker.epoch)
        )

    def _maybe_expand(self, follower: Follower) -> None:
        """Propose that a follower joins which has all that is committed, and this epoch's start.

        The latter because what lies between this leader's high watermark and the start of its
        epoch may have been committed by the leader before.
        """
        partition = self._partition
        end_offset = follower.log_end_offset
        if (
            self.pending is None
            and not follower.is_in_isr
            and end_offset >= partition.high_watermark
            and end_offset >= partition.leader_epoch_start
            and self._is_eligible(follower)
        ):
            self._propose((*self.isr, follower.broker_id), joins=follower.broker_id)

    def look_again(self, now_ms: int) -> None:
        """Propose again what was refused or not yet possible when a follower last fetched.

        Then commit what need not wait for others any more.
        """
        for follower in self.followers:
            if (
                not follower.is_in_isr
                and now_ms - follower.fetched_ms() <= self._context.lag_max_ms
            ):
                self._maybe_expand(follower)
        self._partition.commit()

    def shrink(self, now_ms: int) -> None:
        """Propose that those leave who have not been caught up for too long."""
        if self.pending is not None or len(self.isr) == 1:
            return
        end_offset = self._partition.log.log_end_offset
        lag_max_ms = self._context.lag_max_ms
        lagging = {
            follower.broker_id
            for follower in self.followers
            if follower.is_in_isr and not follower.is_caught_up(end_offset, now_ms, lag_max_ms)
        }
        if lagging:
            telemetry.info(
                "%s: shrinking the ISR by %s; log end offset %d, high watermark %d",
                self._partition.topic_partition,
                sorted(lagging),
                end_offset,
                self._partition.high_watermark,
            )
            self._propose(tuple(replica for replica in self.isr if replica not in lagging))

    def _propose(self, isr: tuple[int, ...], joins: int | None = None) -> None:
        partition, context = self._partition, self._context
        proposal = IsrProposal(
            self,
            partition.topic_id,
            partition.topic_partition.partition,
            partition.leader_epoch,
            partition.partition_epoch,
            tuple((broker_id, self._epoch_of(broker_id)) for broker_id in isr),
            joins,
        )
        self.pending = proposal
        self._mark()
        if not context.propose_isr(proposal):
            self._withdraw()

    def _epoch_of(self, broker_id: int) -> int:
        follower = self._by_id.get(broker_id)
        if follower is None:
            return self._context.broker_epoch()
        return ANY_BROKER_EPOCH if follower.broker_epoch is None else follower.broker_epoch

    def _withdraw(self) -> None:
        self.pending = None
        self._mark()

    def granted(
        self, proposal: IsrProposal, leader_epoch: int, partition_epoch: int, isr: tuple[int, ...]
    ) -> None:
        """The controller did as proposed, or found it done."""
        partition = self._partition
        if (
            self.pending is not proposal
            or leader_epoch != partition.leader_epoch
            or partition_epoch < partition.partition_epoch
        ):
            return
        self.pending = None
        traffic = self._context.traffic
        if len(isr) > len(self.isr):
            traffic.isr_expands += 1
        elif len(isr) < len(self.isr):
            traffic.isr_shrinks += 1
        self.isr = isr
        partition.partition_epoch = partition_epoch
        self._mark()
        telemetry.info(
            "%s: the ISR is now %s, partition epoch %d",
            partition.topic_partition,
            list(isr),
            partition_epoch,
        )
        partition.commit()

    def refused(self, proposal: IsrProposal, error: ErrorCode) -> bool:
        """The controller refused; returns whether to ask again."""
        if self.pending is not proposal:
            return False
        self._context.traffic.failed_isr_updates += 1
        telemetry.info(
            "%s: the controller refused an ISR change: %s",
            self._partition.topic_partition,
            error.name,
        )
        if error in NOT_APPLIED:
            self._withdraw()
            return False
        return error not in AWAIT_IMAGE

    @property
    def leader_recovery_state(self) -> int:
        """A leader has recovered everything it could once it leads."""
        return LeaderRecoveryState.RECOVERED

    def resign(self) -> None:
        """This node does not lead any more: answers that come late mean nothing."""
        self.pending = None
        self._context.incomplete.pop(self, None)
