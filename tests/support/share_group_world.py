"""Share groups on a clock that stands still.

`ShareGroupWorld` sends ShareGroupHeartbeats as clients would. What the share coordinators are to
initialise is kept in `asked` until the test says that they have, or have not.
"""

from typing import Any

from barnabas.node.coordinator.group.share.group import ShareGroup
from barnabas.node.coordinator.group.share.heartbeat import Heard, Initialization, check_request
from barnabas.node.coordinator.group.step import Client, Refusal
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_groups import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from support.consumer_world import ConsumerWorld
from support.group_world import Call


class ShareGroupWorld(ConsumerWorld):
    """One coordinator, its clock and log, the topics that there are, and what was asked for."""

    def __init__(self, seed: int = 1, **settings: object) -> None:
        settings.setdefault("group_share_assignment_interval_ms", 0)
        super().__init__(seed, **settings)
        self.asked: list[Initialization] = []

    def share_group(self, group_id: str = "g") -> ShareGroup:
        """A share group."""
        group = self.shard.groups.get(group_id)
        assert isinstance(group, ShareGroup)
        return group

    def share_beat(self, **fields: Any) -> ShareGroupHeartbeatResponse:
        """Send a ShareGroupHeartbeat."""
        fields.setdefault("group_id", "g")
        request = ShareGroupHeartbeatRequest(**fields)
        refusal = check_request(request)
        outcome: Any = refusal or self.run_share(
            request.group_id,
            lambda shares, now: shares.heartbeat(request, Client("c", "/10.0.0.1", 1), now),
        )
        if isinstance(outcome, Refusal):
            return ShareGroupHeartbeatResponse(
                error_code=outcome.error, error_message=outcome.message
            )
        assert isinstance(outcome, Heard), outcome
        if outcome.initialization is not None:
            self.asked.append(outcome.initialization)
        return outcome.response

    def run_share(self, group_id: str, step: Any) -> Any:
        """The response of a step of the share groups."""
        answer: Call[Any] = Call(
            self.coordinator.run(
                group_id, lambda shard, _, now: step(shard.shares, now), lambda error: error
            )
        )
        return answer.response

    def initialized(self) -> None:
        """The share coordinators have initialised all that they were asked for."""
        asked, self.asked = self.asked, []
        for entry in asked:
            error = self.run_share(
                entry.group_id,
                lambda shares, now, entry=entry: shares.initialized(  # type: ignore[misc]  # mypy cannot infer a default
                    entry.group_id, entry.partitions, now
                ),
            )
            assert error is ErrorCode.NONE

    def given_up(self) -> None:
        """The share coordinators could not."""
        asked, self.asked = self.asked, []
        for entry in asked:
            self.run_share(
                entry.group_id,
                lambda shares, now, entry=entry: shares.given_up(  # type: ignore[misc]  # mypy cannot infer a default
                    entry.group_id, entry.partitions, now
                ),
            )

    def join_share(self, member_id: str, *topics: str) -> ShareGroupHeartbeatResponse:
        """Send the first heartbeat of a member."""
        return self.share_beat(
            member_id=member_id, member_epoch=0, subscribed_topic_names=list(topics)
        )
