"""The share partitions of a node, over real partitions in memory and a persister that waits.

`ShareHost` is one broker that leads topic `t` until a test changes that. Members fetch and
acknowledge as handlers have them do; the persister answers when it is let, keeps what it has
acknowledged, and gives that to who reads.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, cast

from barnabas.base.ids import TopicPartition, Uuid
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.coordinator.share.batches import combine
from barnabas.node.coordinator.share.state import (
    ShareState,
    ShareStateError,
    ShareSummary,
    StateBatch,
)
from barnabas.node.log.config import LogConfig
from barnabas.node.log.future_logs import FutureLogs
from barnabas.node.log.loader import create_log
from barnabas.node.log.log_directory import LogDirectory
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.loop.promise import Promise
from barnabas.node.metadata.image import MetadataImage, PartitionImage
from barnabas.node.metadata.replay import ImageDelta
from barnabas.node.replication.partition import Partition
from barnabas.node.replication.replica_manager import ReplicaManager
from barnabas.node.share.core.states import AckBatch, AcquireMode, Refused
from barnabas.node.share.partitions import SharePartitions
from barnabas.node.share.settings import ShareSettings
from barnabas.node.share.share_partition_host import Delivery, HostedSharePartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata_records import PartitionChangeRecord, RemoveTopicRecord
from sim.fake_disk import FakeDisk
from sim.manual_clock import ManualClock
from support.consumer_world import image_of, topic_id
from support.group_world import BASE_CONFIG
from support.logs import NOW_MS, make_batch

NODE_ID = 1
NOBODY = -1
LOCK_MS = 30_000
ACCEPT, RELEASE = 1, 2


@dataclass
class Asked:
    """One call of the persister; it is answered by settling `outcome`."""

    what: str
    leader_epoch: int
    outcome: Promise[ErrorCode | Exception]
    start_offset: int = -1
    batches: tuple[tuple[int, int, int, int], ...] = ()
    """(first, last, state, delivery count) of what is written."""


class HeldPersister:
    """A `Persister` that answers when it is let; at once while `is_held` is false."""

    def __init__(self) -> None:
        self.kept = ShareState(1, 0)
        self.is_held = False
        self.calls: list[Asked] = []
        self.waiting: list[Asked] = []

    async def read(
        self, _group_id: str, _topic_id: Uuid, _partition: int, leader_epoch: int
    ) -> ShareState:
        """Part of Persister."""
        await self._ask(Asked("read", leader_epoch, Promise()))
        return self.kept

    async def write(
        self,
        _group_id: str,
        _topic_id: Uuid,
        _partition: int,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        _delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        """Part of Persister."""
        assert state_epoch == self.kept.state_epoch
        told = tuple(
            (batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
            for batch in batches
        )
        await self._ask(Asked("write", leader_epoch, Promise(), start_offset, told))
        kept = combine(self.kept.batches, batches, start_offset)
        self.kept = ShareState(state_epoch, start_offset, kept)

    async def _ask(self, asked: Asked) -> None:
        self.calls.append(asked)
        if self.is_held:
            self.waiting.append(asked)
            outcome = await asked.outcome
            if isinstance(outcome, Exception):
                raise outcome
            if outcome:
                raise ShareStateError(outcome)

    async def answer(self, outcome: ErrorCode | Exception = ErrorCode.NONE) -> Asked:
        """Answer what was asked first, and let that have its effect."""
        await settled()
        asked = self.waiting.pop(0)
        asked.outcome.settle(outcome)
        await settled()
        return asked

    @property
    def writes(self) -> list[tuple[tuple[int, int, int, int], ...]]:
        """The batches of each write so far."""
        return [asked.batches for asked in self.calls if asked.what == "write"]

    async def initialize(self, *_: object) -> None:
        """Not asked for here."""
        raise AssertionError

    async def delete(self, *_: object) -> None:
        """Not asked for here."""
        raise AssertionError

    async def read_summary(self, *_: object) -> ShareSummary:
        """Not asked for here."""
        raise AssertionError


class Waiter:
    """A share fetch that waits, and notes what it saw each time it was woken."""

    def __init__(self, hosted: HostedSharePartition) -> None:
        self.hosted = hosted
        self.seen: list[ErrorCode] = []
        hosted.wait(self)

    def look_again(self) -> None:
        """Part of ShareWaiter; one look is enough."""
        self.seen.append(self.hosted.error)
        self.hosted.leave(self)


class ShareHost:
    """One broker with topics `t` (two partitions) and `u` (one), and its share partitions."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        groups = {group: {"share.auto.offset.reset": "earliest"} for group in ("g", "h")}
        self.image: MetadataImage = image_of({"t": 2, "u": 1}, group_configs=groups)
        config = NodeConfig.from_properties(BASE_CONFIG)
        self.replicas = ReplicaManager(
            NODE_ID,
            cast("Any", _LogsInMemory(self.clock)),
            lambda image, name: LogConfig(),
            clock=self.clock,
            random=Random(1),
            config=config,
            network=cast("Any", None),
            ask_controller=_no_controller,
            broker_epoch=lambda: 1,
        )
        self.replicas.load(self.image)
        self.persister = HeldPersister()
        self.shares = SharePartitions(
            self.clock, self.replicas, self.persister, ShareSettings(config, lambda: self.image)
        )

    # -- the log

    def partition(self, index: int = 0, topic: str = "t") -> Partition:
        """A partition of this broker."""
        found = self.replicas.find(topic, index)
        assert isinstance(found, Partition)
        return found

    def append(self, count: int, index: int = 0, topic: str = "t") -> None:
        """One batch of records."""
        values = [str(number) for number in range(count)]
        assert not self.partition(index, topic).append(make_batch(*values), NOW_MS).error

    # -- members

    async def open(self, group: str = "g", index: int = 0, topic: str = "t") -> Any:
        """The share partition, loaded unless the persister is held, or an error."""
        found = self.shares.open(group, topic_id(topic), index)
        await settled()
        return found

    def find(self, group: str = "g", index: int = 0) -> Any:
        """The share partition, if there is one."""
        return self.shares.find(group, topic_id("t"), index)

    def fetch(
        self, hosted: HostedSharePartition, member: str = "m", max_records: int = 500
    ) -> list[tuple[int, int, int]]:
        """(first, last, delivery count) of what a member is given."""
        read = hosted.read(1 << 20, min_one_batch=True)
        if read is None:
            return []
        got: Delivery = hosted.deliver(
            read, member, AcquireMode.RECORD_LIMIT, max_records, max_records
        )
        assert not got.error
        assert bool(got.size_bytes) == bool(got.acquired)
        return [tuple(entry) for entry in got.acquired]

    def acknowledge(
        self,
        hosted: HostedSharePartition,
        first: int,
        last: int,
        kind: int = ACCEPT,
        member: str = "m",
    ) -> list[ErrorCode]:
        """Return where the outcome will be, or is."""
        told: list[ErrorCode] = []
        outcome = hosted.acknowledge(member, [AckBatch(first, last, [kind])])
        if isinstance(outcome, Refused):
            told.append(outcome.error)
        else:
            outcome.then(told.append)
        return told

    # -- the controller

    def decide(self, *records: Any) -> None:
        """Have the image change, and everyone hear of it in a node's order."""
        delta = ImageDelta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.image(self.image.offset + 1, 1, self.clock.now_ms())
        self.replicas.apply(delta, self.image)
        self.shares.image_changed(delta, self.image)

    def lead(self, leader: int = NODE_ID, index: int = 0) -> None:
        """Have another node, or nobody, or this one lead a partition of `t`."""
        self.decide(
            PartitionChangeRecord(partition_id=index, topic_id=topic_id("t"), leader=leader)
        )

    def delete_topic(self, topic: str = "t") -> None:
        """Delete a topic."""
        self.decide(RemoveTopicRecord(topic_id=topic_id(topic)))

    def placed(self, index: int = 0) -> PartitionImage:
        """Return where a partition of `t` is, and its epochs."""
        return self.image.topics.by_id[topic_id("t")].partitions[index]

    async def close(self) -> None:
        """End it, and see that nothing is left."""
        await self.shares.close()
        await self.replicas.close()


async def settled() -> None:
    """Let tasks go on as far as they can."""
    for _ in range(10):
        await asyncio.sleep(0)


class _LogsInMemory:
    """Logs of a directory that has no disk."""

    def __init__(self, clock: ManualClock) -> None:
        disk = FakeDisk()
        disk.make_dirs("/data")
        self._directory = LogDirectory("/data", disk, clock)
        self.futures = FutureLogs(disk, Random(2), {})

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(())

    def get(self, topic_partition: TopicPartition) -> None:
        """None is there yet."""

    def create(
        self, topic_partition: TopicPartition, topic_id: Uuid, config: LogConfig, *, is_new: bool
    ) -> PartitionLog:
        """A new log."""
        return create_log(self._directory, topic_partition, topic_id, config)

    def delete(self, topic_partition: TopicPartition) -> None:
        """It goes with the rest."""


async def _no_controller(request: object) -> object:
    raise ConnectionRefusedError(request)
