"""Logs in memory, and batches to put into them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from barnabas.base.disk import FileRange
from barnabas.base.ids import TopicPartition, Uuid
from barnabas.node.log.appending import AppendResult
from barnabas.node.log.config import LogConfig
from barnabas.node.log.loader import create_log, open_log
from barnabas.node.log.log_directory import LogDirectory
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.log.recovery import RecoveryReport
from barnabas.node.log.tail_cache import TailBudget
from barnabas.protocol.records.batch import Codec, iterate_headers
from barnabas.protocol.records.records import Record, decode_records, encode_batch
from sim.fake_disk import FakeDisk
from sim.manual_clock import ManualClock

LOG_DIR = "/data"
TOPIC_PARTITION = TopicPartition("topic", 0)
TOPIC_ID = Uuid(bytes(15) + b"\x07")
NOW_MS = 1_700_000_000_000


def make_batch(
    *values: str,
    timestamp: int = NOW_MS,
    timestamps: Sequence[int] | None = None,
    key: str | None = None,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """A producer's batch. `producer` is (id, epoch, base sequence)."""
    stamps = [timestamp] * len(values) if timestamps is None else timestamps
    records = [
        Record(timestamp=stamp, key=None if key is None else key.encode(), value=value.encode())
        for stamp, value in zip(stamps, values, strict=True)
    ]
    return encode_batch(
        records,
        codec=codec,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        is_transactional=transactional,
        base_offset=base_offset,
        partition_leader_epoch=leader_epoch,
    )


@dataclass
class LogBench:
    """One log directory in memory and a log in it, which can be opened again and again."""

    config: LogConfig = field(default_factory=LogConfig)
    disk: FakeDisk = field(default_factory=FakeDisk)
    clock: ManualClock = field(default_factory=ManualClock)
    offline: list[str] = field(default_factory=list)
    tail_bytes_max: int = 1 << 20

    def __post_init__(self) -> None:
        self.disk.now_ms = self.clock.time_ms
        self.directory = self._make_directory()
        self.disk.make_dirs(LOG_DIR)
        self.disk.sync_dir("/")
        self.log = create_log(self.directory, TOPIC_PARTITION, TOPIC_ID, self.config)

    def _make_directory(self) -> LogDirectory:
        return LogDirectory(
            LOG_DIR,
            self.disk,
            self.clock,
            tail_budget=TailBudget(self.tail_bytes_max),
            on_offline=self.offline.append,
        )

    def append(self, data: bytearray, *, epoch: int = 0) -> AppendResult:
        """As a producer would, now."""
        return self.log.append_as_leader(data, leader_epoch=epoch, now_ms=self.clock.time_ms)

    def fill(self, *values: str, epoch: int = 0) -> None:
        """One batch of one record for each value; all must be taken."""
        for value in values:
            result = self.append(make_batch(value, timestamp=self.clock.time_ms), epoch=epoch)
            assert not result.error, (result.error, result.message)

    def close(self) -> None:
        """An orderly end: the owner of the log directory syncs the names in it (`LogManager`)."""
        self.log.close(clean=True)
        self.disk.sync_dir(LOG_DIR)

    def reopen(
        self,
        *,
        is_clean: bool = False,
        recovery_point: int | None = None,
        log_start_offset: int = 0,
    ) -> RecoveryReport:
        """Open the log again from what the disk holds, as after a restart."""
        if recovery_point is None:
            recovery_point = self.log.recovery_point
        self.directory = self._make_directory()
        self.log, report = open_log(
            self.directory,
            TOPIC_PARTITION,
            self.config,
            is_clean=is_clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )
        return report

    def path(self, name: str) -> str:
        """Path of one of the log's files."""
        return f"{self.log.directory}/{name}"

    def names(self) -> list[str]:
        """The log's files."""
        return self.disk.list(self.log.directory)


@lru_cache(2048)
def decode_once(batch: bytes) -> Sequence[Record]:
    """The records of a batch. Models read the same ones after each step; do not change them."""
    return decode_records(batch)


def read_records(
    log: PartitionLog,
    offset: int | None = None,
    *,
    max_bytes: int = 1 << 20,
    on_read: Callable[[int], None] | None = None,
    with_markers: bool = True,
) -> list[Record]:
    """Every record from `offset` (the log start) to the end, by as many reads as it takes."""
    position = log.log_start_offset if offset is None else offset
    start = position
    records: list[Record] = []
    while position < log.log_end_offset:
        result = log.read(position, max_bytes, max_offset=log.log_end_offset)
        assert not result.error, result.error
        if result.next_offset == position:
            break
        data = b"".join(
            part.read() if isinstance(part, FileRange) else bytes(part) for part in result.parts
        )
        assert len(data) == result.size_bytes
        for at, header in iterate_headers(data):
            if with_markers or not header.is_control:
                found = decode_once(data[at : at + header.size_bytes])
                records += [record for record in found if record.offset >= start]
        if on_read is not None:
            on_read(position)
        position = result.next_offset
    return records


def read_values(log: PartitionLog, offset: int | None = None, **options: Any) -> list[str]:
    """As `read_records`, the values alone."""
    return [(record.value or b"").decode() for record in read_records(log, offset, **options)]
