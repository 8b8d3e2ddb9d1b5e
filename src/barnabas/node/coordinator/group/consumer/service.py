"""The consumer protocol: requests in, responses out."""

from collections.abc import Callable, Iterable

from barnabas.node.coordinator.group.config import GroupConfig
from barnabas.node.coordinator.group.consumer.heartbeat import check_request
from barnabas.node.coordinator.group.consumer.requests import refused
from barnabas.node.coordinator.group.shards import GroupShards
from barnabas.node.coordinator.group.step import ClientInfo, Refusal
from barnabas.node.loop.promise import Promise
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedGroup,
)


class ConsumerGroupService:
    """The consumer groups that this node coordinates."""

    def __init__(self, config: GroupConfig, shards: GroupShards, new_id: Callable[[], str]) -> None:
        self._config = config
        self._shards = shards
        self._new_id = new_id

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: ClientInfo
    ) -> ConsumerGroupHeartbeatResponse | Promise[ConsumerGroupHeartbeatResponse]:
        """Join a consumer group, stay in it, follow its assignment, leave it."""
        refusal = check_request(request, client.api_version, self._config.consumer_assignors)
        if refusal is not None:
            return refused(refusal)
        new_member_id = self._new_id() if not request.member_id else ""
        sender = client.sender
        return self._shards.run(
            request.group_id,
            lambda shard, _, now: shard.consumers.heartbeat(request, sender, new_member_id, now),
            lambda error: refused(Refusal(error, None)),
        )

    def describe(
        self, group_ids: Iterable[str]
    ) -> list[DescribedGroup] | Promise[list[DescribedGroup]]:
        """State, members and assignments of consumer groups."""
        return self._shards.run_for_each(
            group_ids,
            lambda shard, group_id: shard.consumers.describe(group_id),
            lambda group_id, error: DescribedGroup(group_id=group_id, error_code=error),
        )
