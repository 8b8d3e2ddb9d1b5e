"""One of `log.dirs`, with what its logs share: disk, open files, memory for tails, deletions.

A directory fails as a whole: after the first OSError from its disk nothing is read from it or
written to it, and the node lives on (KIP-112).
"""

import logging
from collections.abc import Callable

from barnabas.base.clock import Clock
from barnabas.base.disk import Disk
from barnabas.base.ids import TopicPartition
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.file_cache import FileCache
from barnabas.node.log.names import marked_directory_name
from barnabas.node.log.tail_cache import TailBudget
from barnabas.node.log.turns import Turns

DELETIONS_PER_STEP_MAX = 16
"""Unlinking a segment of 1 GB takes tens of milliseconds, in which nothing else happens."""

telemetry = logging.getLogger(__name__)


class LogDirectory:
    """A log directory, online until it fails."""

    __slots__ = (
        "_deletions",
        "_on_offline",
        "checkpoint",
        "clock",
        "disk",
        "files",
        "is_checkpoint_stale",
        "is_offline",
        "path",
        "tail_budget",
        "turns",
    )

    def __init__(
        self,
        path: str,
        disk: Disk,
        clock: Clock,
        *,
        files: FileCache | None = None,
        tail_budget: TailBudget | None = None,
        turns: Turns | None = None,
        on_offline: Callable[[str], None] | None = None,
    ) -> None:
        self.path = path
        self.disk = disk
        self.clock = clock
        self.files = files if files is not None else FileCache(disk)
        self.tail_budget = tail_budget if tail_budget is not None else TailBudget()
        self.turns = turns if turns is not None else Turns()
        self.is_offline = False
        self.checkpoint: Callable[[LogDirectory], None] | None = None
        """Writes and syncs the offset checkpoints of the directory. Raises OSError."""
        self.is_checkpoint_stale = False
        """True if they name a log that is gone, and whose offsets a new one must not inherit."""
        self._on_offline = on_offline
        self._deletions: list[tuple[int, str]] = []

    def fail(self, cause: OSError) -> LogDirFailure:
        """Take the directory offline for `cause`; returns what the caller is to raise."""
        if not self.is_offline:
            self.is_offline = True
            telemetry.error("log directory %s goes offline: %s", self.path, cause)
            self.files.forget_below(self.path)
            if self._on_offline is not None:
                self._on_offline(self.path)
        return LogDirFailure(self.path, cause)

    def check_online(self) -> None:
        """Raise LogDirFailure if the directory has failed."""
        if self.is_offline:
            raise LogDirFailure(self.path)

    def renew_checkpoint(self) -> None:
        """Bring the checkpoints up to date before something that they must not outlive."""
        if self.checkpoint is not None:
            self.checkpoint(self)
        self.is_checkpoint_stale = False

    def mark(self, path: str, topic_partition: TopicPartition, unique: str, suffix: str) -> str:
        """Rename the directory of a log that is none any more; its new path.

        Raises LogDirFailure.
        """
        marked = f"{self.path}/{marked_directory_name(topic_partition, unique, suffix)}"
        try:
            self.disk.rename(path, marked)
        except OSError as error:
            raise self.fail(error) from error
        return marked

    def delete_later(self, path: str, delay_ms: int) -> None:
        """Remove a file or directory (renamed already, so that nobody takes it for alive)."""
        self._deletions.append((self.clock.now_ms() + delay_ms, path))

    def renamed(self, source: str, target: str) -> None:
        """A directory has another name: what is to be removed in it lies elsewhere."""
        self.files.forget_below(source)
        self._deletions = [
            (due_ms, target + path[len(source) :] if path.startswith(f"{source}/") else path)
            for due_ms, path in self._deletions
        ]

    def delete_step(self, now_ms: int) -> int:
        """Remove what is due, a bounded number at once; returns how many went.

        Raises LogDirFailure.
        """
        if self.is_offline:
            return 0
        due = [entry for entry in self._deletions if entry[0] <= now_ms][:DELETIONS_PER_STEP_MAX]
        for entry in due:
            self._deletions.remove(entry)
            try:
                self._remove(entry[1])
            except OSError as error:
                raise self.fail(error) from error
        return len(due)

    def _remove(self, path: str) -> None:
        try:
            if self.disk.is_dir(path):
                self.disk.remove_tree(path)
            else:
                self.disk.remove(path)
        except FileNotFoundError:
            telemetry.debug("%s was gone already", path)
