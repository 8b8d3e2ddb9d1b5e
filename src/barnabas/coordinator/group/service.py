"""The group coordinator's door: requests of the protocol in, responses out.

Each method returns the response, or a promise of it where it must wait (for a commit, or for the
other members of a group). Versions are levelled here: the shard sees one form of each request.
"""

import logging
import random
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from barnabas.base.clock import Clock
from barnabas.base.config.node import NodeConfig
from barnabas.coordinator.decision import Decision, Moment, Transactional, Waiter
from barnabas.coordinator.group.classic.responses import join_error, level_join, level_leave
from barnabas.coordinator.group.config import GroupConfig
from barnabas.coordinator.group.consumer.heartbeat import check_request
from barnabas.coordinator.group.consumer.requests import refused
from barnabas.coordinator.group.offset_responses import commit_error, fetch_error, txn_commit_error
from barnabas.coordinator.group.records import RECORD_TYPES
from barnabas.coordinator.group.refusal import Refusal
from barnabas.coordinator.group.shard import GroupShard
from barnabas.coordinator.group.share.door import ShareGroupDoor
from barnabas.coordinator.group.step import Client
from barnabas.coordinator.group.streams.service import StreamsService
from barnabas.coordinator.group.view import GroupMetadata
from barnabas.coordinator.partition_of import partition_of
from barnabas.coordinator.partition_writer import PartitionWriter
from barnabas.coordinator.promise import Promise, gather, then
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.log.producers.verification import Verification
from barnabas.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import DescribedGroup as ConsumerDescribed
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from barnabas.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from barnabas.protocol.messages.write_txn_markers import WritableTxnMarker
from barnabas.protocol.records.control import EndTxn

CONSUMER_OFFSETS = "__consumer_offsets"
BATCHED_LEAVE_FROM_VERSION = 3

R = TypeVar("R")

telemetry = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """Who sent a request, and in which version of its API."""

    client_id: str | None
    client_host: str
    principal: str
    api_version: int


class GroupCoordinator:
    """The groups whose partitions of `__consumer_offsets` this node leads."""

    def __init__(
        self,
        node_config: NodeConfig,
        clock: Clock,
        source: random.Random,
        writer: PartitionWriter,
    ) -> None:
        """`source` makes member ids; give it a seed and they repeat."""
        config = self.config = GroupConfig.from_node(node_config)
        self.partition_count = config.offsets_partitions
        """Partitions of `__consumer_offsets`; to be set where the topic has another number."""
        self._random = source
        self._metadata = GroupMetadata()
        self._is_closed = False
        self.runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            clock,
            writer,
            lambda _: GroupShard(config, self._metadata),
            RECORD_TYPES,
            write_timeout_ms=config.write_timeout_ms,
        )
        self.shares = ShareGroupDoor(self._run, self._run_everywhere, self.partition_for)
        self.streams = StreamsService(config, self._metadata, self._run)

    # Where

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` whose leader coordinates the group."""
        return partition_of(group_id, self.partition_count)

    def load(self, partition: int, leader_epoch: int) -> None:
        """This node leads the partition since `leader_epoch`: serve its groups."""
        if not self._is_closed:
            self.runtime.load(partition, leader_epoch)

    def unload(self, partition: int, leader_epoch: int | None = None) -> None:
        """Another node leads the partition (or none): its groups are found elsewhere."""
        self.runtime.unload(partition, leader_epoch)

    async def close(self) -> None:
        """Answer all that waits and serve nobody any more."""
        self._is_closed = True
        self.runtime.close()

    def image_changed(self, image: MetadataImage, *, has_new_topics: bool) -> None:
        """Newer metadata is there; groups meet it with their members' next heartbeats."""
        self._metadata.update(image, has_new_topics=has_new_topics)

    # The consumer protocol

    def consumer_group_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: ClientInfo
    ) -> ConsumerGroupHeartbeatResponse | Promise[ConsumerGroupHeartbeatResponse]:
        """Join a consumer group, stay in it, follow its assignment, leave it."""
        refusal = check_request(request, client.api_version, self.config.consumer_assignors)
        if refusal is not None:
            return refused(refusal)
        new_member_id = self._new_id() if not request.member_id else ""
        sender = Client(client.client_id or "", f"/{client.client_host}", client.api_version)
        return self._run(
            request.group_id,
            lambda shard, _, now: shard.consumers.heartbeat(request, sender, new_member_id, now),
            lambda error: refused(Refusal(error, None)),
        )

    def consumer_group_describe(
        self, group_ids: Iterable[str]
    ) -> list[ConsumerDescribed] | Promise[list[ConsumerDescribed]]:
        """State, members and assignments of consumer groups."""
        parts: list[Any] = [
            self._run_for_group(
                group_id,
                lambda shard, _waiter, _now, group_id=group_id: shard.consumers.describe(  # type: ignore[misc]  # mypy cannot infer a default
                    [group_id]
                ),
                lambda error, group_id=group_id: [  # type: ignore[misc]  # as above
                    ConsumerDescribed(group_id=group_id, error_code=error)
                ],
            )
            for group_id in group_ids
        ]
        return gather(parts, lambda results: [group for result in results for group in result])

    # The classic protocol

    def join_group(
        self, request: JoinGroupRequest, client: ClientInfo
    ) -> JoinGroupResponse | Promise[JoinGroupResponse]:
        """Join a group; waits for the generation that the member will be part of."""
        session_ms = request.session_timeout_ms
        limits = self.config.min_session_timeout_ms, self.config.max_session_timeout_ms
        if not limits[0] <= session_ms <= limits[1] and request.group_id:
            error = ErrorCode.INVALID_SESSION_TIMEOUT
            return level_join(join_error(error, request.member_id), client.api_version)
        id_suffix = self._new_id()
        sender = Client(client.client_id or "", f"/{client.client_host}", client.api_version)
        response = self._run_for_group(
            request.group_id,
            lambda shard, waiter, now: shard.join_group(request, sender, id_suffix, waiter, now),
            lambda error: join_error(error, request.member_id),
        )
        return then(response, lambda value: level_join(value, client.api_version))

    def sync_group(
        self, request: SyncGroupRequest, client: ClientInfo
    ) -> SyncGroupResponse | Promise[SyncGroupResponse]:
        """Bring (as leader) or ask for the assignment of a generation."""

        def on_error(error: ErrorCode) -> SyncGroupResponse:
            # A coordinator that loads has forgotten the rebalance: join again (as in Kafka).
            if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                error = ErrorCode.REBALANCE_IN_PROGRESS
            return SyncGroupResponse(error_code=error)

        return self._run_for_group(
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

        return self._run_for_group(
            request.group_id, lambda shard, _, now: shard.heartbeat(request, now), on_error
        )

    def leave_group(
        self, request: LeaveGroupRequest, client: ClientInfo
    ) -> LeaveGroupResponse | Promise[LeaveGroupResponse]:
        """Take members out of a group."""
        is_batched = client.api_version >= BATCHED_LEAVE_FROM_VERSION
        leaving = request.members if is_batched else [MemberIdentity(member_id=request.member_id)]
        response = self._run_for_group(
            request.group_id,
            lambda shard, _, now: shard.leave_group(request.group_id, leaving, now),
            lambda error: LeaveGroupResponse(error_code=error),
        )
        return response if is_batched else then(response, level_leave)

    # Offsets

    def offset_commit(
        self, request: OffsetCommitRequest, client: ClientInfo
    ) -> OffsetCommitResponse | Promise[OffsetCommitResponse]:
        """Store offsets. Topics carry their name, and their id where it is known."""

        def on_error(error: ErrorCode) -> OffsetCommitResponse:
            return commit_error(request, error)

        response: Any = self._run(
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

        response: Any = self._run_for_group(
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
        if self._is_closed:
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
        return self._run(
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
        return self._run_for_group(
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
        self._run_everywhere(
            "offsets of deleted topics", lambda shard, _waiter, _now: shard.topics_deleted(topics)
        )

    def expire_offsets(self) -> None:
        """Forget what has outlived its retention, in every shard of this node.

        To be called each `offsets.retention.check.interval.ms`.
        """
        self._run_everywhere("expired offsets", lambda shard, _, now: shard.expire_offsets(now))

    # Administration

    def list_groups(
        self, request: ListGroupsRequest
    ) -> ListGroupsResponse | Promise[ListGroupsResponse]:
        """The groups of this node; an error while one of its partitions loads."""
        if self._is_closed:
            return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        parts = [
            self.runtime.run(
                partition,
                lambda shard, _waiter, _now: shard.list_groups(request),
                lambda error: error,
            )
            for partition in self.runtime.partitions()
        ]

        def combine(results: list[Any]) -> ListGroupsResponse:
            response = ListGroupsResponse()
            for result in results:
                if isinstance(result, ErrorCode):
                    if result is not ErrorCode.NOT_COORDINATOR:
                        return ListGroupsResponse(error_code=result)
                else:
                    response.groups += result
            return response

        return gather(parts, combine)

    def describe_groups(
        self, request: DescribeGroupsRequest, client: ClientInfo
    ) -> DescribeGroupsResponse | Promise[DescribeGroupsResponse]:
        """State and members of classic groups."""
        parts = [
            self._run(
                group_id,
                lambda shard, _waiter, _now, group_id=group_id: shard.classics.describe(  # type: ignore[misc]  # mypy cannot infer a default
                    [group_id], client.api_version
                ),
                lambda error, group_id=group_id: [  # type: ignore[misc]  # as above
                    DescribedGroup(group_id=group_id, error_code=error)
                ],
            )
            for group_id in request.groups
        ]
        return gather(
            parts,
            lambda results: DescribeGroupsResponse(
                groups=[group for result in results for group in result]
            ),
        )

    def delete_groups(
        self, request: DeleteGroupsRequest
    ) -> DeleteGroupsResponse | Promise[DeleteGroupsResponse]:
        """Delete groups that have no members, with their offsets."""
        by_partition: dict[int, list[str]] = {}
        for group_id in dict.fromkeys(request.groups_names):
            by_partition.setdefault(self.partition_for(group_id), []).append(group_id)
        parts = [
            self._run(
                group_ids[0],
                lambda shard, _waiter, _now, ids=group_ids: shard.delete_groups(ids),  # type: ignore[misc]  # mypy cannot infer a default
                lambda error, ids=group_ids: dict.fromkeys(ids, error),  # type: ignore[misc]  # as above
            )
            for group_ids in by_partition.values()
        ]
        return gather(
            parts,
            lambda results: DeleteGroupsResponse(
                results=[
                    DeletableGroupResult(group_id=group_id, error_code=error)
                    for outcomes in results
                    for group_id, error in outcomes.items()
                ]
            ),
        )

    # Helpers

    def _new_id(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def _run_everywhere(
        self, what: str, step: Callable[[GroupShard, Waiter, Moment], Decision]
    ) -> None:
        """A step that nobody waits for; a shard that cannot take it now meets it again."""

        def failed(error: ErrorCode) -> int:
            telemetry.warning("%s stay: %s", what, error.name)
            return 0

        for partition in self.runtime.partitions():
            self.runtime.run(partition, step, failed)

    def _run(
        self,
        group_id: str,
        step: Callable[[GroupShard, Waiter, Moment], Decision],
        on_error: Callable[[ErrorCode], R],
    ) -> R | Promise[R]:
        """A step of the shard to which the group belongs; the empty group id is allowed."""
        if self._is_closed:
            return on_error(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return self.runtime.run(self.partition_for(group_id), step, on_error)

    def _run_for_group(
        self,
        group_id: str,
        step: Callable[[GroupShard, Waiter, Moment], Decision],
        on_error: Callable[[ErrorCode], R],
    ) -> R | Promise[R]:
        """As `_run`; the empty group id, with which one may only store offsets, is refused."""
        if not group_id:
            return on_error(ErrorCode.INVALID_GROUP_ID)
        return self._run(group_id, step, on_error)
