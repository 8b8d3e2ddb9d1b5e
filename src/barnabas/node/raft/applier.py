"""Applier of committed batches: to the listener in order, and to those who wait for them.

What this replica appends as leader, its listener knows already; everything else it is given when
it is committed. A leader begins in the middle: what stands before its epoch is given, what it
appends after that is not. Only then is it told that it leads.
"""

import asyncio

from barnabas.node.raft.core.state import NEVER
from barnabas.node.raft.interfaces import NotLeaderError, RaftListener
from barnabas.node.raft.recovery import LogBatch
from barnabas.node.raft.replica_log import ReplicaLog
from barnabas.node.raft.snapshot_files import Snapshot, SnapshotId


class Applier:
    """Calls the listener. `high_watermark` is what it was told last."""

    def __init__(self, log: ReplicaLog, listener: RaftListener, local_id: int) -> None:
        self.high_watermark = 0
        self._log = log
        self._listener = listener
        self._local_id = local_id
        self._applied_offset = 0
        self._own_offset = NEVER
        """From here on the log holds what this replica appends as leader."""
        self._leading_epoch: int | None = None
        """The epoch this replica leads, until the listener knows."""
        self._recovered: list[LogBatch] = []
        """Batches that were read at the start and are not known to be committed yet."""
        self._recovered_end = 0
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []

    def recovered(
        self,
        snapshot_id: SnapshotId | None,
        snapshot: Snapshot | None,
        batches: list[LogBatch],
        end_offset: int,
    ) -> None:
        """Begin with what the disk holds; a snapshot is committed, the log after it may not be."""
        if snapshot_id is not None and snapshot is not None:
            self.load_snapshot(snapshot_id, snapshot)
        self._recovered, self._recovered_end = batches, end_offset

    @property
    def recovered_batches(self) -> list[LogBatch]:
        """The batches read at the start that are not yet known to be committed."""
        return self._recovered

    def load_snapshot(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        """Start over from a snapshot."""
        self._recovered = []
        self._applied_offset = snapshot_id.end_offset
        self.high_watermark = max(self.high_watermark, snapshot_id.end_offset)
        self._log.log.high_watermark = self.high_watermark
        self._listener.load_snapshot(snapshot_id, snapshot)

    def truncated(self, end_offset: int) -> None:
        """The log was cut: what was read of it at the start is no longer what it holds."""
        if end_offset < self._recovered_end:
            self._recovered = []

    # -- leadership

    def leads(self, epoch: int, start_offset: int) -> None:
        """This replica leads `epoch`, which begins at `start_offset`."""
        self._leading_epoch = epoch
        self._own_offset = start_offset

    def leader_changed(self, leader_id: int, epoch: int) -> None:
        """Another leads, or nobody; what is not committed may never be."""
        if self._own_offset < NEVER:
            # The listener has applied its own committed records already.
            self._applied_offset = max(self._applied_offset, self.high_watermark)
            self._own_offset = NEVER
            self._leading_epoch = None
        assert leader_id != self._local_id
        self.fail_waiters(NotLeaderError())
        self._listener.leader_changed(leader_id, epoch)

    # -- commits

    def committed(self, high_watermark: int) -> None:
        """Apply what is to be applied, and wake who waits."""
        self.high_watermark = high_watermark
        self._log.log.high_watermark = high_watermark
        self._apply(min(high_watermark, self._own_offset))
        self._listener.committed(high_watermark)
        if self._leading_epoch is not None and high_watermark > self._own_offset:
            epoch, self._leading_epoch = self._leading_epoch, None
            self._listener.leader_changed(self._local_id, epoch)
        self._wake(high_watermark)

    def _apply(self, end_offset: int) -> None:
        if end_offset <= self._applied_offset:
            return
        start_offset, self._applied_offset = self._applied_offset, end_offset
        batches = self._batches(start_offset, end_offset)
        if batches:
            self._listener.apply(batches)

    def _batches(self, start_offset: int, end_offset: int) -> list[LogBatch]:
        if not self._recovered or end_offset > self._recovered_end:
            self._recovered = []
            return self._log.batches(start_offset, end_offset)
        count = len(self._recovered)
        for index, batch in enumerate(self._recovered):
            if batch.base_offset >= end_offset:
                count = index
                break
        batches, self._recovered = self._recovered[:count], self._recovered[count:]
        return batches

    # -- who waits

    def wait(self, offset: int) -> "asyncio.Future[None]":
        """Done when the record at `offset`, which this leader appended, is committed."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if offset < self.high_watermark:
            waiter.set_result(None)
        else:
            self._waiters.append((offset, waiter))
        return waiter

    def _wake(self, high_watermark: int) -> None:
        waiting = []
        for offset, waiter in self._waiters:
            if offset >= high_watermark:
                waiting.append((offset, waiter))
            elif not waiter.done():
                waiter.set_result(None)
        self._waiters = waiting

    def fail_waiters(self, failure: Exception) -> None:
        """Fail all waiters: their records may never be committed."""
        waiters, self._waiters = self._waiters, []
        for _, waiter in waiters:
            if not waiter.done():
                waiter.set_exception(failure)
