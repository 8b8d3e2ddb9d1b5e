"""A member of a share group, as its records tell. Source: Kafka's ShareGroupMember."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.group.modern.member import ModernMember

Target = Mapping[Uuid, tuple[int, ...]]
"""Partitions by topic, ascending."""


@dataclass(frozen=True, slots=True)
class ShareMember(ModernMember):
    """A member: its subscription, and the partitions it may fetch from in which epoch.

    Partitions are shared, so nothing has to be given up before another gets it: a member is
    always where its last heartbeat took it.
    """

    topic_names: frozenset[str] = frozenset()
    assigned: Target = field(default_factory=dict)
