"""The shards of the groups that a node coordinates, and how a step is run in one of them."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from barnabas.base.clock import Clock
from barnabas.node.coordinator.coordinator import Coordinator
from barnabas.node.coordinator.decision import Decision, Moment, Waiter
from barnabas.node.coordinator.group.config import GroupConfig
from barnabas.node.coordinator.group.records import RECORD_TYPES
from barnabas.node.coordinator.group.shard import GroupShard
from barnabas.node.coordinator.group.view import GroupMetadata
from barnabas.node.coordinator.partition_writer import PartitionWriter
from barnabas.node.loop.promise import Promise, gather
from barnabas.protocol.errors import ErrorCode

R = TypeVar("R")
ShardStep = Callable[[GroupShard, Waiter, Moment], Decision]


class GroupShards(Coordinator[GroupShard]):
    """One shard for each partition of `__consumer_offsets` that this node leads."""

    def __init__(
        self, config: GroupConfig, metadata: GroupMetadata, clock: Clock, writer: PartitionWriter
    ) -> None:
        super().__init__(
            clock,
            writer,
            lambda: GroupShard(config, metadata),
            RECORD_TYPES,
            partition_count=config.offsets_partitions,
            write_timeout_ms=config.write_timeout_ms,
        )

    def run_for_group(
        self, group_id: str, step: ShardStep, on_error: Callable[[ErrorCode], R]
    ) -> R | Promise[R]:
        """As `run`; the empty group id, with which one may only store offsets, is refused."""
        if not group_id:
            return on_error(ErrorCode.INVALID_GROUP_ID)
        return self.run(group_id, step, on_error)

    def describe(
        self,
        group_ids: Iterable[str],
        step: Callable[[GroupShard, str], Decision],
        described_group: Callable[..., R],
        *,
        allows_empty_id: bool = False,
    ) -> list[R] | Promise[list[R]]:
        """A step that describes each group; their descriptions in the order of the groups."""

        def run(group_id: str) -> Any:
            run_one = self.run if allows_empty_id else self.run_for_group
            return run_one(
                group_id,
                lambda shard, _waiter, _now: step(shard, group_id),
                lambda error: described_group(group_id=group_id, error_code=error),
            )

        return gather([run(group_id) for group_id in group_ids], list)

    def run_by_partition(
        self,
        group_ids: Iterable[str],
        step: Callable[[GroupShard, list[str], Moment], Decision],
    ) -> dict[str, Any] | Promise[dict[str, Any]]:
        """A step of each shard that some of the groups belong to; the outcomes by group id.

        A shard that cannot take it gives its error code for each of its groups.
        """
        by_partition: dict[int, list[str]] = {}
        for group_id in dict.fromkeys(group_ids):
            by_partition.setdefault(self.partition_for(group_id), []).append(group_id)

        def run(ids: list[str]) -> Any:
            return self.run(
                ids[0],
                lambda shard, _, now: step(shard, ids, now),
                lambda error: dict.fromkeys(ids, error),
            )

        return gather(
            [run(ids) for ids in by_partition.values()],
            lambda parts: {key: value for part in parts for key, value in part.items()},
        )
