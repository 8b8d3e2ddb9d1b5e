"""Forcing a log to the medium: one fsync for everyone who waits (group commit).

At most one flush of a log is under way. Appends that arrive during an fsync wait for the next one,
which covers everything appended by then. What a flush covers beside the `.log` files: the indexes
and
snapshots of sealed segments, the small files of the log, and the entries of its directory.
"""

import asyncio
from typing import TYPE_CHECKING

from barnabas.base.disk import DiskFile
from barnabas.base.ids import ZERO_UUID
from barnabas.node.log.checkpoints import write_epochs
from barnabas.node.log.names import LEADER_EPOCH_FILE, PARTITION_METADATA_FILE

if TYPE_CHECKING:
    from barnabas.node.log.log_state import LogState


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
