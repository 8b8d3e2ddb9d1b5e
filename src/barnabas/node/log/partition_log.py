"""One partition's log: what is appended, what may be read, what is kept.

All calls come from the event loop's thread. Every method that touches the disk raises
LogDirFailure when it fails. Source: Kafka's UnifiedLog and LocalLog.
"""

from barnabas.base.ids import Uuid
from barnabas.node.log import appending, plain_append, retention
from barnabas.node.log.appending import AppendResult
from barnabas.node.log.checkpoints import write_topic_id
from barnabas.node.log.errors import CorruptIndexError, LogDirFailure
from barnabas.node.log.index.txn_index import AbortedTransaction, read_aborted
from barnabas.node.log.log_state import LogState
from barnabas.node.log.names import PARTITION_METADATA_FILE
from barnabas.node.log.producers.entry import ProducerEntry
from barnabas.node.log.reader import read_segments
from barnabas.node.log.results import DeferredRead, LookedUp, ReadResult, RemoteReads
from barnabas.node.log.timestamp_lookup import (
    IsWanted,
    always,
    find_by_timestamp,
    find_max_timestamp,
    look_up,
)
from barnabas.node.log.validator import AppendOrigin
from barnabas.node.loop.promise import Promise, then
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import CorruptBatchError

__all__ = ["AppendOrigin", "AppendResult", "PartitionLog", "ReadResult"]


class PartitionLog(LogState):
    """A log, made by `loader.create_log` or `loader.open_log`.

    What is done to its state is in modules of functions, one for each idea; most are called with
    the log's failures in mind. Those that append are methods as they are: a call more would show.

    It inherits its state, which lies below those modules, for speed. A log that held it and passed
    on what others read took 0.4 to 0.7 µs more for each produce request of one record: 5 to
    8 % of the broker's own work, without socket and disk.
    """

    __slots__ = ()

    append_as_leader = appending.append_as_leader
    append_as_follower = appending.append_as_follower
    append_plain = plain_append.append_plain
    append_own = plain_append.append_own

    def read(
        self, offset: int, max_bytes: int, *, max_offset: int, min_one_batch: bool = True
    ) -> ReadResult | DeferredRead:
        """Whole batches from the one that holds `offset` on, none that reaches `max_offset`.

        At most `max_bytes`, but with `min_one_batch` at least the first batch. Returns
        OFFSET_OUT_OF_RANGE outside [log_start_offset, log_end_offset]. Records that are not local
        come later.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            return ReadResult(ErrorCode.OFFSET_OUT_OF_RANGE, [], 0, offset)
        if offset >= self.tail.start_offset:
            parts, size, next_offset = self.tail.read(offset, max_bytes, max_offset, min_one_batch)
            return ReadResult(ErrorCode.NONE, parts, size, next_offset)  # type: ignore[arg-type]  # nobody adds to it
        if offset >= max_offset:
            return ReadResult(ErrorCode.NONE, [], 0, offset)
        self.check_online()
        if self.remote is not None and offset < self.local_start_offset:
            return self.remote.read(offset, max_bytes, max_offset, min_one_batch)
        try:
            return read_segments(self, offset, max_bytes, max_offset, min_one_batch)
        except OSError as error:
            raise self.fail(error) from error

    def read_local(
        self, offset: int, max_bytes: int, *, max_offset: int, min_one_batch: bool = True
    ) -> ReadResult:
        """As `read`, but OFFSET_OUT_OF_RANGE for what is not local too."""
        if offset < self.local_start_offset:
            return ReadResult(ErrorCode.OFFSET_OUT_OF_RANGE, [], 0, offset)
        result = self.read(offset, max_bytes, max_offset=max_offset, min_one_batch=min_one_batch)
        assert isinstance(result, ReadResult)
        return result

    def offset_for_timestamp(
        self, timestamp: int, end_offset: int, is_wanted: IsWanted = always
    ) -> LookedUp | Promise[LookedUp]:
        """The first record before `end_offset` that is not older than `timestamp` (ms).

        Later, where part of the log is not local or much has to be looked through; an error then
        says why it cannot be told. It is given up once `is_wanted` says no.
        """
        self.check_online()
        if self.remote is not None and self.log_start_offset < self.local_start_offset:
            return self._offset_for_timestamp_later(self.remote, timestamp, end_offset, is_wanted)
        return look_up(self, find_by_timestamp(self, timestamp, end_offset), is_wanted)

    def _offset_for_timestamp_later(
        self, remote: RemoteReads, timestamp: int, end_offset: int, is_wanted: IsWanted
    ) -> Promise[LookedUp]:
        """Look up an older offset in the remote log, which answers or leaves it to the local
        segments.
        """
        promise: Promise[LookedUp] = Promise()

        def arrived(remote_result: LookedUp) -> None:
            local: LookedUp | Promise[LookedUp] = remote_result
            if remote_result is None:
                try:
                    self.check_online()
                    steps = find_by_timestamp(self, timestamp, end_offset)
                    local = look_up(self, steps, is_wanted)
                except LogDirFailure:
                    local = ErrorCode.KAFKA_STORAGE_ERROR
            then(local, promise.settle)

        remote.offset_for_timestamp(timestamp, end_offset).then(arrived)
        return promise

    def max_timestamp_offset(
        self, end_offset: int, is_wanted: IsWanted = always
    ) -> LookedUp | Promise[LookedUp]:
        """The first local record with the greatest timestamp, if it is before `end_offset`.

        Perhaps later, as `offset_for_timestamp`.
        """
        self.check_online()
        return look_up(self, find_max_timestamp(self, end_offset), is_wanted)

    def epoch_of(self, offset: int) -> int:
        """The leader epoch of `offset`; -1 if it is not known."""
        return self.epochs.epoch_of(offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The end of a leader epoch in this log: (epoch, end offset); (-1, -1) if unknown."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that have data in [start_offset, end_offset).

        Raises CorruptBatchError where their index is damaged: what is aborted cannot be told.
        """
        self.check_online()
        transactions = []
        try:
            for segment in self.segments[self.segment_index(start_offset) :]:
                for aborted in read_aborted(self.log_directory.disk, segment.files.txn_index_path):
                    if aborted.last_offset >= start_offset and aborted.first_offset < end_offset:
                        transactions.append(aborted)
                    if aborted.last_stable_offset >= end_offset:
                        return transactions
        except CorruptIndexError as error:
            raise CorruptBatchError(str(error)) from error
        except OSError as error:
            raise self.fail(error) from error
        return transactions

    def active_producers(self) -> list[ProducerEntry]:
        """The idempotent producers that are remembered, for DescribeProducers."""
        return list(self.producers.producers.values())

    async def flush(self) -> None:
        """Return once everything appended so far is on the medium.

        Shared: any number of callers wait for one fsync, which runs beside the event loop.
        """
        await self.flusher.flush()

    def flush_now(self) -> None:
        """As `flush`, but blocking."""
        self.check_online()
        try:
            self.flusher.flush_now()
        except OSError as error:
            raise self.fail(error) from error

    def truncate_to(self, offset: int) -> None:
        """Drop `offset` and all after it; a batch that holds it goes as a whole."""
        self.check_online()
        try:
            retention.truncate_to(self, offset)
        except OSError as error:
            raise self.fail(error) from error

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the log is empty and goes on at `offset`."""
        self.check_online()
        try:
            retention.truncate_fully_and_start_at(self, offset)
        except OSError as error:
            raise self.fail(error) from error

    def delete_records_before(self, offset: int) -> None:
        """Raise the log start offset; segments below go at the next retention step.

        Raises ValueError beyond the high watermark.
        """
        if offset > self.high_watermark:
            raise ValueError(f"offset {offset} is beyond high watermark {self.high_watermark}")
        retention.raise_log_start(self, offset)

    def apply_retention(self, now_ms: int) -> int:
        """Drop the segments that retention no longer keeps; returns how many.

        Nothing at or above the high watermark goes.
        """
        self.check_online()
        try:
            return retention.apply(self, now_ms, self.high_watermark)
        except OSError as error:
            raise self.fail(error) from error

    def assign_topic_id(self, topic_id: Uuid) -> None:
        """Remember the topic's id, in partition.metadata too."""
        self.check_online()
        try:
            write_topic_id(self.log_directory.disk, self.directory, topic_id)
        except OSError as error:
            raise self.fail(error) from error
        self.topic_id = topic_id
        if not self.flusher.is_new:
            self.flusher.unsynced_paths.add(f"{self.directory}/{PARTITION_METADATA_FILE}")
            self.flusher.unsynced_dirs.add(self.directory)

    def complete(self) -> None:
        """Write what a clean end needs beside the batches; a flush is to follow."""
        self.check_online()
        try:
            self.take_snapshot(self.log_end_offset)
            self.flusher.unsynced_paths.update(self.active.seal())
        except OSError as error:
            raise self.fail(error) from error

    def close(self, *, clean: bool = True) -> None:
        """Let go of files and memory; `clean`: after a flush, so that no recovery is needed.

        A log that never held a record is synced with its log directory.
        """
        self.tail.clear()
        self.read_hints.clear()
        if clean and not self.is_offline:
            self.complete()
            if not self.flusher.is_blank:
                self.flush_now()
        self.is_closed = True
        for segment in self.segments:
            segment.files.release()
