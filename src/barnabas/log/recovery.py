"""Finding out what a log holds after a crash, by a scan that trusts nothing.

From the segment of the recovery point on every batch is read and its CRC checked, offsets must
ascend, and indexes, epochs, producers and aborted transactions are made anew from what is
found. At the first damage the log is cut, and what came after it is gone: a report says so.
Source: Kafka's LogLoader and LogSegment.recover.
"""

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barnabas.base.disk import Buffer
from barnabas.base.ids import TopicPartition
from barnabas.log.batch_walk import stream_batches
from barnabas.log.errors import CorruptIndexError
from barnabas.log.index.txn_index import AbortedTransaction, read_aborted
from barnabas.log.producers.loading import load_producers
from barnabas.log.producers.replay import record_batch
from barnabas.log.retention import drop_snapshots, remove_segments
from barnabas.log.segment import RELATIVE_OFFSET_MAX, Segment
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.batch import BatchHeader, CorruptBatchError, check_crc

if TYPE_CHECKING:
    from barnabas.log.partition_log import PartitionLog

telemetry = logging.getLogger(__name__)


@dataclass(slots=True)
class RecoveryReport:
    """What opening a log found and did."""

    topic_partition: TopicPartition
    directory: str
    segments_scanned: int = 0
    bytes_cut: int = 0
    cut_at_offset: int | None = None
    """The first offset that is gone."""
    cut_reason: str = ""
    segments_dropped: int = 0
    indexes_rebuilt: list[int] = field(default_factory=list)
    """Base offsets of segments whose index was missing or damaged, recovery aside."""
    files_removed: list[str] = field(default_factory=list)

    @property
    def is_loss(self) -> bool:
        """Whether bytes were cut: a torn last write, or damage."""
        return self.bytes_cut > 0

    def tell(self) -> None:
        """Write down what is worth knowing."""
        if self.is_loss:
            telemetry.warning(
                "%s: cut %d bytes and %d segments from offset %s on: %s",
                self.directory,
                self.bytes_cut,
                self.segments_dropped,
                self.cut_at_offset,
                self.cut_reason,
            )
        if self.indexes_rebuilt:
            telemetry.warning(
                "%s: rebuilt the indexes of segments %s", self.directory, self.indexes_rebuilt
            )
        if self.files_removed:
            telemetry.info("%s: removed %s", self.directory, ", ".join(self.files_removed))


def recover(log: "PartitionLog", from_offset: int, report: RecoveryReport) -> int:
    """Scan from the segment that holds `from_offset` on; returns the end of the log.

    Raises OSError.
    """
    start = log.segment_index(from_offset)
    unflushed = log.segments[start:]
    base_offset = unflushed[0].base_offset
    log.epochs.truncate_from_end(base_offset)
    drop_snapshots(log, base_offset)
    load_producers(log, base_offset)
    next_offset = base_offset
    for index, segment in enumerate(unflushed):
        if index:
            next_offset = max(next_offset, segment.base_offset)
            log.take_snapshot(segment.base_offset)
        next_offset = _recover_segment(log, segment, report)
        report.segments_scanned += 1
        if report.is_loss:
            dropped = unflushed[index + 1 :]
            report.segments_dropped = len(dropped)
            report.bytes_cut += sum(segment.size_bytes for segment in dropped)
            del log.segments[start + index + 1 :]
            remove_segments(log, dropped)
            break
    return next_offset


def _recover_segment(log: "PartitionLog", segment: Segment, report: RecoveryReport) -> int:
    """Scan one segment, cut it at the first damage; returns the offset after its last batch."""
    segment.start_rebuild()
    disk = log.log_directory.disk
    if disk.exists(segment.txn_index_path):
        log.log_directory.files.forget(segment.txn_index_path)
        disk.remove(segment.txn_index_path)
    interval = log.config.index_interval_bytes
    next_offset = segment.base_offset
    valid = 0
    reason = ""
    file = segment.file()
    try:
        for position, header, buffer, at in stream_batches(file, 0, segment.size_bytes):
            _check(segment, header, next_offset, buffer, at)
            _record(log, segment, header, buffer, at)
            segment.note_recovered(position, header, interval)
            valid = position + header.size_bytes
            next_offset = header.next_offset
    except DecodeError as error:
        reason = str(error)
    damaged = segment.size_bytes - valid
    if damaged:
        file.truncate(valid)
        segment.size_bytes = valid
        report.bytes_cut += damaged
        report.cut_at_offset = next_offset
        report.cut_reason = reason or "the last batch is cut off"
    segment.finish_rebuild()
    return next_offset


def _check(
    segment: Segment, header: BatchHeader, next_offset: int, buffer: Buffer, at: int
) -> None:
    """Raise CorruptBatchError for a batch that cannot stand here."""
    if not check_crc(buffer, at, header):
        raise CorruptBatchError("a batch fails its CRC")
    if header.base_offset < next_offset:
        raise CorruptBatchError(f"offset {header.base_offset} comes after {next_offset - 1}")
    if header.last_offset_delta < 0 or (
        header.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
    ):
        raise CorruptBatchError(f"last offset delta {header.last_offset_delta} is impossible")


def _record(
    log: "PartitionLog", segment: Segment, header: BatchHeader, buffer: Buffer, at: int
) -> None:
    epoch = header.partition_leader_epoch
    if epoch > log.epochs.latest_epoch:
        log.epochs.assign(epoch, header.base_offset)
    if header.producer_id >= 0:
        completed = record_batch(log.producers, header, buffer, at)
        if completed is not None and completed.is_aborted:
            segment.append_aborted(AbortedTransaction(*completed[:4]))


def first_damaged_txn_index(log: "PartitionLog") -> int | None:
    """Base offset of the first segment whose transaction index cannot be true."""
    for segment in log.segments:
        try:
            for aborted in read_aborted(log.log_directory.disk, segment.txn_index_path):
                if aborted.last_offset < segment.base_offset:
                    return segment.base_offset
        except CorruptIndexError:
            return segment.base_offset
    return None
