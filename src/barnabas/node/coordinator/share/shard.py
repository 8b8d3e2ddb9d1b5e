"""The share-partitions of one partition of `__share_group_state`.

The group coordinator initializes each once (and again, with a higher state epoch, when an
administrator moves it), then written by the leader of the topic's partition. A leader reads
first, and with that fences those before it by its leader epoch.

The topic is not compacted: a snapshot makes all that is older of its share-partition redundant,
and what lies before the oldest snapshot in use is deleted (`redundant_before`). So that a quiet
share-partition does not hold that up, its snapshot is rewritten from time to time.
Source: Kafka's ShareCoordinatorShard and ShareCoordinatorOffsetsManager.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from barnabas.base.ids import Uuid
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.coordinator.decision import CoordinatorRecord, Decision, Moment, Shard
from barnabas.node.coordinator.share.batches import combine
from barnabas.node.coordinator.share.kept import (
    Kept,
    Update,
    from_snapshot,
    from_update,
    snapshot_record,
    tombstone,
    update_record,
)
from barnabas.node.coordinator.share.state import (
    DONE,
    UNINITIALIZED_OFFSET,
    Failure,
    SharePartitionKey,
    ShareState,
    ShareSummary,
    StateBatch,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)


@dataclass(frozen=True, slots=True)
class ShareCoordinatorConfig:
    """Kafka's settings under their meaning; the defaults are Kafka's."""

    state_partitions: int = 50
    write_timeout_ms: int = 5_000
    updates_per_snapshot: int = 500
    cold_snapshot_interval_ms: int = 300_000
    prune_interval_ms: int = 300_000

    @classmethod
    def from_node(cls, config: NodeConfig) -> "ShareCoordinatorConfig":
        """Read `share.coordinator.*`."""
        return cls(
            state_partitions=config.get_int("share.coordinator.state.topic.num.partitions"),
            write_timeout_ms=config.get_int("share.coordinator.write.timeout.ms"),
            updates_per_snapshot=config.get_int(
                "share.coordinator.snapshot.update.records.per.snapshot"
            ),
            cold_snapshot_interval_ms=config.get_int(
                "share.coordinator.cold.partition.snapshot.interval.ms"
            ),
            prune_interval_ms=config.get_int("share.coordinator.state.topic.prune.interval.ms"),
        )


NEGATIVE_PARTITION = "The partition id cannot be a negative number."
NOT_INITIALIZED = "{} operation on uninitialized share partition not allowed."
ANY_EPOCH = -1
"""In a request: do not compare."""

PartitionCount = Callable[[Uuid], int]
"""Returns the number of partitions of a topic; 0 if it does not exist."""


@dataclass(slots=True)
class SharePartitionEntry:
    """One share-partition as it is loaded."""

    kept: Kept
    leader_epoch: int
    state_epoch: int
    """Of both, the highest that was ever seen. A new initialisation does not take it back."""
    update_count: int = 0
    """Updates since the last snapshot."""
    snapshot_offset: int = 0
    """The offset of the last snapshot in the log."""


class ShareShard(Shard):
    """Share-partitions by key. A refusal is a `Failure` as the response of a decision.

    It has no timers: the service looks at its shards from time to time.
    """

    def __init__(self, config: ShareCoordinatorConfig, partition_count: PartitionCount) -> None:
        self.entries: dict[SharePartitionKey, SharePartitionEntry] = {}
        self._config = config
        self._partition_count = partition_count
        self._last_tombstone_offset = 0

    # Requests

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, now: Moment
    ) -> Decision:
        """Initialize a share-partition, or reinitialize it; the response is DONE.

        A share-partition that began in this state epoch does not start again without an offset:
        that is a request of before which comes late, or again as its answer was lost, and what is
        acknowledged by now must stay so. In Kafka it would start again.
        """
        if key.partition < 0:
            return _refused(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        entry = self.entries.get(key)
        if state_epoch != ANY_EPOCH and entry is not None and entry.state_epoch > state_epoch:
            return _refused(ErrorCode.FENCED_STATE_EPOCH)
        if not self._exists(key):
            return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if (
            entry is not None
            and ANY_EPOCH != state_epoch == entry.kept.state_epoch
            and start_offset == UNINITIALIZED_OFFSET
        ):
            return Decision(response=DONE)
        snapshot_epoch = 0 if entry is None else entry.kept.snapshot_epoch + 1
        kept = Kept.initial(snapshot_epoch, state_epoch, start_offset, now.wall_ms)
        return Decision([snapshot_record(key, kept)], DONE)

    def read(self, key: SharePartitionKey, leader_epoch: int, now: Moment) -> Decision:
        """The state as a `ShareState`; a newer leader epoch is written down first."""
        if key.partition < 0:
            return _refused(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        entry = self.entries.get(key)
        if entry is None:
            return _refused(ErrorCode.INVALID_REQUEST, NOT_INITIALIZED.format("Read"))
        if leader_epoch != ANY_EPOCH and entry.leader_epoch > leader_epoch:
            return _refused(ErrorCode.FENCED_LEADER_EPOCH)
        if not self._exists(key):
            return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        kept = entry.kept
        response = ShareState(kept.state_epoch, kept.start_offset, kept.batches)
        if leader_epoch in (ANY_EPOCH, entry.leader_epoch):
            return Decision(response=response)
        update = Update(leader_epoch, kept.start_offset, kept.delivery_complete_count)
        return Decision([self._record(key, entry, update, now)], response)

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        now: Moment,
    ) -> Decision:
        """Keep what has changed.

        The start offset never goes back: a write that says so was asked again, and the first
        request comes after later ones. Batches need no such care, as `combine` knows which of two
        is older. Not as in Kafka, whose start goes back and has records delivered again.
        """
        if key.partition < 0:
            return _refused(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        entry = self.entries.get(key)
        if entry is None:
            return _refused(ErrorCode.INVALID_REQUEST, NOT_INITIALIZED.format("Write"))
        if leader_epoch != ANY_EPOCH and entry.leader_epoch > leader_epoch:
            return _refused(ErrorCode.FENCED_LEADER_EPOCH)
        if state_epoch != ANY_EPOCH and entry.state_epoch > state_epoch:
            return _refused(ErrorCode.FENCED_STATE_EPOCH)
        if not self._exists(key):
            return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        kept = entry.kept
        if UNINITIALIZED_OFFSET != start_offset < kept.start_offset:
            start_offset = kept.start_offset
            delivery_complete_count = kept.delivery_complete_count
        update = Update(kept.leader_epoch, start_offset, delivery_complete_count, batches)
        return Decision([self._record(key, entry, update, now)], DONE)

    def summary(self, key: SharePartitionKey) -> Decision:
        """The state without batches, as a `ShareSummary`."""
        if key.partition < 0:
            return _refused(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if not self._exists(key):
            return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        entry = self.entries.get(key)
        kept = Kept() if entry is None else entry.kept
        return Decision(
            response=ShareSummary(
                kept.state_epoch, kept.leader_epoch, kept.start_offset, kept.delivery_complete_count
            )
        )

    def delete(self, key: SharePartitionKey) -> Decision:
        """Keep nothing any more."""
        if key.partition < 0:
            return _refused(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if not self._exists(key):
            return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if key not in self.entries:
            return Decision(response=DONE)
        return Decision([tombstone(key)], DONE)

    # What time and topics bring

    def topics_deleted(self, topic_ids: frozenset[Uuid]) -> Decision:
        """Forget the share-partitions of topics that are gone; the response is how many."""
        gone = [key for key in self.entries if key.topic_id in topic_ids]
        return Decision([tombstone(key) for key in gone], len(gone), is_atomic=False)

    def snapshot_cold(self, now: Moment) -> Decision:
        """Rewrite old snapshots, unless all is quiet; the response is how many."""
        if all(
            entry.kept.create_timestamp_ms != entry.kept.write_timestamp_ms
            for entry in self.entries.values()
        ):
            return Decision(response=0)
        interval_ms = self._config.cold_snapshot_interval_ms
        records = [
            snapshot_record(key, entry.kept.snapshot_again(now.wall_ms, is_cold=True))
            for key, entry in self.entries.items()
            if now.wall_ms - entry.kept.write_timestamp_ms >= interval_ms
        ]
        return Decision(records, len(records), is_atomic=False)

    def redundant_before(self) -> Decision:
        """The offset before which no record counts any more, as the response."""
        offset = min(
            (entry.snapshot_offset for entry in self.entries.values()),
            default=self._last_tombstone_offset,
        )
        return Decision(response=offset)

    # Records

    def replay(self, offset: int, producer_id: int, record: CoordinatorRecord) -> None:
        """Apply one record of the partition."""
        key, value = record.key, record.value
        if isinstance(key, ShareSnapshotKey):
            place = SharePartitionKey(key.group_id, key.topic_id, key.partition)
            if value is None:
                if self.entries.pop(place, None) is not None:
                    self._last_tombstone_offset = offset
                return
            assert isinstance(value, ShareSnapshotValue)
            self._replay_snapshot(place, from_snapshot(value), offset)
        else:
            assert isinstance(key, ShareUpdateKey)
            if value is not None:
                assert isinstance(value, ShareUpdateValue)
                place = SharePartitionKey(key.group_id, key.topic_id, key.partition)
                self._replay_update(place, value, offset)

    # Helpers

    def _exists(self, key: SharePartitionKey) -> bool:
        return key.partition < self._partition_count(key.topic_id)

    def _record(
        self, key: SharePartitionKey, entry: SharePartitionEntry, update: Update, now: Moment
    ) -> CoordinatorRecord:
        """An update, or a snapshot with it where there were enough updates."""
        kept = entry.kept
        if entry.update_count < self._config.updates_per_snapshot:
            return update_record(key, kept.snapshot_epoch, update)
        changed = kept.after(update).snapshot_again(now.wall_ms)
        return snapshot_record(key, changed)

    def _replay_snapshot(self, key: SharePartitionKey, kept: Kept, offset: int) -> None:
        entry = self.entries.get(key)
        leader_epoch, state_epoch = kept.leader_epoch, kept.state_epoch
        if entry is not None:
            leader_epoch = max(leader_epoch, entry.leader_epoch)
            state_epoch = max(state_epoch, entry.state_epoch)
        self.entries[key] = SharePartitionEntry(kept, leader_epoch, state_epoch, 0, offset)

    def _replay_update(self, key: SharePartitionKey, value: ShareUpdateValue, offset: int) -> None:
        update = from_update(value)
        entry = self.entries.get(key)
        if entry is None:  # its snapshot is gone; what the update says is all there is
            kept = Kept(
                snapshot_epoch=value.snapshot_epoch,
                leader_epoch=update.leader_epoch,
                start_offset=update.start_offset,
                delivery_complete_count=update.delivery_complete_count,
                batches=combine((), update.batches, UNINITIALIZED_OFFSET),
            )
            self.entries[key] = SharePartitionEntry(
                kept, update.leader_epoch, kept.state_epoch, 1, offset
            )
            return
        entry.kept = entry.kept.after(update)
        entry.leader_epoch = max(entry.leader_epoch, update.leader_epoch)
        entry.update_count += 1


def _refused(error: ErrorCode, message: str | None = None) -> Decision:
    return Decision(response=Failure(error, message or error.message))
