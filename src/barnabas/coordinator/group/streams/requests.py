"""Requests and timers of the streams groups of one shard.

Each method makes a step, lets the modules beside this one decide, and returns a `Decision` whose
records change the group as they are replayed. A refused request writes nothing.
"""

from collections.abc import Iterable

from barnabas.coordinator.decision import Decision, Moment
from barnabas.coordinator.group.config import GroupConfig
from barnabas.coordinator.group.refusal import Refusal
from barnabas.coordinator.group.registry import GroupRegistry
from barnabas.coordinator.group.step import Client, GroupTimers, Step, TimerKey
from barnabas.coordinator.group.streams.describe import described
from barnabas.coordinator.group.streams.fencing import start_timers, timer_is_up
from barnabas.coordinator.group.streams.group import StreamsGroup
from barnabas.coordinator.group.streams.heartbeat import Heard, heartbeat
from barnabas.coordinator.group.view import GroupMetadata
from barnabas.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)


class StreamsGroups:
    """The door to the streams groups of a shard."""

    __slots__ = ("_config", "_groups", "_metadata", "_timers")

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

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, client: Client, now: Moment
    ) -> Decision:
        """StreamsGroupHeartbeat; the response is `Heard`."""
        step = self._step(now)
        heard = heartbeat(step, self._groups, request, client)
        if isinstance(heard, Refusal):
            return Decision(response=refused(heard))
        return step.decide_and_replay(heard)

    def describe(self, group_ids: Iterable[str]) -> Decision:
        """StreamsGroupDescribe."""
        return Decision(
            response=[described(group_id, self._groups.get(group_id)) for group_id in group_ids]
        )

    def loaded(self, group: StreamsGroup, step: Step) -> None:
        """The group was read from the log."""
        start_timers(step, group)

    def timer_is_up(self, key: TimerKey, now: Moment) -> Decision:
        """A timer of a group or member is due."""
        step = self._step(now)
        timer_is_up(step, self._groups, key)
        return step.decide_and_replay()

    def _step(self, now: Moment) -> Step:
        return Step(now, self._config, self._timers, self._metadata)


def refused(refusal: Refusal) -> Heard:
    """The response that says why a heartbeat comes to nothing."""
    return Heard(
        StreamsGroupHeartbeatResponse(
            error_code=refusal.error, error_message=refusal.message, status=[]
        )
    )
