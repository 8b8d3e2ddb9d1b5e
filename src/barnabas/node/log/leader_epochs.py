"""Leader epochs of a log, each with the offset at which it begins.

Followers and consumers compare it with theirs to find where logs part (KIP-101, 279, 320). The
file may lag behind what lies above the recovery point: recovery reads the epochs of those
batches anyway. Source: Kafka's LeaderEpochFileCache.
"""

from bisect import bisect_right

from barnabas.protocol.records.batch import NO_LEADER_EPOCH, NO_OFFSET


class LeaderEpochs:
    """(epoch, start offset), both strictly ascending."""

    __slots__ = ("_entries", "is_dirty", "latest_epoch")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self._entries = entries or []
        self.is_dirty = False
        """True if the file is behind."""
        self.latest_epoch = NO_LEADER_EPOCH
        self._changed(dirty=False)

    @property
    def entries(self) -> list[tuple[int, int]]:
        """A copy of the entries."""
        return list(self._entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`, if it is news.

        Entries that contradict it are dropped: their data is gone, or never was.
        """
        entries = self._entries
        if entries and entries[-1][0] == epoch and start_offset >= entries[-1][1]:
            return
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start_offset):
            entries.pop()
        entries.append((epoch, start_offset))
        self._changed()

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return (the greatest known epoch not after `epoch`, its end offset).

        For an epoch older than all, (epoch, the first start); for one that is not known yet, or
        -1, (-1, -1).
        """
        entries = self._entries
        if epoch == NO_LEADER_EPOCH:
            return NO_LEADER_EPOCH, NO_OFFSET
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        higher = bisect_right(entries, epoch, key=_epoch)
        if higher == len(entries):
            return NO_LEADER_EPOCH, NO_OFFSET
        if higher == 0:
            return epoch, entries[0][1]
        return entries[higher - 1][0], entries[higher][1]

    def epoch_of(self, offset: int) -> int:
        """The epoch in which `offset` was or will be written; -1 if it is not known."""
        index = bisect_right(self._entries, offset, key=_start_offset)
        return self._entries[index - 1][0] if index else NO_LEADER_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the epochs that begin at `end_offset` or after."""
        entries = self._entries
        if entries and entries[-1][1] >= end_offset:
            while entries and entries[-1][1] >= end_offset:
                entries.pop()
            self._changed()

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop the epochs that end before `start_offset`; that one's begins there."""
        entries = self._entries
        index = bisect_right(entries, start_offset, key=_start_offset) - 1
        if index > 0 or (index == 0 and entries[0][1] < start_offset):
            entries[: index + 1] = [(entries[index][0], start_offset)]
            self._changed()

    def clear(self) -> None:
        """Drop all."""
        self._entries.clear()
        self._changed()

    def _changed(self, *, dirty: bool = True) -> None:
        self.is_dirty = dirty
        self.latest_epoch = self._entries[-1][0] if self._entries else NO_LEADER_EPOCH


def _epoch(entry: tuple[int, int]) -> int:
    return entry[0]


def _start_offset(entry: tuple[int, int]) -> int:
    return entry[1]
