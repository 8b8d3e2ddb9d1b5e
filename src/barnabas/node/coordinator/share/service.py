"""The share coordinator's door: what is asked of one share-partition, and housekeeping.

Each method returns the outcome or a promise of it; a `Failure` is an outcome too. Requests of the
protocol, which name many share-partitions, are taken apart in `operations.py`.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar, Union

from barnabas.base.clock import Clock
from barnabas.base.ids import Uuid
from barnabas.node.coordinator.coordinator import Coordinator
from barnabas.node.coordinator.decision import Decision, Moment, Waiter
from barnabas.node.coordinator.partition_writer import CoordinatorWriteError, PartitionWriter
from barnabas.node.coordinator.share.shard import PartitionCount, ShareCoordinatorConfig, ShareShard
from barnabas.node.coordinator.share.state import (
    Done,
    Failure,
    SharePartitionKey,
    ShareState,
    ShareSummary,
    StateBatch,
)
from barnabas.node.loop.promise import Promise, then
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_state import SHARE_RECORDS

R = TypeVar("R")
Outcome = Union[R, Failure, Promise[Union[R, Failure]]]  # noqa: UP007  # mypy takes no generic alias of the other form

telemetry = logging.getLogger(__name__)


class StateTopic(PartitionWriter, Protocol):
    """`__share_group_state`: its records may also be deleted from the start."""

    def delete_before(self, partition: int, offset: int) -> None:
        """Delete what lies before a committed offset. Raises CoordinatorWriteError."""


class ShareCoordinator(Coordinator[ShareShard]):
    """The share-partitions whose partitions of `__share_group_state` this node leads."""

    def __init__(
        self,
        config: ShareCoordinatorConfig,
        clock: Clock,
        topic: StateTopic,
        partition_count_of: PartitionCount,
    ) -> None:
        """`partition_count_of` returns a topic's number of partitions, 0 if the topic does not
        exist."""
        super().__init__(
            clock,
            topic,
            lambda: ShareShard(config, partition_count_of),
            SHARE_RECORDS,
            partition_count=config.state_partitions,
            write_timeout_ms=config.write_timeout_ms,
        )
        self.config = config
        self._topic = topic
        self._pruned: dict[int, int] = {}
        """Before which offset each partition was pruned last."""

    def unload(self, partition: int, leader_epoch: int | None = None) -> None:
        """Another node leads the partition, or none."""
        self._pruned.pop(partition, None)
        super().unload(partition, leader_epoch)

    # One share-partition

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int
    ) -> Outcome[Done]:
        """Initialize or reinitialize the state of a share-partition."""
        outcome: Outcome[Done] = self._run(
            key,
            "initialize",
            lambda shard, now: shard.initialize(key, state_epoch, start_offset, now),
        )
        return outcome

    def read(self, key: SharePartitionKey, leader_epoch: int) -> Outcome[ShareState]:
        """The stored state, for the leader of the topic's partition."""
        outcome: Outcome[ShareState] = self._run(
            key, "read", lambda shard, now: shard.read(key, leader_epoch, now)
        )
        return outcome

    def write(
        self,
        key: SharePartitionKey,
        epochs: tuple[int, int],
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> Outcome[Done]:
        """Keep what has changed. `epochs` are those of the state and of the leader."""
        outcome: Outcome[Done] = self._run(
            key,
            "write",
            lambda shard, now: shard.write(
                key, *epochs, start_offset, delivery_complete_count, batches, now
            ),
        )
        return outcome

    def summary(self, key: SharePartitionKey) -> Outcome[ShareSummary]:
        """The stored state without the batches."""
        outcome: Outcome[ShareSummary] = self._run(
            key, "read the summary of", lambda shard, _: shard.summary(key)
        )
        return outcome

    def delete(self, key: SharePartitionKey) -> Outcome[Done]:
        """Keep nothing any more."""
        outcome: Outcome[Done] = self._run(key, "delete", lambda shard, _: shard.delete(key))
        return outcome

    # Housekeeping

    def on_topics_deleted(self, topic_ids: Iterable[Uuid]) -> None:
        """Forget the share-partitions of topics that are gone, in every shard of this node."""
        gone = frozenset(topic_ids)
        self._run_everywhere(
            "the state of deleted topics stays",
            lambda shard, _waiter, _now: shard.topics_deleted(gone),
        )

    def snapshot_cold(self) -> None:
        """Rewrite old snapshots, so that the log before them can be deleted.

        To be called each `share.coordinator.cold.partition.snapshot.interval.ms`.
        """
        self._run_everywhere(
            "old snapshots stay", lambda shard, _waiter, now: shard.snapshot_cold(now)
        )

    def prune(self) -> None:
        """Delete records that newer snapshots have made redundant.

        To be called each `share.coordinator.state.topic.prune.interval.ms`.
        """
        self._run_everywhere(
            "redundant records stay",
            lambda shard, _waiter, _now: shard.redundant_before(),
            self._prune,
        )

    def _prune(self, partition: int, offset: int | None) -> None:
        if not offset or self._pruned.get(partition) == offset:
            return
        try:
            self._topic.delete_before(partition, offset)
        except CoordinatorWriteError as failure:
            telemetry.warning("partition %d cannot be pruned: %s", partition, failure)
            return
        self._pruned[partition] = offset

    def _run_everywhere(
        self,
        failure: str,
        step: Callable[[ShareShard, Waiter, Moment], Decision],
        done: Callable[[int, Any], None] = lambda _partition, _outcome: None,
    ) -> None:
        """Run a step in every shard, and call `done` with the partition and the outcome.

        A failure is logged, and its outcome is None: housekeeping is repeated anyway.
        """
        for partition in self.runtime.partitions():

            def failed(error: ErrorCode, partition: int = partition) -> None:
                telemetry.info("partition %d: %s: %s", partition, failure, error.name)

            outcome: Any = self.runtime.run(partition, step, failed)
            then(outcome, partial(done, partition))

    def _run(
        self,
        key: SharePartitionKey,
        verb: str,
        step: Callable[[ShareShard, Moment], Decision],
    ) -> Any:
        if self.is_closed:
            return Failure(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, "Share coordinator is not available."
            )
        return self.run(
            key.coordinator_key,
            lambda shard, _waiter, now: step(shard, now),
            lambda error: Failure(error, f"Unable to {verb} share group state: {error.message}"),
        )
