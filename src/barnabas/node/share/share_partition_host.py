"""One share partition at work: its machine, the log it reads, and what keeps its state.

It is loaded when a member first asks for it. What changes is written by the persister, one write
at a time: changes that come while one is under way go together with the next, so the more
members acknowledge, the more of them a write answers. The start offset and the count of what is
done go along as they are when the write leaves.

A share partition that may not go on (another node leads, its state is fenced, its group is gone)
is closed: waiters are notified, and the next request opens another one.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

from barnabas.base.clock import Clock
from barnabas.base.network import Part
from barnabas.node.coordinator.share.state import (
    Persister,
    SharePartitionKey,
    ShareStateError,
    StateBatch,
)
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.index.txn_index import AbortedTransaction
from barnabas.node.log.results import DeferredRead, ReadResult
from barnabas.node.loop.promise import Promise
from barnabas.node.replication.partition import Partition
from barnabas.node.share.core.acquiring import Acquisition, without_aborted
from barnabas.node.share.core.partition import InvalidStateError, SharePartition
from barnabas.node.share.core.spans import Change
from barnabas.node.share.core.states import AckBatch, Acquired, AcquireMode, Refused, ShareLimits
from barnabas.node.share.fetched import FetchedBatches
from barnabas.node.share.settings import OffsetReset, ResetStrategy, ShareGroupSettings
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import CorruptBatchError


async def first_offset(partition: Partition, reset: OffsetReset, now_ms: int) -> int | ErrorCode:
    """Return a share group's start offset, by `share.auto.offset.reset`. Raises LogDirFailure.

    It is OFFSET_NOT_AVAILABLE on a new leader that does not know yet how far the log is committed,
    and if no record is as young as a duration asks for.
    """
    if reset.strategy is ResetStrategy.EARLIEST:
        return partition.log.log_start_offset
    if partition.is_catching_up:
        return ErrorCode.OFFSET_NOT_AVAILABLE
    if reset.strategy is ResetStrategy.LATEST:
        return partition.high_watermark
    later = partition.log.offset_for_timestamp(now_ms - reset.back_ms, partition.high_watermark)
    looked_up = await later if isinstance(later, Promise) else later
    if isinstance(looked_up, ErrorCode):
        return looked_up
    return ErrorCode.OFFSET_NOT_AVAILABLE if looked_up is None else looked_up.offset


FATAL = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""After these a share partition does not go on."""

_SEEN_AS = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}

telemetry = logging.getLogger(__name__)


class ShareWaiter(Protocol):
    """A share fetch that waits."""

    def look_again(self) -> None:
        """There may be something to acquire, or an error to tell."""


class ShareRead(NamedTuple):
    """The records that a partition has for a member, before any is acquired."""

    error: ErrorCode
    fetch_offset: int = 0
    parts: Sequence[Part] = ()
    size_bytes: int = 0
    next_offset: int = 0
    aborted: Sequence[AbortedTransaction] | None = None
    """The aborted transactions in it; None: this node's log knows them."""


class Delivery(NamedTuple):
    """The records that a member gets."""

    error: ErrorCode
    parts: Sequence[Part] = ()
    size_bytes: int = 0
    acquired: Sequence[Acquired] = ()
    record_count: int = 0


NOTHING = Delivery(ErrorCode.NONE)


class HostedSharePartition:
    """A share partition of this node. A ReadWaiter of its partition while somebody waits."""

    def __init__(
        self,
        key: SharePartitionKey,
        partition: Partition,
        clock: Clock,
        persister: Persister,
        settings: Callable[[str], ShareGroupSettings],
        on_deadline: "Callable[[HostedSharePartition], None]",
        on_closed: "Callable[[HostedSharePartition], None]",
    ) -> None:
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.error = ErrorCode.NONE
        """Why it does not go on; NONE while it does."""
        self.error_message: str | None = None
        """The share coordinator's error, if it refused."""
        self.machine: SharePartition | None = None
        """None while it is loaded."""
        self._clock = clock
        self._persister = persister
        self._settings = settings
        self._on_deadline = on_deadline
        self._on_closed = on_closed
        self._waiters: dict[ShareWaiter, None] = {}
        self._changes: deque[tuple[Change, Promise[ErrorCode]]] = deque()
        self._is_writing = False
        self._tasks: dict[asyncio.Future[None], None] = {}
        self._late: tuple[int, DeferredRead] | None = None
        """A read of remote records and its offset; kept until a member has them."""

    @property
    def limits(self) -> ShareLimits:
        return self._settings(self.key.group_id).limits

    @property
    def is_closed(self) -> bool:
        return self.error != ErrorCode.NONE

    @property
    def is_busy(self) -> bool:
        """True if something is still being read or written."""
        return bool(self._tasks)

    # -- from loading to closing

    def load(self) -> None:
        """Begin to read what is kept."""
        self._run(self._load())

    async def _load(self) -> None:
        error = ErrorCode.NONE
        message: str | None = None
        group_id, topic_id, index = self.key
        try:
            kept = await self._persister.read(group_id, topic_id, index, self.leader_epoch)
            start = kept.start_offset
            if start < 0:
                reset = self._settings(group_id).reset
                begin = await first_offset(self.partition, reset, self._clock.now_ms())
                if isinstance(begin, ErrorCode):
                    error = begin
                else:
                    start = begin
            if not error and not self.is_closed:
                self.machine = SharePartition(start, kept)
        except ShareStateError as failure:
            error = _SEEN_AS.get(failure.error, ErrorCode.UNKNOWN_SERVER_ERROR)
            message = str(failure)
            telemetry.info("%s cannot be loaded: %s", self.key, failure)
        except LogDirFailure:
            error = ErrorCode.KAFKA_STORAGE_ERROR
        except InvalidStateError as failure:
            error = ErrorCode.UNKNOWN_SERVER_ERROR
            telemetry.error("%s: its stored state is invalid: %s", self.key, failure)
        if error:
            self.close(error, message)
        self.wake()

    def close(self, error: ErrorCode, message: str | None = None) -> None:
        """Serve nobody any more; what is being written still has its end."""
        if not self.is_closed:
            self.error = error
            self.error_message = message
            self._abandon_late()
            self.partition.read_waiters.pop(self, None)
            self._on_closed(self)
            self.wake()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks[task] = None
        task.add_done_callback(self._finished)

    def _finished(self, task: "asyncio.Future[None]") -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            telemetry.error("%s failed", self.key, exc_info=task.exception())
            self.close(ErrorCode.UNKNOWN_SERVER_ERROR)

    async def end(self) -> None:
        """Leave nothing running."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # -- delivering

    def read(self, max_bytes: int, *, min_one_batch: bool) -> ShareRead | None:
        """Read the records for the next member that asks; None while none can be acquired."""
        machine = self.machine
        if machine is None or self.is_closed or not machine.can_acquire(self.limits):
            return None
        partition = self.partition
        if not partition.is_leader:
            return ShareRead(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        offset = machine.next_fetch_offset()
        max_offset = self._readable_end()
        log = partition.log
        if not log.log_start_offset <= offset <= log.log_end_offset:
            return ShareRead(ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset >= max_offset:
            return ShareRead(ErrorCode.NONE)
        partition.traffic.fetches += 1
        result: ReadResult | DeferredRead | None = self._late_read(offset)
        try:
            if result is None:
                result = log.read(
                    offset, max_bytes, max_offset=max_offset, min_one_batch=min_one_batch
                )
        except LogDirFailure:
            return ShareRead(ErrorCode.KAFKA_STORAGE_ERROR)
        aborted = None
        if isinstance(result, DeferredRead):
            if self._late is None:
                self._late = offset, result
                if not result.is_settled:
                    result.then(lambda _: self.wake())
            if not result.is_settled:
                return None
            late = result.value
            result, aborted = late, late.aborted
            if result.error:
                self._abandon_late()
        parts = result.parts
        return ShareRead(
            result.error, offset, parts, result.size_bytes, result.next_offset, aborted
        )

    def _late_read(self, offset: int) -> DeferredRead | None:
        """The read of remote records from `offset` on, if it was begun; another is given up."""
        if self._late is None:
            return None
        if self._late[0] != offset:
            self._abandon_late()
            return None
        return self._late[1]

    def _abandon_late(self) -> None:
        if self._late is not None:
            self._late[1].abandon()
            self._late = None

    def _readable_end(self) -> int:
        if self._settings(self.key.group_id).reads_committed:
            return self.partition.last_stable_offset
        return self.partition.high_watermark

    def deliver(
        self, read: ShareRead, member: str, mode: AcquireMode, batch_size: int, max_records: int
    ) -> Delivery:
        """Give what was read to a member."""
        machine = self.machine
        assert machine is not None
        if read.error == ErrorCode.OFFSET_OUT_OF_RANGE:
            if machine.log_start_moved(self.partition.log.log_start_offset):
                self.wake()
            return NOTHING
        if read.error:
            return Delivery(read.error)
        if not read.size_bytes:
            return NOTHING
        settings = self._settings(self.key.group_id)
        try:
            fetched = FetchedBatches(read.parts, machine.end_offset, max_records)
            aborted: list[tuple[int, int]] = []
            if settings.reads_committed:
                entries = read.aborted
                if entries is None:
                    entries = self.partition.log.aborted_transactions(
                        read.fetch_offset, read.next_offset
                    )
                aborted = fetched.aborted(
                    [(entry.producer_id, entry.first_offset) for entry in entries]
                )
        except CorruptBatchError as failure:
            telemetry.error("%s cannot be delivered: %s", self.key, failure)
            return Delivery(ErrorCode.CORRUPT_MESSAGE)
        except (LogDirFailure, OSError):
            return Delivery(ErrorCode.KAFKA_STORAGE_ERROR)
        acquisition = Acquisition(
            machine,
            member,
            mode,
            batch_size,
            fetched.bases,
            fetched.lasts,
            settings.limits,
            self._clock.monotonic_ms(),
        )
        acquisition.run(max_records, read.fetch_offset)
        acquired, count = acquisition.acquired, acquisition.count
        if acquired:
            self._on_deadline(self)
            if aborted:
                acquired = without_aborted(machine, acquired, aborted)
                count = sum(entry.last_offset - entry.first_offset + 1 for entry in acquired)
        if not acquired:
            return NOTHING
        parts, size_bytes = fetched.slice(acquired[0].first_offset, acquired[-1].last_offset)
        return Delivery(ErrorCode.NONE, parts, size_bytes, acquired, count)

    # -- taking back

    def acknowledge(self, member: str, batches: Sequence[AckBatch]) -> Refused | Promise[ErrorCode]:
        """Take what a member says of its records; the promise is kept when that is written."""
        machine = self.machine
        if machine is None:
            return Refused(ErrorCode.INVALID_RECORD_STATE, "none of the records is in flight")
        outcome = machine.acknowledge(member, batches, self.limits, self._clock.monotonic_ms())
        if isinstance(outcome, Refused):
            return outcome
        self._on_deadline(self)  # a renewal may be the first of the deadlines
        return self._write(outcome)

    def release(self, member: str) -> Promise[ErrorCode]:
        """Take back all that a member holds."""
        machine = self.machine
        return self._write(Change() if machine is None else machine.release(member, self.limits))

    def expire(self, now_ms: int) -> None:
        """Take back what was locked too long."""
        machine = self.machine
        if machine is None:
            return
        change = machine.expire(now_ms, self.limits)
        if change is not None:
            self._write(change)
            self.wake()

    def _write(self, change: Change) -> Promise[ErrorCode]:
        promise: Promise[ErrorCode] = Promise()
        if not change.batches:
            promise.settle(ErrorCode.NONE)
            return promise
        self._changes.append((change, promise))
        if not self._is_writing:
            self._is_writing = True
            self._run(self._write_all())
        return promise

    async def _write_all(self) -> None:
        machine = self.machine
        assert machine is not None
        taken: list[tuple[Change, Promise[ErrorCode]]] = []
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        try:
            while self._changes:
                taken, batches = self._take_changes()
                error = await self._write_one(machine, batches)
                self._settle(machine, taken, error)
                taken = []
                if error in FATAL:
                    self.close(error)
        finally:
            self._is_writing = False
            left = [*taken, *self._changes]
            self._changes.clear()
            self._settle(machine, left, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _take_changes(self) -> tuple[list[tuple[Change, Promise[ErrorCode]]], list[StateBatch]]:
        """As many of the changes that wait as can be one write: those of different records."""
        taken = [self._changes.popleft()]
        batches = taken[0][0].batches
        while self._changes:
            merged = sorted(
                [*batches, *self._changes[0][0].batches], key=lambda batch: batch.first_offset
            )
            if any(after.first_offset <= before.last_offset for before, after in pairwise(merged)):
                break
            batches = merged
            taken.append(self._changes.popleft())
        return taken, batches

    async def _write_one(self, machine: SharePartition, batches: list[StateBatch]) -> ErrorCode:
        group_id, topic_id, index = self.key
        try:
            await self._persister.write(
                group_id,
                topic_id,
                index,
                machine.state_epoch,
                self.leader_epoch,
                machine.start_offset,
                machine.delivery_complete_count,
                batches,
            )
        except ShareStateError as failure:
            telemetry.info("%s cannot be written: %s", self.key, failure)
            return _SEEN_AS.get(failure.error, ErrorCode.UNKNOWN_SERVER_ERROR)
        return ErrorCode.NONE

    def _settle(
        self,
        machine: SharePartition,
        changes: Sequence[tuple[Change, Promise[ErrorCode]]],
        error: ErrorCode,
    ) -> None:
        now_ms = self._clock.monotonic_ms()
        for change, promise in changes:
            machine.written(change, not error, self.limits, now_ms)
            promise.settle(error)
        if changes:
            self.wake()

    # -- who waits

    def wait(self, waiter: ShareWaiter) -> None:
        """Have a fetch look again when there may be something for it."""
        self._waiters[waiter] = None
        if not self.is_closed:
            self.partition.read_waiters[self] = None

    def leave(self, waiter: ShareWaiter) -> None:
        """Undo `wait`."""
        self._waiters.pop(waiter, None)
        if not self._waiters:
            self.partition.read_waiters.pop(self, None)

    def partitions_advanced(self, partitions: Sequence[Partition]) -> None:
        """Part of ReadWaiter."""
        if not self.partition.is_leader:
            self.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif self.partition.log.is_offline:
            self.close(ErrorCode.KAFKA_STORAGE_ERROR)
        else:
            self.wake()

    def wake(self) -> None:
        """Let those who wait look, the longest first, as long as there is something."""
        for waiter in list(self._waiters):
            if not self._has_something():
                return
            if waiter in self._waiters:
                waiter.look_again()

    def _has_something(self) -> bool:
        if self.is_closed:
            return True
        machine = self.machine
        if machine is None or not machine.can_acquire(self.limits):
            return False
        offset = machine.next_fetch_offset()
        return offset < self._readable_end() or offset < self.partition.log.log_start_offset
