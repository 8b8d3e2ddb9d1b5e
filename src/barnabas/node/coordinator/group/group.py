"""The interface that all kinds of groups share.

Offsets, administration, the registry and the shard know groups by this alone. Each kind says for
itself who may commit, when its offsets expire, and which records end it.
"""

from collections.abc import Mapping
from typing import Protocol

from barnabas.node.coordinator.decision import CoordinatorRecord
from barnabas.node.coordinator.group.group_type import GroupType
from barnabas.node.coordinator.group.step import TimerKey
from barnabas.node.coordinator.group.view import GroupMetadata
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offsets import OffsetCommitRequest
from barnabas.protocol.messages.transactions import TxnOffsetCommitRequest


class Group(Protocol):
    """A group of any kind."""

    group_id: str

    @property
    def group_type(self) -> GroupType:
        """The group's kind."""

    @property
    def protocol_type(self) -> str | None:
        """The protocol type that ListGroups reports; None if no member named one."""

    @property
    def state(self) -> str:
        """The state of the group, as clients see it."""

    @property
    def is_empty(self) -> bool:
        """True if the group has no members."""

    @property
    def members(self) -> Mapping[str, object]:
        """Members by id."""

    # Offsets

    def is_subscribed(self, topic: str) -> bool:
        """Return whether a member reads `topic`, for which its offsets are kept."""

    def check_commit(self, request: OffsetCommitRequest, version: int) -> ErrorCode:
        """Check whether the sender may commit offsets."""

    def check_transactional_commit(
        self, request: TxnOffsetCommitRequest, metadata: GroupMetadata
    ) -> ErrorCode:
        """Check whether the producer may commit: its consumer must be a member (KIP-447).

        Older clients name no member; then nothing is checked.
        """

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Check whether offsets may be read."""

    def check_delete(self) -> ErrorCode:
        """Check whether offsets of topics without subscribers may be deleted (KIP-496)."""

    @property
    def keeps_offsets(self) -> bool:
        """True if nothing of the group may expire now, neither offsets nor the group itself."""

    @property
    def retention_since_ms(self) -> int | None:
        """The wall time from which offsets are kept for their retention; None: from the commit."""

    @property
    def is_awaited(self) -> bool:
        """True if somebody is about to join, for whom a group without members is kept."""

    # Records and timers

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that delete the group."""

    def timer_keys(self) -> list[TimerKey]:
        """Every timer that may run for the group or its members."""

    def dropped(self) -> None:
        """The group is forgotten: it was deleted, or has moved to another node."""
