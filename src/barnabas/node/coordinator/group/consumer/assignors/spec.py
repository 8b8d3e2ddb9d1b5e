"""Input and output of an assignor."""

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.group.consumer.records import Target

Assignment = dict[str, Target]
"""Partitions by member and topic; each member of the group is there."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member: the topics that it subscribes to, and what it was assigned last."""

    topic_ids: frozenset[Uuid]
    target: Target
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """Members by id, and the number of partitions of each topic that one of them subscribes to."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[Uuid, int]

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        subscriptions = {member.topic_ids for member in self.members.values()}
        return len(subscriptions) <= 1
