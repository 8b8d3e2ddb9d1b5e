"""The replica's log and snapshots: what the machine sees of them, and how they are changed."""

import logging
import zlib
from collections.abc import Sequence

from barnabas.base.clock import Clock
from barnabas.base.disk import Buffer, Disk, DiskFile
from barnabas.node.log.partition_log import AppendOrigin, PartitionLog
from barnabas.node.raft.core.messages import LogPosition
from barnabas.node.raft.interfaces import Appended
from barnabas.node.raft.recovery import Controls, LogBatch, read_batches, read_whole
from barnabas.node.raft.snapshot_files import SnapshotId, delete_snapshot, list_snapshots
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.records.batch import iterate_headers
from barnabas.protocol.records.control import ControlMessage, encode_control_batch
from barnabas.protocol.records.records import Record, decode_records, encode_batch

telemetry = logging.getLogger(__name__)


class ReplicaLog:
    """See the module. Every method that touches the disk raises LogDirFailure or OSError."""

    def __init__(self, disk: Disk, clock: Clock, directory: str, log: PartitionLog) -> None:
        self.log = log
        self.directory = directory
        self.snapshots: list[SnapshotId] = []
        """Complete ones, oldest first."""
        self.mark = FlushedMark(disk, directory)
        self._disk = disk
        self._clock = clock

    def recovered(self) -> None:
        """Look which snapshots there are."""
        self.snapshots = list_snapshots(self._disk, self.directory)

    def damaged_at(self) -> int | None:
        """The end of the log if records are missing that had been on the medium, or None."""
        marked, end_offset = self.mark.read(), self.end_offset
        if marked <= end_offset:
            return None
        telemetry.error(
            "%s: the metadata log ends at offset %d, but had reached %d on disk: "
            "its disk or files were damaged",
            self.directory,
            end_offset,
            marked,
        )
        return end_offset

    def close(self, *, clean: bool) -> None:
        """Close the log and the file of its mark; `clean` as for `PartitionLog.close`."""
        try:
            self.log.close(clean=clean)
        finally:
            self.mark.close()

    def written(self, snapshot_id: SnapshotId) -> None:
        """A new snapshot is on the medium."""
        self.snapshots.append(snapshot_id)

    # -- as the machine sees it (LogView)

    @property
    def start_offset(self) -> int:
        """The first offset that is there."""
        return self.log.log_start_offset

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""
        return self.log.log_end_offset

    @property
    def flushed_offset(self) -> int:
        """Everything before is on the medium."""
        return self.log.flushed_offset

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, be it in a snapshot; 0 where there never was one."""
        if self.log.epochs.latest_epoch >= 0:
            return self.log.epochs.latest_epoch
        return self.snapshots[-1].epoch if self.snapshots else 0

    @property
    def start_epoch(self) -> int:
        """The epoch of the oldest snapshot, which stands where the log begins."""
        return self.snapshots[0].epoch if self.snapshots else 0

    @property
    def snapshot_id(self) -> SnapshotId | None:
        """The newest snapshot."""
        return self.snapshots[-1] if self.snapshots else None

    def end_of_epoch(self, epoch: int) -> LogPosition:
        """The greatest epoch in the log that is not after `epoch`, and where it ends.

        Source: Kafka's KafkaMetadataLog.endOffsetForEpoch.
        """
        known_epoch, offset = self.log.end_offset_for_epoch(epoch)
        if known_epoch < 0:
            return LogPosition(self.last_epoch, self.end_offset)
        if self.snapshots and known_epoch == epoch and offset == self.snapshots[0].end_offset:
            # The epoch is older than all in the log, which begins with the oldest snapshot.
            return LogPosition(self.snapshots[0].epoch, offset)
        return LogPosition(known_epoch, offset)

    # -- changing it

    def append_values(self, values: Sequence[bytes], epoch: int) -> Appended:
        """Append records as the leader of `epoch`, as one batch."""
        now_ms = self._clock.now_ms()
        batch = encode_batch([Record(timestamp=now_ms, value=value) for value in values])
        return self._append_as_leader(batch, epoch, now_ms)

    def append_control(self, records: Sequence[ControlMessage], epoch: int) -> Controls:
        """Append control records as the leader of `epoch`."""
        now_ms = self._clock.now_ms()
        batch = encode_control_batch(records, timestamp_ms=now_ms, partition_leader_epoch=epoch)
        self._append_as_leader(batch, epoch, now_ms)
        return controls_of(batch)

    def _append_as_leader(self, batch: bytearray, epoch: int, now_ms: int) -> Appended:
        result = self.log.append_as_leader(
            batch, leader_epoch=epoch, now_ms=now_ms, origin=AppendOrigin.RAFT
        )
        assert result.error == ErrorCode.NONE, f"the metadata log refused a batch: {result}"
        return Appended(result.first_offset, result.last_offset)

    def append_fetched(self, records: Buffer, epoch: int) -> Controls | str:
        """Append what the leader of `epoch` sent; a text that says what is wrong with it if not."""
        try:
            for _, header in iterate_headers(records, allow_partial_tail=True):
                if header.partition_leader_epoch > epoch:
                    return (
                        f"a batch of epoch {header.partition_leader_epoch} from the leader of "
                        f"epoch {epoch}"
                    )
            end_offset = self.end_offset
            # This log is not compacted: a gap is damage, wherever it ends.
            result = self.log.append_as_follower(
                records, leader_high_watermark=0, keeps_good_part=False
            )
            if result.error != ErrorCode.NONE:
                return result.message or result.error.name
            if self.end_offset == end_offset:
                return "not one whole batch"
            return controls_of(records)
        except DecodeError as error:
            return str(error)

    def truncate_to(self, offset: int) -> None:
        """Drop `offset` and all after it."""
        self.mark.lower_to(offset)
        self.log.truncate_to(offset)

    def start_over(self, snapshot_id: SnapshotId) -> None:
        """Restart the log, empty, at the end of a snapshot; older snapshots go."""
        self.mark.lower_to(snapshot_id.end_offset)
        self.log.truncate_fully_and_start_at(snapshot_id.end_offset)
        for older in [other for other in self.snapshots if other < snapshot_id]:
            delete_snapshot(self._disk, self.directory, older)
        self.snapshots = [snapshot_id]

    async def flush(self) -> None:
        """Return once everything appended so far is on the medium."""
        await self.log.flush()

    # -- reading it

    def read(self, offset: int, max_bytes: int) -> Buffer:
        """Whole batches from `offset` on, at least one, at most `max_bytes` if there are more.

        Raises MetadataLogError for damage.
        """
        return read_whole(self.log, offset, max_bytes, self.end_offset)

    def batches(self, start: int, end: int) -> list[LogBatch]:
        """The data batches of [start, end)."""
        return list(read_batches(self.log, start, end))

    def read_snapshot(
        self, snapshot_id: SnapshotId, position: int, max_bytes: int
    ) -> tuple[ErrorCode, int, Buffer]:
        """(error, size of the whole, the piece at `position`)."""
        if snapshot_id not in self.snapshots:
            return ErrorCode.SNAPSHOT_NOT_FOUND, 0, b""
        file = self._disk.open(f"{self.directory}/{snapshot_id.file_name}")
        try:
            size_bytes = file.size()
            if not 0 <= position < size_bytes:
                return ErrorCode.POSITION_OUT_OF_RANGE, size_bytes, b""
            return ErrorCode.NONE, size_bytes, file.pread(max(1, max_bytes), position)
        finally:
            file.close()

    # -- cleaning

    def clean(self, *, retention_bytes: int, retention_ms: int) -> list[SnapshotId]:
        """Drop old snapshots, and the log that newer ones cover; returns the snapshots dropped.

        A snapshot goes while log and snapshots together exceed `retention_bytes`, or when its
        data is older than `retention_ms` (-1: no limit); the newest always stays.
        Source: Kafka's KafkaMetadataLog.maybeClean.
        """
        dropped = []
        now_ms = self._clock.now_ms()
        while len(self.snapshots) > 1:
            oldest, next_oldest = self.snapshots[:2]
            path = f"{self.directory}/{oldest.file_name}"
            total = self.log.size_bytes + sum(map(self._size_bytes, self.snapshots))
            too_large = 0 <= retention_bytes < total
            too_old = 0 <= retention_ms < now_ms - self._disk.modified_ms(path)
            if not (too_large or too_old):
                break
            self.log.delete_records_before(next_oldest.end_offset)
            self.log.apply_retention(now_ms)
            delete_snapshot(self._disk, self.directory, oldest)
            dropped.append(self.snapshots.pop(0))
        return dropped

    def _size_bytes(self, snapshot_id: SnapshotId) -> int:
        file = self._disk.open(f"{self.directory}/{snapshot_id.file_name}")
        try:
            return file.size()
        finally:
            file.close()


def controls_of(data: Buffer) -> Controls:
    """Read the quorum's state from the control batches in `data`."""
    controls = Controls()
    for position, header in iterate_headers(data, allow_partial_tail=True):
        if header.is_control:
            for record in decode_records(data, position):
                controls.note(record)
    return controls


MARK_FILE_NAME = "flushed-offset"


class FlushedMark:
    """The `flushed-offset` file: how far the metadata log was known to be on the medium.

    It is written after each fsync of the log, and not synced itself: what it says was always true
    when it was written, so a power cut can only make it say too little. A log that is found shorter
    than its mark was damaged (a flipped bit, a truncated file), and its voter may have acknowledged
    what it does not have. Such a voter neither votes nor stands until it has a leader's log again;
    else a damaged voter and others that are merely behind could elect a leader that lacks what was
    committed. Kafka has no such file, and leaves it alone.

    The file is one line, offset and checksum, overwritten in place. It stays open, so that a node
    without a free file descriptor can go on. A line that a power cut tore fails its checksum, and
    then says nothing. Methods that write raise OSError.
    """

    __slots__ = ("_disk", "_file", "_path", "offset")

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._path = f"{directory}/{MARK_FILE_NAME}"
        self._file: DiskFile | None = None
        self.offset = 0
        """The mark in the file; 0 if it cannot be read."""

    def read(self) -> int:
        """Read the file, and return its offset."""
        try:
            self.offset = _offset_in(self._disk.read(self._path))
        except FileNotFoundError:
            self.offset = 0
        return self.offset

    def raise_to(self, offset: int) -> None:
        """Everything before `offset` is on the medium."""
        if offset > self.offset:
            self._write(offset)

    def lower_to(self, offset: int) -> None:
        """The log is about to be cut there. On the medium before that is done."""
        if offset < self.offset:
            self._write(offset).fsync()

    def close(self) -> None:
        """Close the file; a later write opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, offset: int) -> DiskFile:
        file = self._file
        if file is None:
            if not self._disk.exists(self._path):
                self._disk.write_atomic(self._path, _line(offset), sync=False)
            file = self._file = self._disk.open(self._path)
            file.truncate(len(_line(offset)))  # one of an earlier version had no fixed length
        file.pwrite(_line(offset), 0)
        self.offset = offset
        return file


def _line(offset: int) -> bytes:
    digits = b"%020d" % offset
    return b"%b %08x\n" % (digits, zlib.crc32(digits))


def _offset_in(content: bytes) -> int:
    """The offset that a file says; earlier versions wrote the number alone."""
    words = content.split()
    if not words or not words[0].isdigit():
        return 0
    if len(words) == 1:
        return int(words[0])
    return int(words[0]) if words[1:] == [b"%08x" % zlib.crc32(words[0])] else 0
