"""The partitions that this node hosts, kept in step with the metadata image."""

import asyncio
import logging
from collections.abc import Callable, Iterator

from barnabas.base.ids import ZERO_UUID, TopicPartition, Uuid
from barnabas.log.config import LogConfig
from barnabas.log.errors import LogDirFailure
from barnabas.log.manager import LogManager
from barnabas.metadata.image import (
    NO_LEADER,
    ConfigResourceType,
    MetadataImage,
    TopicImage,
)
from barnabas.metadata.replay import ImageDelta
from barnabas.protocol.errors import ErrorCode
from barnabas.replication.partition import Partition, ReadWaiter

telemetry = logging.getLogger(__name__)


class ReplicaManager:
    """Finds, creates and removes partitions."""

    def __init__(
        self,
        node_id: int,
        logs: LogManager,
        topic_log_config: Callable[[MetadataImage, str], LogConfig],
    ) -> None:
        self.node_id = node_id
        self.logs = logs
        self._topic_log_config = topic_log_config
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[Uuid, dict[int, Partition]] = {}
        self._advanced: set[Partition] = set()
        self._failed: set[tuple[str | Uuid, int]] = set()
        """What has no log for want of a disk, by topic and by topic id."""

    def find(self, topic: str, partition: int) -> Partition | ErrorCode:
        """The partition, or why there is none here."""
        partitions = self._by_name.get(topic)
        found = partitions.get(partition) if partitions is not None else None
        if found is None:
            if (topic, partition) in self._failed:
                return ErrorCode.KAFKA_STORAGE_ERROR
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if found.log.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return found

    def find_by_id(self, topic_id: Uuid, partition: int) -> Partition | ErrorCode:
        """As `find`, by topic id (KIP-516)."""
        partitions = self._by_id.get(topic_id)
        found = partitions.get(partition) if partitions is not None else None
        if found is None:
            if (topic_id, partition) in self._failed:
                return ErrorCode.KAFKA_STORAGE_ERROR
            if partitions is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if found.log.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return found

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_name.values():
            yield from partitions.values()

    def load(self, image: MetadataImage) -> None:
        """Take over the whole image at start-up; logs of unknown topics are removed."""
        for topic in image.topics.by_name.values():
            self._apply_topic(topic, image, is_new=False)
        for log in list(self.logs):
            if log.topic_partition.topic == "__cluster_metadata":
                continue
            known = self._by_name.get(log.topic_partition.topic, {})
            if log.topic_partition.partition not in known:
                telemetry.warning(
                    "removing %s: the cluster's metadata does not place it here",
                    log.topic_partition,
                )
                self._guard(log.topic_partition, self.logs.delete)

    def apply(self, delta: ImageDelta, image: MetadataImage) -> None:
        """Follow one change of the image."""
        for deleted in delta.topics_deleted.values():
            self._remove_topic(deleted)
        for topic_id in delta.topics:
            topic = image.topics.by_id.get(topic_id)
            if topic is not None:
                self._apply_topic(topic, image, is_new=True)
        for kind, name in delta.configs:
            if kind == ConfigResourceType.TOPIC:
                self._configure(name, image)
            elif kind == ConfigResourceType.BROKER and name in ("", str(self.node_id)):
                for topic_name in self._by_name:
                    self._configure(topic_name, image)

    def _configure(self, topic: str, image: MetadataImage) -> None:
        """Give a topic's logs the configuration that holds now."""
        partitions = self._by_name.get(topic)
        if partitions:
            config = self._topic_log_config(image, topic)
            for partition in partitions.values():
                partition.log.config = config

    def _apply_topic(self, topic: TopicImage, image: MetadataImage, *, is_new: bool) -> None:
        config: LogConfig | None = None
        for index, placed in topic.partitions.items():
            if self.node_id not in placed.replicas:
                continue
            topic_partition = TopicPartition(topic.name, index)
            partition = self._by_name.get(topic.name, {}).get(index)
            if partition is None:
                if config is None:
                    config = self._topic_log_config(image, topic.name)
                partition = self._open(topic_partition, topic.id, config, is_new=is_new)
                if partition is None:
                    continue
            if placed.leader == self.node_id:
                partition.isr_size = len(placed.isr)
                partition.become_leader(placed.leader_epoch, placed.partition_epoch)

    def _open(
        self, topic_partition: TopicPartition, topic_id: Uuid, config: LogConfig, *, is_new: bool
    ) -> Partition | None:
        log = self.logs.get(topic_partition)
        if log is not None and log.topic_id == ZERO_UUID and not log.is_offline:
            # Its partition.metadata was lost in a power cut; the records are this topic's.
            try:
                log.assign_topic_id(topic_id)
            except LogDirFailure as failure:
                telemetry.error("%s: %s", topic_partition, failure)
        if log is not None and log.topic_id not in (topic_id, ZERO_UUID):
            telemetry.warning("replacing %s: it is of a topic deleted since", topic_partition)
            self._guard(topic_partition, self.logs.delete)
            log = None
        if log is None:
            try:
                log = self.logs.create(topic_partition, topic_id, config, is_new=is_new)
            except LogDirFailure as failure:
                telemetry.error("%s cannot be created: %s", topic_partition, failure)
                self._failed |= {topic_partition, (topic_id, topic_partition.partition)}
                return None
        else:
            log.config = config
        partition = Partition(topic_partition, topic_id, log, self.node_id, self._wake)
        self._by_name.setdefault(topic_partition.topic, {})[topic_partition.partition] = partition
        self._by_id.setdefault(topic_id, {})[topic_partition.partition] = partition
        return partition

    def _remove_topic(self, topic: TopicImage) -> None:
        partitions = self._by_id.pop(topic.id, {})
        known = self._by_name.get(topic.name, {})
        for index in topic.partitions:
            self._failed -= {(topic.name, index), (topic.id, index)}
        for partition in partitions.values():
            if known.get(partition.topic_partition.partition) is partition:
                del known[partition.topic_partition.partition]
            partition.leader_id = NO_LEADER
            partition.fail_waiters(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            self._guard(partition.topic_partition, self.logs.delete)
        if not known:
            self._by_name.pop(topic.name, None)

    def _guard(
        self, topic_partition: TopicPartition, action: Callable[[TopicPartition], None]
    ) -> None:
        try:
            action(topic_partition)
        except LogDirFailure as failure:
            telemetry.error("%s: %s", topic_partition, failure)

    def _wake(self, partition: Partition) -> None:
        """Wake the partition's readers once per turn of the loop, however much was appended."""
        if not self._advanced:
            asyncio.get_running_loop().call_soon(self._wake_readers)
        self._advanced.add(partition)

    def _wake_readers(self) -> None:
        advanced, self._advanced = self._advanced, set()
        waiters: set[ReadWaiter] = set()
        for partition in advanced:
            waiters |= partition.read_waiters
        for waiter in waiters:
            waiter.partition_advanced()

    def directory_failed(self, directory: str) -> None:
        """A log directory went offline: whoever waits on its partitions is told."""
        for partition in self:
            if partition.log.log_dir == directory:
                partition.fail_waiters(ErrorCode.KAFKA_STORAGE_ERROR)

    async def close(self) -> None:
        """Wait for fsyncs under way."""
        for partition in self:
            await partition.close()
