"""The runtime that every coordinator shares: it carries out what shards decide.

One shard per partition of the internal topic that this node leads. Each step is a plain call:
decide, append, replay, and hold the response back until the append is committed; a response
without records waits for the appends before it, so that nobody sees what may yet be lost. One
timer of the clock serves all shards: the earliest deadline among their timers and the writes
that wait. There are no tasks, and nothing here awaits; the simulator drives the same code.

Source: Kafka's CoordinatorRuntime. Not as there: reads wait for the appends before them instead
of looking at an older version of the state, and a failed append leaves nothing to revert, since
records are replayed only once the log has them.
"""

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Generic, TypeVar

from barnabas.base.clock import Clock, Timer
from barnabas.java.hash import java_abs, java_hash
from barnabas.node.coordinator.appending import (
    EncodedStep,
    Entry,
    Parked,
    Pending,
    write,
    write_encoded,
)
from barnabas.node.coordinator.decision import (
    Answer,
    Decision,
    Moment,
    Shard,
    Transactional,
    Waiter,
)
from barnabas.node.coordinator.partition_writer import (
    CoordinatorWriteError,
    PartitionWriter,
    coordinator_error,
)
from barnabas.node.coordinator.record_codec import RecordTypes, replay_batches
from barnabas.node.log.producers.verification import AppendTerms
from barnabas.node.loop.promise import Promise
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.records.control import EndTxn, encode_end_txn

KEYS_REMEMBERED_MAX = 1024


@lru_cache(KEYS_REMEMBERED_MAX)
def partition_of(key: str, partition_count: int) -> int:
    """Return the partition of the internal topic that holds a group, transactional id or share key.

    Source: Java's String.hashCode.
    """
    return java_abs(java_hash(key)) % partition_count


S = TypeVar("S", bound=Shard)
R = TypeVar("R")

LOAD_SLICE_BYTES = 1 << 20
"""Loaded without a pause; a larger partition lets the node serve others between slices."""

telemetry = logging.getLogger(__name__)


class CoordinatorRuntime(Generic[S]):
    """Runs the shards of one coordinator.

    `write_timeout_ms` bounds how long a response waits for its commit; after that the client
    gets COORDINATOR_NOT_AVAILABLE, and the records may still be committed.
    """

    def __init__(
        self,
        clock: Clock,
        writer: PartitionWriter,
        new_shard: Callable[[], S],
        record_types: RecordTypes,
        *,
        write_timeout_ms: int,
    ) -> None:
        self._clock = clock
        self._writer = writer
        self._new_shard = new_shard
        self._record_types = record_types
        self._write_timeout_ms = write_timeout_ms
        self._entries: dict[int, Entry[S]] = {}
        self._parked: dict[Waiter, Parked] = {}
        self._next_waiter = 0
        self._timer: Timer | None = None
        self._timer_due_ms: float = 0

    # Requests

    def run(
        self,
        partition: int,
        step: Callable[[S, Waiter, Moment], Decision],
        on_error: Callable[[ErrorCode], R],
    ) -> R | Promise[R]:
        """One step of the partition's shard, and its response or the promise of it.

        `on_error` makes the response where the shard is not here, loading, or could not write.
        """
        entry = self._entries.get(partition)
        if entry is None:
            return on_error(ErrorCode.NOT_COORDINATOR)
        if entry.error is not None:
            return on_error(entry.error)
        now = self._now()
        self._next_waiter += 1
        waiter = Waiter(self._next_waiter)
        decision = step(entry.shard, waiter, now)
        response: R | None = decision.response
        if response is not None and decision.continuation is None:
            error = self._append(entry, decision, now)
            if not error and (decision.records or not (decision.is_soft or entry.is_settled)):
                return self._when_committed(entry, response, on_error, now)
            self._arm(entry)
            return on_error(error) if error else response
        pending = Pending(0, 0, response, on_error, waiter, decision.continuation)
        if response is None:
            promise: Promise[R] = Promise()
            self._parked[waiter] = Parked(partition, promise, on_error)
            self._carry_out(entry, decision, pending if decision.records else None, now)
            self._arm(entry)
            return promise
        self._carry_out(entry, decision, pending, now)
        self._arm(entry)
        outcome: R | Promise[R] = _outcome(pending)
        return outcome

    def run_encoded(
        self, partition: int, step: EncodedStep[S]
    ) -> ErrorCode | Promise[ErrorCode] | None:
        """As `run`, for a step that makes its batch itself: NONE, or what its commit failed with.

        None in any unusual case: then nothing has changed, and the caller takes `run`, which
        handles every case and names the error.
        """
        entry = self._entries.get(partition)
        if entry is None or entry.error is not None:
            return None
        now = self._now()
        if not step.is_allowed(entry.shard, now):
            return None
        is_committed = write_encoded(self._writer, entry, step, now)
        if is_committed is None:
            return None
        if not is_committed or entry.pending:
            return self._when_committed(entry, ErrorCode.NONE, _same, now)
        entry.committed_offset = entry.end_offset
        self._arm(entry)
        return ErrorCode.NONE

    def end_transaction(
        self, partition: int, marker: EndTxn, producer: Transactional, transaction_version: int
    ) -> ErrorCode | Promise[ErrorCode]:
        """Write the marker of a transaction, and let its records count, or not."""
        entry = self._entries.get(partition)
        if entry is None:
            return ErrorCode.NOT_COORDINATOR
        if entry.error is not None:
            return entry.error
        now = self._now()
        batch = encode_end_txn(
            is_commit=marker.is_commit,
            coordinator_epoch=marker.coordinator_epoch,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            timestamp_ms=now.wall_ms,
            partition_leader_epoch=entry.leader_epoch,
        )
        terms = AppendTerms(transaction_version=transaction_version)
        try:
            entry.end_offset = self._writer.append(partition, batch, terms)
        except CoordinatorWriteError as failure:
            telemetry.warning("cannot append a marker to partition %d: %s", partition, failure)
            return coordinator_error(failure.error)
        entry.shard.replay_end_transaction(producer.producer_id, marker.is_commit)
        return self._when_committed(entry, ErrorCode.NONE, _same, now)

    def partitions(self) -> list[int]:
        """The partitions that this node coordinates, loading ones too, in order."""
        return sorted(self._entries)

    def error(self, partition: int) -> ErrorCode | None:
        """Why the partition's shard serves nobody; None when it is active."""
        entry = self._entries.get(partition)
        return ErrorCode.NOT_COORDINATOR if entry is None else entry.error

    def leader_epoch(self, partition: int) -> int:
        """Since which epoch this node leads the partition; -1 where it does not."""
        entry = self._entries.get(partition)
        return -1 if entry is None else entry.leader_epoch

    def shard(self, partition: int) -> S | None:
        """The partition's shard, to look at; None unless it is active."""
        entry = self._entries.get(partition)
        return entry.shard if entry is not None and entry.error is None else None

    # Leadership

    def load(self, partition: int, leader_epoch: int) -> None:
        """This node leads `partition` since `leader_epoch`: replay it and serve it.

        What fits into LOAD_SLICE_BYTES is served when this returns; a larger partition is
        loaded in slices, with other work of the node between them.
        """
        entry = self._entries.get(partition)
        if entry is not None:
            entry.leader_epoch = max(entry.leader_epoch, leader_epoch)
            if entry.error is not ErrorCode.NOT_COORDINATOR:
                return
        entry = Entry(partition, leader_epoch, self._new_shard())
        self._entries[partition] = entry
        self._load_slice(entry)

    def unload(self, partition: int, leader_epoch: int | None = None) -> None:
        """This node leads `partition` no more; all waiting requests get NOT_COORDINATOR.

        An epoch (of the new leader) that is older than the loaded one is ignored.
        """
        entry = self._entries.get(partition)
        if entry is None or (leader_epoch is not None and leader_epoch < entry.leader_epoch):
            return
        del self._entries[partition]
        entry.source = None
        was_active = entry.error is None
        entry.error = ErrorCode.NOT_COORDINATOR
        while entry.pending:
            self._finish(entry, entry.pending.popleft(), ErrorCode.NOT_COORDINATOR)
        if was_active:
            self._send(entry.shard.unloaded(ErrorCode.NOT_COORDINATOR))
        left = [waiter for waiter, parked in self._parked.items() if parked.partition == partition]
        for waiter in left:
            parked = self._parked.pop(waiter)
            parked.promise.settle(parked.on_error(ErrorCode.NOT_COORDINATOR))

    def close(self) -> None:
        """Unload everything and stop the timer."""
        for partition in self.partitions():
            self.unload(partition)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _load_slice(self, entry: Entry[S]) -> None:
        if self._entries.get(entry.partition) is not entry:
            return
        try:
            if entry.source is None:
                entry.source = self._writer.read_all(entry.partition)
            loaded_bytes = 0
            for part in entry.source:
                entry.end_offset = replay_batches(part, entry.shard, self._record_types)
                loaded_bytes += len(part)
                if loaded_bytes >= LOAD_SLICE_BYTES:
                    self._clock.call_later(0, lambda: self._load_slice(entry))
                    return
        except (DecodeError, CoordinatorWriteError) as failure:
            telemetry.error(
                "partition %d cannot be loaded, another replica must lead it: %s",
                entry.partition,
                failure,
            )
            entry.source = None
            entry.error = ErrorCode.NOT_COORDINATOR
            return
        entry.source = None
        entry.error = None
        # The last records of the former leader may not be committed yet.
        self._await_commit(entry)
        now = self._now()
        self._carry_out(entry, entry.shard.loaded(now), None, now)
        self._arm(entry)

    # Carrying out decisions

    def _carry_out(
        self, entry: Entry[S], decision: Decision, pending: Pending | None, now: Moment
    ) -> None:
        """Append, replay and wait for the commit; answers for others leave at once."""
        error = self._append(entry, decision, now)
        if pending is None:
            if decision.continuation is None:
                if decision.records and not error:
                    self._await_commit(entry)
                return
            pending = Pending(0, 0, continuation=decision.continuation)
        if error:
            self._finish(entry, pending, error, is_appended=False)
        elif not decision.records and entry.is_settled:
            self._finish(entry, pending, ErrorCode.NONE)
        else:
            self._hold(entry, pending, now)

    def _append(self, entry: Entry[S], decision: Decision, now: Moment) -> ErrorCode:
        """Append and replay the records, if there are any, and let the answers for others leave."""
        error = ErrorCode.NONE
        if decision.records:
            error = write(self._writer, entry, decision, now)
        if decision.answers:
            self._send(decision.answers)
        return error

    def _when_committed(
        self, entry: Entry[S], response: R, on_error: Callable[[ErrorCode], R], now: Moment
    ) -> R | Promise[R]:
        """The response to what has been appended just now, or the promise of it."""
        if not entry.pending and self._writer.is_committed(entry.partition, entry.end_offset):
            entry.committed_offset = entry.end_offset
            self._arm(entry)
            return response
        pending = Pending(0, 0, response, on_error)
        self._hold(entry, pending, now)
        self._arm(entry)
        outcome: R | Promise[R] = _outcome(pending)
        return outcome

    def _hold(self, entry: Entry[S], pending: Pending, now: Moment) -> None:
        """Let a step wait until everything appended so far is committed."""
        pending.end_offset = entry.end_offset
        pending.deadline_ms = now.monotonic_ms + self._write_timeout_ms
        entry.pending.append(pending)
        self._await_commit(entry)

    def _await_commit(self, entry: Entry[S]) -> None:
        """Have what waits for all that was appended so far released once it is committed."""
        end_offset = entry.end_offset
        self._writer.when_committed(
            entry.partition,
            end_offset,
            lambda error: self._committed(entry, end_offset, coordinator_error(error)),
        )

    def _committed(self, entry: Entry[S], end_offset: int, error: ErrorCode) -> None:
        if not error:
            entry.committed_offset = max(entry.committed_offset, end_offset)
        while entry.pending and entry.pending[0].end_offset <= end_offset:
            self._finish(entry, entry.pending.popleft(), error)

    def _finish(
        self, entry: Entry[S], pending: Pending, error: ErrorCode, *, is_appended: bool = True
    ) -> None:
        """The outcome of a step is certain: continue it, and answer its request."""
        if pending.continuation is not None:
            now = self._now()
            decision = entry.shard.stored(pending.continuation, error, is_appended, now)
            if entry.error is None:
                self._carry_out(entry, decision, None, now)
                self._arm(entry)
            else:
                self._send(decision.answers)
        pending.is_done = True
        if pending.on_error is None:
            return
        if pending.response is None:
            parked = self._parked.pop(pending.waiter, None) if error and pending.waiter else None
            if parked is not None:
                parked.promise.settle(pending.on_error(error))
            return
        pending.outcome = pending.on_error(error) if error else pending.response
        if pending.promise is not None:
            pending.promise.settle(pending.outcome)

    def _send(self, answers: list[Answer]) -> None:
        for waiter, response in answers:
            parked = self._parked.pop(waiter, None)
            if parked is not None:
                parked.promise.settle(response)

    # Time

    def _now(self) -> Moment:
        return Moment(self._clock.now_ms(), self._clock.monotonic_ms())

    def _next_deadline_ms(self, entry: Entry[S]) -> int | None:
        deadline_ms = entry.shard.next_deadline_ms() if entry.error is None else None
        if entry.pending:
            waiting_ms = entry.pending[0].deadline_ms
            deadline_ms = waiting_ms if deadline_ms is None else min(deadline_ms, waiting_ms)
        return deadline_ms

    def _arm(self, entry: Entry[S]) -> None:
        """See that the timer fires by the entry's next deadline."""
        due_ms = self._next_deadline_ms(entry)
        if due_ms is None or (self._timer is not None and self._timer_due_ms <= due_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due_ms = due_ms
        delay_ms = max(due_ms - self._clock.monotonic_ms(), 1)
        self._timer = self._clock.call_later(delay_ms, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._now()
        for entry in list(self._entries.values()):
            due_ms = self._next_deadline_ms(entry)
            if due_ms is None:
                continue
            if due_ms <= now.monotonic_ms:
                self._expire_entry(entry, now)
            self._arm(entry)

    def _expire_entry(self, entry: Entry[S], now: Moment) -> None:
        while entry.pending and entry.pending[0].deadline_ms <= now.monotonic_ms:
            error = coordinator_error(ErrorCode.REQUEST_TIMED_OUT)
            self._finish(entry, entry.pending.popleft(), error)
        if entry.error is None:
            for decision in entry.shard.expire(now):
                self._carry_out(entry, decision, None, now)


def _same(error: ErrorCode) -> ErrorCode:
    return error


def _outcome(pending: Pending) -> Any:
    """The response that a step came to, or the promise of it."""
    if pending.is_done:
        return pending.outcome
    pending.promise = Promise()
    return pending.promise
