"""A log directory with a damaged checkpoint or other file: every log opens, with every record.

Checkpoints, the marker of a clean shutdown and meta.properties have no checksum. A changed digit is
accepted if nothing contradicts it; a value that no log can have is not.
"""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.base.ids import TopicPartition
from barnabas.node.log.config import LogConfig
from barnabas.node.log.manager import LogManager
from barnabas.node.log.names import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    META_PROPERTIES_FILE,
    RECOVERY_POINT_FILE,
)
from sim.fake_disk import FakeDisk
from sim.manual_clock import ManualClock
from support.effort import examples
from support.logs import NOW_MS, TOPIC_ID, make_batch, read_values

LOG_DIR = "/data"
PARTITIONS = [TopicPartition("topic", number) for number in range(3)]
FILES = [
    RECOVERY_POINT_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    CLEANER_OFFSET_FILE,
    CLEAN_SHUTDOWN_FILE,
    META_PROPERTIES_FILE,
]
END = 57
START = 12
"""Of the second log, by DeleteRecords."""


def closed_directory() -> FakeDisk:
    """Three logs that were shut down cleanly, one of which begins in the middle of a segment."""
    disk = FakeDisk()
    disk.make_dirs(LOG_DIR)
    disk.write_atomic(
        f"{LOG_DIR}/{META_PROPERTIES_FILE}",
        b"version=1\ncluster.id=c\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAZA\n",
    )
    logs = open_directory(disk)
    for topic_partition in PARTITIONS:
        log = logs.create(topic_partition, TOPIC_ID, LogConfig())
        for offset in range(END):
            log.append_as_leader(make_batch(str(offset)), leader_epoch=0, now_ms=NOW_MS)
        log.high_watermark = END
    second = logs.get(PARTITIONS[1])
    assert second is not None
    second.delete_records_before(START)
    second.cleaned_offset = 5
    logs.shutdown(7)
    return disk


def open_directory(disk: FakeDisk) -> LogManager:
    logs = LogManager(disk, [LOG_DIR], ManualClock(NOW_MS), LogConfig())
    logs.load()
    assert not logs.offline_dirs
    return logs


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(FILES),
    st.sampled_from(["flip", "flip", "zeros", "cut", "twice"]),
    st.integers(0, 5000),
)
def test_every_log_opens_with_every_record(name: str, how: str, at: int) -> None:
    disk = closed_directory()
    data = disk.inode(f"{LOG_DIR}/{name}").data
    match how:
        case "flip":
            bit = at % (len(data) * 8)
            data[bit // 8] ^= 1 << bit % 8
        case "zeros":
            data[:] = bytes(len(data))
        case "cut":
            del data[at % len(data) :]
        case "twice":
            data += bytes(data)
    logs = open_directory(disk)
    for topic_partition in PARTITIONS:
        log = logs.get(topic_partition)
        assert log is not None
        assert log.log_end_offset == END
        assert 0 <= log.log_start_offset <= END
        assert log.log_start_offset <= log.high_watermark <= END
        assert 0 <= log.recovery_point <= END
        assert read_values(log) == [str(value) for value in range(log.log_start_offset, END)]
        assert (
            log.log_start_offset == 0
            or topic_partition == PARTITIONS[1]
            or (name == LOG_START_OFFSET_FILE)
        )
        batch = make_batch("x", key="k")
        assert not log.append_as_leader(batch, leader_epoch=1, now_ms=NOW_MS).error
    logs.shutdown(8)
    again = open_directory(disk)
    assert [log.log_end_offset for log in again] == [END + 1] * len(PARTITIONS)
