"""Stored state of one share-partition, and the records that hold it.

A snapshot says everything; updates after it say what has changed since, until there are so many
that the next snapshot is due. Source: Kafka's ShareGroupOffset and ShareCoordinatorRecordHelpers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.share.batches import combine
from barnabas.node.coordinator.share.state import (
    UNINITIALIZED_OFFSET,
    UNKNOWN_COUNT,
    SharePartitionKey,
    StateBatch,
)
from barnabas.protocol.messages.share_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)

UNCHANGED_EPOCH: Final = -1
FIRST_EPOCH: Final = 0
"""Of snapshots, states and leaders where nobody has named another."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The state of a share-partition as its snapshot and updates tell."""

    snapshot_epoch: int = FIRST_EPOCH
    state_epoch: int = FIRST_EPOCH
    leader_epoch: int = FIRST_EPOCH
    start_offset: int = UNINITIALIZED_OFFSET
    delivery_complete_count: int = UNKNOWN_COUNT
    batches: tuple[StateBatch, ...] = ()
    create_timestamp_ms: int = 0
    write_timestamp_ms: int = 0

    @classmethod
    def initial(
        cls, snapshot_epoch: int, state_epoch: int, start_offset: int, now_ms: int
    ) -> "Kept":
        """A share-partition that begins. With a start offset, its lag can be told at once."""
        return cls(
            snapshot_epoch=snapshot_epoch,
            state_epoch=state_epoch,
            start_offset=start_offset,
            delivery_complete_count=UNKNOWN_COUNT if start_offset == UNINITIALIZED_OFFSET else 0,
            create_timestamp_ms=now_ms,
            write_timestamp_ms=now_ms,
        )

    def after(self, update: "Update") -> "Kept":
        """The state with the update in it."""
        start_offset = (
            self.start_offset
            if update.start_offset == UNINITIALIZED_OFFSET
            else update.start_offset
        )
        return replace(
            self,
            leader_epoch=(
                self.leader_epoch if update.leader_epoch == UNCHANGED_EPOCH else update.leader_epoch
            ),
            start_offset=start_offset,
            delivery_complete_count=update.delivery_complete_count,
            batches=combine(self.batches, update.batches, start_offset),
        )

    def snapshot_again(self, now_ms: int, *, is_cold: bool = False) -> "Kept":
        """The state as its next snapshot says it; a cold one keeps the time of creation."""
        return replace(
            self,
            snapshot_epoch=self.snapshot_epoch + 1,
            create_timestamp_ms=self.create_timestamp_ms if is_cold else now_ms,
            write_timestamp_ms=now_ms,
        )


@dataclass(frozen=True, slots=True)
class Update:
    """A change of a share-partition. A leader epoch or start offset of -1 leaves the old one."""

    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch] = ()


def snapshot_record(key: SharePartitionKey, kept: Kept) -> CoordinatorRecord:
    """All of a share-partition."""
    return CoordinatorRecord(
        ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition),
        ShareSnapshotValue(
            snapshot_epoch=kept.snapshot_epoch,
            state_epoch=kept.state_epoch,
            leader_epoch=kept.leader_epoch,
            start_offset=kept.start_offset,
            delivery_complete_count=kept.delivery_complete_count,
            create_timestamp=kept.create_timestamp_ms,
            write_timestamp=kept.write_timestamp_ms,
            state_batches=[batch.encoded() for batch in kept.batches],
        ),
    )


def update_record(key: SharePartitionKey, snapshot_epoch: int, update: Update) -> CoordinatorRecord:
    """The record of the change since the snapshot of `snapshot_epoch`."""
    return CoordinatorRecord(
        ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition),
        ShareUpdateValue(
            snapshot_epoch=snapshot_epoch,
            leader_epoch=update.leader_epoch,
            start_offset=update.start_offset,
            delivery_complete_count=update.delivery_complete_count,
            state_batches=[
                batch.encoded() for batch in combine((), update.batches, update.start_offset)
            ],
        ),
    )


def tombstone(key: SharePartitionKey) -> CoordinatorRecord:
    """Nothing is kept any more; it always stands under the key of snapshots."""
    return CoordinatorRecord(
        ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition),
        None,
    )


def from_snapshot(value: ShareSnapshotValue) -> Kept:
    """Read a snapshot."""
    return Kept(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=tuple(map(StateBatch.of, value.state_batches)),
        create_timestamp_ms=value.create_timestamp,
        write_timestamp_ms=value.write_timestamp,
    )


def from_update(value: ShareUpdateValue) -> Update:
    """Read an update."""
    return Update(
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=[StateBatch.of(batch) for batch in value.state_batches],
    )
