"""A share coordinator on a clock that stands still, over partitions in memory."""

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.share.service import ShareCoordinator
from barnabas.node.coordinator.share.shard import ShareCoordinatorConfig, ShareShard
from barnabas.node.coordinator.share.state import SharePartitionKey
from barnabas.protocol.records.batch import iterate_headers
from sim.manual_clock import ManualClock
from support.group_world import MemoryPartitions

TOPIC = Uuid(bytes(15) + b"\x07")
OTHER_TOPIC = Uuid(bytes(15) + b"\x08")


class StateTopicInMemory(MemoryPartitions):
    """`MemoryPartitions` whose start can be deleted."""

    def delete_before(self, partition: int, offset: int) -> None:
        """Drop the batches that lie before `offset` as a whole."""
        log = self[partition]
        while log.batches:
            (header,) = (header for _, header in iterate_headers(log.batches[0]))
            if header.base_offset + header.record_count > offset:
                break
            log.batches.pop(0)


class ShareWorld:
    """One share coordinator with one partition, and the topics that there are."""

    def __init__(self, **settings: int) -> None:
        self.clock = ManualClock()
        self.log = StateTopicInMemory()
        self.topics: dict[Uuid, int] = {TOPIC: 3, OTHER_TOPIC: 1}
        self.config = ShareCoordinatorConfig(state_partitions=1, **settings)
        self.leader_epoch = 0
        self.coordinator = self._new_coordinator()

    def _new_coordinator(self) -> ShareCoordinator:
        coordinator = ShareCoordinator(
            self.config, self.clock, self.log, lambda topic_id: self.topics.get(topic_id, 0)
        )
        coordinator.load(0, self.leader_epoch)
        return coordinator

    def move(self) -> None:
        """Have another node coordinate, which knows nothing but the log."""
        self.leader_epoch += 1
        self.coordinator = self._new_coordinator()

    @property
    def shard(self) -> ShareShard:
        """The one shard."""
        shard = self.coordinator.runtime.shard(0)
        assert shard is not None
        return shard


def key(partition: int = 0, group_id: str = "g", topic_id: Uuid = TOPIC) -> SharePartitionKey:
    """A share-partition of `TOPIC`."""
    return SharePartitionKey(group_id, topic_id, partition)
