"""A compacted log in memory, and its compactor."""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from barnabas.base.disk import Buffer, FileRange
from barnabas.node.log.appending import AppendResult
from barnabas.node.log.compaction.compactor import CompactionSettings, Compactor
from barnabas.node.log.compaction.offset_map import map_bytes
from barnabas.node.log.compaction.workers import InlineWorker
from barnabas.node.log.config import LogConfig
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.log.recovery import RecoveryReport
from barnabas.node.log.validator import AppendOrigin
from barnabas.protocol.records.batch import BatchHeader, Codec, iterate_headers
from barnabas.protocol.records.control import encode_end_txn
from barnabas.protocol.records.records import Record, encode_batch
from support.logs import LogBench, decode_once, read_records

COMPACT = frozenset({"compact"})
Pair = tuple[str, str | None]


def keyed_batch(
    pairs: Iterable[Pair],
    *,
    timestamp: int,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
    headers: list[tuple[str, bytes | None]] | None = None,
) -> bytearray:
    """A batch of (key, value) records; None as value is a tombstone."""
    records = [
        Record(
            timestamp=timestamp + index,
            key=key.encode(),
            value=None if value is None else value.encode(),
            headers=headers or [],
        )
        for index, (key, value) in enumerate(pairs)
    ]
    return encode_batch(
        records,
        codec=codec,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        is_transactional=transactional,
    )


def compact_config(**values: object) -> LogConfig:
    """A compacted topic with small segments that is always worth a round."""
    defaults: dict[str, object] = {
        "cleanup_policy": COMPACT,
        "segment_bytes": 4096,
        "index_interval_bytes": 200,
        "min_cleanable_dirty_ratio": 0.0,
        "delete_retention_ms": 1000,
        "message_timestamp_after_max_ms": 1 << 60,
    }
    return LogConfig(**(defaults | values))  # type: ignore[arg-type]  # by name


@dataclass
class CompactionBench(LogBench):
    """A log and what compacts it, on the event loop."""

    config: LogConfig = field(default_factory=compact_config)
    settings: CompactionSettings = field(default_factory=CompactionSettings)
    checkpoints: list[int | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.compactor = self.make_compactor()

    def make_compactor(self) -> Compactor:
        """A compactor of the log as it is open now."""
        return Compactor(
            [self.log],
            self.clock,
            InlineWorker(self.disk, self.clock),
            self.settings,
            checkpoint=self.note_checkpoint,
        )

    async def note_checkpoint(self, log: PartitionLog) -> None:
        """Remember what would be written."""
        self.checkpoints.append(log.cleaned_offset)

    def reopen(
        self,
        *,
        is_clean: bool = False,
        recovery_point: int | None = None,
        log_start_offset: int = 0,
    ) -> RecoveryReport:
        """As a restart would, which brings the checkpoint of what is clean."""
        cleaned_offset = self.log.cleaned_offset
        report = super().reopen(
            is_clean=is_clean, recovery_point=recovery_point, log_start_offset=log_start_offset
        )
        self.log.cleaned_offset = cleaned_offset
        self.compactor = self.make_compactor()
        return report

    def put(
        self,
        *pairs: Pair,
        codec: Codec = Codec.NONE,
        producer: tuple[int, int, int] = (-1, -1, -1),
        transactional: bool = False,
    ) -> int:
        """Append one batch; returns its first offset. It counts as replicated."""
        batch = keyed_batch(
            pairs,
            timestamp=self.clock.time_ms,
            codec=codec,
            producer=producer,
            transactional=transactional,
        )
        result = self.append(batch)
        assert not result.error, result.message
        self.log.high_watermark = self.log.log_end_offset
        return result.first_offset

    def end_txn(self, producer_id: int, *, is_commit: bool, epoch: int = 0) -> int:
        """Append a marker; returns its offset."""
        marker = encode_end_txn(
            is_commit=is_commit,
            coordinator_epoch=0,
            producer_id=producer_id,
            producer_epoch=epoch,
            timestamp_ms=self.clock.time_ms,
        )
        result = self.log.append_as_leader(
            marker, leader_epoch=0, now_ms=self.clock.time_ms, origin=AppendOrigin.COORDINATOR
        )
        assert not result.error, result.message
        self.log.high_watermark = self.log.log_end_offset
        return result.first_offset

    def seal(self) -> None:
        """Roll, and flush, so that all of the log may be cleaned."""
        self.log.roll()
        self.log.flush_now()

    def compact(self) -> int:
        """Seal and clean until nothing is worth it; returns the rounds that took."""
        self.seal()
        return asyncio.run(self.rounds())

    def run(self, work: Coroutine[Any, Any, object]) -> None:
        """Run something that awaits the compactor."""
        asyncio.run(work)

    def limit_keys(self, keys_max: int) -> None:
        """Give the compactor a map for so many keys."""
        self.follow(CompactionSettings(map_bytes_max=map_bytes(keys_max), map_load_factor=1.0))

    def follow(self, settings: CompactionSettings) -> None:
        """Give the compactor other settings, and those after it."""
        self.settings = self.compactor.settings = settings

    def append_again(self, *pairs: Pair, producer: tuple[int, int, int]) -> AppendResult:
        """Append a batch of an idempotent producer; it may be refused."""
        return self.append(keyed_batch(pairs, timestamp=self.clock.time_ms, producer=producer))

    def part_bytes(self, part: Buffer | FileRange) -> bytes:
        """Return what a part of a read holds."""
        return part.read() if isinstance(part, FileRange) else bytes(part)

    async def rounds(self) -> int:
        """Clean until nothing is worth it; returns how many rounds that took."""
        before = self.compactor.rounds
        while (chosen := self.compactor.choose()) is not None:
            if chosen.end_offset <= chosen.start_offset or not await self.compactor.clean(chosen):
                break
        return self.compactor.rounds - before

    def pairs(self, offset: int | None = None) -> list[tuple[int, str, str | None]]:
        """(offset, key, value) of every data record."""
        return [
            (record.offset, (record.key or b"").decode(), _text(record.value))
            for record in self.data_records(offset)
        ]

    def data_records(self, offset: int | None = None) -> list[Record]:
        """Every record that is not a marker."""
        return read_records(self.log, offset, with_markers=False)

    def batches(self) -> list[tuple[BatchHeader, Sequence[Record]]]:
        """Every batch on disk, with its records."""
        found = []
        for segment in self.log.segments:
            data = bytes(self.disk.inode(segment.files.log_path).data)
            found += [
                (header, decode_once(data[position : position + header.size_bytes]))
                for position, header in iterate_headers(data)
            ]
        return found


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
