"""Share groups as `__consumer_offsets` knows them: members, and which partitions they may have.

How far they are is kept by the share coordinators; `node/coordinator/share/share_group_service.py`
answers clients with the help of both.
"""

from collections.abc import Callable, Iterable
from typing import Any

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.decision import Decision, Moment
from barnabas.node.coordinator.group.shards import GroupShards
from barnabas.node.coordinator.group.share.requests import ShareGroupRequests
from barnabas.node.loop.promise import Promise
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.share_groups import DescribedGroup


class ShareMembershipService:
    """The share groups that this node coordinates, without their state in partitions."""

    def __init__(self, shards: GroupShards) -> None:
        self._shards = shards

    def run(
        self,
        group_id: str,
        step: Callable[[ShareGroupRequests, Moment], Decision],
        on_error: Callable[[ErrorCode], Any],
    ) -> Any:
        """A step of the share groups of the shard to which `group_id` belongs."""
        return self._shards.run(group_id, lambda shard, _, now: step(shard.shares, now), on_error)

    def describe(
        self, group_ids: Iterable[str]
    ) -> list[DescribedGroup] | Promise[list[DescribedGroup]]:
        """State, members and assignments of share groups."""
        return self._shards.run_for_each(
            group_ids,
            lambda shard, group_id: shard.shares.describe(group_id),
            lambda group_id, error: DescribedGroup(group_id=group_id, error_code=error),
        )

    def begin_deletions(self, group_ids: Iterable[str]) -> Any:
        """The state that the share coordinators must delete with these share groups.

        By group id a dictionary of partitions by topic, or an error code; or a promise of that.
        """
        return self._shards.run_by_partition(
            group_ids, lambda shard, ids, now: shard.shares.begin_group_deletions(ids, now)
        )

    def on_topics_deleted(self, topic_ids: frozenset[Uuid]) -> None:
        """Forget topics that are gone, in every shard of this node."""
        self._shards.run_everywhere(
            "deleted topics from share groups",
            lambda shard, _waiter, _now: shard.shares.topics_deleted(topic_ids),
        )
