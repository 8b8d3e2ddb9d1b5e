"""State of a log: its segments and offsets, the roll to a new segment, and what is flushed.

A flush is one fsync for everyone who waits (group commit). At most one flush of a log is under way.
Appends that arrive during an fsync wait for the next one, which covers everything appended by then.
What a flush covers beside the `.log` files: the indexes and snapshots of sealed segments, the small
files of the log, and the entries of its directory.
"""

import asyncio
from bisect import bisect_right
from operator import attrgetter

from barnabas.base.disk import DiskFile
from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.node.log.checkpoints import write_epochs
from barnabas.node.log.config import LogConfig
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.leader_epochs import LeaderEpochs
from barnabas.node.log.log_directory import LogDirectory
from barnabas.node.log.names import (
    LEADER_EPOCH_FILE,
    PARTITION_METADATA_FILE,
    SNAPSHOT_SUFFIX,
    offset_file,
)
from barnabas.node.log.producers.snapshot import render_snapshot
from barnabas.node.log.producers.state import ProducerState
from barnabas.node.log.results import RemoteReads
from barnabas.node.log.segment import Segment
from barnabas.node.log.tail_cache import TailCache

_base_offset = attrgetter("base_offset")


class LogState:
    """The state of a log; `partition_log.PartitionLog` is what others see of it."""

    __slots__ = (
        "active",
        "cleaned_offset",
        "config",
        "directory",
        "epochs",
        "flusher",
        "gap_offset",
        "high_watermark",
        "is_closed",
        "is_moving",
        "log_directory",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "read_hints",
        "recovery_point",
        "remote",
        "segments",
        "tail",
        "topic_id",
        "topic_partition",
        "truncation_count",
    )

    def __init__(
        self,
        log_directory: LogDirectory,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
    ) -> None:
        self.log_directory = log_directory
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.config = config
        self.segments: list[Segment] = []
        self.active: Segment
        """The last segment."""
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.recovery_point = 0
        """Everything before is on the medium."""
        self.high_watermark = 0
        self.cleaned_offset: int | None = None
        """Where the last round of compaction ended; None if there was none."""
        self.gap_offset: int | None = None
        """The offset from which records that once existed are missing, up to the next segment."""
        self.epochs = LeaderEpochs()
        self.producers = ProducerState()
        self.flusher = Flusher(self)
        self.tail = TailCache(log_directory.tail_budget, 0)
        self.read_hints: dict[int, tuple[Segment, int]] = {}
        self.remote: RemoteReads | None = None
        """Reads what is before the first local segment; None where all is local."""
        self.truncation_count = 0
        self.is_closed = False
        """Closed or deleted; later calls through old references fail as for a failed disk."""
        self.is_moving = False
        """True if it is being copied to another log directory: compaction leaves it alone."""

    @property
    def log_dir(self) -> str:
        """The one of `log.dirs` that holds this log."""
        return self.log_directory.path

    @property
    def is_offline(self) -> bool:
        """True if nothing more can be done with the log: its disk failed, or it is closed."""
        return self.is_closed or self.log_directory.is_offline

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments, indexes aside."""
        segments = self.segments
        if len(segments) == 1:  # most logs of a node with many, and a scrape asks for all of them
            return segments[0].size_bytes
        return sum([segment.size_bytes for segment in segments])

    @property
    def flushed_offset(self) -> int:
        """Everything before is on the medium."""
        return self.recovery_point

    @property
    def needs_flush(self) -> bool:
        """True if `flush.messages` asks for a flush now."""
        return self.log_end_offset - self.recovery_point >= self.config.flush_messages

    @property
    def last_stable_offset(self) -> int:
        """The first offset that `read_committed` may not read: an open transaction, or the HW."""
        high_watermark = self.high_watermark
        producers = self.producers
        if not producers.ongoing and not producers.completed:
            return high_watermark
        first = producers.first_unstable_offset(high_watermark)
        return (
            high_watermark
            if first is None
            else min(max(first, self.log_start_offset), high_watermark)
        )

    @property
    def local_start_offset(self) -> int:
        """The first offset that is on this node's disks; before it lies what only `remote` has."""
        if self.remote is None:
            return self.log_start_offset
        return max(self.log_start_offset, self.segments[0].base_offset)

    def check_online(self) -> None:
        """Raise LogDirFailure if nothing more can be done with the log."""
        if self.is_closed or self.log_directory.is_offline:
            raise LogDirFailure(self.log_directory.path)

    def fail(self, cause: OSError) -> LogDirFailure:
        """Take the log directory offline; returns what the caller is to raise.

        The files of a closed log may be gone for good reasons: that is nobody's failure.
        """
        if self.is_closed:
            return LogDirFailure(self.log_directory.path, cause)
        return self.log_directory.fail(cause)

    def start_leader_epoch(self, epoch: int) -> None:
        """Note that a leader of `epoch` starts to write at the end of the log."""
        self.epochs.assign(epoch, self.log_end_offset)

    def roll(self, now_ms: int | None = None) -> None:
        """Start a new segment at the end of the log, unless the active one is empty."""
        self.check_online()
        try:
            if self.active.size_bytes:
                self.start_segment(
                    self.log_end_offset,
                    self.log_directory.clock.now_ms() if now_ms is None else now_ms,
                )
        except OSError as error:
            raise self.fail(error) from error

    def start_segment(self, base_offset: int, now_ms: int) -> None:
        """Start the active segment at `base_offset`, the end of the log. Raises OSError."""
        old = self.active
        if old.base_offset == base_offset:
            return
        if old.files.is_unmade:
            old.files.make()
        self.flusher.unsynced_paths.update(old.seal())
        self.take_snapshot(base_offset)
        files = self.log_directory.files
        self.active = Segment.create(files, self.directory, base_offset, now_ms)
        self.segments.append(self.active)
        self.flusher.unsynced_dirs.add(self.directory)

    def take_snapshot(self, offset: int) -> None:
        """Write the producers' state as of `offset`, the end of the log. Raises OSError."""
        if offset > self.producers.snapshot_offset:
            path = offset_file(self.directory, offset, SNAPSHOT_SUFFIX)
            data = render_snapshot(self.producers.producers.values())
            self.log_directory.disk.write_atomic(path, data, sync=False)
            self.producers.snapshot_offset = offset
            self.flusher.unsynced_paths.add(path)
            self.flusher.unsynced_dirs.add(self.directory)

    def segment_index(self, offset: int) -> int:
        """Index of the segment that holds `offset`; 0 for what is before all."""
        return max(0, bisect_right(self.segments, offset, key=_base_offset) - 1)

    def end_offset_of(self, segment: Segment) -> int:
        """The offset after the last that `segment` may hold."""
        if segment is self.active:
            return self.log_end_offset
        return self.segments[self.segment_index(segment.base_offset) + 1].base_offset


class Flusher:
    """The flushes of one log."""

    __slots__ = (
        "_dirty_since_ms",
        "_flight",
        "_flights_landed",
        "_flights_started",
        "_log",
        "_unsynced_dirs",
        "_unsynced_paths",
        "is_new",
    )

    def __init__(self, log: "LogState") -> None:
        self._log = log
        self._flight: asyncio.Future[None] | None = None
        self._flights_started = self._flights_landed = 0
        self._dirty_since_ms: int | None = None
        self._unsynced_paths: set[str] | None = None
        self._unsynced_dirs: set[str] | None = None
        """Sets while there is something in them: most of thousands of logs are idle."""
        self.is_new = False
        """Never held a record and was never flushed: not even its name need be on the medium."""

    @property
    def unsynced_paths(self) -> set[str]:
        """Files beside the active segment's that were written since the last flush."""
        if self._unsynced_paths is None:
            self._unsynced_paths = set()
        return self._unsynced_paths

    @property
    def unsynced_dirs(self) -> set[str]:
        """Directories whose entries have changed since then."""
        if self._unsynced_dirs is None:
            self._unsynced_dirs = set()
        return self._unsynced_dirs

    @property
    def is_needed(self) -> bool:
        """True if anything may be lost in a power cut."""
        log = self._log
        return (
            log.recovery_point < log.log_end_offset
            or self.is_new
            or bool(self._unsynced_paths)
            or bool(self._unsynced_dirs)
        )

    @property
    def is_blank(self) -> bool:
        """True if there is nothing to lose but the name: a new log that never held a record.

        The content of its directory can be recreated from the name and the topic's id.
        """
        return (
            self.is_new
            and not self._log.log_end_offset
            and not self._unsynced_paths
            and not self._unsynced_dirs
        )

    def is_due(self, now_ms: int) -> bool:
        """Whether to flush now: after a roll, and `flush.ms` after something was appended."""
        log = self._log
        if self._flight is not None or log.recovery_point >= log.log_end_offset:
            self._dirty_since_ms = None
            return False
        if log.recovery_point < log.active.base_offset:
            return True
        if self._dirty_since_ms is None:
            self._dirty_since_ms = now_ms
        return now_ms - self._dirty_since_ms >= log.config.flush_ms

    async def flush(self) -> None:
        """Return once all that is in the log now is on the medium. Raises LogDirFailure."""
        if not self.is_needed:
            return
        wanted = self._flights_started + 1  # one under way may have left without us
        while self._flights_landed < wanted:
            if self._is_settled:
                return
            self._log.check_online()
            if self._flight is None:
                self._flights_started += 1
                self._flight = asyncio.ensure_future(self._flush_once())
                self._flight.add_done_callback(self._landed)
            await asyncio.shield(self._flight)

    def _landed(self, flight: "asyncio.Future[None]") -> None:
        self._flight = None
        self._flights_landed += 1
        if not flight.cancelled():
            flight.exception()  # every waiter has got it; nobody may have waited

    async def _flush_once(self) -> None:
        log = self._log
        truncations = log.truncation_count
        try:
            target, files, directories = self._collect()
            await log.log_directory.disk.fsync_soon(files, directories)
        except OSError as error:
            if self._is_settled:
                return  # the log's directory has another name by now
            raise log.fail(error) from error
        if log.truncation_count == truncations:
            log.recovery_point = max(log.recovery_point, target)

    def flush_now(self) -> None:
        """As `flush`, blocking. Raises OSError."""
        if not self.is_needed:
            return
        target, files, directories = self._collect()
        for file in files:
            file.fsync()
        for directory in directories:
            self._log.log_directory.disk.sync_dir(directory)
        self._log.recovery_point = max(self._log.recovery_point, target)

    def _collect(self) -> tuple[int, list[DiskFile], list[str]]:
        """(what the log ends with, files to fsync, directories to sync)."""
        log = self._log
        disk, files = log.log_directory.disk, log.log_directory.files
        if self.is_new:
            self.is_new = False
            if log.topic_id != ZERO_UUID:
                self.unsynced_paths.add(f"{log.directory}/{PARTITION_METADATA_FILE}")
            self.unsynced_dirs.update((log.directory, log.log_directory.path))
        if log.epochs.is_dirty:
            write_epochs(disk, log.directory, log.epochs.entries)
            log.epochs.is_dirty = False
            self.unsynced_paths.add(f"{log.directory}/{LEADER_EPOCH_FILE}")
            self.unsynced_dirs.add(log.directory)
        paths, self._unsynced_paths = self._unsynced_paths or set(), None
        directories, self._unsynced_dirs = self._unsynced_dirs or set(), None
        if log.recovery_point < log.log_end_offset:
            for segment in log.segments[log.segment_index(log.recovery_point) :]:
                if segment.files.is_unmade:
                    segment.files.make()
                    directories.add(log.directory)
                paths.add(segment.files.log_path)
        opened = [files.get(path) for path in sorted(paths)]
        for path in paths:
            if not path.endswith(".log"):
                files.forget(path)
        return log.log_end_offset, opened, sorted(directories)

    @property
    def _is_settled(self) -> bool:
        """True if the log is closed, and what was in it on the medium."""
        return self._log.is_closed and not self.is_needed

    def settle(self) -> None:
        """All that is in the log is on the medium elsewhere: nobody need wait for it here."""
        self._log.recovery_point = self._log.log_end_offset
        self._unsynced_paths = self._unsynced_dirs = None
        self.is_new = False

    def forget(self, path: str) -> None:
        """A file is removed: nothing is to be flushed any more."""
        if self._unsynced_paths:
            self._unsynced_paths.discard(path)
