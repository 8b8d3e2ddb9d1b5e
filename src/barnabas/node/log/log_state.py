"""State of a log: its segments and offsets, and the roll to a new segment."""

from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.node.log.config import LogConfig
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.flusher import Flusher
from barnabas.node.log.leader_epochs import LeaderEpochs
from barnabas.node.log.log_directory import LogDirectory
from barnabas.node.log.names import SNAPSHOT_SUFFIX, offset_file
from barnabas.node.log.producers.snapshot import render_snapshot
from barnabas.node.log.producers.state import ProducerState
from barnabas.node.log.segment import Segment
from barnabas.node.log.tail_cache import TailCache

if TYPE_CHECKING:
    from barnabas.node.log.remote_reads import RemoteReads

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
