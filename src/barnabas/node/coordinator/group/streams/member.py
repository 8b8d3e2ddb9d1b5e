"""A member of a streams group, as its records tell.

Source: Kafka's StreamsGroupMember and MemberState.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from barnabas.node.coordinator.group.modern.member import ModernMember
from barnabas.node.coordinator.group.streams.tasks import AssignedTasks


class MemberState(IntEnum):
    """The progress of a member towards its target; the numbers of the records, one more than
    consumers'.
    """

    STABLE = 1
    UNREVOKED_TASKS = 2
    """It was told to give tasks up and has not said that it did."""
    UNRELEASED_TASKS = 3
    """Tasks that it shall get still belong to others."""
    UNKNOWN = 127
    """Written by a later version."""


class Endpoint(NamedTuple):
    """The address at which a member's application answers interactive queries."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember(ModernMember):
    """A member, and the tasks that it owns in its epoch.

    A member is a stream thread; the members of one process share its state directory, so a task is
    never in two of them, in any role.
    """

    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    assigned: AssignedTasks = field(default_factory=AssignedTasks)
    pending_revocation: AssignedTasks = field(default_factory=AssignedTasks)

    @property
    def must_give_up(self) -> bool:
        """True if it must revoke tasks and has not confirmed that it did."""
        return self.state is MemberState.UNREVOKED_TASKS

    @property
    def is_settled(self) -> bool:
        """True if it has exactly its target assignment of its epoch."""
        return self.state is MemberState.STABLE
