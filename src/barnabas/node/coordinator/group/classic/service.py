"""The classic protocol: requests in, responses out. Versions are levelled here."""

from collections.abc import Callable

from barnabas.node.coordinator.group.classic.responses import join_error, level_join, level_leave
from barnabas.node.coordinator.group.config import GroupConfig
from barnabas.node.coordinator.group.shards import GroupShards
from barnabas.node.coordinator.group.step import ClientInfo
from barnabas.node.loop.promise import Promise, then
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)

BATCHED_LEAVE_FROM_VERSION = 3


class ClassicGroupService:
    """Classic groups, and the classic members of others, that this node coordinates."""

    def __init__(self, config: GroupConfig, shards: GroupShards, new_id: Callable[[], str]) -> None:
        self._config = config
        self._shards = shards
        self._new_id = new_id

    def join(
        self, request: JoinGroupRequest, client: ClientInfo
    ) -> JoinGroupResponse | Promise[JoinGroupResponse]:
        """Join a group; waits for the generation that the member will be part of."""
        session_ms = request.session_timeout_ms
        limits = self._config.min_session_timeout_ms, self._config.max_session_timeout_ms
        if not limits[0] <= session_ms <= limits[1] and request.group_id:
            error = ErrorCode.INVALID_SESSION_TIMEOUT
            return level_join(join_error(error, request.member_id), client.api_version)
        id_suffix, sender = self._new_id(), client.sender
        response = self._shards.run_for_group(
            request.group_id,
            lambda shard, waiter, now: shard.join_group(request, sender, id_suffix, waiter, now),
            lambda error: join_error(error, request.member_id),
        )
        return then(response, lambda value: level_join(value, client.api_version))

    def sync(
        self, request: SyncGroupRequest, client: ClientInfo
    ) -> SyncGroupResponse | Promise[SyncGroupResponse]:
        """Bring (as leader) or ask for the assignment of a generation."""

        def on_error(error: ErrorCode) -> SyncGroupResponse:
            # A coordinator that loads has forgotten the rebalance: join again (as in Kafka).
            if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                error = ErrorCode.REBALANCE_IN_PROGRESS
            return SyncGroupResponse(error_code=error)

        return self._shards.run_for_group(
            request.group_id,
            lambda shard, waiter, now: shard.sync_group(request, waiter, now),
            on_error,
        )

    def heartbeat(
        self, request: HeartbeatRequest, client: ClientInfo
    ) -> HeartbeatResponse | Promise[HeartbeatResponse]:
        """Keep a member's session alive."""

        def on_error(error: ErrorCode) -> HeartbeatResponse:
            # While the group is loaded nobody's session counts, so all is well (as in Kafka).
            if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                error = ErrorCode.NONE
            return HeartbeatResponse(error_code=error)

        return self._shards.run_for_group(
            request.group_id, lambda shard, _, now: shard.heartbeat(request, now), on_error
        )

    def leave(
        self, request: LeaveGroupRequest, client: ClientInfo
    ) -> LeaveGroupResponse | Promise[LeaveGroupResponse]:
        """Take members out of a group."""
        is_batched = client.api_version >= BATCHED_LEAVE_FROM_VERSION
        leaving = request.members if is_batched else [MemberIdentity(member_id=request.member_id)]
        response = self._shards.run_for_group(
            request.group_id,
            lambda shard, _, now: shard.leave_group(request.group_id, leaving, now),
            lambda error: LeaveGroupResponse(error_code=error),
        )
        return response if is_batched else then(response, level_leave)

    def describe(
        self, request: DescribeGroupsRequest, client: ClientInfo
    ) -> DescribeGroupsResponse | Promise[DescribeGroupsResponse]:
        """State and members of classic groups."""
        groups = self._shards.run_for_each(
            request.groups,
            lambda shard, group_id: shard.classics.describe(group_id, client.api_version),
            lambda group_id, error: DescribedGroup(group_id=group_id, error_code=error),
            allows_empty_id=True,
        )
        return then(groups, lambda found: DescribeGroupsResponse(groups=found))
