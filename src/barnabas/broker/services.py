"""What the handlers work with: the rooms below, put together once per node."""

import random
from dataclasses import dataclass, field

from barnabas.base.clock import Clock
from barnabas.base.config.node import NodeConfig
from barnabas.broker.fetch_sessions import FetchSessionCache
from barnabas.coordinator.group.service import GroupCoordinator
from barnabas.log.manager import LogManager
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.node import MetadataNode
from barnabas.protocol.apis import ApiKey
from barnabas.replication.replica_manager import ReplicaManager


@dataclass(slots=True)
class BrokerServices:
    """One per node; handlers get it with every request."""

    config: NodeConfig
    clock: Clock
    random: random.Random
    node_id: int
    cluster_id: str
    metadata: MetadataNode
    replicas: ReplicaManager
    logs: LogManager
    groups: GroupCoordinator
    fetch_sessions: FetchSessionCache
    fetch_max_bytes: int
    served_apis: set[ApiKey] = field(default_factory=set)

    @property
    def image(self) -> MetadataImage:
        """The cluster's metadata as this node has it."""
        return self.metadata.image
