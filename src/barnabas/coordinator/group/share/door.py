"""The way to share groups of the group coordinator, for `coordinator/share/share_group_service.py`.

Only what `__consumer_offsets` says of share groups is behind it; how far they are is kept by the
share coordinators.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from barnabas.base.ids import Uuid
from barnabas.coordinator.decision import Decision, Moment, Waiter
from barnabas.coordinator.group.shard import GroupShard
from barnabas.coordinator.group.share.requests import ShareGroups
from barnabas.coordinator.promise import gather
from barnabas.protocol.errors import ErrorCode

ShardStep = Callable[[GroupShard, Waiter, Moment], Decision]


class Run(Protocol):
    """Runs a step of the shard to which a group belongs."""

    def __call__(self, group_id: str, step: ShardStep, on_error: Callable[[ErrorCode], Any]) -> Any:
        """The response or the promise of it."""


class ShareGroupDoor:
    """The share groups whose partitions of `__consumer_offsets` this node leads."""

    def __init__(
        self,
        run: Run,
        run_everywhere: Callable[[str, ShardStep], None],
        partition_for: Callable[[str], int],
    ) -> None:
        self._run = run
        self._run_everywhere = run_everywhere
        self._partition_for = partition_for

    def run(
        self,
        group_id: str,
        step: Callable[[ShareGroups, Moment], Decision],
        on_error: Callable[[ErrorCode], Any],
    ) -> Any:
        """A step of the share groups of the shard to which `group_id` belongs."""
        return self._run(group_id, lambda shard, _, now: step(shard.shares, now), on_error)

    def begin_deletions(self, group_ids: Iterable[str]) -> Any:
        """What the share coordinators are to forget of those groups that are share groups.

        By group id a dictionary of partitions by topic, or an error code; or a promise of that.
        """
        by_partition: dict[int, list[str]] = {}
        for group_id in dict.fromkeys(group_ids):
            by_partition.setdefault(self._partition_for(group_id), []).append(group_id)
        return gather(
            [self._begin_deletions(ids) for ids in by_partition.values()],
            lambda parts: {key: value for part in parts for key, value in part.items()},
        )

    def _begin_deletions(self, group_ids: list[str]) -> Any:
        return self.run(
            group_ids[0],
            lambda shares, now: shares.begin_group_deletions(group_ids, now),
            lambda error: dict.fromkeys(group_ids, error),
        )

    def on_topics_deleted(self, topic_ids: frozenset[Uuid]) -> None:
        """Forget topics that are gone, in every shard of this node."""
        self._run_everywhere(
            "topics of share groups",
            lambda shard, _waiter, _now: shard.shares.topics_deleted(topic_ids),
        )
