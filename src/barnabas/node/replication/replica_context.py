"""Context that the partitions of one node share: node id, clock, whom to notify."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barnabas.base.clock import Clock
from barnabas.node.metadata.image import BrokerImage
from barnabas.node.replication.traffic import Traffic

if TYPE_CHECKING:
    from barnabas.node.replication.leadership import IsrProposal
    from barnabas.node.replication.partition import Partition


def _ignore(partition: "Partition") -> None:
    """For partitions outside a replica manager."""


def _refuse(proposal: "IsrProposal") -> bool:
    """For partitions outside a replica manager."""
    return False


@dataclass(slots=True, eq=False)
class ReplicaContext:
    """One per replica manager."""

    node_id: int
    clock: Clock
    lag_max_ms: int = 30_000
    """`replica.lag.time.max.ms`"""
    broker_epoch: Callable[[], int] = lambda: -1
    on_advanced: Callable[["Partition"], None] = _ignore
    """More may be read (the high watermark rose), or no longer from here."""
    on_appended: Callable[["Partition"], None] = _ignore
    """Followers have something to fetch, or news to hear."""
    propose_isr: Callable[["IsrProposal"], bool] = _refuse
    """Ask the controller; False if it is asked about that partition already."""
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    """As the image has them now."""
    incomplete: dict["Partition", None] = field(default_factory=dict)
    """Partitions led here that have a replica outside their ISR."""
    traffic: Traffic = field(default_factory=Traffic)
    """The traffic counters of this node."""
