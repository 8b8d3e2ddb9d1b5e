"""A member of a share group, as its records tell. Source: Kafka's ShareGroupMember."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.base.ids import Uuid

JOINING_EPOCH = 0
LEAVING_EPOCH = -1

Target = Mapping[Uuid, tuple[int, ...]]
"""Partitions by topic, ascending."""


@dataclass(frozen=True, slots=True)
class ShareMember:
    """Who takes part, what it subscribes to, and what it may fetch from in which epoch.

    Partitions are shared, so nothing has to be given up before another gets it: a member is
    always where its last heartbeat took it.
    """

    member_id: str
    member_epoch: int = JOINING_EPOCH
    previous_member_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    assigned: Target = field(default_factory=dict)
