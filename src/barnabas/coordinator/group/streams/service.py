"""The door to streams groups: requests of the protocol in, responses out."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from barnabas.coordinator.decision import Decision, Moment, Waiter
from barnabas.coordinator.group.config import GroupConfig
from barnabas.coordinator.group.group_type import GroupType
from barnabas.coordinator.group.modern.timing import heartbeat_interval_ms
from barnabas.coordinator.group.refusal import Refusal
from barnabas.coordinator.group.shard import GroupShard
from barnabas.coordinator.group.step import Client
from barnabas.coordinator.group.streams.checks import check_request
from barnabas.coordinator.group.streams.heartbeat import Heard
from barnabas.coordinator.group.streams.requests import refused
from barnabas.coordinator.group.view import GroupMetadata
from barnabas.coordinator.promise import Promise, gather
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.streams_group_describe import DescribedGroup
from barnabas.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest


class Run(Protocol):
    """Runs a step of the shard to which a group belongs."""

    def __call__(
        self,
        group_id: str,
        step: Callable[[GroupShard, Waiter, Moment], Decision],
        on_error: Callable[[ErrorCode], Any],
    ) -> Any:
        """The response or the promise of it."""


class StreamsService:
    """The streams groups whose partitions of `__consumer_offsets` this node leads."""

    def __init__(self, config: GroupConfig, metadata: GroupMetadata, run: Run) -> None:
        self._config = config
        self._metadata = metadata
        self._run = run

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, client: Client
    ) -> Heard | Promise[Heard]:
        """Join a streams group, stay in it, follow its assignment, leave it."""
        refusal = check_request(request)
        if refusal is not None:
            return refused(refusal)
        response: Heard | Promise[Heard] = self._run(
            request.group_id,
            lambda shard, _, now: shard.streams.heartbeat(request, client, now),
            lambda error: refused(Refusal(error, None)),
        )
        return response

    def describe(
        self, group_ids: Iterable[str]
    ) -> list[DescribedGroup] | Promise[list[DescribedGroup]]:
        """State, topology, members and assignments of streams groups."""
        parts = [self._describe(group_id) for group_id in group_ids]
        return gather(parts, lambda results: [group for result in results for group in result])

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """How often members of the group shall be heard."""
        return heartbeat_interval_ms(self._config, self._metadata, GroupType.STREAMS, group_id)

    def _describe(self, group_id: str) -> Any:
        def refuse(error: ErrorCode) -> list[DescribedGroup]:
            return [DescribedGroup(group_id=group_id, error_code=error)]

        if not group_id:
            return refuse(ErrorCode.INVALID_GROUP_ID)
        return self._run(group_id, lambda shard, *_: shard.streams.describe([group_id]), refuse)
