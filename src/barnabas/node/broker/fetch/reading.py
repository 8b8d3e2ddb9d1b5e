"""Reading one partition for a fetch: what may this client see of it, and from where.

Consumers read up to the high watermark, or the last stable offset, of a leader or (since v11) of
a follower; followers read a leader up to the end of its log, and by the offset they ask for tell
it what they have. A client that sends the epoch of the batch before its offset learns where its log
diverges from this one (KIP-595).

`LateReads` are those that the logs answer later, because the records are remote.

Source: Kafka's Partition.fetchRecords and ReplicaManager.readFromLog.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.base.ids import Uuid
from barnabas.base.network import Part
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.current_leader import HINTED, current_leader
from barnabas.node.broker.fetch.codec import NO_REPLICA, PREFERRED_REPLICA_FROM, FetchAnswer
from barnabas.node.broker.fetch.sessions import FetchSession, FetchTarget, WaitingFetch
from barnabas.node.broker.grants import Grants
from barnabas.node.broker.services import BrokerServices
from barnabas.node.config.node_config import RACK_AWARE_SELECTOR, NodeConfig
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.log.results import DeferredRead, ReadResult, RemoteRead
from barnabas.node.metadata.image import BrokerImage
from barnabas.node.replication.partition import Partition
from barnabas.node.replication.traffic import EXPECTED_OF_FETCH
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.records.batch import CorruptBatchError
from barnabas.protocol.well_known import CONSUMER_ID, READ_COMMITTED

telemetry = logging.getLogger(__name__)

LEADER_HINTS_FROM = 16
REPLICA_STATE_FROM = 15
WAIT_MIN_MS = 500
"""A fetch waits so long for remote records, though it asks for less: else it might never have any.

Kafka's default of `remote.fetch.max.wait.ms`.
"""


class LateReads:
    """The late reads of one fetch. Every look of the fetch asks here first."""

    __slots__ = ("_reads", "waiter")

    def __init__(self) -> None:
        self._reads: dict[FetchTarget, DeferredRead] = {}
        self.waiter: WaitingFetch | None = None
        """Looks again when a read is settled."""

    @property
    def are_pending(self) -> bool:
        """True if to wait: some records have not come."""
        return not all(read.is_settled for read in self._reads.values())

    def get(self, target: FetchTarget) -> DeferredRead | None:
        """The read of `target`, if it has been begun."""
        return self._reads.get(target)

    def result(
        self, target: FetchTarget, read: DeferredRead, max_bytes: int, min_one_batch: bool
    ) -> ReadResult:
        """The result of `read`; without records while it is pending, or if they are too many."""
        if target not in self._reads:
            self._reads[target] = read
            if not read.is_settled:
                read.then(self._arrived)
        if read.is_settled and (min_one_batch or read.value.size_bytes <= max_bytes):
            return read.value
        return ReadResult(ErrorCode.NONE, [], 0, target.fetch_offset)

    def _arrived(self, _: RemoteRead) -> None:
        if self.waiter is not None:
            self.waiter.look_again()

    def abandon(self) -> None:
        """The fetch is answered, or nobody waits for it."""
        self.waiter = None
        for read in self._reads.values():
            read.abandon()
        self._reads.clear()


@dataclass(slots=True)
class Reader:
    """The fetcher, and the part of each log that it may see."""

    services: BrokerServices
    session: FetchSession
    replica_id: int
    """A follower's broker id; below 0: a consumer."""
    broker_epoch: int
    committed_only: bool
    to_log_end: bool
    leader_only: bool
    hints_leader: bool
    rack_id: str
    listener_name: str
    grants: Grants | None
    """The topics that a consumer may read; None: all."""
    may_follow: bool
    """True if a follower may read."""
    late: LateReads | None = None
    """Made at the first read that is answered later."""

    @classmethod
    def of(
        cls,
        services: BrokerServices,
        context: RequestContext,
        request: FetchRequest,
        session: FetchSession,
    ) -> "Reader":
        """The reader that sent `request`."""
        version = context.api_version
        replica_id, broker_epoch = replica_of(request, version)
        knows_replicas = version >= PREFERRED_REPLICA_FROM
        grants = session.grants
        rack_id = request.rack_id if knows_replicas and replica_id < 0 else ""
        return cls(
            services=services,
            session=session,
            replica_id=replica_id,
            broker_epoch=broker_epoch,
            committed_only=request.isolation_level == READ_COMMITTED and replica_id == CONSUMER_ID,
            to_log_end=replica_id != CONSUMER_ID,
            leader_only=replica_id >= 0 or (replica_id == CONSUMER_ID and not knows_replicas),
            hints_leader=version >= LEADER_HINTS_FROM,
            rack_id=rack_id if rack_id and is_rack_aware(services.config) else "",
            listener_name=context.listener_name,
            grants=grants,
            may_follow=grants is None or (replica_id >= 0 and grants.may_act_for_cluster()),
        )

    def read(
        self, target: FetchTarget, left_bytes: int, *, min_one_batch: bool, is_first_look: bool
    ) -> FetchAnswer:
        """Read `target`'s partition; watched from now on, if it is here.

        At the first look at a request a follower's position is taken note of.
        """
        topic, index = target.topic, target.index
        if self.grants is not None:
            error = self._check_rights(self.grants, topic)
            if error:
                self.session.watch(target, None)
                return self._refuse(target, error)
        replicas = self.services.replicas
        found = (
            replicas.find_by_id(topic, index)
            if isinstance(topic, bytes)
            else replicas.find(topic, index)
        )
        if not isinstance(found, Partition):
            self.session.watch(target, None)
            return self._refuse(target, found)
        self.session.watch(target, found)
        found.traffic.fetches += 1
        error = found.check_epoch(target.current_leader_epoch)
        if not error and self.leader_only and not found.is_leader:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if error:
            return self._refuse(target, error)
        if self.rack_id and found.is_leader:
            elsewhere = preferred_replica(
                found,
                self.services.image.brokers,
                self.rack_id,
                target.fetch_offset,
                self.listener_name,
            )
            if elsewhere != NO_REPLICA:
                return _answer(target, found, preferred=elsewhere)
        try:
            return self._read(target, found, left_bytes, min_one_batch, is_first_look)
        except LogDirFailure:
            return self._refuse(target, ErrorCode.KAFKA_STORAGE_ERROR)

    def _check_rights(self, grants: Grants, topic: str | Uuid) -> ErrorCode:
        """Why the client may not read a topic.

        Whether there is one of a forbidden name is not told; ids are no secret.
        """
        if self.replica_id >= 0:
            return ErrorCode.NONE if self.may_follow else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if isinstance(topic, bytes):
            image = self.services.image.topics.by_id.get(topic)
            if image is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
            topic = image.name
        if grants.read_topic.allows(topic):
            return ErrorCode.NONE
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def _read(
        self,
        target: FetchTarget,
        partition: Partition,
        left_bytes: int,
        min_one_batch: bool,
        is_first_look: bool,
    ) -> FetchAnswer:
        log = partition.log
        offset = target.fetch_offset
        is_throttled = False
        error = ErrorCode.NONE
        if self.replica_id >= 0 and (
            partition.leading is None or partition.leading.follower(self.replica_id) is None
        ):
            # The follower may know of an assignment that this node has yet to hear of.
            no_epoch = target.current_leader_epoch < 0
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER if no_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
        elif target.last_fetched_epoch >= 0:
            epoch, end_offset = log.end_offset_for_epoch(target.last_fetched_epoch)
            if epoch < 0 or end_offset < 0 or offset < log.log_start_offset:
                error = ErrorCode.OFFSET_OUT_OF_RANGE
            elif epoch < target.last_fetched_epoch or end_offset < offset:
                return _answer(target, partition, diverging=(epoch, end_offset))
        if not error and not log.log_start_offset <= offset <= log.log_end_offset:
            error = ErrorCode.OFFSET_OUT_OF_RANGE
        if self.replica_id >= 0 and not error:
            error = self._check_follower(target, partition, is_first_look)
            is_throttled = self._is_throttled(partition)
        if error:
            return self._refuse(target, error)
        if self.to_log_end:
            max_offset = log.log_end_offset
        else:
            max_offset = (
                partition.last_stable_offset if self.committed_only else partition.high_watermark
            )
        size_max_bytes = min(left_bytes, target.size_max_bytes)
        parts: list[Part] = []
        size_bytes = 0
        aborted: list[tuple[int, int]] | None = [] if self.committed_only else None
        if offset < max_offset and (size_max_bytes > 0 or min_one_batch) and not is_throttled:
            result = (None if self.late is None else self.late.get(target)) or log.read(
                offset, size_max_bytes, max_offset=max_offset, min_one_batch=min_one_batch
            )
            if isinstance(result, DeferredRead):
                result = self._read_late(target, result, size_max_bytes, min_one_batch)
            if result.error:
                return self._refuse(target, result.error)
            if self.committed_only and result.size_bytes:
                try:
                    aborted = _aborted_in(log, result, offset)
                except CorruptBatchError as damage:
                    telemetry.error("cannot read %s with read_committed: %s", target.topic, damage)
                    return self._refuse(target, ErrorCode.CORRUPT_MESSAGE)
            parts, size_bytes = result.parts, result.size_bytes
        return FetchAnswer(
            target.topic,
            target.index,
            ErrorCode.NONE,
            partition.high_watermark,
            partition.last_stable_offset,
            log.log_start_offset,
            aborted,
            parts,
            size_bytes,
        )

    def _read_late(
        self, target: FetchTarget, read: DeferredRead, max_bytes: int, min_one_batch: bool
    ) -> ReadResult:
        if self.late is None:
            self.late = LateReads()
        return self.late.result(target, read, max_bytes, min_one_batch)

    def _check_follower(
        self, target: FetchTarget, partition: Partition, is_first_look: bool
    ) -> ErrorCode:
        """Return the error for a follower that may not read. The first look stores its position."""
        log = partition.log
        if log.remote is not None and target.fetch_offset < log.local_start_offset:
            return ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE  # it asks the same tier
        if is_first_look and not self._take_note(target, partition):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE

    def _take_note(self, target: FetchTarget, partition: Partition) -> bool:
        """A follower has everything before the offset that it asks for."""
        leading = partition.leading
        assert leading is not None
        follower = leading.follower(self.replica_id)
        assert follower is not None
        if not leading.fetched(
            follower,
            target.fetch_offset,
            target.log_start_offset,
            self.broker_epoch,
            self.session.source,
        ):
            return False
        partition.follower_fetched()
        return True

    def _is_throttled(self, partition: Partition) -> bool:
        """Return whether to hold records back from a follower that is not in sync (KIP-73)."""
        quota = self.services.replicas.fetchers.leader_quota
        if not quota.is_active or not quota.is_throttled(partition.topic_partition):
            return False
        follower = (
            None if partition.leading is None else partition.leading.follower(self.replica_id)
        )
        return follower is not None and not follower.is_in_isr and quota.is_exceeded()

    def sent(self, target: FetchTarget, size_bytes: int) -> None:
        """Count what is sent, and what a throttled follower is."""
        if target.partition is None:
            return
        if self.replica_id < 0:
            target.partition.traffic.bytes_out += size_bytes
        else:
            self.services.replicas.context.traffic.replication_bytes_out += size_bytes
            quota = self.services.replicas.fetchers.leader_quota
            if quota.is_active:
                quota.record_if_throttled(target.partition.topic_partition, size_bytes)

    def _refuse(self, target: FetchTarget, error: ErrorCode) -> FetchAnswer:
        hint = None
        if target.partition is not None and error not in EXPECTED_OF_FETCH:
            target.partition.traffic.failed_fetches += 1
        if self.hints_leader and error in HINTED:
            hint = current_leader(self.services, target.topic, target.index)
        return FetchAnswer(
            target.topic, target.index, error, -1, -1, -1, None, [], 0, current_leader=hint
        )


def replica_of(request: FetchRequest, version: int) -> tuple[int, int]:
    """(replica id, broker epoch) of who fetches; the epoch is -1 if none is given."""
    if version >= REPLICA_STATE_FROM:
        return request.replica_state.replica_id, request.replica_state.replica_epoch
    return request.replica_id, -1


def _aborted_in(log: PartitionLog, result: ReadResult, offset: int) -> list[tuple[int, int]]:
    """(producer id, first offset) of what is aborted. Raises CorruptBatchError, LogDirFailure."""
    aborted = (
        result.aborted
        if isinstance(result, RemoteRead)
        else log.aborted_transactions(offset, result.next_offset)
    )
    return [(entry.producer_id, entry.first_offset) for entry in aborted]


def _answer(
    target: FetchTarget,
    partition: Partition,
    *,
    preferred: int = NO_REPLICA,
    diverging: tuple[int, int] | None = None,
) -> FetchAnswer:
    """An answer without records."""
    return FetchAnswer(
        target.topic,
        target.index,
        ErrorCode.NONE,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log.log_start_offset,
        None,
        [],
        0,
        preferred,
        diverging,
    )


# -- choice of the replica that a consumer should fetch from (KIP-392)
#
# `replica.selector.class` names Kafka's RackAwareReplicaSelector, which is the one known here: a
# replica in the consumer's rack, the one that lags least; the leader where it is in that rack
# itself, or none else is. Only in-sync replicas that have the offset are considered.


def is_rack_aware(config: NodeConfig) -> bool:
    """Return whether consumers are sent to replicas of their rack."""
    return config.get_str_or_none("replica.selector.class") == RACK_AWARE_SELECTOR


def preferred_replica(
    partition: Partition,
    brokers: Mapping[int, BrokerImage],
    rack_id: str,
    fetch_offset: int,
    listener_name: str,
) -> int:
    """The replica to fetch from instead of this leader, or -1."""
    leading = partition.leading
    if leading is None or not rack_id:
        return NO_REPLICA
    leader = brokers.get(partition.node_id)
    if leader is not None and leader.rack == rack_id:
        return NO_REPLICA
    best = NO_REPLICA
    best_rank: tuple[int, int, int] | None = None
    for follower in leading.followers:
        broker = brokers.get(follower.broker_id)
        if (
            broker is None
            or broker.fenced
            or broker.rack != rack_id
            or listener_name not in broker.listeners
            or not follower.is_in_isr
            or not follower.log_start_offset <= fetch_offset <= follower.log_end_offset
        ):
            continue
        # The end furthest on, then who was caught up last, then the lower id.
        rank = (follower.log_end_offset, follower.last_caught_up_ms, -follower.broker_id)
        if best_rank is None or rank > best_rank:
            best, best_rank = follower.broker_id, rank
    return best
