"""The coordinators of a broker: each partition of an internal topic is coordinated by its leader.

Groups live in `__consumer_offsets`, transactions in `__transaction_state`, the progress of share
groups in `__share_group_state`. Whoever comes to lead a partition loads what it holds, and lets go
of it when another leads.
"""

from collections.abc import Iterable, Mapping

from barnabas.base.internal_topics import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from barnabas.node.coordinator.group.service import GroupCoordinator
from barnabas.node.coordinator.share.service import ShareCoordinator
from barnabas.node.coordinator.transaction.service import TransactionCoordinator
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.replay import ImageDelta
from barnabas.node.replication.partition import Partition
from barnabas.node.replication.replica_manager import ReplicaManager

Coordinator = GroupCoordinator | TransactionCoordinator | ShareCoordinator


class Coordinators:
    """What this node coordinates, kept in step with what it leads."""

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
        self._by_topic: Mapping[str, Coordinator] = {
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
