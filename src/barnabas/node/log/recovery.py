"""Finding out what a log holds after a crash, by a scan that trusts nothing.

From the segment of the recovery point on every batch is read and its CRC checked, offsets must
ascend, and indexes, epochs, producers and aborted transactions are rebuilt from what is
found. At the first damage the log is cut, and what came after it is gone: a report says so.

A batch's position is not covered by its CRC, and compaction leaves gaps. A gap is believed
unless the batch after the next one steps back into it: one of the two is wrong then, nothing
tells which, and the log is cut at the gap. That of the metadata has none. Kafka compares no
offsets here.
Source: Kafka's LogLoader and LogSegment.recover.
"""

import logging
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.base.disk import Buffer
from barnabas.base.ids import TopicPartition
from barnabas.node.log.batch_walk import stream_batches
from barnabas.node.log.errors import CorruptIndexError
from barnabas.node.log.index.txn_index import AbortedTransaction, read_aborted
from barnabas.node.log.log_state import LogState
from barnabas.node.log.producers.loading import load_producers
from barnabas.node.log.producers.replay import record_batch
from barnabas.node.log.retention import drop_snapshots, remove_segments
from barnabas.node.log.segment import RELATIVE_OFFSET_MAX, Segment
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.batch import BatchHeader, CorruptBatchError, check_crc

telemetry = logging.getLogger(__name__)


@dataclass(slots=True)
class RecoveryReport:
    """The findings and repairs of opening a log."""

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
    flushed_lost: int = 0
    """The number of lost offsets that had been flushed: a sign of damage, not of a torn write."""
    closed_at: int = 0
    """The end of the log when it was closed cleanly, by its checkpoint; 0: it was not."""
    may_have_gaps: bool = True
    """True if offsets may be missing, as compaction leaves it, here or on a leader."""

    @property
    def is_loss(self) -> bool:
        """True if bytes were cut: a torn last write, or damage."""
        return self.bytes_cut > 0

    def tell(self) -> None:
        """Write down what is worth knowing."""
        if self.cut_at_offset is not None:
            telemetry.warning(
                "%s: cut %d bytes and %d segments from offset %s on: %s",
                self.directory,
                self.bytes_cut,
                self.segments_dropped,
                self.cut_at_offset,
                self.cut_reason,
            )
        if self.flushed_lost:
            telemetry.error(
                "%s: %d offsets are gone that had been flushed: its disk or files were damaged",
                self.directory,
                self.flushed_lost,
            )
        if self.indexes_rebuilt:
            telemetry.warning(
                "%s: rebuilt the indexes of segments %s", self.directory, self.indexes_rebuilt
            )
        if self.files_removed:
            telemetry.info("%s: removed %s", self.directory, ", ".join(self.files_removed))


class _Gap(NamedTuple):
    """Offsets that no batch has, before the batch that was read last."""

    offset: int
    """The first of them."""
    position: int
    """The position of the batch after the gap."""


class _Scanned(NamedTuple):
    """The result of scanning a segment."""

    next_offset: int
    """The offset after its last batch."""
    is_dense: bool
    """True if every offset before that is there."""
    last_gap: _Gap | None
    """The gap right before its last batch."""


class _SteppedBackError(CorruptBatchError):
    """A batch begins at `offset`, which lies before the end of the one before it."""

    def __init__(self, offset: int, next_offset: int) -> None:
        super().__init__(f"offset {offset} comes after {next_offset - 1}")
        self.offset = offset


def recover(log: LogState, from_offset: int, report: RecoveryReport) -> int:
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
            log.take_snapshot(segment.base_offset)
        scanned = _recover_segment(log, segment, report)
        report.segments_scanned += 1
        rest = unflushed[index + 1 :]
        if rest and not report.is_loss:
            scanned = _check_continuation(log, segment, rest[0].base_offset, scanned, report)
        next_offset = scanned.next_offset
        if report.cut_at_offset is not None:
            report.segments_dropped = len(rest)
            report.bytes_cut += sum(dropped.size_bytes for dropped in rest)
            del log.segments[start + index + 1 :]
            remove_segments(log, rest)
            break
    return next_offset


def _check_continuation(
    log: LogState, segment: Segment, base_offset: int, scanned: _Scanned, report: RecoveryReport
) -> _Scanned:
    """Check that the segment at `base_offset` may follow `segment`. Returns what is left of that
    one.

    Of two files that were not synced the later may survive and the end of the earlier not, and
    a truncated segment come back. Compaction leaves gaps too: they are left alone where the
    topic is compacted, or was, as gaps within the segment before show.
    """
    next_offset = scanned.next_offset
    if base_offset < next_offset or (
        base_offset > next_offset and scanned.is_dense and not log.config.is_compacted
    ):
        gap = scanned.last_gap
        if gap is not None and gap.offset <= base_offset < next_offset:
            scanned = _recover_up_to(log, segment, gap, report)
        report.cut_at_offset = scanned.next_offset
        report.cut_reason = f"the next segment starts at offset {base_offset}"
    return scanned


def _recover_segment(log: LogState, segment: Segment, report: RecoveryReport) -> _Scanned:
    """Scan one segment and cut it at the first damage."""
    segment.start_rebuild()
    disk = log.log_directory.disk
    if disk.exists(segment.files.txn_index_path):
        log.log_directory.files.forget(segment.files.txn_index_path)
        disk.remove(segment.files.txn_index_path)
    interval = log.config.index_interval_bytes
    next_offset = segment.base_offset
    valid = 0
    reason = ""
    is_dense = True
    gap = None
    file = segment.file()
    try:
        for position, header, buffer, at in stream_batches(file, 0, segment.size_bytes):
            _check(segment, header, next_offset, report, buffer, at)
            _record(log, segment, header, buffer, at)
            segment.note_recovered(position, header, interval)
            valid = position + header.size_bytes
            gap = _Gap(next_offset, position) if header.base_offset > next_offset else None
            if gap is not None or header.record_count != header.last_offset_delta + 1:
                is_dense = False
            next_offset = header.next_offset
    except DecodeError as error:
        reason = str(error)
        if gap is not None and isinstance(error, _SteppedBackError) and error.offset >= gap.offset:
            report.cut_at_offset = gap.offset
            report.cut_reason = reason
            return _recover_up_to(log, segment, gap, report)
    damaged = segment.size_bytes - valid
    if damaged:
        _cut(segment, valid, report)
        report.cut_at_offset = next_offset
        report.cut_reason = reason or "the last batch is cut off"
    segment.finish_rebuild()
    unsynced = log.flusher.unsynced_paths
    unsynced.update((segment.files.offset_index.path, segment.files.time_index.path))
    if disk.exists(segment.files.txn_index_path):
        unsynced.add(segment.files.txn_index_path)
    return _Scanned(next_offset, is_dense, gap)


def _recover_up_to(log: LogState, segment: Segment, gap: _Gap, report: RecoveryReport) -> _Scanned:
    """Cut a segment at a gap, and scan it again without what the batch behind that has left."""
    _cut(segment, gap.position, report)
    log.epochs.truncate_from_end(segment.base_offset)
    load_producers(log, segment.base_offset)
    return _recover_segment(log, segment, report)


def _cut(segment: Segment, position: int, report: RecoveryReport) -> None:
    report.bytes_cut += segment.size_bytes - position
    file = segment.file()
    file.truncate(position)
    file.fsync()  # what was cut must not come back once more was appended
    segment.size_bytes = position


def _check(
    segment: Segment,
    header: BatchHeader,
    next_offset: int,
    report: RecoveryReport,
    buffer: Buffer,
    at: int,
) -> None:
    """Raise CorruptBatchError for a batch that does not belong here."""
    if not check_crc(buffer, at, header):
        raise CorruptBatchError("a batch fails its CRC")
    if header.base_offset < next_offset:
        raise _SteppedBackError(header.base_offset, next_offset)
    if header.last_offset_delta < 0 or (
        header.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
    ):
        raise CorruptBatchError(f"last offset delta {header.last_offset_delta} is impossible")
    without_gap = next_offset + header.last_offset_delta + 1
    if header.next_offset > without_gap and (
        not report.may_have_gaps or without_gap == report.closed_at
    ):
        # No batch need come after it and step back: it ends where the log ended, but for the gap.
        raise CorruptBatchError(f"offset {header.base_offset} comes after {next_offset - 1}")


def _record(log: LogState, segment: Segment, header: BatchHeader, buffer: Buffer, at: int) -> None:
    epoch = header.partition_leader_epoch
    if epoch > log.epochs.latest_epoch:
        log.epochs.assign(epoch, header.base_offset)
    if header.producer_id >= 0:
        completed = record_batch(log.producers, header, buffer, at)
        if completed is not None and completed.is_aborted:
            segment.files.append_aborted(AbortedTransaction(*completed[:4]))


def first_damaged_txn_index(log: LogState) -> int | None:
    """Base offset of the first segment whose transaction index cannot be true."""
    for segment in log.segments:
        try:
            for aborted in read_aborted(log.log_directory.disk, segment.files.txn_index_path):
                if aborted.last_offset < segment.base_offset:
                    return segment.base_offset
        except CorruptIndexError:
            return segment.base_offset
    return None
