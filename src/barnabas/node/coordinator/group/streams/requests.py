"""Requests and timers of the streams groups of one shard.

Each method makes a step, lets the modules beside this one decide, and returns a `Decision` whose
records change the group as they are replayed. A refused request writes nothing.
"""

from typing import ClassVar

from barnabas.node.coordinator.decision import Decision, Moment
from barnabas.node.coordinator.group.modern.requests import ModernGroupRequests
from barnabas.node.coordinator.group.step import Client, Refusal, Step, TimerKind
from barnabas.node.coordinator.group.streams.describe import described
from barnabas.node.coordinator.group.streams.group import StreamsGroup
from barnabas.node.coordinator.group.streams.heartbeat import Heard, heartbeat
from barnabas.node.coordinator.group.streams.member import StreamsMember
from barnabas.node.coordinator.group.streams.target import assign_delayed, fence
from barnabas.protocol.messages.streams_groups import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)


class StreamsGroupRequests(ModernGroupRequests[StreamsGroup, StreamsMember]):
    """The door to the streams groups of a shard."""

    __slots__ = ()

    makes_way: ClassVar[bool] = True
    reasons: ClassVar[dict[TimerKind, str]] = {
        **ModernGroupRequests.reasons,
        TimerKind.REVOCATION: "it did not give its tasks up in time",
    }

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, client: Client, now: Moment
    ) -> Decision:
        """StreamsGroupHeartbeat; the response is `Heard`."""
        step = self.step(now)
        heard = heartbeat(step, self._groups, request, client)
        if isinstance(heard, Refusal):
            return Decision(response=refused(heard))
        return step.decide_and_replay(heard)

    def describe(self, group_id: str) -> Decision:
        """StreamsGroupDescribe of one group."""
        return Decision(response=described(group_id, self._groups.find(StreamsGroup, group_id)))

    def _fence(self, step: Step, group: StreamsGroup, member: StreamsMember) -> None:
        fence(step, group, member)

    def _delay_is_over(self, step: Step, group: StreamsGroup) -> None:
        assign_delayed(step, group)


def refused(refusal: Refusal) -> Heard:
    """The response to a heartbeat that is refused."""
    return Heard(
        StreamsGroupHeartbeatResponse(
            error_code=refusal.error, error_message=refusal.message, status=[]
        )
    )
