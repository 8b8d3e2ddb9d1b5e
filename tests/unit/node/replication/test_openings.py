"""Many partitions placed at once: opened a few in each turn of the event loop."""

import asyncio
from random import Random
from typing import Any, cast

from barnabas.base.ids import TopicPartition
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.log.config import LogConfig
from barnabas.node.log.manager import LogManager
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.replay import ImageDelta
from barnabas.node.replication.openings import LOGS_PER_TURN_MAX
from barnabas.node.replication.partition import Partition
from barnabas.node.replication.replica_manager import ReplicaManager
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata_records import (
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from sim.fake_disk import FakeDisk
from sim.manual_clock import ManualClock
from support.logs import NOW_MS, TOPIC_ID

NODE_ID, OTHER_ID = 1, 2
COUNT = 3 * LOGS_PER_TURN_MAX
PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": str(NODE_ID),
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
    "log.dirs": "/data",
}


async def no_controller(request: object) -> object:
    raise ConnectionRefusedError(request)


class Bench:
    """A replica manager over a disk in memory, and the image it follows."""

    def __init__(self) -> None:
        self.disk, self.clock = FakeDisk(), ManualClock()
        self.logs = LogManager(self.disk, ["/data"], self.clock, LogConfig(), random=Random(1))
        self.logs.load()
        self.image = MetadataImage()
        self.told: list[int] = []
        self.replicas = ReplicaManager(
            NODE_ID,
            self.logs,
            lambda image, name: LogConfig(),
            clock=self.clock,
            random=Random(1),
            config=NodeConfig.from_properties(PROPERTIES),
            network=cast("Any", None),
            ask_controller=no_controller,
            broker_epoch=lambda: 1,
        )
        self.replicas.on_opened = lambda partitions: self.told.extend(
            partition.topic_partition.partition for partition in partitions
        )
        self.replicas.load(self.image)

    def change(self, *records: Any) -> None:
        delta = ImageDelta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.image(self.image.offset + 1, 1, NOW_MS)
        self.replicas.apply(delta, self.image)

    def create(
        self, *, leader: int = NODE_ID, count: int = COUNT, topic_id: Any = TOPIC_ID
    ) -> None:
        self.change(
            TopicRecord(name="topic", topic_id=topic_id),
            *(
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=[NODE_ID, OTHER_ID],
                    isr=[NODE_ID, OTHER_ID],
                    leader=leader,
                    leader_epoch=0,
                    partition_epoch=0,
                )
                for index in range(count)
            ),
        )

    def opened(self) -> list[int]:
        return [partition.topic_partition.partition for partition in self.replicas]


async def test_each_turn_opens_a_few() -> None:
    bench = Bench()
    bench.create()
    assert bench.opened() == list(range(LOGS_PER_TURN_MAX))
    assert bench.replicas.find("topic", COUNT - 1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert bench.replicas.find_by_id(TOPIC_ID, COUNT - 1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert bench.replicas.find("topic", COUNT) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    turns = 0
    while bench.replicas.has_waiting:
        before = len(bench.opened())
        await asyncio.sleep(0)
        assert len(bench.opened()) <= before + LOGS_PER_TURN_MAX
        turns += 1
    assert turns >= 2
    assert bench.opened() == list(range(COUNT))
    assert bench.told == list(range(LOGS_PER_TURN_MAX, COUNT))
    assert all(partition.is_leader for partition in bench.replicas)
    await bench.replicas.close()


async def test_a_turn_ends_when_its_time_is_over() -> None:
    bench = Bench()
    make_dirs = bench.disk.make_dirs

    def slowly(path: str) -> None:
        bench.clock.advance(1000)
        make_dirs(path)

    bench.disk.make_dirs = slowly  # type: ignore[method-assign]
    bench.create()
    assert bench.opened() == [0]
    await bench.replicas.opened()
    assert bench.opened() == list(range(COUNT))
    await bench.replicas.close()


async def test_what_is_led_here_comes_first() -> None:
    bench = Bench()
    bench.create(leader=OTHER_ID)
    last = COUNT - 1
    bench.change(PartitionChangeRecord(partition_id=last, topic_id=TOPIC_ID, leader=NODE_ID))
    await bench.replicas.opened()
    assert bench.told[0] == last
    found = bench.replicas.find("topic", last)
    assert isinstance(found, Partition)
    assert found.is_leader
    await bench.replicas.close()


async def test_a_partition_is_opened_in_the_role_that_it_has_by_then() -> None:
    bench = Bench()
    bench.create()
    last = COUNT - 1
    bench.change(PartitionChangeRecord(partition_id=last, topic_id=TOPIC_ID, leader=OTHER_ID))
    await bench.replicas.opened()
    found = bench.replicas.find("topic", last)
    assert isinstance(found, Partition)
    assert (found.leader_id, found.leader_epoch) == (OTHER_ID, 1)
    await bench.replicas.close()


async def test_a_topic_that_is_deleted_meanwhile_is_not_opened() -> None:
    bench = Bench()
    bench.create()
    bench.change(RemoveTopicRecord(topic_id=TOPIC_ID))
    assert not bench.replicas.has_waiting
    await asyncio.sleep(0)
    assert bench.opened() == []
    assert len(bench.logs) == 0
    assert bench.replicas.find("topic", 0) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await bench.replicas.close()


async def test_a_topic_may_be_made_again_under_its_name() -> None:
    bench = Bench()
    bench.create()
    bench.change(RemoveTopicRecord(topic_id=TOPIC_ID))
    again = bytes(reversed(TOPIC_ID))
    bench.create(topic_id=again)
    await bench.replicas.opened()
    assert sorted(bench.opened()) == list(range(COUNT))
    assert {partition.log.topic_id for partition in bench.replicas} == {again}
    await bench.replicas.close()


async def test_a_replica_that_moves_away_meanwhile_is_not_opened() -> None:
    bench = Bench()
    bench.create()
    last = COUNT - 1
    bench.change(
        PartitionChangeRecord(
            partition_id=last,
            topic_id=TOPIC_ID,
            replicas=[OTHER_ID],
            isr=[OTHER_ID],
            leader=OTHER_ID,
        )
    )
    await bench.replicas.opened()
    assert bench.opened() == list(range(last))
    assert bench.logs.get(TopicPartition("topic", last)) is None
    await bench.replicas.close()


async def test_a_node_that_ends_opens_nothing_more() -> None:
    bench = Bench()
    bench.create()
    waiting = asyncio.ensure_future(bench.replicas.opened())
    await asyncio.sleep(0)
    await bench.replicas.close()
    await waiting
    count = len(bench.logs)
    assert count < COUNT
    bench.change(PartitionChangeRecord(partition_id=COUNT - 1, topic_id=TOPIC_ID, leader=OTHER_ID))
    await asyncio.sleep(0)
    assert len(bench.logs) == count


async def test_a_disk_that_fails_meanwhile_is_told() -> None:
    bench = Bench()
    bench.create()
    bench.disk.fail("make_dirs")
    await bench.replicas.opened()
    last = bench.replicas.find("topic", COUNT - 1)
    assert last is ErrorCode.KAFKA_STORAGE_ERROR
    await bench.replicas.close()
