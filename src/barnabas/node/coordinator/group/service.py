"""The group coordinator's door: requests of the protocol in, responses out.

Each method returns the response, or a promise of it where it must wait (for a commit, or for the
other members of a group). `GroupCoordinator` serves what all kinds of groups share: offsets,
ListGroups and DeleteGroups. The other services each serve the protocol of one kind.
"""

import random
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from barnabas.base.clock import Clock
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.coordinator.decision import Transactional
from barnabas.node.coordinator.group.classic.responses import join_error, level_join, level_leave
from barnabas.node.coordinator.group.config import GroupConfig
from barnabas.node.coordinator.group.consumer import heartbeat as consumer_heartbeat
from barnabas.node.coordinator.group.consumer import requests as consumer_requests
from barnabas.node.coordinator.group.group_type import GroupType
from barnabas.node.coordinator.group.modern.timing import heartbeat_interval_ms
from barnabas.node.coordinator.group.offset_requests import (
    commit_error,
    fetch_error,
    txn_commit_error,
)
from barnabas.node.coordinator.group.shards import GroupShards
from barnabas.node.coordinator.group.step import ClientInfo, Refusal
from barnabas.node.coordinator.group.streams import requests as streams_requests
from barnabas.node.coordinator.group.streams.heartbeat import Heard
from barnabas.node.coordinator.group.view import GroupMetadata
from barnabas.node.coordinator.partition_writer import PartitionWriter
from barnabas.node.log.producers.verification import Verification
from barnabas.node.loop.promise import Promise, then
from barnabas.node.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import consumer_groups, groups, streams_groups
from barnabas.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)
from barnabas.protocol.messages.streams_groups import StreamsGroupHeartbeatRequest
from barnabas.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WritableTxnMarker,
)
from barnabas.protocol.records.control import EndTxn
from barnabas.protocol.well_known import CONSUMER_OFFSETS


class GroupCoordinator(GroupShards):
    """The groups whose partitions of `__consumer_offsets` this node leads.

    `ShareGroupService` (`node/coordinator/share`) serves share groups by its steps.
    """

    def __init__(
        self,
        node_config: NodeConfig,
        clock: Clock,
        source: random.Random,
        writer: PartitionWriter,
    ) -> None:
        """`source` makes member ids; give it a seed and they repeat."""
        config = self.config = GroupConfig.from_node(node_config)
        self._random = source
        self._metadata = GroupMetadata()
        super().__init__(config, self._metadata, clock, writer)
        self.classics = ClassicGroupService(config, self, self._new_id)
        self.consumers = ConsumerGroupService(config, self, self._new_id)
        self.streams = StreamsGroupService(config, self._metadata, self)

    def image_changed(self, image: MetadataImage, *, has_new_topics: bool) -> None:
        """Newer metadata is there; groups meet it with their members' next heartbeats."""
        self._metadata.update(image, has_new_topics=has_new_topics)

    # Offsets

    def offset_commit(
        self, request: OffsetCommitRequest, client: ClientInfo
    ) -> OffsetCommitResponse | Promise[OffsetCommitResponse]:
        """Store offsets. Topics carry their name, and their id where it is known."""

        def on_error(error: ErrorCode) -> OffsetCommitResponse:
            return commit_error(request, error)

        response: Any = self.run(
            request.group_id,
            lambda shard, _, now: shard.commit_offsets(request, client.api_version, now),
            on_error,
        )
        return then(
            response, lambda value: on_error(value) if isinstance(value, ErrorCode) else value
        )

    def txn_offset_commit(
        self, request: TxnOffsetCommitRequest, verification: Verification | None
    ) -> TxnOffsetCommitResponse | Promise[TxnOffsetCommitResponse]:
        """Store offsets that count when the transaction is committed."""

        def on_error(error: ErrorCode) -> TxnOffsetCommitResponse:
            return txn_commit_error(request, error)

        response: Any = self.run_for_group(
            request.group_id,
            lambda shard, _, now: shard.commit_transactional_offsets(request, verification, now),
            on_error,
        )
        return then(
            response, lambda value: on_error(value) if isinstance(value, ErrorCode) else value
        )

    def end_transaction(
        self, partition: int, marker: WritableTxnMarker
    ) -> ErrorCode | Promise[ErrorCode]:
        """Write a marker, by which the offsets of a transaction come to count, or are dropped."""
        if self.is_closed:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return self.runtime.end_transaction(
            partition,
            EndTxn(marker.transaction_result, marker.coordinator_epoch),
            Transactional(marker.producer_id, marker.producer_epoch),
            marker.transaction_version,
        )

    def offset_fetch(
        self, request: OffsetFetchRequestGroup, *, require_stable: bool
    ) -> OffsetFetchResponseGroup | Promise[OffsetFetchResponseGroup]:
        """Offsets of one group; all of them where the request names no topics (None)."""
        return self.run(
            request.group_id,
            lambda shard, _waiter, _now: shard.fetch_offsets(request, require_stable),
            lambda error: OffsetFetchResponseGroup(
                group_id=request.group_id, error_code=fetch_error(error)
            ),
        )

    def offset_delete(
        self, request: OffsetDeleteRequest
    ) -> OffsetDeleteResponse | Promise[OffsetDeleteResponse]:
        """Forget offsets of a group."""
        return self.run_for_group(
            request.group_id,
            lambda shard, _waiter, _now: shard.delete_offsets(request),
            lambda error: OffsetDeleteResponse(error_code=error),
        )

    def on_topics_deleted(self, names: Iterable[str]) -> None:
        """Forget the offsets of topics that are gone, in every shard of this node."""
        topics = frozenset(names)
        if CONSUMER_OFFSETS in topics:
            for partition in self.runtime.partitions():
                self.unload(partition)
        self.remove_everywhere(
            "offsets of deleted topics", lambda shard, _waiter, _now: shard.topics_deleted(topics)
        )

    def expire_offsets(self) -> None:
        """Forget what has outlived its retention, in every shard of this node.

        To be called each `offsets.retention.check.interval.ms`.
        """
        self.remove_everywhere("expired offsets", lambda shard, _, now: shard.expire_offsets(now))

    # Administration

    def list_groups(
        self, request: ListGroupsRequest
    ) -> ListGroupsResponse | Promise[ListGroupsResponse]:
        """The groups of this node; an error while one of its partitions loads."""

        def response(listed: ErrorCode | list[Any]) -> ListGroupsResponse:
            if isinstance(listed, ErrorCode):
                return ListGroupsResponse(error_code=listed)
            return ListGroupsResponse(groups=listed)

        listed: Any = self.collect(lambda shard, _waiter, _now: shard.list_groups(request))
        return then(listed, response)

    def delete_groups(
        self, request: DeleteGroupsRequest
    ) -> DeleteGroupsResponse | Promise[DeleteGroupsResponse]:
        """Delete groups that have no members, with their offsets."""
        outcomes = self.run_by_partition(
            request.groups_names, lambda shard, ids, _now: shard.delete_groups(ids)
        )
        return then(
            outcomes,
            lambda found: DeleteGroupsResponse(
                results=[
                    DeletableGroupResult(group_id=group_id, error_code=error)
                    for group_id, error in found.items()
                ]
            ),
        )

    def _new_id(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))


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
        described = self._shards.describe(
            request.groups,
            lambda shard, group_id: shard.classics.describe(group_id, client.api_version),
            groups.DescribedGroup,
            allows_empty_id=True,
        )
        return then(described, lambda found: DescribeGroupsResponse(groups=found))


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
        refusal = consumer_heartbeat.check_request(
            request, client.api_version, self._config.consumer_assignors
        )
        if refusal is not None:
            return consumer_requests.refused(refusal)
        new_member_id = self._new_id() if not request.member_id else ""
        sender = client.sender
        return self._shards.run(
            request.group_id,
            lambda shard, _, now: shard.consumers.heartbeat(request, sender, new_member_id, now),
            lambda error: consumer_requests.refused(Refusal(error, None)),
        )

    def describe(
        self, group_ids: Iterable[str]
    ) -> list[consumer_groups.DescribedGroup] | Promise[list[consumer_groups.DescribedGroup]]:
        """State, members and assignments of consumer groups."""
        return self._shards.describe(
            group_ids,
            lambda shard, group_id: shard.consumers.describe(group_id),
            consumer_groups.DescribedGroup,
        )


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
        refusal = streams_requests.check_request(request)
        if refusal is not None:
            return streams_requests.refused(refusal)
        sender = client.sender
        return self._shards.run(
            request.group_id,
            lambda shard, _, now: shard.streams.heartbeat(request, sender, now),
            lambda error: streams_requests.refused(Refusal(error, None)),
        )

    def describe(
        self, group_ids: Iterable[str]
    ) -> list[streams_groups.DescribedGroup] | Promise[list[streams_groups.DescribedGroup]]:
        """State, topology, members and assignments of streams groups."""
        return self._shards.describe(
            group_ids,
            lambda shard, group_id: shard.streams.describe(group_id),
            streams_groups.DescribedGroup,
        )

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """The interval between heartbeats of the group's members."""
        return heartbeat_interval_ms(self._config, self._metadata, GroupType.STREAMS, group_id)
