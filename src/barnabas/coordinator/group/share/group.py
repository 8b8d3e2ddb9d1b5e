"""A share group: what its records say, and what follows from that.

Source: Kafka's ShareGroup and ModernGroup.
"""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from barnabas.base.ids import Uuid
from barnabas.coordinator.decision import CoordinatorRecord
from barnabas.coordinator.group.share import records
from barnabas.coordinator.group.share.member import LEAVING_EPOCH, ShareMember, Target
from barnabas.coordinator.group.share.state import StateMetadata
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import share_group_records as messages
from barnabas.protocol.schema import Message

FIRST_EPOCH: Final = 1
NO_ASSIGNMENT_EPOCH: Final = -1


class ShareGroupState(StrEnum):
    """Where a share group stands; the values are what clients see."""

    EMPTY = "Empty"
    STABLE = "Stable"


class ShareGroup:
    """One share group."""

    __slots__ = (
        "_names",
        "assignment_epoch",
        "assignment_timestamp_ms",
        "checked_topics",
        "epoch",
        "group_id",
        "members",
        "metadata_hash",
        "state_metadata",
        "target",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        """Wall time of the last assignment; 0 before the first."""
        self.members: dict[str, ShareMember] = {}
        self.target: dict[str, Target] = {}
        self.state_metadata = StateMetadata()
        self.checked_topics: tuple[object, int] | None = None
        """Not in the log: the topics that a handler has looked at last, and the group epoch that
        came of it. If the group has not reached that epoch, the look was in vain."""
        self._names: frozenset[str] | None = None

    # What follows from the records

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not self.members

    @property
    def state(self) -> ShareGroupState:
        """Where the group stands."""
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def subscribed_names(self) -> frozenset[str]:
        """Topics that members name."""
        if self._names is None:
            self._names = frozenset().union(
                *(member.topic_names for member in self.members.values())
            )
        return self._names

    def is_subscribed(self, topic: str) -> bool:
        """Share groups keep no offsets that a subscription would protect."""
        return False

    @property
    def awaits_assignment(self) -> bool:
        """Whether initialised partitions of subscribed topics are assigned to nobody yet."""
        if not self.members:
            return False
        assigned: dict[Uuid, set[int]] = {}
        for target in self.target.values():
            for topic_id, numbers in target.items():
                assigned.setdefault(topic_id, set()).update(numbers)
        return any(
            topic.name in self.subscribed_names
            and assigned.get(topic_id, set()) != set(topic.partitions)
            for topic_id, topic in self.state_metadata.initialized.items()
        )

    def check_member(self, member_id: str, member_epoch: int) -> ErrorCode:
        """Nobody commits offsets to a share group."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    # Records

    def tombstones(self) -> list[CoordinatorRecord]:
        """What deletes the group: members first, as Kafka's own replay demands."""
        of_members = [records.member_tombstones(self.group_id, key) for key in self.members]
        last = records.group_tombstones(self.group_id)
        return [
            *(parts[0] for parts in of_members),
            *(parts[1] for parts in of_members),
            last[0],
            *(parts[2] for parts in of_members),
            *last[1:],
        ]

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply a record of the group, but for the tombstone that ends it."""
        _REPLAY[type(record.key)](self, record.key, record.value)

    def _put(self, member: ShareMember) -> None:
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if old is None or old.topic_names != member.topic_names:
            self._names = None

    def _replay_epoch(self, key: Message, value: messages.ShareGroupMetadataValue | None) -> None:
        assert value is not None, "the end of a group is its registry's business"
        self.epoch = value.epoch
        self.metadata_hash = value.metadata_hash

    def _replay_member(
        self,
        key: messages.ShareGroupMemberMetadataKey,
        value: messages.ShareGroupMemberMetadataValue | None,
    ) -> None:
        if value is None:
            if self.members.pop(key.member_id, None) is not None:
                self._names = None
            return
        self._put(
            replace(
                self.members.get(key.member_id) or ShareMember(key.member_id),
                rack_id=value.rack_id,
                client_id=value.client_id,
                client_host=value.client_host,
                topic_names=frozenset(value.subscribed_topic_names),
            )
        )

    def _replay_target_epoch(
        self, key: Message, value: messages.ShareGroupTargetAssignmentMetadataValue | None
    ) -> None:
        self.assignment_epoch = NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch
        self.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp

    def _replay_target(
        self,
        key: messages.ShareGroupTargetAssignmentMemberKey,
        value: messages.ShareGroupTargetAssignmentMemberValue | None,
    ) -> None:
        if value is None:
            self.target.pop(key.member_id, None)
        else:
            self.target[key.member_id] = records.target_of(value.topic_partitions)

    def _replay_current(
        self,
        key: messages.ShareGroupCurrentMemberAssignmentKey,
        value: messages.ShareGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        old = self.members.get(key.member_id)
        if value is None:
            if old is not None:
                self._put(
                    replace(
                        old,
                        member_epoch=LEAVING_EPOCH,
                        previous_member_epoch=LEAVING_EPOCH,
                        assigned={},
                    )
                )
            return
        self._put(
            replace(
                old or ShareMember(key.member_id),
                member_epoch=value.member_epoch,
                previous_member_epoch=value.previous_member_epoch,
                assigned=records.target_of(value.assigned_partitions),
            )
        )

    def _replay_state(
        self, key: Message, value: messages.ShareGroupStatePartitionMetadataValue | None
    ) -> None:
        self.state_metadata = StateMetadata() if value is None else StateMetadata.from_value(value)


_REPLAY: Final[dict[type[Message], Callable[[ShareGroup, Any, Any], None]]] = {
    messages.ShareGroupMetadataKey: ShareGroup._replay_epoch,
    messages.ShareGroupMemberMetadataKey: ShareGroup._replay_member,
    messages.ShareGroupTargetAssignmentMetadataKey: ShareGroup._replay_target_epoch,
    messages.ShareGroupTargetAssignmentMemberKey: ShareGroup._replay_target,
    messages.ShareGroupCurrentMemberAssignmentKey: ShareGroup._replay_current,
    messages.ShareGroupStatePartitionMetadataKey: ShareGroup._replay_state,
}
