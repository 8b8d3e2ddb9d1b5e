"""One partition's log: what is appended, what may be read, what is kept.

The order of an append: the batch is checked, its producer's state is consulted, offsets are
patched in place, one write puts it into the active segment, and only then is anything else
changed. A failing write leaves the log as it was, and takes the log directory offline.

All calls come from the event loop's thread. Source: Kafka's UnifiedLog and LocalLog.
"""

from bisect import bisect_right
from operator import attrgetter
from zlib import crc32

from barnabas.base.disk import Buffer
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.log import retention
from barnabas.log.checkpoints import write_topic_id
from barnabas.log.config import LogConfig
from barnabas.log.errors import LogDirFailure
from barnabas.log.flusher import Flusher
from barnabas.log.index.txn_index import AbortedTransaction, read_aborted
from barnabas.log.leader_epochs import LeaderEpochs
from barnabas.log.log_directory import LogDirectory
from barnabas.log.lookup import FoundOffset, find_by_timestamp, find_max_timestamp
from barnabas.log.names import PARTITION_METADATA_FILE, SNAPSHOT_SUFFIX, offset_file
from barnabas.log.producers.entry import ProducerEntry
from barnabas.log.producers.replay import check_coordinator_batch, record_batch
from barnabas.log.producers.snapshot import render_snapshot
from barnabas.log.producers.state import CompletedTransaction, ProducerState
from barnabas.log.reader import ReadResult, read_segments
from barnabas.log.segment import Segment
from barnabas.log.tail_cache import TailCache
from barnabas.log.validator import (
    AppendOrigin,
    RecordErrors,
    Rejection,
    prepare_client_batch,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import (
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatchError,
    TimestampType,
    check_crc,
    iterate_headers,
    patch,
    read_header,
)

__all__ = ["AppendOrigin", "AppendResult", "PartitionLog", "ReadResult"]

NO_OFFSET = -1
_CLIENT = AppendOrigin.CLIENT
_base_offset = attrgetter("base_offset")


class AppendResult:
    """What became of an append.

    With an `error` nothing was stored. `is_duplicate`: it was stored before, at these offsets.
    `log_append_time_ms` is -1 unless the topic's timestamps are the broker's.
    """

    __slots__ = (
        "error",
        "first_offset",
        "is_duplicate",
        "last_offset",
        "log_append_time_ms",
        "message",
        "record_errors",
    )

    def __init__(
        self,
        error: ErrorCode,
        first_offset: int = NO_OFFSET,
        last_offset: int = NO_OFFSET,
        log_append_time_ms: int = NO_TIMESTAMP,
        is_duplicate: bool = False,
        message: str | None = None,
        record_errors: RecordErrors | None = None,
    ) -> None:
        self.error = error
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.is_duplicate = is_duplicate
        self.message = message
        self.record_errors: RecordErrors = record_errors if record_errors is not None else []


class PartitionLog:
    """A log, opened by `loader.open_log`.

    Every method that touches the disk raises LogDirFailure when it fails.
    """

    __slots__ = (
        "_segment_ms",
        "active",
        "config",
        "directory",
        "epochs",
        "flusher",
        "high_watermark",
        "log_directory",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "read_hints",
        "recovery_point",
        "segments",
        "tail",
        "topic_id",
        "topic_partition",
        "truncation_count",
    )

    def __init__(
        self,
        log_directory: LogDirectory,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
    ) -> None:
        self.log_directory = log_directory
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.config = config
        self.segments: list[Segment] = []
        self.active: Segment
        """The last segment."""
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.recovery_point = 0
        """Everything before is on the medium."""
        self.high_watermark = 0
        self.epochs = LeaderEpochs()
        self.producers = ProducerState()
        self.flusher = Flusher(self)
        self.tail = TailCache(log_directory.tail_budget, 0)
        self.read_hints: dict[int, tuple[Segment, int]] = {}
        self.truncation_count = 0

    @property
    def log_dir(self) -> str:
        """The one of `log.dirs` that holds this log."""
        return self.log_directory.path

    @property
    def is_offline(self) -> bool:
        """Whether the log's disk has failed."""
        return self.log_directory.is_offline

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments, indexes aside."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def flushed_offset(self) -> int:
        """Everything before is on the medium."""
        return self.recovery_point

    @property
    def needs_flush(self) -> bool:
        """Whether `flush.messages` asks for a flush now."""
        return self.log_end_offset - self.recovery_point >= self.config.flush_messages

    @property
    def last_stable_offset(self) -> int:
        """The first offset that `read_committed` may not read: an open transaction, or the HW."""
        high_watermark = self.high_watermark
        producers = self.producers
        if not producers.ongoing and not producers.completed:
            return high_watermark
        first = producers.first_unstable_offset(high_watermark)
        return (
            high_watermark
            if first is None
            else min(max(first, self.log_start_offset), high_watermark)
        )

    # Appending

    def append_as_leader(
        self,
        data: Buffer,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = _CLIENT,
        verify_crc: bool = True,
    ) -> AppendResult:
        """Validate and append; offsets and epoch are patched into `data` in place.

        A client's `data` is one batch, a coordinator's or the quorum leader's any number. `data`
        belongs to the log from now on and must not be changed.
        """
        if self.log_directory.is_offline:
            raise LogDirFailure(self.log_directory.path)
        if isinstance(data, bytes):
            data = bytearray(data)
        if origin is not _CLIENT:
            return self._append_trusted(data, leader_epoch, now_ms, origin)
        config = self.config
        try:
            header = read_header(data)
            size = len(data)
            if header.batch_length + 12 != size:
                return _rejected(ErrorCode.INVALID_RECORD, "the data is not exactly one batch")
            if size > config.max_message_bytes or size > config.segment_bytes:
                return _too_large(size, config)
            prepared = prepare_client_batch(data, header, config, now_ms, verify_crc=verify_crc)
        except CorruptBatchError as error:
            return _rejected(error.error, str(error))
        if isinstance(prepared, Rejection):
            return _rejected(prepared.error, prepared.message, prepared.record_errors)
        data, header = prepared
        producer_id = header.producer_id
        if producer_id >= 0:
            duplicate = self.producers.find_duplicate(header)
            if duplicate is not None:
                return AppendResult(
                    ErrorCode.NONE,
                    duplicate.first_offset,
                    duplicate.last_offset,
                    duplicate.timestamp
                    if config.timestamp_type is TimestampType.LOG_APPEND_TIME
                    else NO_TIMESTAMP,
                    is_duplicate=True,
                )
            refused = self.producers.check(header, with_sequence=True)
            if refused:
                return self._refuse_producer(refused, header)
        first_offset = self.log_end_offset
        last_offset = first_offset + header.last_offset_delta
        patch(data, 0, first_offset, leader_epoch)
        max_timestamp = header.max_timestamp
        self._write(data, len(data), first_offset, last_offset, max_timestamp, last_offset, now_ms)
        if leader_epoch != self.epochs.latest_epoch and leader_epoch >= 0:
            self.epochs.assign(leader_epoch, first_offset)
        if producer_id >= 0:
            self.producers.record_data(header, first_offset, max_timestamp)
        self.tail.append(data, last_offset + 1)
        return AppendResult(
            ErrorCode.NONE,
            first_offset,
            last_offset,
            now_ms if config.timestamp_type is TimestampType.LOG_APPEND_TIME else NO_TIMESTAMP,
        )

    def _append_trusted(
        self, data: bytearray | memoryview, leader_epoch: int, now_ms: int, origin: AppendOrigin
    ) -> AppendResult:
        """Append what this node made itself: any number of batches, by one write or not at all."""
        try:
            headers = list(iterate_headers(data))
        except CorruptBatchError as error:
            return _rejected(error.error, str(error))
        if not headers:
            return _rejected(ErrorCode.INVALID_RECORD, "there is no batch")
        offset = self.log_end_offset
        for position, header in headers:
            if (
                header.size_bytes > self.config.max_message_bytes
                and origin is not AppendOrigin.RAFT
            ):
                return _too_large(header.size_bytes, self.config)
            if header.producer_id >= 0:
                refused = check_coordinator_batch(self.producers, header, data, position)
                if refused:
                    return self._refuse_producer(refused, header)
        for position, header in headers:
            patch(data, position, offset, leader_epoch)
            offset += header.last_offset_delta + 1
        return self._append_patched(data, list(iterate_headers(data)), now_ms)

    def append_as_follower(self, data: Buffer) -> AppendResult:
        """Append batches as the leader stored them, with its offsets and epochs.

        A batch cut off at the end is left out. Returns CORRUPT_MESSAGE for a bad batch, and
        OFFSET_OUT_OF_RANGE for offsets that do not go on from this log's end.
        """
        self.log_directory.check_online()
        next_offset = self.log_end_offset
        headers: list[tuple[int, BatchHeader]] = []
        try:
            for position, header in iterate_headers(data, allow_partial_tail=True):
                if not check_crc(data, position, header):
                    return _rejected(ErrorCode.CORRUPT_MESSAGE, "a batch fails its CRC")
                # The first batch may start earlier if this log is empty: the leader's log start
                # can lie in the middle of a batch.
                is_first = not headers and self.log_end_offset == self.log_start_offset
                if header.base_offset < next_offset and not (
                    is_first and header.last_offset >= next_offset
                ):
                    return _rejected(
                        ErrorCode.OFFSET_OUT_OF_RANGE,
                        f"offset {header.base_offset} comes after {next_offset - 1}",
                    )
                next_offset = header.next_offset
                headers.append((position, header))
        except CorruptBatchError as error:
            return _rejected(error.error, str(error))
        if not headers:
            return AppendResult(ErrorCode.NONE, self.log_end_offset, self.log_end_offset - 1)
        position, header = headers[-1]
        data = memoryview(data)[: position + header.size_bytes]
        return self._append_patched(data, headers, self.log_directory.clock.now_ms())

    def _append_patched(
        self, data: Buffer, headers: list[tuple[int, BatchHeader]], now_ms: int
    ) -> AppendResult:
        """Write batches whose offsets are final, and take all that follows from them."""
        first_offset, last_offset = headers[0][1].base_offset, headers[-1][1].last_offset
        max_timestamp, max_timestamp_offset = NO_TIMESTAMP, first_offset
        for _, header in headers:
            if header.max_timestamp > max_timestamp:
                max_timestamp, max_timestamp_offset = header.max_timestamp, header.last_offset
        size = len(data)
        self._write(
            data, size, first_offset, last_offset, max_timestamp, max_timestamp_offset, now_ms
        )
        view = memoryview(data)
        for position, header in headers:
            epoch = header.partition_leader_epoch
            if epoch != self.epochs.latest_epoch and epoch >= 0:
                self.epochs.assign(epoch, header.base_offset)
            if header.producer_id >= 0:
                completed = record_batch(self.producers, header, data, position)
                if completed is not None and completed.is_aborted:
                    self._index_aborted(completed)
            self.tail.append(
                view[position : position + header.size_bytes] if len(headers) > 1 else view,
                header.next_offset,
            )
        return AppendResult(ErrorCode.NONE, first_offset, last_offset)

    def _write(
        self,
        data: Buffer,
        size_bytes: int,
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        max_timestamp_offset: int,
        now_ms: int,
    ) -> None:
        """Put batches into the active segment, after rolling it if they do not belong there."""
        config = self.config
        try:
            if self.active.is_full(
                size_bytes,
                last_offset,
                max_timestamp,
                now_ms,
                config.segment_bytes,
                config.segment_ms if not config.segment_jitter_ms else self._jittered_segment_ms(),
                config.index_entries_max,
                config.index_interval_bytes,
            ):
                self._roll(first_offset, now_ms)
            self.active.append(
                data,
                size_bytes,
                last_offset,
                max_timestamp,
                max_timestamp_offset,
                config.index_interval_bytes,
            )
        except OSError as error:
            raise self.log_directory.fail(error) from error
        self.log_end_offset = last_offset + 1

    def _jittered_segment_ms(self) -> int:
        """segment.ms less a part of segment.jitter.ms, so that logs do not all roll at once."""
        config = self.config
        seed = crc32(f"{self.topic_partition} {self.active.base_offset}".encode())
        return config.segment_ms - seed % min(config.segment_jitter_ms, config.segment_ms)

    def _index_aborted(self, completed: CompletedTransaction) -> None:
        try:
            self.active.append_aborted(AbortedTransaction(*completed[:4]))
        except OSError as error:
            raise self.log_directory.fail(error) from error
        self.flusher.unsynced_paths.add(self.active.txn_index_path)
        self.flusher.unsynced_dirs.add(self.directory)

    def _refuse_producer(self, error: ErrorCode, header: BatchHeader) -> AppendResult:
        entry = self.producers.producers[header.producer_id]
        return _rejected(
            error,
            f"producer {header.producer_id} sent epoch {header.producer_epoch}, sequence "
            f"{header.base_sequence} after epoch {entry.epoch}, sequence {entry.last_sequence}",
        )

    def start_leader_epoch(self, epoch: int) -> None:
        """Note that a leader of `epoch` starts to write at the end of the log."""
        self.epochs.assign(epoch, self.log_end_offset)

    def roll(self, now_ms: int | None = None) -> None:
        """Start a new segment at the end of the log, unless the active one is empty."""
        self.log_directory.check_online()
        try:
            if self.active.size_bytes:
                self._roll(
                    self.log_end_offset,
                    self.log_directory.clock.now_ms() if now_ms is None else now_ms,
                )
        except OSError as error:
            raise self.log_directory.fail(error) from error

    def _roll(self, base_offset: int, now_ms: int) -> None:
        old = self.active
        if old.base_offset == base_offset:
            return
        old.seal()
        unsynced = self.flusher.unsynced_paths
        unsynced.update((old.offset_index.path, old.time_index.path))
        self.take_snapshot(base_offset)
        files = self.log_directory.files
        self.active = Segment.create(files, self.directory, base_offset, now_ms)
        self.segments.append(self.active)
        self.flusher.unsynced_dirs.add(self.directory)

    def take_snapshot(self, offset: int) -> None:
        """Write the producers' state as of `offset`, the end of the log. Raises OSError."""
        if offset > self.producers.snapshot_offset:
            path = offset_file(self.directory, offset, SNAPSHOT_SUFFIX)
            data = render_snapshot(self.producers.producers.values())
            self.log_directory.disk.write_atomic(path, data, sync=False)
            self.producers.snapshot_offset = offset
            self.flusher.unsynced_paths.add(path)
            self.flusher.unsynced_dirs.add(self.directory)

    # Reading

    def read(
        self, offset: int, max_bytes: int, *, max_offset: int, min_one_batch: bool = True
    ) -> ReadResult:
        """Whole batches from the one that holds `offset` on, none that reaches `max_offset`.

        At most `max_bytes`, but with `min_one_batch` the first one whatever its size. Returns
        OFFSET_OUT_OF_RANGE outside [log_start_offset, log_end_offset].
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            return ReadResult(ErrorCode.OFFSET_OUT_OF_RANGE, [], 0, offset)
        if offset >= self.tail.start_offset:
            parts, size, next_offset = self.tail.read(offset, max_bytes, max_offset, min_one_batch)
            return ReadResult(ErrorCode.NONE, parts, size, next_offset)  # type: ignore[arg-type]  # nobody adds to it
        if offset >= max_offset:
            return ReadResult(ErrorCode.NONE, [], 0, offset)
        self.log_directory.check_online()
        try:
            return read_segments(self, offset, max_bytes, max_offset, min_one_batch)
        except OSError as error:
            raise self.log_directory.fail(error) from error

    def offset_for_timestamp(self, timestamp: int, end_offset: int) -> FoundOffset | None:
        """The first record before `end_offset` that is not older than `timestamp` (ms)."""
        self.log_directory.check_online()
        try:
            return find_by_timestamp(self, timestamp, end_offset)
        except OSError as error:
            raise self.log_directory.fail(error) from error

    def max_timestamp_offset(self, end_offset: int) -> FoundOffset | None:
        """The first record with the greatest timestamp, if it is before `end_offset`."""
        self.log_directory.check_online()
        try:
            return find_max_timestamp(self, end_offset)
        except OSError as error:
            raise self.log_directory.fail(error) from error

    def epoch_of(self, offset: int) -> int:
        """The leader epoch of `offset`; -1 if it is not known."""
        return self.epochs.epoch_of(offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Where a leader epoch ends in this log: (epoch, end offset), (-1, -1) for unknown."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that have data in [start_offset, end_offset)."""
        self.log_directory.check_online()
        found = []
        try:
            for segment in self.segments[self.segment_index(start_offset) :]:
                for aborted in read_aborted(self.log_directory.disk, segment.txn_index_path):
                    if aborted.last_offset >= start_offset and aborted.first_offset < end_offset:
                        found.append(aborted)
                    if aborted.last_stable_offset >= end_offset:
                        return found
        except OSError as error:
            raise self.log_directory.fail(error) from error
        return found

    def active_producers(self) -> list[ProducerEntry]:
        """The idempotent producers that are remembered, for DescribeProducers."""
        return list(self.producers.producers.values())

    def segment_index(self, offset: int) -> int:
        """Index of the segment that holds `offset`; 0 for what is before all."""
        return max(0, bisect_right(self.segments, offset, key=_base_offset) - 1)

    def end_offset_of(self, segment: Segment) -> int:
        """The offset after the last that `segment` may hold."""
        if segment is self.active:
            return self.log_end_offset
        return self.segments[self.segment_index(segment.base_offset) + 1].base_offset

    # Keeping

    async def flush(self) -> None:
        """Return once everything appended so far is on the medium.

        Shared: any number of callers wait for one fsync, which runs beside the event loop.
        """
        await self.flusher.flush()

    def flush_now(self) -> None:
        """As `flush`, but blocking."""
        self.log_directory.check_online()
        try:
            self.flusher.flush_now()
        except OSError as error:
            raise self.log_directory.fail(error) from error

    def truncate_to(self, offset: int) -> None:
        """Drop `offset` and all after it; a batch that holds it goes as a whole."""
        self.log_directory.check_online()
        try:
            retention.truncate_to(self, offset)
        except OSError as error:
            raise self.log_directory.fail(error) from error

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the log is empty and goes on at `offset`."""
        self.log_directory.check_online()
        try:
            retention.truncate_fully_and_start_at(self, offset)
        except OSError as error:
            raise self.log_directory.fail(error) from error

    def delete_records_before(self, offset: int) -> None:
        """Raise the log start offset; segments below go at the next retention step.

        Raises ValueError beyond the high watermark.
        """
        if offset > self.high_watermark:
            raise ValueError(f"offset {offset} is beyond high watermark {self.high_watermark}")
        retention.raise_log_start(self, offset)

    def apply_retention(self, now_ms: int, high_watermark: int | None = None) -> int:
        """Drop the segments that retention no longer keeps; returns how many.

        Nothing at or above the high watermark goes.
        """
        self.log_directory.check_online()
        if high_watermark is None:
            high_watermark = self.high_watermark
        try:
            return retention.apply(self, now_ms, high_watermark)
        except OSError as error:
            raise self.log_directory.fail(error) from error

    def assign_topic_id(self, topic_id: Uuid) -> None:
        """Remember the topic's id, in partition.metadata too."""
        self.log_directory.check_online()
        try:
            write_topic_id(self.log_directory.disk, self.directory, topic_id)
        except OSError as error:
            raise self.log_directory.fail(error) from error
        self.topic_id = topic_id
        self.flusher.unsynced_paths.add(f"{self.directory}/{PARTITION_METADATA_FILE}")
        self.flusher.unsynced_dirs.add(self.directory)

    def close(self, *, clean: bool = True) -> None:
        """Let go of files and memory; `clean`: after a flush, so that no recovery is needed."""
        self.tail.clear()
        self.read_hints.clear()
        if clean and not self.is_offline:
            try:
                self.take_snapshot(self.log_end_offset)
                self.active.seal()
                self.flusher.unsynced_paths.update(
                    (self.active.offset_index.path, self.active.time_index.path)
                )
                self.flusher.flush_now()
            except OSError as error:
                raise self.log_directory.fail(error) from error
        for segment in self.segments:
            segment.release()


def _rejected(
    error: ErrorCode, message: str, record_errors: RecordErrors | None = None
) -> AppendResult:
    return AppendResult(error, message=message, record_errors=record_errors)


def _too_large(size_bytes: int, config: LogConfig) -> AppendResult:
    if size_bytes > config.max_message_bytes:
        return _rejected(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {size_bytes} bytes is above max.message.bytes {config.max_message_bytes}",
        )
    return _rejected(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"a batch of {size_bytes} bytes is above segment.bytes {config.segment_bytes}",
    )
