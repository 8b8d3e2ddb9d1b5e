"""Requests and timers of the consumer groups of one shard.

Each method makes a step, lets the modules beside this one decide, and returns a `Decision` whose
records change the group as they are replayed. A refused request writes nothing.
"""

from collections.abc import Iterable

from barnabas.coordinator.decision import Decision, Moment
from barnabas.coordinator.group.classic.join import Join
from barnabas.coordinator.group.config import GroupConfig
from barnabas.coordinator.group.consumer import classic_members, describe
from barnabas.coordinator.group.consumer.fencing import timer_is_up
from barnabas.coordinator.group.consumer.group import ConsumerGroup
from barnabas.coordinator.group.consumer.heartbeat import heartbeat
from barnabas.coordinator.group.consumer.migration import Downgraded
from barnabas.coordinator.group.consumer.timing import start_timers
from barnabas.coordinator.group.refusal import Refusal
from barnabas.coordinator.group.registry import GroupRegistry
from barnabas.coordinator.group.step import Client, GroupTimers, Step, TimerKey
from barnabas.coordinator.group.view import GroupMetadata
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.leave_group import MemberIdentity
from barnabas.protocol.messages.sync_group import SyncGroupRequest


class ConsumerGroups:
    """The door to the consumer groups of a shard."""

    __slots__ = ("_config", "_groups", "_timers", "metadata")

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
        self.metadata = metadata

    def step(self, now: Moment) -> Step:
        """A step that begins now."""
        return Step(now, self._config, self._timers, self.metadata)

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        client: Client,
        new_member_id: str,
        now: Moment,
    ) -> Decision:
        """ConsumerGroupHeartbeat."""
        step = self.step(now)
        response = heartbeat(step, self._groups, request, client, new_member_id)
        if isinstance(response, Refusal):
            return Decision(response=refused(response))
        return step.decide_and_replay(response)

    def describe(self, group_ids: Iterable[str]) -> Decision:
        """ConsumerGroupDescribe."""
        assignors = self._config.consumer_assignors
        return Decision(
            response=[
                describe.described(group_id, self._groups.get(group_id), self.metadata, assignors)
                for group_id in group_ids
            ]
        )

    # Classic members

    def join(self, group: ConsumerGroup, request: Join, now: Moment) -> Decision:
        """JoinGroup to a consumer group that has members."""
        step = self.step(now)
        response = classic_members.join(step, self._groups, group, request)
        if isinstance(response, ErrorCode):
            return Decision(
                response=JoinGroupResponse(
                    error_code=response, member_id=request.request.member_id, protocol_name=None
                )
            )
        needs_id = response.error_code == ErrorCode.MEMBER_ID_REQUIRED
        return step.decide_and_replay(response, is_soft=needs_id)

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest, now: Moment) -> Decision:
        """SyncGroup to a consumer group."""
        return Decision(response=classic_members.sync(self.step(now), group, request))

    def classic_heartbeat(
        self, group: ConsumerGroup, request: HeartbeatRequest, now: Moment
    ) -> Decision:
        """Heartbeat to a consumer group."""
        response = classic_members.heartbeat(self.step(now), group, request)
        return Decision(response=response, is_soft=True)

    def leave(self, group: ConsumerGroup, leaving: list[MemberIdentity], now: Moment) -> Decision:
        """LeaveGroup to a consumer group."""
        step = self.step(now)
        response = classic_members.leave(step, self._groups, group, leaving)
        return step.decide_and_replay(response)

    # Time and outcome

    def loaded(self, group: ConsumerGroup, step: Step) -> None:
        """The group was read from the log."""
        start_timers(step, group)

    def timer_is_up(self, key: TimerKey, now: Moment) -> Decision:
        """A timer of a member is due."""
        step = self.step(now)
        timer_is_up(step, self._groups, key)
        return step.decide_and_replay()

    def downgraded(self, stored: Downgraded, *, is_lost: bool, now: Moment) -> None:
        """The records by which a group changed to the classic protocol were stored, or lost."""
        group_id = stored.group.group_id
        if is_lost and self._groups.get(group_id) is stored.group:
            self._groups.drop(group_id)
            self._groups.put(stored.former)
            start_timers(self.step(now), stored.former)


def refused(refusal: Refusal) -> ConsumerGroupHeartbeatResponse:
    """The response that says why a heartbeat comes to nothing."""
    return ConsumerGroupHeartbeatResponse(error_code=refusal.error, error_message=refusal.message)
