"""Snapshots of the metadata log: `<end offset>-<epoch>.checkpoint` beside its segments.

A snapshot holds the state that all records before its end offset lead to (KIP-630): batches as
in a log, first a control batch with the header (and, in a dynamic quorum, kraft.version and
voters), then the records, at last a control batch with the footer. A file without a footer is
torn. It is written under another name and gets its own when it is on the medium.
Source: Kafka's Snapshots, RecordsSnapshotWriter and RecordsSnapshotReader.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.base.disk import Buffer, Disk
from barnabas.base.errors import ShownError
from barnabas.node.log.names import KRAFT_SNAPSHOT_DELETED_SUFFIX, KRAFT_SNAPSHOT_SUFFIX
from barnabas.node.raft.voters import VoterSet, voter_set_from_record
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.quorum import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from barnabas.protocol.records.batch import check_crc, iterate_headers
from barnabas.protocol.records.control import ControlMessage, decode_control, encode_control_batch
from barnabas.protocol.records.records import Record, decode_records, encode_batch

PARTIAL_SUFFIX = ".checkpoint.part"
BATCH_SIZE_BYTES_MAX = 1 << 20
"""A batch of a snapshot is closed when its values reach this size (Kafka allows 8 MiB)."""

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class SnapshotError(ShownError, DecodeError):
    """A snapshot that is torn or damaged."""


class SnapshotId(NamedTuple):
    """The offset after the last record a snapshot covers, and that record's epoch."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """As Kafka names the file, so that names sort by offset."""
        return f"{self.end_offset:020d}-{self.epoch:010d}{KRAFT_SNAPSHOT_SUFFIX}"


BOOTSTRAP_SNAPSHOT = SnapshotId(0, 0)
"""The snapshot that `storage format` writes for a dynamic quorum: voters, and no records."""


@dataclass(slots=True)
class Snapshot:
    """The content of a snapshot file: the values of its records, and the quorum's own state."""

    values: list[bytes] = field(default_factory=list)
    last_timestamp_ms: int = 0
    kraft_version: int = 0
    voters: VoterSet | None = None


def list_snapshots(disk: Disk, directory: str) -> list[SnapshotId]:
    """The complete snapshots in `directory`, oldest first."""
    if not disk.is_dir(directory):
        return []
    matches = (_NAME.fullmatch(name) for name in disk.list(directory))
    return sorted(SnapshotId(int(match[1]), int(match[2])) for match in matches if match)


def remove_leftovers(disk: Disk, directory: str) -> None:
    """Delete what an interrupted write or deletion left."""
    for name in disk.list(directory):
        if name.endswith((PARTIAL_SUFFIX, KRAFT_SNAPSHOT_DELETED_SUFFIX)):
            disk.remove(f"{directory}/{name}")


def delete_snapshot(disk: Disk, directory: str, snapshot_id: SnapshotId) -> None:
    """Take a snapshot out of use, then delete it."""
    path = f"{directory}/{snapshot_id.file_name}"
    deleted = path.removesuffix(KRAFT_SNAPSHOT_SUFFIX) + KRAFT_SNAPSHOT_DELETED_SUFFIX
    disk.rename(path, deleted)
    disk.remove(deleted)


def encode_snapshot(
    values: Iterable[bytes],
    *,
    now_ms: int,
    epoch: int = 0,
    last_timestamp_ms: int = 0,
    kraft_version: int = 0,
    voters: VoterSet | None = None,
) -> Iterator[bytearray]:
    """The batches of a snapshot file, from header to footer."""
    head: list[ControlMessage] = [
        SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_timestamp_ms)
    ]
    if kraft_version >= 1:
        head.append(KRaftVersionRecord(version=0, k_raft_version=kraft_version))
        if voters is not None:
            head.append(voters.to_record())
    yield encode_control_batch(head, timestamp_ms=now_ms, partition_leader_epoch=epoch)
    offset = len(head)
    for chunk in _chunks(values):
        yield encode_batch(
            [Record(timestamp=now_ms, value=value) for value in chunk],
            base_offset=offset,
            partition_leader_epoch=epoch,
        )
        offset += len(chunk)
    yield encode_control_batch(
        [SnapshotFooterRecord(version=0)],
        timestamp_ms=now_ms,
        base_offset=offset,
        partition_leader_epoch=epoch,
    )


def decode_snapshot(data: Buffer) -> Snapshot:
    """Read a whole snapshot file.

    Raises SnapshotError if a batch is damaged, or header or footer are missing.
    """
    snapshot = Snapshot()
    has_header = has_footer = False
    try:
        for position, header in iterate_headers(data):
            if not check_crc(data, position, header):
                raise SnapshotError(f"the batch at position {position} fails its CRC")
            for record in decode_records(data, position):
                if has_footer:
                    raise SnapshotError("records follow the footer")
                if not header.is_control:
                    snapshot.values.append(record.value or b"")
                    continue
                match decode_control(record):
                    case SnapshotHeaderRecord(last_contained_log_timestamp=timestamp_ms):
                        has_header = True
                        snapshot.last_timestamp_ms = timestamp_ms
                    case SnapshotFooterRecord():
                        has_footer = True
                    case KRaftVersionRecord(k_raft_version=version):
                        snapshot.kraft_version = version
                    case VotersRecord() as voters:
                        snapshot.voters = voter_set_from_record(voters)
                    case _:
                        pass
    except SnapshotError:
        raise
    except DecodeError as error:
        raise SnapshotError(str(error)) from error
    if not (has_header and has_footer):
        raise SnapshotError("the file ends before its footer" if has_header else "no header")
    return snapshot


def read_snapshot(disk: Disk, directory: str, snapshot_id: SnapshotId) -> Snapshot:
    """Read a snapshot of the metadata log. Raises SnapshotError and OSError."""
    path = f"{directory}/{snapshot_id.file_name}"
    try:
        return decode_snapshot(disk.read(path))
    except SnapshotError as error:
        raise SnapshotError(f"{path}: {error}") from error


class SnapshotWriter:
    """Writes one snapshot, batch by batch, so that a large one need not stop the node."""

    __slots__ = ("_directory", "_disk", "_file", "_partial", "snapshot_id")

    def __init__(self, disk: Disk, directory: str, snapshot_id: SnapshotId) -> None:
        self.snapshot_id = snapshot_id
        self._disk = disk
        self._directory = directory
        name = snapshot_id.file_name.removesuffix(KRAFT_SNAPSHOT_SUFFIX)
        self._partial = f"{directory}/{name}{PARTIAL_SUFFIX}"
        self._file = disk.open(self._partial, create=True)
        self._file.truncate(0)

    def append(self, batch: Buffer) -> None:
        """Add one batch."""
        self._file.append([batch])

    async def freeze(self) -> int:
        """Force the file to the medium and give it its name. Returns its size in bytes."""
        await self._disk.fsync_soon([self._file])
        size_bytes = self._file.size()
        self._file.close()
        self._disk.rename(self._partial, f"{self._directory}/{self.snapshot_id.file_name}")
        await self._disk.fsync_soon([], [self._directory])
        return size_bytes

    def abandon(self) -> None:
        """Give up: nothing remains of the file."""
        self._file.close()
        with contextlib.suppress(OSError):  # what is left is removed at the next start
            self._disk.remove(self._partial)


def _chunks(values: Iterable[bytes]) -> Iterator[list[bytes]]:
    chunk: list[bytes] = []
    size_bytes = 0
    for value in values:
        if chunk and size_bytes + len(value) > BATCH_SIZE_BYTES_MAX:
            yield chunk
            chunk, size_bytes = [], 0
        chunk.append(value)
        size_bytes += len(value)
    if chunk:
        yield chunk
