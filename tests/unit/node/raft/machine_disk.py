"""A replica's log and disk as a model: what was not synced may be lost."""

import random
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from barnabas.node.raft.core.messages import LogPosition
from barnabas.node.raft.quorum_state import ElectionState
from barnabas.node.raft.snapshot_files import SnapshotId


@dataclass(frozen=True, slots=True)
class Entry:
    """One record: data, or voters, or a kraft.version, or the start of an epoch."""

    epoch: int
    payload: Any


class Disk:
    """What outlives a crash: entries after a start, snapshots, and the election."""

    def __init__(self) -> None:
        self.start_offset = 0
        self.entries: list[Entry] = []
        self.durable_start_offset = 0
        self.durable: list[Entry] = []
        self.election = ElectionState()
        self.snapshot_id: SnapshotId | None = None


def _common(disk: Disk) -> int:
    """Return the number of durable entries that the log still has."""
    skipped = max(0, disk.start_offset - disk.durable_start_offset)
    pairs = zip(disk.durable[skipped:], disk.entries, strict=False)
    return skipped + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


class ModelLog:
    """A LogView over a Disk."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        # Of what a process left that ended, only what is both there and on the medium: it may have
        # cut the log, and appended other records, before a flush.
        self._flushed_offset = max(disk.start_offset, disk.durable_start_offset + _common(disk))
        self.truncations = 0

    @property
    def start_offset(self) -> int:
        return self.disk.start_offset

    @property
    def end_offset(self) -> int:
        return self.disk.start_offset + len(self.disk.entries)

    @property
    def flushed_offset(self) -> int:
        return self._flushed_offset

    @property
    def last_epoch(self) -> int:
        return self.disk.entries[-1].epoch if self.disk.entries else self.start_epoch

    @property
    def start_epoch(self) -> int:
        snapshot_id = self.disk.snapshot_id
        return 0 if snapshot_id is None or self.start_offset == 0 else snapshot_id.epoch

    @property
    def snapshot_id(self) -> SnapshotId | None:
        return self.disk.snapshot_id

    def end_of_epoch(self, epoch: int) -> LogPosition:
        for index in range(len(self.disk.entries) - 1, -1, -1):
            if self.disk.entries[index].epoch <= epoch:
                return LogPosition(self.disk.entries[index].epoch, self.start_offset + index + 1)
        return LogPosition(self.start_epoch, self.start_offset)

    def epoch_before(self, offset: int) -> int:
        if offset == self.start_offset:
            return self.start_epoch
        return self.disk.entries[offset - 1 - self.start_offset].epoch

    def truncate_to(self, offset: int) -> None:
        self.truncations += 1
        del self.disk.entries[offset - self.start_offset :]
        self._flushed_offset = min(self._flushed_offset, offset)

    def flushed(self, end_offset: int, truncations: int) -> None:
        """Make the entries durable that existed when the flush began, unless truncated since."""
        if truncations != self.truncations:
            return
        disk = self.disk
        disk.durable_start_offset = disk.start_offset
        disk.durable = disk.entries[: end_offset - disk.start_offset]
        self._flushed_offset = max(self._flushed_offset, end_offset)

    def lose_unsynced(self, chance: random.Random) -> None:
        """A power cut: what was appended is there up to some point; what was cut, as it may be."""
        disk = self.disk
        is_longer = (
            disk.start_offset == disk.durable_start_offset
            and disk.entries[: len(disk.durable)] == disk.durable
        )
        if is_longer:
            del disk.entries[chance.randint(len(disk.durable), len(disk.entries)) :]
        elif disk.start_offset == disk.durable_start_offset and chance.random() < 0.5:
            disk.entries = list(disk.durable)
        disk.durable_start_offset = disk.start_offset
        disk.durable = list(disk.entries)
