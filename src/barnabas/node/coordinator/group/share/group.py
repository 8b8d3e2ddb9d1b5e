"""A share group: what its records say, and what follows from that.

Its base has what all groups share. Source: Kafka's ShareGroup.
"""

from dataclasses import replace
from typing import ClassVar

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.group.group_type import GroupType
from barnabas.node.coordinator.group.modern.group import (
    ModernGroup,
    ModernGroupState,
    common_replays,
)
from barnabas.node.coordinator.group.modern.records import ModernRecords
from barnabas.node.coordinator.group.share import records
from barnabas.node.coordinator.group.share.member import ShareMember, Target
from barnabas.node.coordinator.group.share.state import StateMetadata
from barnabas.node.coordinator.group.view import GroupMetadata
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import group_records as messages
from barnabas.protocol.messages.offsets import OffsetCommitRequest
from barnabas.protocol.messages.transactions import TxnOffsetCommitRequest
from barnabas.protocol.schema import Message


class ShareGroup(ModernGroup[ShareMember, Target]):
    """One share group."""

    __slots__ = ("_names", "state_metadata")

    group_type: ClassVar[GroupType] = GroupType.SHARE
    protocol_type: ClassVar[str] = GroupType.SHARE
    records: ClassVar[ModernRecords] = records.RECORDS

    keeps_offsets = True
    """They stay until somebody deletes the group."""

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.state_metadata = StateMetadata()
        self._names: frozenset[str] | None = None

    # What follows from the records

    @property
    def state(self) -> ModernGroupState:
        """The group's state. It is never reconciling, since no partition has to be given up."""
        return ModernGroupState.STABLE if self.members else ModernGroupState.EMPTY

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
        """True if initialised partitions of subscribed topics are assigned to nobody yet."""
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

    # Offsets: those of a share group are the share coordinator's, and nobody commits any here.

    def check_commit(self, request: OffsetCommitRequest, version: int) -> ErrorCode:
        """Nobody commits offsets to a share group."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    def check_transactional_commit(
        self, request: TxnOffsetCommitRequest, metadata: GroupMetadata
    ) -> ErrorCode:
        """Nobody commits offsets to a share group."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """There are no committed offsets to read."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    def check_delete(self) -> ErrorCode:
        """There are no committed offsets to delete."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    # Records

    def _last_tombstones(self) -> list[CoordinatorRecord]:
        return [
            records.state_tombstone(self.group_id),
            self.records.epoch_tombstone(self.group_id),
        ]

    def _member_changed(self, old: ShareMember | None, new: ShareMember | None) -> None:
        if old is None or new is None or old.topic_names != new.topic_names:
            self._names = None

    def _new_member(self, member_id: str) -> ShareMember:
        return ShareMember(member_id)

    def _described(
        self, member: ShareMember, value: messages.ShareGroupMemberMetadataValue
    ) -> ShareMember:
        return replace(
            member,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
        )

    def _assigned(
        self, member: ShareMember, value: messages.ShareGroupCurrentMemberAssignmentValue | None
    ) -> ShareMember:
        assigned = {} if value is None else records.target_of(value.assigned_partitions)
        return replace(member, assigned=assigned)

    def _target_of(self, value: messages.ShareGroupTargetAssignmentMemberValue) -> Target:
        return records.target_of(value.topic_partitions)

    def _replay_state(
        self, key: Message, value: messages.ShareGroupStatePartitionMetadataValue | None
    ) -> None:
        self.state_metadata = StateMetadata() if value is None else StateMetadata.from_value(value)


ShareGroup.replays = {
    **common_replays(ShareGroup),
    messages.ShareGroupStatePartitionMetadataKey: ShareGroup._replay_state,
}
