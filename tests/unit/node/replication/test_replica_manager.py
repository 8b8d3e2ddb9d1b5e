"""The replica manager follows the metadata image, and handles failed disks."""

from collections.abc import Iterator
from random import Random
from typing import Any, cast

import pytest

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.log.config import LogConfig
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.future_logs import FutureLogs
from barnabas.node.log.loader import create_log
from barnabas.node.log.log_directory import LogDirectory
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.metadata.image import MetadataImage, PartitionImage, TopicImage, TopicsImage
from barnabas.node.metadata.replay import ImageDelta
from barnabas.node.replication.replica_manager import ReplicaManager
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata_records import RemoveTopicRecord
from sim.fake_disk import FakeDisk
from sim.manual_clock import ManualClock
from support.logs import NOW_MS, TOPIC_ID, make_batch

NODE_ID = 1
PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": str(NODE_ID),
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
    "log.dirs": "/data",
}


class TwoDirectories:
    """Creates partition 0 in one directory, partition 1 in the other; others find no disk."""

    def __init__(self) -> None:
        disk, clock = FakeDisk(), ManualClock()
        paths = ("/data/log1", "/data/log10")
        for path in paths:
            disk.make_dirs(path)
        self.directories = [LogDirectory(path, disk, clock) for path in paths]
        self.futures = FutureLogs(disk, Random(1), {})

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(())

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


def make_image(partitions: int) -> MetadataImage:
    placed = PartitionImage(
        replicas=(NODE_ID,), isr=(NODE_ID,), leader=NODE_ID, leader_epoch=0, partition_epoch=0
    )
    topic = TopicImage(
        name="topic", id=TOPIC_ID, partitions=dict.fromkeys(range(partitions), placed)
    )
    return MetadataImage(topics=TopicsImage({topic.name: topic}, {topic.id: topic}))


async def no_controller(request: object) -> object:
    raise ConnectionRefusedError(request)


def make_replicas(image: MetadataImage) -> ReplicaManager:
    replicas = ReplicaManager(
        NODE_ID,
        cast("Any", TwoDirectories()),
        lambda image, name: LogConfig(flush_messages=1),
        clock=ManualClock(),
        random=Random(1),
        config=NodeConfig.from_properties(PROPERTIES),
        network=cast("Any", None),
        ask_controller=no_controller,
        broker_epoch=lambda: 1,
    )
    replicas.load(image)
    return replicas


async def test_a_failed_directory_is_not_taken_for_one_whose_name_begins_alike() -> None:
    replicas = make_replicas(make_image(2))
    told: list[tuple[str, ErrorCode]] = []
    for partition in replicas:
        assert not partition.append(make_batch("a"), NOW_MS).error
        log_dir = partition.log.log_dir
        partition.when_committed(1, lambda error, log_dir=log_dir: told.append((log_dir, error)))  # type: ignore[misc]
    replicas.directory_failed("/data/log1")
    assert told == [("/data/log1", ErrorCode.KAFKA_STORAGE_ERROR)]
    await replicas.close()
    assert told[1:] == [("/data/log10", ErrorCode.NONE)]


async def test_a_deleted_topic_that_had_no_disk_is_unknown() -> None:
    image = make_image(3)
    replicas = make_replicas(image)
    assert replicas.find("topic", 2) == ErrorCode.KAFKA_STORAGE_ERROR
    assert replicas.find_by_id(TOPIC_ID, 2) == ErrorCode.KAFKA_STORAGE_ERROR
    delta = ImageDelta(image)
    delta.replay(RemoveTopicRecord(topic_id=TOPIC_ID))
    replicas.apply(delta, delta.image(1, 1, NOW_MS))
    assert replicas.find("topic", 2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert replicas.find_by_id(TOPIC_ID, 2) == ErrorCode.UNKNOWN_TOPIC_ID


async def test_a_periodic_step_that_fails_is_logged_and_comes_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicas = make_replicas(make_image(2))
    calls: list[None] = []

    def checkpoint() -> None:
        calls.append(None)
        raise ZeroDivisionError

    monkeypatch.setattr(replicas, "_checkpoint", checkpoint)
    replicas.start()
    clock = cast("ManualClock", replicas._clock)
    for count in (1, 2):
        clock.advance(replicas._checkpoint_interval_ms)
        assert len(calls) == count
    assert [record.getMessage() for record in caplog.records] == ["checkpoint failed"] * 2
