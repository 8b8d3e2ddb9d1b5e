"""A replica recovers its log, snapshot and quorum state from disk, or names the damage."""

from pathlib import Path

import pytest

from barnabas.base.clock import SystemClock
from barnabas.base.ids import METADATA_TOPIC_ID, TopicPartition
from barnabas.base.local_disk import LocalDisk
from barnabas.node.log.config import LogConfig
from barnabas.node.log.loader import create_log
from barnabas.node.log.log_directory import LogDirectory
from barnabas.node.log.partition_log import AppendOrigin, PartitionLog
from barnabas.node.metadata.bootstrap import feature_records, read_bootstrap, write_bootstrap
from barnabas.node.raft.quorum_state import QuorumStateError, read_quorum_state
from barnabas.node.raft.recovery import MetadataLogError, read_batches, recover
from barnabas.node.raft.snapshot_files import SnapshotError, SnapshotId, encode_snapshot
from barnabas.node.raft.voters import parse_dynamic_voters
from barnabas.protocol.messages.quorum import KRaftVersionRecord
from barnabas.protocol.records.control import encode_control_batch
from barnabas.protocol.records.records import Record, encode_batch

VOTERS = parse_dynamic_voters("1@localhost:9093:JEXY6aqzQY-32P5TStzaFg", "CONTROLLER")


@pytest.fixture
def disk() -> LocalDisk:
    return LocalDisk()


def new_log(disk: LocalDisk, directory: Path, start_offset: int = 0) -> PartitionLog:
    return create_log(
        LogDirectory(str(directory), disk, SystemClock()),
        TopicPartition("__cluster_metadata", 0),
        METADATA_TOPIC_ID,
        LogConfig(),
        start_offset=start_offset,
    )


def append(log: PartitionLog, *values: bytes, epoch: int = 1) -> None:
    batch = encode_batch([Record(value=value, timestamp=5) for value in values])
    log.append_as_leader(batch, leader_epoch=epoch, now_ms=5, origin=AppendOrigin.RAFT)


def write_snapshot(
    disk: LocalDisk, log: PartitionLog, snapshot_id: SnapshotId, *values: bytes
) -> None:
    data = b"".join(
        encode_snapshot(values, now_ms=1, epoch=snapshot_id.epoch, kraft_version=1, voters=VOTERS)
    )
    disk.write_atomic(f"{log.directory}/{snapshot_id.file_name}", data)


def test_the_log_is_read_from_the_snapshot_on(disk: LocalDisk, tmp_path: Path) -> None:
    log = new_log(disk, tmp_path)
    append(log, b"a", b"b", b"c")
    append(log, b"d", epoch=2)
    write_snapshot(disk, log, SnapshotId(2, 1), b"a+b")
    recovered = recover(disk, log.directory, log)
    assert recovered.snapshot is not None
    assert recovered.snapshot.values == [b"a+b"]
    assert [(b.base_offset, b.epoch, b.values) for b in recovered.batches] == [
        (2, 1, [b"c"]),
        (3, 2, [b"d"]),
    ]
    history = recovered.history
    assert (history.latest, history.kraft_version, history.latest_offset) == (VOTERS, 1, 1)


def test_control_records_of_the_log_count(disk: LocalDisk, tmp_path: Path) -> None:
    log = new_log(disk, tmp_path)
    batch = encode_control_batch(
        [KRaftVersionRecord(version=0, k_raft_version=1), VOTERS.to_record()], timestamp_ms=1
    )
    log.append_as_leader(batch, leader_epoch=1, now_ms=1, origin=AppendOrigin.RAFT)
    append(log, b"a")
    recovered = recover(disk, log.directory, log)
    assert (recovered.history.latest, recovered.history.latest_offset) == (VOTERS, 1)
    assert [b.values for b in recovered.batches] == [[b"a"]]


def test_an_empty_log_is_fine(disk: LocalDisk, tmp_path: Path) -> None:
    log = new_log(disk, tmp_path)
    recovered = recover(disk, log.directory, log)
    assert (recovered.batches, recovered.snapshot, recovered.history.voters) == ([], None, [])


def test_a_log_without_its_beginning_is_refused(disk: LocalDisk, tmp_path: Path) -> None:
    log = new_log(disk, tmp_path, start_offset=100)
    append(log, b"a")
    with pytest.raises(MetadataLogError, match="begins at offset 100"):
        recover(disk, log.directory, log)
    write_snapshot(disk, log, SnapshotId(50, 1))
    with pytest.raises(MetadataLogError, match="begins at offset 100"):
        recover(disk, log.directory, log)
    write_snapshot(disk, log, SnapshotId(100, 1), b"all")
    assert [b.values for b in recover(disk, log.directory, log).batches] == [[b"a"]]


def test_a_log_that_ends_before_the_snapshot_goes_on_from_it(
    disk: LocalDisk, tmp_path: Path
) -> None:
    log = new_log(disk, tmp_path)
    append(log, b"a")
    write_snapshot(disk, log, SnapshotId(9, 3), b"all")
    recovered = recover(disk, log.directory, log)
    assert recovered.batches == []
    assert (log.log_start_offset, log.log_end_offset) == (9, 9)


def test_batches_are_read_however_small_the_chunks(
    disk: LocalDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.node.raft.recovery.READ_SIZE_BYTES", 80)
    log = new_log(disk, tmp_path)
    values = [bytes([number]) * (number * 9) for number in range(30)]
    for value in values:
        append(log, value)
    log.tail.clear(log.log_end_offset)
    read = [value for batch in read_batches(log, 0, 30) for value in batch.values]
    assert read == values


@pytest.mark.parametrize("at", [8, 16, 65], ids=["length", "magic", "record"])
def test_damage_that_no_scan_has_cut_is_named(disk: LocalDisk, tmp_path: Path, at: int) -> None:
    """It lies before the newest snapshot, and that one is damaged too."""
    log = new_log(disk, tmp_path)
    append(log, b"a")
    place = log.active.size_bytes
    append(log, b"b")
    append(log, b"c")
    write_snapshot(disk, log, SnapshotId(3, 1), b"a+b+c")
    snapshot = disk.open(f"{log.directory}/{SnapshotId(3, 1).file_name}")
    snapshot.truncate(snapshot.size() - 1)
    file = disk.open(log.active.files.log_path)
    file.pwrite(bytes([file.pread(1, place + at)[0] ^ 0x40]), place + at)
    log.tail.clear()
    with pytest.raises(MetadataLogError, match=r"__cluster_metadata-0: .* damaged at offset 1 .*;"):
        recover(disk, log.directory, log)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x00" * 100,
        "[]",
        "{}",
        '{"leaderId":1,"leaderEpoch":1e999,"votedId":-1,"data_version":0}',
        '{"leaderId":1,"leaderEpoch":-3,"votedId":-1,"data_version":0}',
        '{"leaderId":1,"leaderEpoch":4294967296,"votedId":-1,"data_version":0}',
        '{"leaderId":1,"leaderEpoch":3,"votedId":2,"votedDirectoryId":7,"data_version":1}',
        '{"leaderId":1,"leaderEpoch":3,"votedId":2,"votedDirectoryId":"AA","data_version":1}',
    ],
)
def test_a_garbled_quorum_state_is_refused_by_name(
    disk: LocalDisk, tmp_path: Path, text: str
) -> None:
    disk.write_atomic(f"{tmp_path}/quorum-state", text.encode())
    with pytest.raises(QuorumStateError, match=r"quorum-state is not .* backup.*add it again"):
        read_quorum_state(disk, str(tmp_path))


def test_a_garbled_bootstrap_file_is_refused_by_name(disk: LocalDisk, tmp_path: Path) -> None:
    write_bootstrap(disk, str(tmp_path), feature_records({"metadata.version": 25}), now_ms=1)
    file = disk.open(f"{tmp_path}/bootstrap.checkpoint")
    file.pwrite(bytes([file.pread(1, 80)[0] ^ 1]), 80)
    with pytest.raises(SnapshotError, match=r"bootstrap\.checkpoint is damaged .*format"):
        read_bootstrap(disk, str(tmp_path))
