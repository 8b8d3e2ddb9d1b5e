"""Partitions in step with the metadata image; who is told when a disk fails."""

from typing import Any, cast

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.log.config import LogConfig
from barnabas.log.errors import LogDirFailure
from barnabas.log.loader import create_log
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.image import MetadataImage, PartitionImage, TopicImage
from barnabas.protocol.errors import ErrorCode
from barnabas.replication.replica_manager import ReplicaManager
from sim.fake_disk import FakeDisk
from sim.manual_clock import ManualClock
from support.logs import NOW_MS, TOPIC_ID, make_batch

NODE_ID = 1


class TwoDirectories:
    """Creates partition 0 in one directory, partition 1 in the other; others find no disk."""

    def __init__(self) -> None:
        disk, clock = FakeDisk(), ManualClock()
        paths = ("/data/log1", "/data/log10")
        for path in paths:
            disk.make_dirs(path)
        self.directories = [LogDirectory(path, disk, clock) for path in paths]

    def get(self, topic_partition: TopicPartition) -> None:
        return None

    def create(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        *,
        is_new: bool,
    ) -> PartitionLog:
        if topic_partition.partition >= len(self.directories):
            raise LogDirFailure("/data/log100")
        directory = self.directories[topic_partition.partition]
        return create_log(directory, topic_partition, topic_id, config)

    def delete(self, topic_partition: TopicPartition) -> None:
        pass


def make_topic(partitions: int) -> TopicImage:
    placed = PartitionImage(
        replicas=(NODE_ID,), isr=(NODE_ID,), leader=NODE_ID, leader_epoch=0, partition_epoch=0
    )
    return TopicImage(
        name="topic", id=TOPIC_ID, partitions=dict.fromkeys(range(partitions), placed)
    )


def make_replicas(topic: TopicImage) -> ReplicaManager:
    replicas = ReplicaManager(
        NODE_ID, cast("Any", TwoDirectories()), lambda image, name: LogConfig(flush_messages=1)
    )
    replicas._apply_topic(topic, cast("MetadataImage", None), is_new=True)
    return replicas


async def test_a_failed_directory_is_not_taken_for_one_whose_name_begins_alike() -> None:
    replicas = make_replicas(make_topic(2))
    told: list[tuple[str, ErrorCode]] = []
    for partition in replicas:
        assert not partition.append(make_batch("a"), NOW_MS).error
        log_dir = partition.log.log_dir
        partition.when_committed(1, lambda error, log_dir=log_dir: told.append((log_dir, error)))  # type: ignore[misc]
    replicas.directory_failed("/data/log1")
    assert told == [("/data/log1", ErrorCode.KAFKA_STORAGE_ERROR)]
    await replicas.close()
    assert told[1:] == [("/data/log10", ErrorCode.NONE)]


def test_a_deleted_topic_that_had_no_disk_is_unknown() -> None:
    topic = make_topic(3)
    replicas = make_replicas(topic)
    assert replicas.find("topic", 2) == ErrorCode.KAFKA_STORAGE_ERROR
    assert replicas.find_by_id(TOPIC_ID, 2) == ErrorCode.KAFKA_STORAGE_ERROR
    replicas._remove_topic(topic)
    assert replicas.find("topic", 2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert replicas.find_by_id(TOPIC_ID, 2) == ErrorCode.UNKNOWN_TOPIC_ID
