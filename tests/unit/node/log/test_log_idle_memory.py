"""A node may host thousands of partitions that nobody writes to: each must be small."""

import tracemalloc
from pathlib import Path

from barnabas.base.clock import SystemClock
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.base.local_disk import LocalDisk
from barnabas.node.log.config import LogConfig
from barnabas.node.log.loader import create_log
from barnabas.node.log.log_directory import LogDirectory

LOGS = 100
LOG_SIZE_BYTES_MAX = 1800
"""Its objects and names; what the file system holds comes on top."""


def test_a_log_without_records_is_small(tmp_path: Path) -> None:
    disk = LocalDisk()
    directory = LogDirectory(str(tmp_path), disk, SystemClock())
    config = LogConfig()
    topic_id = Uuid(bytes(range(16)))
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        logs = [
            create_log(directory, TopicPartition("idle", number), topic_id, config)
            for number in range(LOGS)
        ]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(logs) == LOGS
    assert (after - before) / LOGS < LOG_SIZE_BYTES_MAX
