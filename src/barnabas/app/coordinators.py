"""The coordinators of a broker: each partition of an internal topic is coordinated by its leader.

Groups live in `__consumer_offsets`, transactions in `__transaction_state`, the progress of share
groups in `__share_group_state`. The leader of a partition loads its content, and drops it when
another node leads.
"""

import random
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.app.background import Background
from barnabas.base.clock import Clock
from barnabas.base.ending import take_all
from barnabas.base.ids import Uuid
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.coordinator.coordinator import Coordinator
from barnabas.node.coordinator.group.service import GroupCoordinator
from barnabas.node.coordinator.internal_topic import InternalTopic
from barnabas.node.coordinator.share.end_offsets import EndOffsets
from barnabas.node.coordinator.share.persister_client import CoordinatorPersister
from barnabas.node.coordinator.share.service import ShareCoordinator
from barnabas.node.coordinator.share.shard import ShareCoordinatorConfig
from barnabas.node.coordinator.share.share_group_service import ShareGroupService
from barnabas.node.coordinator.transaction.marker_writer import MarkerWriter
from barnabas.node.coordinator.transaction.markers import MarkerSender
from barnabas.node.coordinator.transaction.service import (
    AllocateProducerId,
    TransactionConfig,
    TransactionCoordinator,
)
from barnabas.node.coordinator.transaction.verifier import TransactionVerifier
from barnabas.node.log.manager import LogManager
from barnabas.node.metadata.broker_peers import BrokerPeers
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.replay import ImageDelta
from barnabas.node.replication.partition import Partition
from barnabas.node.replication.replica_manager import ReplicaManager
from barnabas.protocol.features import TRANSACTION_VERSION
from barnabas.protocol.well_known import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE


class Coordinators:
    """This node's coordinators, in step with the partitions that it leads."""

    def __init__(
        self,
        node_id: int,
        replicas: ReplicaManager,
        groups: GroupCoordinator,
        transactions: TransactionCoordinator,
        shares: ShareCoordinator,
    ) -> None:
        self._node_id = node_id
        self._replicas = replicas
        self._by_topic: Mapping[str, Coordinator[Any]] = {
            CONSUMER_OFFSETS: groups,
            TRANSACTION_STATE: transactions,
            SHARE_GROUP_STATE: shares,
        }

    def image_changed(self, delta: ImageDelta, image: MetadataImage) -> None:
        """Follow one change of the image; the replicas have followed it."""
        if any(topic.name in self._by_topic for topic in delta.topics.values()):
            self.load(image)

    def opened(self, partitions: Iterable[Partition], image: MetadataImage) -> None:
        """Partitions came to be after the image that places them was applied."""
        if any(partition.topic_partition.topic in self._by_topic for partition in partitions):
            self.load(image)

    def load(self, image: MetadataImage) -> None:
        """Load what every partition coordinates that this node leads now."""
        for name, coordinator in self._by_topic.items():
            topic = image.topics.by_name.get(name)
            if topic is None:
                continue
            coordinator.partition_count = len(topic.partitions)
            for index, partition in topic.partitions.items():
                if self._replicas.is_waiting(topic.id, index):
                    coordinator.unload(index)  # until it is opened, if it is led here then
                elif partition.leader == self._node_id:
                    coordinator.load(index, partition.leader_epoch)
                else:
                    coordinator.unload(index)


# Puts together what transactions need: the coordinator, and the ways to other nodes.


@dataclass(frozen=True, slots=True)
class Transactions:
    """The parts, as handlers use them."""

    coordinator: TransactionCoordinator
    verifier: TransactionVerifier
    marker_writer: MarkerWriter


def make_transactions(
    config: NodeConfig,
    clock: Clock,
    peers: BrokerPeers,
    image: Callable[[], MetadataImage],
    replicas: ReplicaManager,
    groups: GroupCoordinator,
    allocate_producer_id: AllocateProducerId,
) -> Transactions:
    """The parts of one node."""
    timeout_ms = config.get_int("request.timeout.ms")
    marker_writer = MarkerWriter(clock, replicas, groups, timeout_ms=timeout_ms)
    coordinator = TransactionCoordinator(
        TransactionConfig.from_node(config),
        clock,
        InternalTopic(TRANSACTION_STATE, replicas, clock),
        MarkerSender(clock, peers, image, marker_writer.write),
        allocate_producer_id,
        lambda: image().features.get(TRANSACTION_VERSION, 0),
    )
    verifier = TransactionVerifier(clock, peers, image, coordinator)
    return Transactions(coordinator, verifier, marker_writer)


# Puts together what share groups need: the share coordinator, and the way to all of them.


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


# Periodic tasks of a broker: retention, flushes, checkpoints, expiry of groups and
# transactions.


def keep_logs(background: Background, config: NodeConfig, clock: Clock, logs: LogManager) -> None:
    """Retention, checkpoints, deletion and flushes."""
    every = background.every
    every(
        config.get_int("log.retention.check.interval.ms"),
        "retention",
        lambda: logs.retention_step(clock.now_ms()),
    )
    every(
        config.get_int("log.flush.offset.checkpoint.interval.ms"),
        "checkpoint",
        logs.checkpoint_step,
    )
    every(1000, "delete", lambda: logs.delete_step(clock.now_ms()))
    every(1000, "flush", lambda: logs.flush_step(clock.now_ms()))


def keep_coordinators(
    background: Background,
    config: NodeConfig,
    groups: GroupCoordinator,
    transactions: TransactionCoordinator,
    shares: ShareCoordinator,
) -> None:
    """Expired records of internal topics."""
    every = background.every
    every(
        config.get_int("offsets.retention.check.interval.ms"),
        "offset expiry",
        groups.expire_offsets,
    )
    every(
        config.get_int("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
        "aborting overdue transactions",
        lambda: background.start(transactions.abort_overdue()),
    )
    every(
        config.get_int("transaction.remove.expired.transaction.cleanup.interval.ms"),
        "transactional id expiry",
        transactions.expire_ids,
    )
    every(shares.config.prune_interval_ms, "pruning of share state", shares.prune)
    every(
        shares.config.cold_snapshot_interval_ms,
        "snapshots of quiet share state",
        shares.snapshot_cold,
    )
