"""The records that consumer, streams and share groups all have.

Each kind has its own types for them, since their members differ.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from barnabas.node.coordinator.decision import CoordinatorRecord


@dataclass(frozen=True, slots=True)
class ModernRecords:
    """The types of one kind's keys, and the records whose values are the same in all kinds."""

    epoch_key: type[Any]
    """Of the group's epoch; its tombstone ends the group."""
    member_key: type[Any]
    """Of who a member is; its tombstone ends the member."""
    target_epoch_key: type[Any]
    target_epoch_value: type[Any]
    target_key: type[Any]
    """Of what a member shall have."""
    current_key: type[Any]
    """Of what a member has."""

    def target_epoch(self, group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
        """The group epoch for which the assignment was made, and when."""
        return CoordinatorRecord(
            self.target_epoch_key(group_id=group_id),
            self.target_epoch_value(assignment_epoch=epoch, assignment_timestamp=timestamp_ms),
        )

    def member_tombstones(self, group_id: str, member_id: str) -> list[CoordinatorRecord]:
        """A member is gone. Kafka's replay needs them in this order."""
        return [
            CoordinatorRecord(key(group_id=group_id, member_id=member_id), None)
            for key in (self.current_key, self.target_key, self.member_key)
        ]

    def members_tombstones(
        self, group_id: str, member_ids: Iterable[str]
    ) -> list[CoordinatorRecord]:
        """The assignment is gone, and all members: their parts first, as in Kafka."""
        each = [self.member_tombstones(group_id, member_id) for member_id in member_ids]
        return [
            *(current for current, _, _ in each),
            *(target for _, target, _ in each),
            CoordinatorRecord(self.target_epoch_key(group_id=group_id), None),
            *(member for _, _, member in each),
        ]

    def epoch_tombstone(self, group_id: str) -> CoordinatorRecord:
        """The group is gone."""
        return CoordinatorRecord(self.epoch_key(group_id=group_id), None)
