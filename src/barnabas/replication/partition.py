"""One partition as this node leads it: its log, its high watermark and who waits on them.

The high watermark is what consumers may read and what `acks=all` waits for. With one replica it
follows the log's end, or, where `flush.messages` asks for it, what has been fsynced: a group
commit takes every append that has happened meanwhile.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from barnabas.base.disk import Buffer
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.log.errors import LogDirFailure
from barnabas.log.partition_log import AppendOrigin, AppendResult, PartitionLog
from barnabas.protocol.errors import ErrorCode

NO_EPOCH = -1

telemetry = logging.getLogger(__name__)


class ReadWaiter(Protocol):
    """A long-polling fetch."""

    def partition_advanced(self) -> None:
        """More may be readable than when the fetch last looked."""


class Partition:
    """A partition that this node hosts."""

    __slots__ = (
        "_commit_waiters",
        "_flush_task",
        "_high_watermark",
        "_on_wake",
        "isr_size",
        "leader_epoch",
        "leader_id",
        "log",
        "node_id",
        "partition_epoch",
        "read_waiters",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        log: PartitionLog,
        node_id: int,
        on_wake: "Callable[[Partition], None]",
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.node_id = node_id
        self.leader_id = -1
        self.leader_epoch = NO_EPOCH
        self.isr_size = 1
        self.partition_epoch = NO_EPOCH
        self.read_waiters: set[ReadWaiter] = set()
        self._commit_waiters: list[tuple[int, Callable[[ErrorCode], None]]] = []
        self._high_watermark = log.high_watermark
        self._flush_task: asyncio.Task[None] | None = None
        self._on_wake = on_wake

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

    def become_leader(self, leader_epoch: int, partition_epoch: int) -> None:
        """Lead from now on. With no other replica everything in the log is committed."""
        self.partition_epoch = partition_epoch
        if self.leader_id == self.node_id and self.leader_epoch == leader_epoch:
            return
        self.leader_id = self.node_id
        self.leader_epoch = leader_epoch
        self.log.start_leader_epoch(leader_epoch)
        self._advance(self.log.log_end_offset)

    def check_epoch(self, current_leader_epoch: int) -> ErrorCode:
        """Compare a client's idea of the leader epoch with ours (KIP-320)."""
        if current_leader_epoch == NO_EPOCH or current_leader_epoch == self.leader_epoch:
            return ErrorCode.NONE
        if current_leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def append(
        self,
        data: Buffer,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendResult:
        """Validate and append record batches; offsets are patched into `data`.

        Expected failures are in the result. Raises LogDirFailure when the disk fails.
        """
        result = self.log.append_as_leader(
            data, leader_epoch=self.leader_epoch, now_ms=now_ms, origin=origin
        )
        if result.error or result.is_duplicate:
            return result
        if self.log.needs_flush:
            if self._flush_task is None:
                self._flush_task = asyncio.ensure_future(self._flush())
        elif self._flush_task is None:
            self._advance(self.log.log_end_offset)
        return result

    async def _flush(self) -> None:
        """fsync until nothing that was appended waits for it."""
        try:
            while True:
                await self.log.flush()
                self._advance(self.log.flushed_offset)
                if not self.log.needs_flush:
                    break
        except LogDirFailure as failure:
            telemetry.error("%s cannot be flushed: %s", self.topic_partition, failure)
            self.fail_waiters(ErrorCode.KAFKA_STORAGE_ERROR)
        finally:
            self._flush_task = None
        if self._high_watermark < self.log.log_end_offset and not self.log.is_offline:
            self._advance(self.log.log_end_offset)

    def _advance(self, offset: int) -> None:
        """Raise the high watermark and release everyone who waited for it."""
        if offset < self._high_watermark:
            return
        self._high_watermark = offset
        self.log.high_watermark = offset
        waiters = self._commit_waiters
        if waiters:
            due = [waiter for waiter in waiters if waiter[0] <= offset]
            if due:
                self._commit_waiters = [waiter for waiter in waiters if waiter[0] > offset]
                for _, callback in due:
                    callback(ErrorCode.NONE)
        if self.read_waiters:
            self._on_wake(self)

    def when_committed(self, end_offset: int, callback: Callable[[ErrorCode], None]) -> None:
        """Call back once the high watermark has reached `end_offset`, at once if it has."""
        if end_offset <= self._high_watermark:
            callback(ErrorCode.NONE)
        else:
            self._commit_waiters.append((end_offset, callback))

    def forget_commit_waiter(self, callback: Callable[[ErrorCode], None]) -> None:
        """Undo `when_committed` (its time is up)."""
        self._commit_waiters = [entry for entry in self._commit_waiters if entry[1] != callback]

    def fail_waiters(self, error: ErrorCode) -> None:
        """The partition is gone from here (deleted, moved, disk lost): release everyone."""
        waiters, self._commit_waiters = self._commit_waiters, []
        for _, callback in waiters:
            callback(error)
        if self.read_waiters:
            self._on_wake(self)

    async def close(self) -> None:
        """Wait for an fsync under way."""
        if self._flush_task is not None:
            await asyncio.wait([self._flush_task])
