"""The shard's interface to each kind of groups: requests of the classic protocol, and timers.

Each kind has its own class, with the requests of its protocol beside these.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from barnabas.node.coordinator.decision import Answer, Decision, Moment
from barnabas.node.coordinator.group.classic.join import Join
from barnabas.node.coordinator.group.classic.responses import join_error, unknown_members
from barnabas.node.coordinator.group.config import GroupConfig
from barnabas.node.coordinator.group.registry import GroupRegistry
from barnabas.node.coordinator.group.step import GroupTimers, Step, TimerKey
from barnabas.node.coordinator.group.view import GroupMetadata
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)


class GroupRequests(ABC):
    """Requests and timers of the groups of one kind, in one shard.

    `group` is always of the kind. Groups that do not speak the classic protocol know nobody who
    does.
    """

    __slots__ = ("_config", "_groups", "_metadata", "_timers")

    makes_way: ClassVar[bool] = False
    """True if a group without members is replaced by a classic one that somebody joins."""

    def __init__(
        self,
        config: GroupConfig,
        timers: GroupTimers,
        groups: GroupRegistry,
        metadata: GroupMetadata,
    ) -> None:
        self._config = config
        self._timers = timers
        self._groups = groups
        self._metadata = metadata

    def step(self, now: Moment) -> Step:
        """A step that begins now."""
        self._groups.cancel_ended()
        return Step(now, self._config, self._timers, self._metadata)

    # The classic protocol

    def join(self, group: Any, request: Join, now: Moment) -> Decision:
        """JoinGroup."""
        return Decision(response=join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""))

    def sync(self, group: Any, request: SyncGroupRequest, waiter: Any, now: Moment) -> Decision:
        """SyncGroup."""
        return Decision(response=SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))

    def classic_heartbeat(self, group: Any, request: HeartbeatRequest, now: Moment) -> Decision:
        """Heartbeat."""
        return Decision(response=HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))

    def leave(self, group: Any, leaving: list[MemberIdentity], now: Moment) -> Decision:
        """LeaveGroup."""
        return Decision(response=unknown_members(leaving))

    # Events

    def committed(self, group: Any, member_id: str, now: Moment) -> None:
        """A member commits offsets, which for most kinds is no sign of life."""
        return

    @abstractmethod
    def loaded(self, group: Any, step: Step) -> None:
        """The group was read from the log: nobody knows when its members were last heard."""

    def unloaded(self, group: Any, error: ErrorCode) -> list[Answer]:
        """The group has left this node: answer all who wait in it."""
        return []

    @abstractmethod
    def timer_is_up(self, group: Any, key: TimerKey, now: Moment) -> Decision:
        """A timer of the group or of a member is due."""
