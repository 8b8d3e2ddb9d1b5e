"""The persister's interface: it stores the state of share-partitions (KIP-932).

The share-partition's leader reads the stored state when it begins and writes every change; the
group coordinator initialises and deletes. One call is for one
share-partition. Errors that pass are retried with a growing pause by the persister itself.
"""

from collections.abc import Sequence
from typing import Protocol

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.share.state import (
    ShareState,
    ShareStateError,
    ShareSummary,
    StateBatch,
)

__all__ = ["Persister", "ShareState", "ShareStateError", "ShareSummary", "StateBatch"]


class Persister(Protocol):
    """Keeps the state of share-partitions. Every method raises ShareStateError."""

    async def read(
        self, group_id: str, topic_id: Uuid, partition: int, leader_epoch: int
    ) -> ShareState:
        """Read the stored state. Fences leaders of the partition before `leader_epoch`.

        A start offset of -1 says that the group has not begun with the partition yet.
        """

    async def write(
        self,
        group_id: str,
        topic_id: Uuid,
        partition: int,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        """Keep that `batches` are in new states. A start offset of -1 leaves it where it is.

        Returns once that is committed. Batches replace what is kept of the same offsets; what
        lies before the start offset is forgotten. Batches must neither be empty nor overlap.
        """

    async def initialize(
        self, group_id: str, topic_id: Uuid, partition: int, state_epoch: int, start_offset: int
    ) -> None:
        """Initialize the state of a share-partition, or reinitialize it with a higher epoch."""

    async def delete(self, group_id: str, topic_id: Uuid, partition: int) -> None:
        """Keep it no more. Nothing to delete is no error."""

    async def read_summary(
        self, group_id: str, topic_id: Uuid, partition: int, leader_epoch: int = -1
    ) -> ShareSummary:
        """The stored state without the batches.

        If nothing is stored, the start offset and the count are -1, and the epochs 0.
        """
