"""Images as the quorum commits them, and their listeners.

On the leader, records are replayed when they are appended and published when they are committed;
on a follower, and when the log is loaded, both at once. A leader that is deposed forgets what was
not committed.
"""

from collections import deque
from collections.abc import Callable

from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.loader import ImageLoader, Published, RecordBatch
from barnabas.node.metadata.records import decode_record
from barnabas.node.metadata.replay import ImageDelta
from barnabas.node.raft.recovery import LogBatch
from barnabas.node.raft.snapshot_files import Snapshot, SnapshotId

ImageListener = Callable[[ImageDelta, MetadataImage], None]


class ImagePublisher:
    """Applies what raft commits (a RaftListener) and calls listeners, in order of addition."""

    __slots__ = (
        "_listeners",
        "_loader",
        "_loader_at_start",
        "_on_applied",
        "_waiting",
        "image",
        "loaded_bytes",
    )

    def __init__(self, cluster_id: str, on_applied: Callable[[int], None]) -> None:
        """`on_applied` gets the size of the applied records, in bytes."""
        self.image = MetadataImage(cluster_id=cluster_id)
        """The committed image."""
        self.loaded_bytes = 0
        """Size of the records applied from the log since the snapshot it was loaded from."""
        self._on_applied = on_applied
        self._loader = ImageLoader(self.image)
        self._loader_at_start: ImageLoader | None = None
        self._waiting: deque[Published] = deque()
        self._listeners: list[ImageListener] = []

    @property
    def latest(self) -> MetadataImage:
        """The image with everything appended, committed or not."""
        return self._loader.image

    @property
    def transaction_offset(self) -> int:
        """The start offset of the open metadata transaction, or -1."""
        return self._loader.transaction_offset

    def add_listener(self, listener: ImageListener) -> None:
        """Have `listener` called with each change from now on. It must not raise."""
        self._listeners.append(listener)

    def appended(self, batch: RecordBatch) -> None:
        """Replay what this node appended as leader; it is published once committed."""
        self._waiting += self._loader.feed([batch])

    def lead(self) -> None:
        """This node begins to append: what it appends before a commit can be undone."""
        self._loader_at_start = self._loader.copy()

    def revert(self) -> None:
        """This node leads no more: forget what it appended and what was not committed."""
        start, self._loader_at_start = self._loader_at_start, None
        self._waiting.clear()
        if start is not None:
            # Transactions of this node's own end in the batch that they begin in, so one that
            # is open and committed was there before, and nothing was committed since.
            self._loader = start if start.image is self.image else ImageLoader(self.image)

    # -- RaftListener

    def load_snapshot(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        """Start over from a snapshot; listeners learn what differs from before.

        Raises ReplayError and DecodeError.
        """
        self._loader = ImageLoader(MetadataImage(cluster_id=self.image.cluster_id))
        self._loader_at_start = None
        self._waiting.clear()
        # Records of a snapshot all stand at its end: their own offsets mean nothing.
        records = [decode_record(value) for value in snapshot.values]
        end = snapshot_id.end_offset - len(records)
        batch = RecordBatch(end, snapshot_id.epoch, snapshot.last_timestamp_ms, records)
        published = self._loader.feed([batch])
        for delta, image in published:
            _note_gone(delta, self.image, image)
        self._publish(published)

    def apply(self, batches: list[LogBatch]) -> None:
        """Apply committed batches of the log. Raises ReplayError and DecodeError."""
        size_bytes = sum(len(value) for batch in batches for value in batch.values)
        self.loaded_bytes += size_bytes
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
        self._on_applied(size_bytes)

    def committed(self, high_watermark: int) -> None:
        """Publish what was appended before `high_watermark`."""
        while self._waiting and self._waiting[0].image.offset < high_watermark:
            self._publish([self._waiting.popleft()])

    def _publish(self, published: list[Published]) -> None:
        for delta, image in published:
            self.image = image
            for listener in self._listeners:
                listener(delta, image)


def _note_gone(delta: ImageDelta, before: MetadataImage, after: MetadataImage) -> None:
    """Tell in `delta`, which begins with nothing, what was there `before` and is no more."""
    for topic_id, topic in before.topics.by_id.items():
        if topic_id not in after.topics.by_id:
            delta.topics_deleted[topic_id] = topic
    for broker_id in before.brokers:
        if broker_id not in after.brokers:
            delta.brokers[broker_id] = None
    for resource in before.configs.by_resource:
        if resource not in after.configs.by_resource:
            delta.configs[resource] = {}
