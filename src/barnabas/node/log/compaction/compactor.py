"""Finding dirty logs, having them cleaned, and swapping in what comes of it.

One round at a time, the dirtiest log first; when none is worth it, the next look is after
`log.cleaner.backoff.ms`. All of this is on the event loop and short; the reading and writing is
the worker's. Between any two of its steps the log may have been truncated, deleted, or have lost
segments to retention: a group is swapped in only where its segments are still what they were.

A log that cannot be cleaned (a damaged batch) is remembered, named once, and left alone as long as
it exists here. An error of the disk takes its directory offline, as anywhere; a full disk alone
is no reason for that, since cleaning is what might empty it.
"""

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from barnabas.base.clock import Clock, Timer
from barnabas.base.ids import TopicPartition
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.log.compaction.job import CleanJob, GroupCleaned, LastRecord, MapBuilt, Source
from barnabas.node.log.compaction.selection import LogToClean, group_segments, measure, sources_of
from barnabas.node.log.compaction.swap import discard, is_still_there, swap_in
from barnabas.node.log.errors import CorruptIndexError, LogDirFailure
from barnabas.node.log.index.txn_index import AbortedTransaction, read_aborted
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.log.segment import Segment
from barnabas.protocol.errors import DecodeError

MAP_BYTES_MAX = 2**31 - 1
MAP_BYTES_KEY = "log.cleaner.dedupe.buffer.size"
LOAD_FACTOR_KEY = "log.cleaner.io.buffer.load.factor"
IO_BUFFER_KEY = "log.cleaner.io.buffer.size"
RATE_KEY = "log.cleaner.io.max.bytes.per.second"
BACKOFF_KEY = "log.cleaner.backoff.ms"
COMPACTION_KEYS = (MAP_BYTES_KEY, LOAD_FACTOR_KEY, IO_BUFFER_KEY, RATE_KEY, BACKOFF_KEY)


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """`log.cleaner.*`, with Kafka's defaults."""

    map_bytes_max: int = 134_217_728
    map_load_factor: float = 0.9
    io_buffer_bytes: int = 524_288
    """For reading and writing together."""
    bytes_per_second_max: float = float("inf")
    backoff_ms: int = 15_000

    @classmethod
    def from_config(cls, config: NodeConfig) -> "CompactionSettings":
        """As a node's configuration says now."""
        return cls(
            map_bytes_max=min(config.get_int(MAP_BYTES_KEY), MAP_BYTES_MAX),
            map_load_factor=config.get_float(LOAD_FACTOR_KEY),
            io_buffer_bytes=config.get_int(IO_BUFFER_KEY),
            bytes_per_second_max=config.get_float(RATE_KEY),
            backoff_ms=config.get_int(BACKOFF_KEY),
        )


DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
IO_BUFFER_BYTES_MIN = 4096
WAIT_MAX_MS = 1000
"""The longest part of a pause, since the configured length may change during it."""
UNREADABLE = (FileNotFoundError, DecodeError, CorruptIndexError)
"""Raised by reading a segment that is damaged, or that the log has cut or dropped."""

telemetry = logging.getLogger(__name__)


class Worker(Protocol):
    """Does the reading and writing of one round at a time.

    Both calls raise OSError of the log's files, DecodeError and CorruptIndexError for damage, and
    WorkerLostError when the worker itself has failed.
    """

    async def build_map(self, job: CleanJob) -> MapBuilt:
        """Begin a round."""

    async def clean(self, group: list[Source]) -> GroupCleaned:
        """Clean a group of that round's segments."""

    def rest(self) -> None:
        """Give memory back: there is nothing to do for a while."""

    async def stop(self) -> None:
        """End for good; a call that is under way fails."""


class WorkerLostError(Exception):
    """The worker ended, or could not begin."""


class Compactor:
    """See the module. Its counters only grow; `last_…` are of the last round or look."""

    def __init__(
        self,
        logs: Iterable[PartitionLog],
        clock: Clock,
        worker: Worker,
        settings: CompactionSettings,
        *,
        checkpoint: Callable[[PartitionLog], Awaitable[None]],
    ) -> None:
        """`checkpoint` puts on the medium how far the logs of that one's directory are clean.

        It raises OSError.
        """
        self._logs = logs
        self._clock = clock
        self._worker = worker
        self.settings = settings
        """The limits of the next round."""
        self._checkpoint = checkpoint
        self._timer: Timer | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False
        self._rested_since_ms: float = 0
        self.uncleanable: dict[TopicPartition, PartitionLog] = {}
        self.rounds = 0
        self.groups_swapped = 0
        self.bytes_read = 0
        self.bytes_mapped = 0
        self.bytes_written = 0
        self.records_read = 0
        self.records_written = 0
        self.keyless_records = 0
        self.failures = 0
        self.last_look_ms = 0
        self.last_round_duration_ms = 0
        self.last_map_utilization = 0.0
        self.last_dirty_ratio_max = 0.0
        self.last_delay_ms_max = 0

    def configure(self, config: NodeConfig) -> None:
        """Follow `COMPACTION_KEYS`."""
        self.settings = CompactionSettings.from_config(config)

    # Life

    def start(self) -> None:
        """Look for dirty logs now, and from then on."""
        if self._task is None and not self._is_stopped:
            self._task = asyncio.ensure_future(self._work())
            self._task.add_done_callback(self._rest)

    def _rest(self, task: "asyncio.Task[None]") -> None:
        self._task = None
        self._worker.rest()
        if not task.cancelled() and task.exception() is not None:
            self.failures += 1
            telemetry.error("compaction stopped until the next check", exc_info=task.exception())
        self._rested_since_ms = self._clock.monotonic_ms()
        self._start_when_due()

    def _start_when_due(self) -> None:
        """Start when `log.cleaner.backoff.ms` is over, as it stands by then."""
        if self._is_stopped:
            return
        rested_ms = self._clock.monotonic_ms() - self._rested_since_ms
        left_ms = self.settings.backoff_ms - rested_ms
        if left_ms <= 0:
            self.start()
        else:
            self._timer = self._clock.call_later(min(left_ms, WAIT_MAX_MS), self._start_when_due)

    async def stop(self) -> None:
        """End, in the middle of a round if need be: the next start removes what it has written."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        task = self._task
        if task is not None:
            task.cancel()
        await self._worker.stop()
        if task is not None:
            await asyncio.wait((task,))

    # Rounds

    async def _work(self) -> None:
        while (chosen := self.choose()) is not None:
            if not await self.clean(chosen):
                return

    def choose(self) -> LogToClean | None:
        """The dirtiest of the logs that are worth a round, or None."""
        now_ms = self._clock.now_ms()
        self.last_look_ms = now_ms
        self._forget_deleted()
        measured = []
        for log in self._logs:
            if not log.config.is_compacted or log.is_offline or log.is_moving:
                continue
            if self.uncleanable.get(log.topic_partition) is log:
                continue
            try:
                candidate = measure(log, now_ms)
            except OSError as error:
                telemetry.error("%s", log.fail(error))
                continue
            if candidate is not None:
                measured.append(candidate)
        self.last_dirty_ratio_max = max(
            (candidate.dirty_ratio for candidate in measured), default=0.0
        )
        self.last_delay_ms_max = max((candidate.delay_ms for candidate in measured), default=0)
        worth_it = [candidate for candidate in measured if candidate.is_worth_it]
        return max(worth_it, key=lambda candidate: candidate.dirty_ratio, default=None)

    def _forget_deleted(self) -> None:
        if self.uncleanable:
            alive = {log.topic_partition: log for log in self._logs}
            for topic_partition, log in list(self.uncleanable.items()):
                if alive.get(topic_partition) is not log:
                    del self.uncleanable[topic_partition]

    async def clean(self, chosen: LogToClean) -> bool:
        """One round; whether to go on with another at once."""
        log = chosen.log
        try:
            return await self._clean(chosen)
        except (DecodeError, CorruptIndexError) as error:
            self.failures += 1
            self.uncleanable[log.topic_partition] = log
            telemetry.error("%s cannot be compacted: %s", log.topic_partition, error)
            return True
        except LogDirFailure as failure:
            telemetry.error("%s was not compacted: %s", log.topic_partition, failure)
            return True
        except WorkerLostError as error:
            self.failures += 1
            telemetry.error("%s was not compacted: %s", log.topic_partition, error)
            return False
        except OSError as error:
            self.failures += 1
            if error.errno in DISK_FULL:
                telemetry.error("%s is not compacted for now: %s", log.topic_partition, error)
                return False
            telemetry.error("%s was not compacted: %s", log.topic_partition, log.fail(error))
            return True

    async def _clean(self, chosen: LogToClean) -> bool:
        log = chosen.log
        started_ms = self._clock.monotonic_ms()
        truncation_count = log.truncation_count
        segments = chosen.segments
        job = self._job(chosen, segments)

        def is_unchanged(group: Sequence[Segment]) -> bool:
            # The records that were cut off may be the only ones that superseded what the worker
            # left out.
            return log.truncation_count == truncation_count and is_still_there(log, group)

        try:
            built = await self._worker.build_map(job)
        except UNREADABLE:
            if is_unchanged(segments):
                raise
            return self._changed(log)
        self.bytes_mapped += built.bytes_read
        self.last_map_utilization = built.utilization
        if log.cleaned_offset is None:
            # Recovery must know, before there are any, that gaps in this log are meant.
            log.cleaned_offset = chosen.start_offset
            await self._checkpoint(log)
        segments = [segment for segment in segments if segment.base_offset < built.end_offset]
        before, after = sum(segment.size_bytes for segment in segments), 0
        for group in group_segments(segments, job.end_offset, log.config):
            try:
                cleaned = await self._worker.clean(sources_of(group))
            except UNREADABLE:
                if is_unchanged(group):
                    raise
                return self._changed(log)
            self._count(cleaned)
            after += cleaned.size_bytes
            if not is_unchanged(group):
                if not log.is_offline:
                    discard(log, cleaned)
                return self._changed(log)
            if cleaned.is_changed:
                swap_in(log, group, cleaned)
                self.groups_swapped += 1
        await self._finish(log, built.end_offset, truncation_count)
        self.rounds += 1
        self.last_round_duration_ms = self._clock.monotonic_ms() - started_ms
        telemetry.info(
            "%s: compacted offsets %d to %d, from %d to %d bytes, in %d ms; %d keys, %.0f %% of "
            "what the map may hold",
            log.topic_partition,
            chosen.start_offset,
            built.end_offset,
            before,
            after,
            self.last_round_duration_ms,
            built.keys,
            built.utilization * 100,
        )
        return True

    def _changed(self, log: PartitionLog) -> bool:
        telemetry.info("%s changed while it was compacted", log.topic_partition)
        return False

    async def _finish(self, log: PartitionLog, end_offset: int, truncation_count: int) -> None:
        """Remember how far the log is clean, once what says so is on the medium.

        Were the checkpoint there first, a power cut could bring back old segments that count as
        clean: a tombstone in them would go one day, and what it deleted would be seen again.
        """
        await log.log_directory.disk.fsync_soon([], [log.directory])
        if log.is_offline:
            return
        if log.truncation_count == truncation_count:
            log.cleaned_offset = end_offset
            await self._checkpoint(log)

    def _count(self, cleaned: GroupCleaned) -> None:
        self.bytes_read += cleaned.bytes_read
        self.bytes_written += cleaned.bytes_written
        self.records_read += cleaned.records_read
        self.records_written += cleaned.records_written
        if cleaned.keyless_records:
            self.keyless_records += cleaned.keyless_records

    def _job(self, chosen: LogToClean, segments: list[Segment]) -> CleanJob:
        log, settings = chosen.log, self.settings
        config = log.config
        return CleanJob(
            directory=log.directory,
            start_offset=chosen.start_offset,
            end_offset=chosen.end_offset,
            sources=sources_of(segments),
            producers={
                entry.producer_id: LastRecord(entry.last_offset, entry.epoch)
                for entry in log.producers.producers.values()
            },
            aborted=_aborted_later(log, len(segments), chosen.end_offset),
            now_ms=self._clock.now_ms(),
            delete_retention_ms=config.delete_retention_ms,
            index_interval_bytes=config.index_interval_bytes,
            map_bytes_max=settings.map_bytes_max,
            map_load_factor=settings.map_load_factor,
            io_buffer_bytes=max(settings.io_buffer_bytes // 2, IO_BUFFER_BYTES_MIN),
            bytes_per_second_max=settings.bytes_per_second_max,
        )


def _aborted_later(log: PartitionLog, start: int, end_offset: int) -> list[AbortedTransaction]:
    """Aborted transactions with data before `end_offset`, and their marker in later segments."""
    aborted: list[AbortedTransaction] = []
    for segment in log.segments[start:]:
        aborted += read_aborted(log.log_directory.disk, segment.files.txn_index_path)
    return [entry for entry in aborted if entry.first_offset < end_offset]
