"""A snapshot on its way from the leader: pieces are written beside the log until it is whole."""

from barnabas.base.disk import Buffer, Disk
from barnabas.node.raft.snapshot_files import (
    Snapshot,
    SnapshotId,
    SnapshotWriter,
    delete_snapshot,
    read_snapshot,
)


class SnapshotDownload:
    """One snapshot. Every method raises OSError."""

    def __init__(self, disk: Disk, directory: str, snapshot_id: SnapshotId) -> None:
        self.snapshot_id = snapshot_id
        self.snapshot: Snapshot | None = None
        """The snapshot, once it is stored."""
        self._disk = disk
        self._directory = directory
        self._writer = SnapshotWriter(disk, directory, snapshot_id)
        self._is_storing = False
        self._is_abandoned = False

    def append(self, data: Buffer) -> None:
        """Write down the next piece."""
        self._writer.append(data)

    async def store(self) -> None:
        """Force it to the medium and read it. Raises SnapshotError for one that is damaged."""
        self._is_storing = True
        await self._writer.freeze()
        try:
            snapshot = read_snapshot(self._disk, self._directory, self.snapshot_id)
        except ValueError:
            self._is_abandoned = True
            raise
        finally:
            self._is_storing = False
            if self._is_abandoned:
                delete_snapshot(self._disk, self._directory, self.snapshot_id)
        if not self._is_abandoned:
            self.snapshot = snapshot

    def abandon(self) -> None:
        """Nothing shall remain of it; what is being stored goes when that is done."""
        self._is_abandoned = True
        if self.snapshot is not None:
            delete_snapshot(self._disk, self._directory, self.snapshot_id)
        elif not self._is_storing:
            self._writer.abandon()
