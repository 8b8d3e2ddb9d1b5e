"""Recovery of a replica from its disk: snapshot, log, voters, and its vote.

The newest complete snapshot stands for everything before its end offset; from there the log is
read to its end. Control records among both tell the kraft.version and the voters that hold,
committed or not (KIP-853). Source: Kafka's KRaftControlRecordStateMachine.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from barnabas.base.disk import Buffer, Disk, FileRange
from barnabas.base.errors import ShownError
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.raft.core.voter_history import NEVER_LOGGED, VoterHistory
from barnabas.node.raft.snapshot_files import (
    BOOTSTRAP_SNAPSHOT,
    Snapshot,
    SnapshotError,
    SnapshotId,
    list_snapshots,
    read_snapshot,
    remove_leftovers,
)
from barnabas.node.raft.voters import ReplicaKey, VoterSet, voter_set_from_record
from barnabas.protocol.messages.quorum import KRaftVersionRecord, VotersRecord
from barnabas.protocol.records.batch import CorruptBatchError, check_crc, iterate_headers
from barnabas.protocol.records.control import decode_control
from barnabas.protocol.records.records import Record, decode_records

telemetry = logging.getLogger(__name__)

READ_SIZE_BYTES = 1 << 20


class MetadataLogError(ShownError, ValueError):
    """A metadata log that cannot be opened; the text says what to do."""


@dataclass(frozen=True, slots=True)
class LogBatch:
    """The values of one batch of the metadata log."""

    base_offset: int
    epoch: int
    timestamp_ms: int
    values: list[bytes]


@dataclass(slots=True)
class Controls:
    """The quorum's state in control records, with their offsets."""

    voters: list[tuple[int, VoterSet]] = field(default_factory=list)
    kraft_versions: list[tuple[int, int]] = field(default_factory=list)

    def note(self, record: Record) -> None:
        """Follow a control record."""
        match decode_control(record):
            case KRaftVersionRecord(k_raft_version=version):
                self.kraft_versions.append((record.offset, version))
            case VotersRecord() as voters:
                self.voters.append((record.offset, voter_set_from_record(voters)))
            case _:
                pass


@dataclass(slots=True)
class Recovered:
    """The replica's state on disk."""

    snapshot_id: SnapshotId | None = None
    snapshot: Snapshot | None = None
    batches: list[LogBatch] = field(default_factory=list)
    """After the snapshot, control batches left out."""
    history: VoterHistory = field(default_factory=VoterHistory)


class ControlSink(Protocol):
    """The listener of control records."""

    def note(self, record: Record) -> None:
        """Follow a control record."""


def recover(disk: Disk, directory: str, log: PartitionLog) -> Recovered:
    """Read the newest usable snapshot and the log after it.

    Raises MetadataLogError if the log begins after what the snapshots cover, and OSError.
    """
    remove_leftovers(disk, directory)
    recovered = Recovered()
    _load_snapshot(recovered, disk, directory, log.log_start_offset)
    snapshot_id = recovered.snapshot_id
    start = 0 if snapshot_id is None else snapshot_id.end_offset
    if start < log.log_start_offset:
        raise MetadataLogError(
            f"{directory}: the log begins at offset {log.log_start_offset}, and no snapshot covers "
            "what came before; restore the directory from another replica or a backup"
        )
    if snapshot_id is not None and start and _is_beyond(snapshot_id, log):
        telemetry.warning(
            "%s: the log ends at %d in epoch %d, before snapshot %s; continuing from the snapshot",
            directory,
            log.log_end_offset,
            log.epochs.latest_epoch,
            snapshot_id,
        )
        log.truncate_fully_and_start_at(start)
    controls = Controls()
    recovered.batches.extend(read_batches(log, start, log.log_end_offset, controls))
    recovered.history.append(controls.voters, controls.kraft_versions)
    return recovered


def _is_beyond(snapshot_id: SnapshotId, log: PartitionLog) -> bool:
    """Return whether a snapshot was fetched because the log differs from the leader's, or ends
    before it.

    Source: Kafka's KafkaMetadataLog.truncateToLatestSnapshot.
    """
    if snapshot_id.end_offset > log.log_end_offset:
        return True
    is_empty = log.log_start_offset == log.log_end_offset
    return not is_empty and snapshot_id.epoch > log.epochs.latest_epoch


def _load_snapshot(recovered: Recovered, disk: Disk, directory: str, log_start_offset: int) -> None:
    for snapshot_id in reversed(list_snapshots(disk, directory)):
        try:
            snapshot = read_snapshot(disk, directory, snapshot_id)
        except SnapshotError as error:
            # An older one will do as long as the log still holds what came after it.
            telemetry.error("%s; looking for an older snapshot", error)
            continue
        if snapshot_id.end_offset < log_start_offset:
            return
        recovered.snapshot_id, recovered.snapshot = snapshot_id, snapshot
        # What `storage format` wrote into the first is in no log yet.
        assert snapshot_id != BOOTSTRAP_SNAPSHOT or snapshot_id.end_offset - 1 == NEVER_LOGGED
        recovered.history.restart(snapshot_id.end_offset, snapshot.voters, snapshot.kraft_version)
        return


def read_batches(
    log: PartitionLog, start: int, end: int, controls: ControlSink | None = None
) -> Iterator[LogBatch]:
    """The data batches of [start, end), in order; control records go to `controls`.

    A batch that begins before `start` (a snapshot need not end with a batch) is cut. Raises
    MetadataLogError for damage.
    """
    offset = start
    while offset < end:
        data = read_whole(log, offset, READ_SIZE_BYTES, end)
        next_offset = offset
        for position, header in iterate_headers(data, allow_partial_tail=True):
            records = [
                record for record in decode_records(data, position) if record.offset >= start
            ]
            next_offset = header.next_offset
            if header.is_control:
                for record in records if controls is not None else ():
                    assert controls is not None
                    controls.note(record)
            elif records:
                yield LogBatch(
                    records[0].offset,
                    header.partition_leader_epoch,
                    header.max_timestamp,
                    [record.value or b"" for record in records],
                )
        if next_offset <= offset:
            raise damaged(log, offset, "offsets step back there")
        offset = next_offset


def read_whole(log: PartitionLog, offset: int, max_bytes: int, end: int) -> Buffer:
    """Whole batches from `offset`, which is before `end`, on: one at least.

    Raises MetadataLogError for damage.
    """
    result = log.read_local(offset, max_bytes, max_offset=end)
    if result.error or not result.size_bytes:
        raise damaged(log, offset, "no batch holds it")
    parts = [part.read() if isinstance(part, FileRange) else part for part in result.parts]
    data = parts[0] if len(parts) == 1 else b"".join(parts)
    try:
        for position, header in iterate_headers(data, allow_partial_tail=True):
            if not check_crc(data, position, header):
                raise damaged(log, offset, "a batch fails its CRC")
            if header.base_offset > offset:
                raise damaged(log, offset, "no batch holds it")
            offset = header.next_offset
    except CorruptBatchError as error:
        raise damaged(log, offset, str(error)) from error
    return data


def damaged(log: PartitionLog, offset: int, reason: str) -> MetadataLogError:
    """The error to raise for a metadata log in which `offset` cannot be read."""
    return MetadataLogError(
        f"{log.directory}: the metadata log is damaged at offset {offset} ({reason}); restore the "
        "directory from another replica or a backup"
    )


def check_voters(
    directory: str, history: VoterHistory, local: ReplicaKey, *, is_controller: bool, may_ask: bool
) -> None:
    """Raises MetadataLogError if the voters are not known.

    Unless `may_ask` (there are bootstrap servers), a controller has to be one of the voters. One
    that was voted out knows the others by the log, and goes on as an observer.
    """
    voters = history.latest
    if not voters.by_id and not may_ask:
        raise MetadataLogError(
            f"{directory} names no voters: set controller.quorum.voters, or format it "
            "with --standalone, or set controller.quorum.bootstrap.servers to join a quorum"
        )
    knows_others = may_ask or history.kraft_version >= 1
    if is_controller and not voters.is_voter(local) and not knows_others:
        raise MetadataLogError(
            f"node {local.id} with this metadata directory is not among the voters "
            f"{sorted(voters.by_id)} of the quorum"
        )
