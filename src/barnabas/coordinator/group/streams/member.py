"""A member of a streams group, as its records tell.

Source: Kafka's StreamsGroupMember and MemberState.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from barnabas.coordinator.group.streams.tasks import AssignedTasks

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
STATIC_LEAVING_EPOCH = -2


class MemberState(IntEnum):
    """How far a member has come; the numbers are those of the records, one more than consumers'."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    """It was told to give tasks up and has not said that it did."""
    UNRELEASED_TASKS = 3
    """Tasks that it shall get still belong to others."""
    UNKNOWN = 127
    """Written by a later version."""


class Endpoint(NamedTuple):
    """Where a member's application answers interactive queries."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """Who takes part, and what it owns in which epoch.

    A member is a stream thread; the members of one process share its state directory, so a task
    is never in two of them, whatever the role.
    """

    member_id: str
    member_epoch: int = JOINING_EPOCH
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    assigned: AssignedTasks = field(default_factory=AssignedTasks)
    pending_revocation: AssignedTasks = field(default_factory=AssignedTasks)

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether the member has all that the assignment of `epoch` gives it, and no more."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch
