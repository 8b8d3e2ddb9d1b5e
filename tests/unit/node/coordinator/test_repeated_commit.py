"""Repeated commits take a shorter path that leaves the same state as the general one."""

import asyncio
import random
from typing import Any

import pytest

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.coordinator.group.repeated_commit import RepeatedCommit
from barnabas.node.coordinator.internal_topic import InternalTopic
from barnabas.node.coordinator.partition_writer import CoordinatorWriteError
from barnabas.node.loop.promise import Promise
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from support.consumer_world import ConsumerWorld, topic_id
from support.logs import make_batch
from support.replica_world import ReplicaWorld

VERSION = 9
WRITE_TIMEOUT_MS = 5_000
EPOCH_CHANGES, SESSIONS_END = 7, 8
SESSIONS_LAST = 100
Offsets = list[tuple[int, int]]
"""(offset, leader epoch) by place."""


class Committer:
    """One of two worlds in which the same happens; `repeats` says how it commits."""

    def __init__(self, kind: str, *, repeats: bool) -> None:
        self.world = ConsumerWorld(offsets_commit_timeout_ms=WRITE_TIMEOUT_MS)
        self.world.set_topics({"t": 4})
        self.repeats = repeats
        self.taken = 0
        self.answers: list[list[int] | None] = []
        self.member_id, self.epoch = "", -1
        if kind == "classic":
            self.member_id, joined = self.world.join_fully("a", session_timeout_ms=9_000)
            self.world.clock.advance(3_000)
            self.epoch = joined.response.generation_id
            self.world.sync(self.member_id, self.epoch, {self.member_id: b""})
        elif kind == "consumer":
            self.member_id = "member"
            self.epoch = self.world.beat_joining(self.member_id, "t").member_epoch

    def remember(self, indexes: list[int], topic: Uuid) -> None:
        partitions = [OffsetCommitRequestPartition(partition_index=index) for index in indexes]
        for partition in partitions:
            partition.committed_metadata = ""
        self.request = OffsetCommitRequest(
            group_id="g",
            member_id=self.member_id,
            generation_id_or_member_epoch=self.epoch,
            topics=[OffsetCommitRequestTopic(name="t", topic_id=topic, partitions=partitions)],
        )
        self.repeated = RepeatedCommit(self.world.coordinator, self.request, VERSION)

    def commit(self, offsets: Offsets) -> None:
        place = len(self.answers)
        self.answers.append(None)
        if self.repeats:
            values = [value for pair in offsets for value in (*pair, b"")]
            outcome = self.repeated.commit(values)
            if outcome is not None:
                self.taken += 1
                count = len(offsets)

                def settled(error: ErrorCode) -> None:
                    self.answers[place] = [error] * count

                outcome.then(settled) if isinstance(outcome, Promise) else settled(outcome)
                return
        partitions = self.request.topics[0].partitions
        for partition, (offset, leader_epoch) in zip(partitions, offsets, strict=True):
            partition.committed_offset = offset
            partition.committed_leader_epoch = leader_epoch
        client = self.world.client("c", VERSION)
        response = self.world.coordinator.offset_commit(self.request, client)

        def answered(response: OffsetCommitResponse) -> None:
            self.answers[place] = [part.error_code for part in response.topics[0].partitions]

        response.then(answered) if isinstance(response, Promise) else answered(response)

    def state(self) -> Any:
        """Return all state that could differ between the two ways."""
        log = self.world.log[0]
        shard = self.world.coordinator.runtime.shard(0)
        kept: Any = None
        if shard is not None:
            kept = shard.offsets.group("g"), shard.next_deadline_ms(), len(shard.groups)
        return log.batches, log.end_offset, kept, self.answers


def happen(committer: Committer, what: int, chance: random.Random) -> None:
    """One thing of those that may come between two commits."""
    world = committer.world
    match what:
        case 0:
            world.log.holds_commits = True
        case 1:
            world.log.holds_commits = False
            world.log.commit()
        case 2:
            world.log.append_error = chance.choice(
                (None, None, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR)
            )
        case 3:
            world.log.batch_size_max = chance.choice((1 << 20, 1 << 20, 250))
        case 4:
            world.clock.advance(chance.choice((1, 3_000, WRITE_TIMEOUT_MS)))
        case 5:
            world.reload()
        case 6:
            world.log.fail_waiters(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        case 9:
            world.log.holds_commits = False  # who waits is not told
        case value if value == EPOCH_CHANGES:
            committer.epoch += chance.choice((-1, 1))
        case value if value == SESSIONS_END:
            world.clock.advance(20_000)


@pytest.mark.parametrize("kind", ["nobody", "classic", "consumer"])
@pytest.mark.parametrize("seed", range(6))
def test_both_ways_leave_the_same_behind(kind: str, seed: int) -> None:
    chance = random.Random(seed)
    again, general = Committer(kind, repeats=True), Committer(kind, repeats=False)
    indexes, topic = [0], ZERO_UUID
    for number in range(120):
        is_new = not number or chance.random() < 0.1
        if is_new:
            indexes = chance.choice(([0], [3], [2, 0], [0, 1, 2, 3], [1, 1]))
            topic = chance.choice((ZERO_UUID, topic_id("t"), topic_id("t")))
        what = chance.randrange(40)
        if what == SESSIONS_END and number < SESSIONS_LAST:
            what = -1
        offsets = [(chance.randrange(2**63), chance.randrange(-1, 2**31)) for _ in indexes]
        inner = chance.randrange(2**32)
        for committer in (again, general):
            happen(committer, what, random.Random(inner))
            if is_new or what == EPOCH_CHANGES:
                committer.remember(indexes, topic)
            committer.commit(offsets)
        assert again.state() == general.state()
    for committer in (again, general):
        committer.world.log.commit()
    assert again.state() == general.state()
    assert again.taken > 10


def test_the_first_commit_of_a_group_takes_the_general_way() -> None:
    committer = Committer("nobody", repeats=True)
    committer.remember([0], ZERO_UUID)
    committer.commit([(1, 0)])
    assert (committer.taken, committer.answers) == (0, [[0]])
    committer.commit([(2, 0)])
    assert (committer.taken, committer.answers) == (1, [[0], [0]])
    assert committer.world.offsets() == {("t", 0): 2}


def test_a_coordinator_that_is_closed_is_asked_the_general_way() -> None:
    committer = Committer("nobody", repeats=True)
    committer.remember([0], ZERO_UUID)
    committer.commit([(1, 0)])
    asyncio.run(committer.world.coordinator.close())
    committer.commit([(2, 0)])
    assert committer.answers[1] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_plain_append_is_an_append(replicas: int) -> None:
    world = ReplicaWorld(brokers=2)

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2][:replicas], [1, 2][:replicas], [1, 2][:replicas])
        broker = await world.leads(1)
        for index in (0, 1, 2):
            await world.leads(1, index)
        assert broker.process is not None
        topic = InternalTopic("t", broker.replicas, broker.clock)
        run = broker.process.context.run

        async def settled() -> None:
            for index in (0, 1):
                partition = broker.partition(index)
                await world.until(lambda p=partition: p.high_watermark == p.log.log_end_offset)

        for number in range(5):
            batch = make_batch(*["value"] * (number % 3 + 1))
            end_offset = run(topic.append, 0, bytearray(batch))
            plain = run(topic.append_plain, 1, bytearray(batch), len(batch))
            assert plain == (end_offset, replicas == 1)
            await settled()
        found = [broker.records(index) for index in (0, 1)]
        assert found[0] == found[1]
        with pytest.raises(CoordinatorWriteError, match="RECORD_LIST_TOO_LARGE"):
            run(topic.append_plain, 1, make_batch("value"), 1 << 30)
        with pytest.raises(CoordinatorWriteError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            run(topic.append_plain, 7, make_batch("value"), 100)

    world.run(scenario())
