"""The streams protocol: requests in, responses out."""

from collections.abc import Iterable

from barnabas.node.coordinator.group.config import GroupConfig
from barnabas.node.coordinator.group.group_type import GroupType
from barnabas.node.coordinator.group.modern.timing import heartbeat_interval_ms
from barnabas.node.coordinator.group.shards import GroupShards
from barnabas.node.coordinator.group.step import ClientInfo, Refusal
from barnabas.node.coordinator.group.streams.checks import check_request
from barnabas.node.coordinator.group.streams.heartbeat import Heard
from barnabas.node.coordinator.group.streams.requests import refused
from barnabas.node.coordinator.group.view import GroupMetadata
from barnabas.node.loop.promise import Promise
from barnabas.protocol.messages.streams_groups import DescribedGroup, StreamsGroupHeartbeatRequest


class StreamsGroupService:
    """The streams groups that this node coordinates."""

    def __init__(self, config: GroupConfig, metadata: GroupMetadata, shards: GroupShards) -> None:
        self._config = config
        self._metadata = metadata
        self._shards = shards

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, client: ClientInfo
    ) -> Heard | Promise[Heard]:
        """Join a streams group, stay in it, follow its assignment, leave it."""
        refusal = check_request(request)
        if refusal is not None:
            return refused(refusal)
        sender = client.sender
        return self._shards.run(
            request.group_id,
            lambda shard, _, now: shard.streams.heartbeat(request, sender, now),
            lambda error: refused(Refusal(error, None)),
        )

    def describe(
        self, group_ids: Iterable[str]
    ) -> list[DescribedGroup] | Promise[list[DescribedGroup]]:
        """State, topology, members and assignments of streams groups."""
        return self._shards.run_for_each(
            group_ids,
            lambda shard, group_id: shard.streams.describe(group_id),
            lambda group_id, error: DescribedGroup(group_id=group_id, error_code=error),
        )

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """The interval between heartbeats of the group's members."""
        return heartbeat_interval_ms(self._config, self._metadata, GroupType.STREAMS, group_id)
