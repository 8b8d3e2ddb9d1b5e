"""A member of a consumer group, as its records tell.

Source: Kafka's ConsumerGroupMember and MemberState.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.group.modern.member import STATIC_LEAVING_EPOCH, ModernMember
from barnabas.protocol.messages.group_records import ClassicMemberMetadata

Partitions = Mapping[Uuid, Mapping[int, int]]
"""Partitions by topic, each with the member epoch in which it was assigned (KIP-1251)."""


class MemberState(IntEnum):
    """The progress of a member towards its target; the numbers are those of the records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It was told to give partitions up and has not said that it did."""
    UNRELEASED_PARTITIONS = 2
    """Partitions that it shall get still belong to others."""
    UNKNOWN = 127
    """Written by a later version."""


@dataclass(frozen=True, slots=True)
class ConsumerMember(ModernMember):
    """A member: its subscription, and the partitions it owns in which epoch."""

    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = ""
    """Kafka writes the empty text for members without one; older records hold null."""
    assignor: str | None = None
    assigned: Partitions = field(default_factory=dict)
    pending_revocation: Partitions = field(default_factory=dict)
    classic: ClassicMemberMetadata | None = None
    """The content of its JoinGroup, if it uses the classic protocol."""

    @property
    def is_classic(self) -> bool:
        """True if the member speaks the classic protocol."""
        return self.classic is not None

    @property
    def own_session_timeout_ms(self) -> int | None:
        """The session time-out of a classic member."""
        return None if self.classic is None else self.classic.session_timeout_ms

    @property
    def has_left(self) -> bool:
        """True if it is a static member that is away."""
        return self.member_epoch == STATIC_LEAVING_EPOCH

    @property
    def must_give_up(self) -> bool:
        """True if it must revoke partitions and has not confirmed that it did."""
        return self.state is MemberState.UNREVOKED_PARTITIONS and not self.has_left

    @property
    def is_settled(self) -> bool:
        """True if it has exactly its target assignment of its epoch."""
        return self.state is MemberState.STABLE

    def assignment_epoch(self, topic_id: Uuid, partition: int) -> int | None:
        """Since which member epoch the member has the partition; None where it does not."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        if epoch is None:
            epoch = self.pending_revocation.get(topic_id, {}).get(partition)
        return epoch
