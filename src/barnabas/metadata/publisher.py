"""Images as the quorum commits them, and who is told.

On the leader, records are replayed when they are appended and published when they are committed;
on a follower, and when the log is loaded, both at once.
"""

from collections import deque
from collections.abc import Callable

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.loader import ImageLoader, Published, RecordBatch
from barnabas.metadata.records import decode_record
from barnabas.metadata.replay import ImageDelta
from barnabas.raft.recovery import LogBatch
from barnabas.raft.snapshot_files import Snapshot, SnapshotId

ImageListener = Callable[[ImageDelta, MetadataImage], None]


class ImagePublisher:
    """Applies what raft commits (a RaftListener) and calls listeners, in order of addition."""

    __slots__ = ("_listeners", "_loader", "_waiting", "image", "loaded_bytes")

    def __init__(self, cluster_id: str) -> None:
        self.image = MetadataImage(cluster_id=cluster_id)
        """The committed image."""
        self.loaded_bytes = 0
        """Size of the records applied from the log since the snapshot it was loaded from."""
        self._loader = ImageLoader(self.image)
        self._waiting: deque[Published] = deque()
        self._listeners: list[ImageListener] = []

    @property
    def latest(self) -> MetadataImage:
        """The image with everything appended, committed or not."""
        return self._loader.image

    @property
    def transaction_offset(self) -> int:
        """Where the open metadata transaction began, or -1."""
        return self._loader.transaction_offset

    def add_listener(self, listener: ImageListener) -> None:
        """Have `listener` called with each change from now on. It must not raise."""
        self._listeners.append(listener)

    def appended(self, batch: RecordBatch) -> None:
        """Replay what this node appended as leader; it is published once committed."""
        self._waiting += self._loader.feed([batch])

    # -- RaftListener

    def load_snapshot(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        """Start over from a snapshot. Raises ReplayError and DecodeError."""
        self._loader = ImageLoader(MetadataImage(cluster_id=self.image.cluster_id))
        self._waiting.clear()
        # Records of a snapshot all stand at its end: their own offsets mean nothing.
        records = [decode_record(value) for value in snapshot.values]
        end = snapshot_id.end_offset - len(records)
        batch = RecordBatch(end, snapshot_id.epoch, snapshot.last_timestamp_ms, records)
        self._publish(self._loader.feed([batch]))

    def apply(self, batches: list[LogBatch]) -> None:
        """Apply committed batches of the log. Raises ReplayError and DecodeError."""
        self.loaded_bytes += sum(len(value) for batch in batches for value in batch.values)
        self._publish(
            self._loader.feed(
                RecordBatch(
                    batch.base_offset,
                    batch.epoch,
                    batch.timestamp_ms,
                    [decode_record(value) for value in batch.values],
                )
                for batch in batches
            )
        )

    def committed(self, high_watermark: int) -> None:
        """Publish what was appended before `high_watermark`."""
        while self._waiting and self._waiting[0].image.offset < high_watermark:
            self._publish([self._waiting.popleft()])

    def _publish(self, published: list[Published]) -> None:
        for delta, image in published:
            self.image = image
            for listener in self._listeners:
                listener(delta, image)
