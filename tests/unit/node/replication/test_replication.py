"""Leaders and followers over a simulated network: what is copied, committed, cut off and kept."""

import asyncio
import inspect
from typing import Any

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.node.broker.apis.topics import handle_delete_records
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.partitions import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from support.replica_world import ReplicaWorld, append, committed


def test_followers_copy_the_leaders_log_and_learn_what_is_committed() -> None:
    world = ReplicaWorld()

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3], min_insync_replicas="2")
        leader = await world.leads(1)
        end_offset = append(leader, "a", "b")
        assert leader.partition().high_watermark == 0
        assert await committed(leader, end_offset) == ErrorCode.NONE
        await world.until(
            lambda: all(broker.partition().high_watermark == 2 for broker in world.brokers.values())
        )
        for broker in world.brokers.values():
            assert broker.values() == ["a", "b"]
            assert broker.partition().log.epochs.entries == [(0, 0)]

    world.run(scenario())


def test_a_new_leader_goes_on_and_the_old_one_drops_what_was_not_committed() -> None:
    world = ReplicaWorld()

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3], min_insync_replicas="2")
        old = await world.leads(1)
        assert await committed(old, append(old, "a")) == ErrorCode.NONE
        for node_id in (2, 3):
            world.wire.cut("broker1", f"broker{node_id}")
        append(old, "lost")
        lost = committed(old, 2)
        old.is_deaf = True
        world.fence(1)
        new = await world.leads(2)
        assert await committed(new, append(new, "b")) == ErrorCode.NONE
        assert old.values() == ["a", "lost"]
        world.wire.heal()
        old.is_deaf = False
        old.catch_up()
        assert await lost == ErrorCode.NOT_LEADER_OR_FOLLOWER
        world.heartbeat(old)
        await world.in_sync(1, 2, 3)
        assert old.values() == ["a", "b"]
        assert old.partition().log.epochs.entries == new.partition().log.epochs.entries

    world.run(scenario())


def test_a_follower_that_lags_leaves_the_isr_and_comes_back() -> None:
    world = ReplicaWorld(replica_lag_time_max_ms="3000")

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3], min_insync_replicas="1")
        leader = await world.leads(1)
        await committed(leader, append(leader, "a"))
        world.brokers[3].kill()
        end_offset = append(leader, "b")
        await asyncio.sleep(0.5)
        assert leader.partition().high_watermark == 1
        assert await committed(leader, end_offset) == ErrorCode.NONE
        assert set(world.placed().isr) == {1, 2}
        await world.brokers[3].start()
        await world.in_sync(1, 2, 3)
        assert world.brokers[3].values() == ["a", "b"]

    world.run(scenario())


def test_who_has_not_reached_the_start_of_the_epoch_stays_out_of_the_isr() -> None:
    """The former leader may have committed records between the high watermark and that start."""
    world = ReplicaWorld(replica_fetch_max_bytes="1")

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3], min_insync_replicas="1")
        leader = await world.leads(1)
        world.brokers[3].kill()
        world.fence(3)
        for value in "abcdefgh":
            append(leader, value)
        assert await committed(leader, 8) == ErrorCode.NONE
        leader.kill()
        world.fence(1)
        new = await world.leads(2)
        assert new.partition().leader_epoch_start == 8
        new.partition()._high_watermark = 1  # as if it had heard of no more
        await world.brokers[3].start()
        await world.until(lambda: 3 in world.placed().isr)
        leading = new.partition().leading
        assert leading is not None
        follower = leading.follower(3)
        assert follower is not None
        assert follower.log_end_offset >= 8

    world.run(scenario())


def test_a_log_that_starts_after_a_followers_end_begins_anew_there() -> None:
    world = ReplicaWorld()

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3], min_insync_replicas="1")
        leader = await world.leads(1)
        await committed(leader, append(leader, "a"))
        late = world.brokers[3]
        late.kill()
        world.fence(3)
        for value in "bcd":
            append(leader, value)
        await committed(leader, 4)
        leader.partition().raise_log_start(3)
        leader.logs.retention_step(leader.clock.now_ms())
        await late.start()
        await world.in_sync(1, 2, 3)
        assert late.partition().log.log_start_offset == 3
        assert late.values() == ["d"]

    world.run(scenario())


def test_records_are_deleted_everywhere_before_it_is_said() -> None:
    world = ReplicaWorld()

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3])
        leader = await world.leads(1)
        await committed(leader, append(leader, "a", "b", "c"))
        request = DeleteRecordsRequest(
            timeout_ms=10_000,
            topics=[
                DeleteRecordsTopic(
                    name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=2)]
                )
            ],
        )
        context: Any = None
        answer = handle_delete_records(leader.services, context, request)
        assert inspect.isawaitable(answer)
        (topic,) = (await answer).topics
        (result,) = topic.partitions
        assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 2)
        for broker in world.brokers.values():
            assert broker.partition().log.log_start_offset == 2
        world.brokers[2].kill()
        request.topics[0].partitions[0].offset = 3
        answer = handle_delete_records(leader.services, context, request)
        assert inspect.isawaitable(answer)
        (topic,) = (await answer).topics
        assert topic.partitions[0].error_code == ErrorCode.REQUEST_TIMED_OUT

    world.run(scenario())


def test_replicas_move_to_another_broker() -> None:
    world = ReplicaWorld(4)

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3], min_insync_replicas="2")
        leader = await world.leads(1)
        await committed(leader, append(leader, "a", "b"))
        world.decide(
            AlterPartitionReassignmentsRequest(
                topics=[
                    ReassignableTopic(
                        name="t",
                        partitions=[ReassignablePartition(partition_index=0, replicas=[4, 2, 3])],
                    )
                ]
            )
        )
        await world.until(lambda: world.placed().replicas == (4, 2, 3))
        await world.until(lambda: world.brokers[1].logs.get(TopicPartition("t", 0)) is None)
        new = world.leader()
        assert new is not None
        assert new is not leader
        assert await committed(new, append(new, "c")) == ErrorCode.NONE
        await world.in_sync(4, 2, 3)
        assert world.brokers[4].values() == ["a", "b", "c"]
        found = leader.replicas.find("t", 0)
        assert found == ErrorCode.NOT_LEADER_OR_FOLLOWER

    world.run(scenario())


def test_a_partition_that_had_no_other_replica_gets_some() -> None:
    world = ReplicaWorld()

    async def scenario() -> None:
        await world.start()
        world.create_topic([1])
        leader = await world.leads(1)
        append(leader, "a")
        assert leader.partition().high_watermark == 1
        world.decide(
            AlterPartitionReassignmentsRequest(
                topics=[
                    ReassignableTopic(
                        name="t",
                        partitions=[ReassignablePartition(partition_index=0, replicas=[1, 2, 3])],
                    )
                ]
            )
        )
        await world.in_sync(1, 2, 3)
        await committed(leader, append(leader, "b"))
        assert world.brokers[3].values() == ["a", "b"]

    world.run(scenario())


def test_followers_acknowledge_what_flush_messages_wants_flushed_once_it_is() -> None:
    world = ReplicaWorld()

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3], flush_messages="1", min_insync_replicas="3")
        leader = await world.leads(1)
        for number in range(3):
            end_offset = append(leader, str(number))
            assert await committed(leader, end_offset) == ErrorCode.NONE
            for broker in world.brokers.values():
                assert broker.partition().log.flushed_offset >= end_offset

    world.run(scenario())


@pytest.mark.parametrize("slow", [2, 3], ids=["the new leader", "who follows it"])
def test_what_is_being_flushed_when_the_leader_changes_is_acknowledged_afterwards(
    slow: int,
) -> None:
    world = ReplicaWorld()

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3], flush_messages="1", min_insync_replicas="1")
        leader = await world.leads(1)
        await world.in_sync(1, 2, 3)
        world.brokers[slow].disk.make_slow(20.0, 0.0)
        end_offset = append(leader, "a")
        followers = [world.brokers[node_id].partition() for node_id in (2, 3)]
        await world.until(lambda: all(each.log.log_end_offset for each in followers))
        leader.kill()
        world.fence(1)
        await world.leads(2)
        assert followers[slow - 2].log.needs_flush

        def is_committed() -> bool:
            high_watermark = followers[0].high_watermark
            assert all(high_watermark <= each.log.flushed_offset for each in followers)
            return high_watermark == end_offset

        await world.until(is_committed)

    world.run(scenario())


def test_a_restarted_leader_knows_what_was_committed_and_waits_for_the_rest() -> None:
    world = ReplicaWorld()

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3], min_insync_replicas="2")
        leader = await world.leads(1)
        await committed(leader, append(leader, "a", "b"))
        await asyncio.sleep(6)  # replica.high.watermark.checkpoint.interval.ms
        append(leader, "c")
        await committed(leader, 3)
        for broker in world.brokers.values():
            broker.kill()
        await world.brokers[1].start()
        alone = world.brokers[1].partition()
        assert (alone.log.log_end_offset, alone.high_watermark) == (3, 2)
        await world.brokers[2].start()
        await world.brokers[3].start()
        await world.in_sync(1, 2, 3)
        await world.until(
            lambda: all(broker.partition().high_watermark == 3 for broker in world.brokers.values())
        )

    world.run(scenario())


def test_a_leader_whose_isr_is_too_small_commits_nothing() -> None:
    world = ReplicaWorld(replica_lag_time_max_ms="1000")

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3], min_insync_replicas="2")
        leader = await world.leads(1)
        await committed(leader, append(leader, "a"))
        for node_id in (2, 3):
            world.brokers[node_id].kill()
        append(leader, "b")
        await world.until(lambda: world.placed().isr == (1,))
        await asyncio.sleep(1)
        partition = leader.partition()
        assert partition.is_under_min_isr
        assert partition.high_watermark == 1
        await world.brokers[2].start()
        await world.until(lambda: leader.partition().high_watermark == 2)

    world.run(scenario())


@pytest.mark.parametrize("side", ["leader", "follower"])
@pytest.mark.parametrize("is_throttled", [True, False])
def test_a_throttled_replica_is_copied_no_faster_than_it_may(side: str, is_throttled: bool) -> None:
    world = ReplicaWorld(replica_fetch_max_bytes="2000")
    throttled = {f"{side}_replication_throttled_replicas": "*"} if is_throttled else {}

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2], **throttled)
        leader, follower = await world.leads(1), world.brokers[2]
        await committed(leader, append(leader, "x" * 1000))
        follower.kill()
        world.fence(2)
        for _ in range(100):
            append(leader, "x" * 1000)
        await follower.start()
        for broker in (leader, follower):
            broker.replicas.fetchers.leader_quota.rate_max = 10_000
            broker.replicas.fetchers.follower_quota.rate_max = 10_000
        started_s = world.loop.time()
        await world.in_sync(1, 2)
        assert leader.partition().high_watermark == 101
        taken_s = world.loop.time() - started_s
        # A hundred kilobytes at ten a second, the window's ten seconds counted from the first.
        assert taken_s > 3 if is_throttled else taken_s < 1, taken_s

    world.run(scenario())


def test_followers_turn_to_what_is_new_without_sleeping_at_the_leader() -> None:
    world = ReplicaWorld(replica_fetch_wait_max_ms="5000", replica_lag_time_max_ms="5000")

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3], topic="idle")
        await asyncio.sleep(2)
        world.create_topic([1, 2, 3])
        leader = await world.leads(1)
        started_s = world.loop.time()
        await committed(leader, append(leader, "a"))
        assert world.loop.time() - started_s < 0.1

    world.run(scenario())
