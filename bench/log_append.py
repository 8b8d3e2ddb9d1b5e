"""What the log costs per append and per read, without network: `python -m bench.log_append`.

One event loop does all of it, so these figures bound the requests that a node takes.
"""

import os
import tempfile
import time
from collections.abc import Callable

from barnabas.base.clock import SystemClock
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.base.local_disk import LocalDisk
from barnabas.node.log.config import LogConfig
from barnabas.node.log.manager import LogManager
from barnabas.node.log.partition_log import PartitionLog
from barnabas.protocol.records.records import Record, encode_batch

SHAPES = {
    "16 records of 1000 bytes": (16, 1000, 8000),
    "145 records of 100 bytes": (145, 100, 8000),
    "1 record of 100 bytes": (1, 100, 40_000),
}


def make_batch(count: int, size: int) -> bytes:
    """A batch of random values, as a producer sends it."""
    now_ms = time.time_ns() // 1_000_000
    records = [Record(timestamp=now_ms, value=os.urandom(size)) for _ in range(count)]
    return bytes(encode_batch(records))


def time_each(action: Callable[[int], object], count: int) -> float:
    """Microseconds for each of `count` calls."""
    start = time.perf_counter()
    for number in range(count):
        action(number)
    return (time.perf_counter() - start) / count * 1e6


def main() -> None:
    """Print a table."""
    with tempfile.TemporaryDirectory() as path:
        disk = LocalDisk()
        logs = LogManager(disk, [path], SystemClock(), LogConfig())
        logs.load()
        for partition, (name, (count, size, appends)) in enumerate(SHAPES.items()):
            log = logs.create(TopicPartition("bench", partition), Uuid(bytes(16)), LogConfig())
            batch = make_batch(count, size)
            append_us = _append(log, batch, appends)
            tail_us = _read_tail(log)
            cold_us = _read_through(log)
            print(
                f"{name:26}  append {append_us:6.1f} us ({len(batch) / append_us:5.0f} MB/s)"
                f"  read at the tail {tail_us:5.2f} us  cold, 1 MB at once {cold_us:6.1f} us"
            )
        logs.shutdown()
        disk.close()


def _append(log: PartitionLog, batch: bytes, count: int) -> float:
    frames = [memoryview(bytearray(batch)) for _ in range(count)]
    now_ms = time.time_ns() // 1_000_000
    return time_each(
        lambda number: log.append_as_leader(frames[number], leader_epoch=0, now_ms=now_ms), count
    )


def _read_tail(log: PartitionLog) -> float:
    end = log.log_end_offset
    return time_each(lambda _: log.read(end - 1, 1 << 20, max_offset=end), 20_000)


def _read_through(log: PartitionLog) -> float:
    log.tail.clear()
    offset = reads = 0
    start = time.perf_counter()
    while offset < log.log_end_offset:
        offset = log.read_local(offset, 1 << 20, max_offset=log.log_end_offset).next_offset
        reads += 1
    return (time.perf_counter() - start) / reads * 1e6


if __name__ == "__main__":
    main()
