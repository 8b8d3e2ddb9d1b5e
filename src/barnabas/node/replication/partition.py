"""One partition as this node has it: its role, its log, its high watermark and who waits.

The high watermark is what consumers may read and what `acks=all` waits for. A leader without
other replicas raises it to the log's end, or, where `flush.messages` asks for it, to what has
been fsynced: a group commit takes every append that came before it began. With followers it is
what all in-sync replicas have (`leadership.py`); after an election it starts where this replica
last knew it, and rises with the followers' first fetches. A follower learns it from its leader.

Source: Kafka's Partition.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Protocol

from barnabas.base.disk import Buffer
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.node.log.config import LONG_MAX
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.partition_log import AppendOrigin, AppendResult, PartitionLog
from barnabas.node.log.producers.verification import AppendTerms
from barnabas.node.log.stepped_check import CheckedBatch
from barnabas.node.metadata.image import NO_LEADER, PartitionImage
from barnabas.node.replication.leadership import Leadership, ReplicaContext
from barnabas.node.replication.offset_waiters import (
    CommitCallback,
    insert_in_order,
    split,
    tell,
    without,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import NO_LEADER_EPOCH

NO_PARTITION_EPOCH = -1

telemetry = logging.getLogger(__name__)


class ReadWaiter(Protocol):
    """A long-polling fetch, or a fetch session."""

    def partitions_advanced(self, partitions: "Sequence[Partition]") -> None:
        """There may be more to read than when it last looked, or an error to tell."""


class Waking(Protocol):
    """Wakes those who wait on partitions."""

    def on_advanced(self, partition: "Partition") -> None:
        """More may be read (the high watermark rose), or no longer from here."""

    def on_appended(self, partition: "Partition") -> None:
        """Followers have something to fetch, or news to hear."""


class _NobodyWaits:
    """For partitions outside a replica manager."""

    def on_advanced(self, partition: "Partition") -> None:
        """Nobody reads."""

    def on_appended(self, partition: "Partition") -> None:
        """Nobody follows."""


class Partition:
    """A partition that this node hosts."""

    __slots__ = (
        "_commit_waiters",
        "_context",
        "_flush_task",
        "_high_watermark",
        "_log_start_told",
        "_low_watermark_waiters",
        "_stored_waiters",
        "_waking",
        "follower_waiters",
        "isr_size",
        "leader_epoch",
        "leader_epoch_start",
        "leader_id",
        "leading",
        "log",
        "node_id",
        "partition_epoch",
        "read_waiters",
        "replicas",
        "topic_id",
        "topic_partition",
        "traffic",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        log: PartitionLog,
        context: ReplicaContext,
        waking: Waking | None = None,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.node_id = context.node_id
        self.leader_id = NO_LEADER
        self.leader_epoch = NO_LEADER_EPOCH
        self.leader_epoch_start = 0
        """The log end offset when this node became leader."""
        self.isr_size = 1
        self.replicas: tuple[int, ...] = ()
        self.partition_epoch = NO_PARTITION_EPOCH
        self.leading: Leadership | None = None
        """Of a leader that has followers."""
        self.read_waiters: dict[ReadWaiter, None] = {}
        """Those who read up to the high watermark."""
        self.follower_waiters: dict[ReadWaiter, None] = {}
        """Those who read up to the end of the log."""
        self._commit_waiters: deque[tuple[int, CommitCallback]] | None = None
        """By end offset; none while nobody waits, since most partitions are idle."""
        self._stored_waiters: list[tuple[int, CommitCallback]] = []
        self._low_watermark_waiters: list[tuple[int, CommitCallback]] = []
        self._high_watermark = log.high_watermark
        self._log_start_told = log.log_start_offset
        self._flush_task: asyncio.Task[None] | None = None
        self._context = context
        self._waking = _NobodyWaits() if waking is None else waking
        self.traffic = context.traffic.of(topic_partition.topic)
        """The counts of its topic."""

    @property
    def is_leader(self) -> bool:
        return self.leader_id == self.node_id

    @property
    def high_watermark(self) -> int:
        """The first offset that consumers may not read."""
        return self._high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The first offset that a `read_committed` consumer may not read."""
        return min(self._high_watermark, self.log.last_stable_offset)

    @property
    def effective_min_isr(self) -> int:
        """`min.insync.replicas`, but no more than there are replicas."""
        return min(self.log.config.min_insync_replicas, max(1, len(self.replicas)))

    @property
    def is_under_min_isr(self) -> bool:
        """True if `acks=all` is refused: too few replicas are in sync."""
        return self.isr_size < self.effective_min_isr

    @property
    def has_too_few_replicas(self) -> bool:
        """True if fewer replicas than that hold what is committed, for all that is known."""
        leading = self.leading
        return leading is not None and leading.maximal_isr_size < self.effective_min_isr

    @property
    def stored_offset(self) -> int:
        """Everything before is in this replica's log as safely as `flush.messages` asks for."""
        return self.log.log_end_offset if self._flush_task is None else self.log.flushed_offset

    @property
    def is_catching_up(self) -> bool:
        """True if what the leader before committed may be more than is known to be committed."""
        return self.is_leader and self._high_watermark < self.leader_epoch_start

    def check_epoch(self, current_leader_epoch: int) -> ErrorCode:
        """Compare a client's idea of the leader epoch with ours (KIP-320)."""
        if current_leader_epoch == NO_LEADER_EPOCH or current_leader_epoch == self.leader_epoch:
            return ErrorCode.NONE
        if current_leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    # -- roles

    def become_leader(self, placed: PartitionImage) -> bool:
        """Lead from now on, or go on with the replicas of `placed`; whether an epoch begins.

        Raises LogDirFailure.
        """
        if placed.partition_epoch < self.partition_epoch:
            return False  # the controller's answer to a proposal told of a later one
        is_new_leader = not self.is_leader
        is_new_epoch = placed.leader_epoch > self.leader_epoch
        self.replicas = placed.replicas
        if len(placed.replicas) > 1:
            if self.leading is None:
                self.leading = Leadership(self, self._context)
            self.leading.assign(placed)
        else:
            self._end_leadership()
            self.isr_size = len(placed.isr)
        self.partition_epoch = placed.partition_epoch
        self.leader_id = self.node_id
        if is_new_epoch:
            self.leader_epoch = placed.leader_epoch
            self.leader_epoch_start = self.log.log_end_offset
            self.log.start_leader_epoch(placed.leader_epoch)
            if self.leading is not None:
                self.leading.start_epoch(
                    self._context.clock.monotonic_ms(),
                    self.leader_epoch_start,
                    is_new_leader=is_new_leader,
                )
            self._tell_readers()
        if self.leading is not None and self.log.needs_flush:  # what it has just fetched
            self._flush_task = self._flush_task or asyncio.ensure_future(self._flush())
        self.commit()
        return is_new_epoch

    def become_follower(self, placed: PartitionImage) -> bool:
        """Follow the leader of `placed` from now on (-1: none); whether an epoch begins.

        Raises LogDirFailure.
        """
        if placed.partition_epoch < self.partition_epoch:
            return False
        was_leader = self.is_leader
        is_new_epoch = placed.leader_epoch > self.leader_epoch
        self.leader_id = placed.leader
        self.leader_epoch = placed.leader_epoch
        self.partition_epoch = placed.partition_epoch
        self.replicas = placed.replicas
        self.isr_size = len(placed.isr)
        self._end_leadership()
        if self.log.gap_offset is not None and placed.leader != NO_LEADER:
            self.log.truncate_to(self.log.gap_offset)  # the leader has what is missing here
            self._high_watermark = self.log.high_watermark
        if was_leader or is_new_epoch:
            self.fail_waiters(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return is_new_epoch

    def _end_leadership(self) -> None:
        if self.leading is not None:
            self.leading.resign()
            self.leading = None

    def leave(self, error: ErrorCode) -> None:
        """The replica is to go from this node."""
        self.leader_id = NO_LEADER
        self._end_leadership()
        self.fail_waiters(error)

    # -- as leader

    def append(
        self,
        data: Buffer,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        terms: AppendTerms | None = None,
        checked: CheckedBatch | None = None,
    ) -> AppendResult:
        """Validate and append record batches; offsets are patched into `data`.

        Expected failures are in the result. Raises LogDirFailure when the disk fails.
        """
        result = self.log.append_as_leader(
            data,
            leader_epoch=self.leader_epoch,
            now_ms=now_ms,
            origin=origin,
            terms=terms,
            checked=checked,
        )
        traffic = self.traffic
        traffic.produces += 1
        if result.error or result.is_duplicate:
            if result.error:
                traffic.refused(result.error, len(data))
            return result
        traffic.messages_in += result.last_offset - result.first_offset + 1
        traffic.bytes_in += len(data)
        leading = self.leading
        if leading is not None:
            leading.appended(result.first_offset)
            if self.follower_waiters:
                self._waking.on_appended(self)
        if self.log.needs_flush:
            self._flush_task = self._flush_task or asyncio.ensure_future(self._flush())
        elif leading is not None:
            if leading.maximal_isr_size == 1:
                self.commit()
        elif self._flush_task is None:
            self._advance(self.log.log_end_offset)
        return result

    def append_alone(
        self, batches: Iterable[memoryview], now_ms: int, *, are_decompressed: bool = False
    ) -> list[int]:
        """As `append` for clients' batches that are committed as soon as they are in this log.

        For a leader whose log is online. Returns the first offsets of those that were appended,
        as `append_plain` does; none where there are followers, or fsync is asked for. The next
        one is for `append`. Raises LogDirFailure.
        """
        log = self.log
        if (
            self.leading is not None
            or self._flush_task is not None
            or log.config.flush_messages != LONG_MAX
        ):
            return []
        segment, end_offset = log.active, log.log_end_offset
        size_bytes = segment.size_bytes
        first_offsets = log.append_plain(
            batches, self.leader_epoch, now_ms, are_decompressed=are_decompressed
        )
        if first_offsets:
            traffic = self.traffic
            traffic.produces += len(first_offsets)
            traffic.messages_in += log.log_end_offset - end_offset
            traffic.bytes_in += segment.size_bytes - size_bytes
            if self._commit_waiters or self.read_waiters or self.follower_waiters:
                self._advance(log.log_end_offset)
            else:
                self._high_watermark = log.high_watermark = log.log_end_offset
        return first_offsets

    def append_own_alone(self, batch: bytearray) -> bool:
        """As `append_alone`, for a plain batch of this node's own; whether it was appended."""
        log = self.log
        end_offset = log.log_end_offset
        if (
            self.leading is not None
            or self._flush_task is not None
            or log.config.flush_messages != LONG_MAX
            or log.append_own(batch, self.leader_epoch, keep_tail=False) < 0
        ):
            return False
        traffic = self.traffic
        traffic.produces += 1
        traffic.messages_in += log.log_end_offset - end_offset
        traffic.bytes_in += len(batch)
        self._advance(log.log_end_offset)
        return True

    async def _flush(self) -> None:
        """fsync until nothing that was appended waits for it."""
        try:
            while self.log.needs_flush:
                await self.log.flush()
                self._stored(self.log.flushed_offset)
        except LogDirFailure as failure:
            telemetry.error("%s cannot be flushed: %s", self.topic_partition, failure)
            self.fail_waiters(ErrorCode.KAFKA_STORAGE_ERROR)
        finally:
            self._flush_task = None
        if not self.log.is_offline:
            self._stored(self.log.log_end_offset)

    def _stored(self, offset: int) -> None:
        """This replica's log is safe up to `offset`."""
        if self._stored_waiters:
            due, self._stored_waiters = split(self._stored_waiters, offset)
            tell(due, ErrorCode.NONE)
        if self.is_leader:
            self._commit(offset)

    def commit(self) -> None:
        """Raise a leader's high watermark to what is committed now."""
        self._commit(self.stored_offset)

    def _commit(self, stored_offset: int) -> None:
        leading = self.leading
        offset = stored_offset if leading is None else leading.committable(stored_offset)
        if offset > self._high_watermark:
            self._advance(offset)

    def follower_fetched(self) -> None:
        """A follower's end of log, or log start, was taken note of."""
        self.commit()
        if self._low_watermark_waiters:
            self._check_low_watermark()

    def when_low_watermark(self, offset: int, callback: CommitCallback) -> None:
        """Call back once no live replica has anything before `offset`."""
        self._low_watermark_waiters.append((offset, callback))
        self._check_low_watermark()

    def forget_low_watermark_waiter(self, callback: CommitCallback) -> None:
        """Undo `when_low_watermark`."""
        self._low_watermark_waiters = without(self._low_watermark_waiters, callback)

    @property
    def low_watermark(self) -> int:
        """The first offset that some live replica still has."""
        return self.log.log_start_offset if self.leading is None else self.leading.low_watermark()

    def _check_low_watermark(self) -> None:
        due, self._low_watermark_waiters = split(self._low_watermark_waiters, self.low_watermark)
        tell(due, ErrorCode.NONE)

    def raise_log_start(self, offset: int) -> None:
        """Delete the records before `offset`, here and then on the followers.

        Raises LogDirFailure.
        """
        self.log.delete_records_before(offset)
        self.tell_log_start()

    def tell_log_start(self) -> None:
        """Let followers know where the log starts now, if retention has moved that."""
        if self._log_start_told != self.log.log_start_offset:
            self._log_start_told = self.log.log_start_offset
            if self.follower_waiters:
                self._waking.on_appended(self)

    # -- as follower

    def append_fetched(
        self, records: Buffer | None, leader_high_watermark: int, leader_log_start: int
    ) -> AppendResult:
        """Take what the leader sent, and what it says of its log. Raises LogDirFailure."""
        log = self.log
        if records is None or not len(records):
            end_offset = log.log_end_offset
            result = AppendResult(ErrorCode.NONE, end_offset, end_offset - 1)
        else:
            result = log.append_as_follower(
                records, leader_epoch=self.leader_epoch, leader_high_watermark=leader_high_watermark
            )
            if result.error:
                return result
            self._context.traffic.replication_bytes_in += len(records)
        high_watermark = min(leader_high_watermark, log.log_end_offset)
        if high_watermark > self._high_watermark:
            self._advance(high_watermark)
        if log.log_start_offset < leader_log_start <= self._high_watermark:
            log.delete_records_before(leader_log_start)
        return result

    def truncate_to(self, offset: int) -> None:
        """Drop what the leader does not have. Raises LogDirFailure."""
        log = self.log
        if offset < self._high_watermark:
            telemetry.warning(
                "%s: truncating to %d, below the high watermark %d: an unclean leader was elected",
                self.topic_partition,
                offset,
                self._high_watermark,
            )
        log.truncate_to(offset)
        self._high_watermark = log.high_watermark
        self._tell_readers()

    def start_anew_at(self, offset: int) -> None:
        """Drop everything; the leader's log starts at `offset`. Raises LogDirFailure."""
        self.log.truncate_fully_and_start_at(offset)
        self._high_watermark = self.log.high_watermark
        self._tell_readers()

    # -- who waits

    def _advance(self, offset: int) -> None:
        """Raise the high watermark and release everyone who waited for it."""
        if offset < self._high_watermark:
            return
        self._high_watermark = self.log.high_watermark = offset
        waiters = self._commit_waiters
        while waiters and waiters[0][0] <= offset:
            waiters.popleft()[1](ErrorCode.NONE)
        if not waiters and self._commit_waiters is waiters:
            self._commit_waiters = None  # 700 bytes, on each partition ever written to
        self._tell_readers()

    def when_committed(self, end_offset: int, callback: CommitCallback) -> None:
        """Call back once the high watermark has reached `end_offset`, at once if it has."""
        waiters = self._commit_waiters
        if end_offset <= self._high_watermark:
            callback(ErrorCode.NONE)
        elif not self.is_leader:
            callback(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif waiters is None:
            self._commit_waiters = deque(((end_offset, callback),))
        else:
            insert_in_order(waiters, (end_offset, callback))

    def when_stored(self, end_offset: int, callback: CommitCallback) -> None:
        """Call back once this replica has stored everything before `end_offset` (`acks=1`)."""
        if end_offset <= self.stored_offset:
            callback(ErrorCode.NONE)
        else:
            self._stored_waiters.append((end_offset, callback))

    def forget_commit_waiter(self, callback: CommitCallback) -> None:
        """Undo `when_committed` or `when_stored` (its time is up)."""
        if self._commit_waiters:
            left = without(self._commit_waiters, callback)
            self._commit_waiters.clear()
            self._commit_waiters.extend(left)
        self._stored_waiters = without(self._stored_waiters, callback)

    def fail_waiters(self, error: ErrorCode) -> None:
        """The partition is gone from here, or led by another: release everyone."""
        waiters = [
            *(self._commit_waiters or ()),
            *self._stored_waiters,
            *self._low_watermark_waiters,
        ]
        if self._commit_waiters:
            self._commit_waiters.clear()
        self._stored_waiters, self._low_watermark_waiters = [], []
        tell(waiters, error)
        self._tell_readers()

    def _tell_readers(self) -> None:
        if self.read_waiters or self.follower_waiters:
            self._waking.on_advanced(self)

    @property
    def waits(self) -> tuple[int, int]:
        """Number of requests that wait for appends, and of those that wait for deletions."""
        waiters = self._commit_waiters
        return (
            (len(waiters) if waiters else 0) + len(self._stored_waiters),
            len(self._low_watermark_waiters),
        )

    async def close(self) -> None:
        """Wait for an fsync under way."""
        if self._flush_task is not None:
            await asyncio.wait([self._flush_task])
