"""A coordinator: one shard for each partition of an internal topic that this node leads.

There is one class each for groups, transactions and the states of share-partitions, which adds the
requests of its protocol. A key (a group id, a transactional id) belongs to one partition, whose
leader coordinates it.
"""

import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from barnabas.base.clock import Clock
from barnabas.node.coordinator.decision import Decision, Moment, Shard, Waiter
from barnabas.node.coordinator.partition_writer import PartitionWriter
from barnabas.node.coordinator.record_codec import RecordTypes
from barnabas.node.coordinator.runtime import CoordinatorRuntime, partition_of
from barnabas.node.loop.promise import Promise, gather
from barnabas.protocol.errors import ErrorCode

S = TypeVar("S", bound=Shard)
R = TypeVar("R")

telemetry = logging.getLogger(__name__)


class Coordinator(Generic[S]):
    """The shards of this node. A step returns its response, or a promise where it must wait."""

    def __init__(
        self,
        clock: Clock,
        writer: PartitionWriter,
        new_shard: Callable[[], S],
        record_types: RecordTypes,
        *,
        partition_count: int,
        write_timeout_ms: int,
    ) -> None:
        self.partition_count = partition_count
        """Partitions of the internal topic; to be set where the topic has another number."""
        self.is_closed = False
        self.runtime: CoordinatorRuntime[S] = CoordinatorRuntime(
            clock, writer, new_shard, record_types, write_timeout_ms=write_timeout_ms
        )

    def partition_for(self, key: str) -> int:
        """The partition of the internal topic whose leader coordinates the key."""
        return partition_of(key, self.partition_count)

    def load(self, partition: int, leader_epoch: int) -> None:
        """This node leads the partition since `leader_epoch`: serve its keys."""
        if not self.is_closed:
            self.runtime.load(partition, leader_epoch)

    def unload(self, partition: int, leader_epoch: int | None = None) -> None:
        """Another node leads the partition (or none): its keys are found elsewhere."""
        self.runtime.unload(partition, leader_epoch)

    async def close(self) -> None:
        """Answer all that waits and serve nobody any more."""
        self.is_closed = True
        self.runtime.close()

    def run(
        self,
        key: str,
        step: Callable[[S, Waiter, Moment], Decision],
        on_error: Callable[[ErrorCode], R],
    ) -> R | Promise[R]:
        """A step of the shard to which the key belongs; the empty key is allowed."""
        if self.is_closed:
            return on_error(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return self.runtime.run(self.partition_for(key), step, on_error)

    def collect(
        self, step: Callable[[S, Waiter, Moment], Decision]
    ) -> ErrorCode | list[Any] | Promise[ErrorCode | list[Any]]:
        """What a step of every shard lists, in one list; an error while one of them loads."""
        if self.is_closed:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        parts = [
            self.runtime.run(partition, step, lambda error: error)
            for partition in self.runtime.partitions()
        ]

        def combine(results: list[Any]) -> ErrorCode | list[Any]:
            listed: list[Any] = []
            for result in results:
                if isinstance(result, ErrorCode):
                    if result is not ErrorCode.NOT_COORDINATOR:
                        return result
                else:
                    listed += result
            return listed

        return gather(parts, combine)

    def remove_everywhere(self, what: str, step: Callable[[S, Waiter, Moment], Decision]) -> None:
        """A step that nobody waits for; where a shard cannot take it now, that is only logged."""

        def failed(error: ErrorCode) -> int:
            telemetry.warning("cannot remove %s: %s", what, error.name)
            return 0

        for partition in self.runtime.partitions():
            self.runtime.run(partition, step, failed)
