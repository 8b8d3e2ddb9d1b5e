"""The group coordinator's door: requests of the protocol in, responses out.

Each method returns the response, or a promise of it where it must wait (for a commit, or for the
other members of a group). Each kind of group has its own service;
offsets, ListGroups and DeleteGroups, which all kinds share, are here.
"""

import random
import uuid
from collections.abc import Iterable
from typing import Any

from barnabas.base.clock import Clock
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.coordinator.decision import Transactional
from barnabas.node.coordinator.group.classic.service import ClassicGroupService
from barnabas.node.coordinator.group.config import GroupConfig
from barnabas.node.coordinator.group.consumer.service import ConsumerGroupService
from barnabas.node.coordinator.group.offset_responses import (
    commit_error,
    fetch_error,
    txn_commit_error,
)
from barnabas.node.coordinator.group.shard import GroupShard
from barnabas.node.coordinator.group.shards import GroupShards
from barnabas.node.coordinator.group.share.service import ShareMembershipService
from barnabas.node.coordinator.group.step import ClientInfo
from barnabas.node.coordinator.group.streams.service import StreamsGroupService
from barnabas.node.coordinator.group.view import GroupMetadata
from barnabas.node.coordinator.partition_writer import PartitionWriter
from barnabas.node.coordinator.runtime import CoordinatorRuntime
from barnabas.node.log.producers.verification import Verification
from barnabas.node.loop.promise import Promise, gather, then
from barnabas.node.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)
from barnabas.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WritableTxnMarker,
)
from barnabas.protocol.records.control import EndTxn
from barnabas.protocol.well_known import CONSUMER_OFFSETS


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
        self._random = source
        self._metadata = GroupMetadata()
        self._shards = shards = GroupShards(config, self._metadata, clock, writer)
        self.classics = ClassicGroupService(config, shards, self._new_id)
        self.consumers = ConsumerGroupService(config, shards, self._new_id)
        self.shares = ShareMembershipService(shards)
        self.streams = StreamsGroupService(config, self._metadata, shards)

    # Where

    @property
    def runtime(self) -> CoordinatorRuntime[GroupShard]:
        """The runtime of the coordinator's shards."""
        return self._shards.runtime

    @property
    def partition_count(self) -> int:
        """Partitions of `__consumer_offsets`; to be set where the topic has another number."""
        return self._shards.partition_count

    @partition_count.setter
    def partition_count(self, count: int) -> None:
        self._shards.partition_count = count

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` whose leader coordinates the group."""
        return self._shards.partition_for(group_id)

    def load(self, partition: int, leader_epoch: int) -> None:
        """This node leads the partition since `leader_epoch`: serve its groups."""
        if not self._shards.is_closed:
            self.runtime.load(partition, leader_epoch)

    def unload(self, partition: int, leader_epoch: int | None = None) -> None:
        """Another node leads the partition (or none): its groups are found elsewhere."""
        self.runtime.unload(partition, leader_epoch)

    async def close(self) -> None:
        """Answer all that waits and serve nobody any more."""
        self._shards.close()

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

        response: Any = self._shards.run(
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

        response: Any = self._shards.run_for_group(
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
        if self._shards.is_closed:
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
        return self._shards.run(
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
        return self._shards.run_for_group(
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
        self._shards.run_everywhere(
            "offsets of deleted topics", lambda shard, _waiter, _now: shard.topics_deleted(topics)
        )

    def expire_offsets(self) -> None:
        """Forget what has outlived its retention, in every shard of this node.

        To be called each `offsets.retention.check.interval.ms`.
        """
        self._shards.run_everywhere(
            "expired offsets", lambda shard, _, now: shard.expire_offsets(now)
        )

    # Administration

    def list_groups(
        self, request: ListGroupsRequest
    ) -> ListGroupsResponse | Promise[ListGroupsResponse]:
        """The groups of this node; an error while one of its partitions loads."""
        if self._shards.is_closed:
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

    def delete_groups(
        self, request: DeleteGroupsRequest
    ) -> DeleteGroupsResponse | Promise[DeleteGroupsResponse]:
        """Delete groups that have no members, with their offsets."""
        outcomes = self._shards.run_by_partition(
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
