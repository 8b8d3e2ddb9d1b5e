"""Puts together what share groups need: the share coordinator, and the way to all of them."""

import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from barnabas.base.clock import Clock
from barnabas.base.ending import take_all
from barnabas.base.ids import Uuid
from barnabas.base.internal_topics import SHARE_GROUP_STATE
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.coordinator.group.service import GroupCoordinator
from barnabas.node.coordinator.internal_topic import InternalTopic
from barnabas.node.coordinator.share.config import ShareCoordinatorConfig
from barnabas.node.coordinator.share.end_offsets import EndOffsets
from barnabas.node.coordinator.share.persister_client import CoordinatorPersister
from barnabas.node.coordinator.share.service import ShareCoordinator
from barnabas.node.coordinator.share.share_group_service import ShareGroupService
from barnabas.node.metadata.broker_peers import BrokerPeers
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.replication.replica_manager import ReplicaManager


@dataclass(frozen=True, slots=True)
class Shares:
    """The parts, as handlers use them."""

    coordinator: ShareCoordinator
    persister: CoordinatorPersister
    groups: ShareGroupService
    ends: EndOffsets

    async def close(self) -> None:
        """Answer all that waits and serve nobody any more."""
        await take_all(
            self.ends.close, self.persister.close, self.groups.close, self.coordinator.close
        )


def make_shares(
    config: NodeConfig,
    clock: Clock,
    peers: BrokerPeers,
    image: Callable[[], MetadataImage],
    replicas: ReplicaManager,
    groups: GroupCoordinator,
    *,
    source: random.Random,
    create_topic: Callable[[], Coroutine[Any, Any, object]],
) -> Shares:
    """The parts of one node. `create_topic` makes `__share_group_state`."""

    def partition_count(topic_id: Uuid) -> int:
        topic = image().topics.by_id.get(topic_id)
        return 0 if topic is None else len(topic.partitions)

    coordinator = ShareCoordinator(
        ShareCoordinatorConfig.from_node(config),
        clock,
        InternalTopic(SHARE_GROUP_STATE, replicas, clock),
        partition_count,
    )
    persister = CoordinatorPersister(
        clock, peers, image, coordinator, source=source, create_topic=create_topic
    )
    ends = EndOffsets(clock, peers, image, replicas)
    service = ShareGroupService(groups, persister, ends, image, clock)
    return Shares(coordinator, persister, service, ends)
