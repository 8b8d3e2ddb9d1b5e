"""A metadata log in which one file was damaged: it is read as it was written, or refused by name.

What a scan cuts off at the end is gone, and told by the mark of what had been flushed; nothing
that was not written is read, and nothing is left out in the middle.
"""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.base.ids import METADATA_TOPIC_ID, TopicPartition
from barnabas.node.log.config import LogConfig
from barnabas.node.log.loader import create_log, open_log
from barnabas.node.log.log_directory import LogDirectory
from barnabas.node.log.partition_log import AppendOrigin
from barnabas.node.raft.quorum_state import (
    ElectionState,
    QuorumStateError,
    read_quorum_state,
    write_quorum_state,
)
from barnabas.node.raft.recovery import MetadataLogError, recover
from barnabas.node.raft.replica_log import FlushedMark
from barnabas.node.raft.snapshot_files import SnapshotId, encode_snapshot, list_snapshots
from barnabas.node.raft.voters import parse_dynamic_voters
from barnabas.protocol.records.records import Record, encode_batch
from sim.fake_disk import FakeDisk
from sim.manual_clock import ManualClock
from support.effort import examples
from support.logs import NOW_MS

ROOT = "/metadata"
PARTITION = TopicPartition("__cluster_metadata", 0)
DIRECTORY = f"{ROOT}/__cluster_metadata-0"
CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=150)
VOTERS = parse_dynamic_voters("1@localhost:9093:JEXY6aqzQY-32P5TStzaFg", "CONTROLLER")
END = 40
SNAPSHOTS = [SnapshotId(11, 1), SnapshotId(24, 2)]
ELECTION = ElectionState(3, 1, VOTERS.by_id[1].key)


def value_at(offset: int) -> bytes:
    return b"value-%d" % offset


def written() -> FakeDisk:
    """Forty records of three epochs in several segments, and two snapshots."""
    disk = FakeDisk()
    disk.make_dirs(ROOT)
    log = create_log(
        LogDirectory(ROOT, disk, ManualClock(NOW_MS)), PARTITION, METADATA_TOPIC_ID, CONFIG
    )
    for offset in range(0, END, 2):
        values = [value_at(offset), value_at(offset + 1)]
        log.append_as_leader(
            encode_batch([Record(timestamp=NOW_MS, value=value) for value in values]),
            leader_epoch=1 + offset // 14,
            now_ms=NOW_MS,
            origin=AppendOrigin.RAFT,
        )
    log.close()
    for snapshot_id in SNAPSHOTS:
        values = [value_at(offset) for offset in range(snapshot_id.end_offset)]
        data = b"".join(encode_snapshot(values, now_ms=1, kraft_version=1, voters=VOTERS))
        disk.write_atomic(f"{DIRECTORY}/{snapshot_id.file_name}", data)
    write_quorum_state(disk, DIRECTORY, ELECTION, kraft_version=1, voters=[1])
    FlushedMark(disk, DIRECTORY).raise_to(END)
    return disk


@settings(max_examples=examples(45), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(
            st.integers(0, 100),
            st.sampled_from(["flip", "flip", "zeros", "twice", "cut"]),
            st.integers(0, 1 << 16),
        ),
        min_size=1,
        max_size=2,
    )
)
def test_it_is_read_as_it_was_written_or_refused(damages: list[tuple[int, str, int]]) -> None:
    disk = written()
    for file, how, at in damages:
        names = [name for name in disk.list(DIRECTORY) if disk.inode(f"{DIRECTORY}/{name}").data]
        data = disk.inode(f"{DIRECTORY}/{names[file % len(names)]}").data
        match how:
            case "flip":
                bit = at % (len(data) * 8)
                data[bit // 8] ^= 1 << bit % 8
            case "zeros":
                start = at % len(data) // 128 * 128
                data[start : start + 128] = bytes(min(128, len(data) - start))
            case "twice":
                data += bytes(data[at % len(data) :])
            case "cut":
                del data[at % len(data) :]
    refusal = None
    try:
        begin(disk)
    except (MetadataLogError, QuorumStateError) as error:
        refusal = str(error)
    assert refusal is None or (DIRECTORY in refusal and "backup" in refusal)
    assert refusal is None or "\n" not in refusal


def begin(disk: FakeDisk) -> None:
    """Open the log and its snapshots as a node does."""
    snapshots = list_snapshots(disk, DIRECTORY)
    log, _ = open_log(
        LogDirectory(ROOT, disk, ManualClock(NOW_MS)),
        PARTITION,
        CONFIG,
        is_clean=False,
        recovery_point=snapshots[-1].end_offset,
        may_have_gaps=False,
    )
    recovered = recover(disk, DIRECTORY, log)
    read = [] if recovered.snapshot is None else list(recovered.snapshot.values)
    for batch in recovered.batches:
        assert batch.base_offset == len(read)
        read += batch.values
    assert read == [value_at(offset) for offset in range(len(read))]
    assert len(read) <= END
    FlushedMark(disk, DIRECTORY).read()
    election = read_quorum_state(disk, DIRECTORY)
    assert election is not None
    assert election.epoch >= 0
