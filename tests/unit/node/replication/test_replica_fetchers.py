"""Several fetchers for each leader (`num.replica.fetchers`): who fetches what, while it changes."""

import asyncio
from ctypes import c_int32
from dataclasses import replace
from functools import partial
from random import Random

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.java.hash import java_hash
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.metadata.image import ConfigResourceType, Endpoint
from barnabas.node.replication.fetcher_manager import fetcher_of
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from support.replica_world import Broker, ReplicaWorld, append, committed

PARTITIONS = 12
SET, DELETE = 0, 1


def configure(world: ReplicaWorld, key: str, value: str | None, broker: str = "") -> None:
    """Set a key for one broker or for all, or set it no more."""
    operation = DELETE if value is None else SET
    response = world.decide(
        IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=ConfigResourceType.BROKER,
                    resource_name=broker,
                    configs=[AlterableConfig(name=key, config_operation=operation, value=value)],
                )
            ]
        )
    )
    (answer,) = response.responses
    assert not answer.error_code, answer.error_message


def resize(world: ReplicaWorld, count: int) -> None:
    configure(world, "num.replica.fetchers", str(count))


def fetched(broker: Broker) -> dict[int, list[tuple[int, int]]]:
    """By partition of `t`: the fetchers that follow it, as (leader, fetcher)."""
    found: dict[int, list[tuple[int, int]]] = {}
    for key, fetcher in broker.replicas.fetchers._fetchers.items():
        for followed in fetcher._followed.values():
            index = followed.partition.topic_partition.partition
            found.setdefault(index, []).append(key)
    return found


def spread(leader: int, count: int) -> dict[int, list[tuple[int, int]]]:
    """What `fetched` must be when `leader` leads everything."""
    return {
        index: [(leader, fetcher_of(TopicPartition("t", index), count))]
        for index in range(PARTITIONS)
    }


def has_sessions(leader: Broker, count: int) -> bool:
    return len(leader.services.fetch_sessions) == count


def has_fetchers(broker: Broker, *keys: tuple[int, int]) -> bool:
    return list(broker.replicas.fetchers._fetchers) == list(keys)


def ends(broker: Broker) -> list[int]:
    return [broker.partition(index).log.log_end_offset for index in range(PARTITIONS)]


async def in_sync(world: ReplicaWorld, *node_ids: int) -> None:
    for index in range(PARTITIONS):
        await world.in_sync(*node_ids, index=index)


@pytest.mark.parametrize("topic", ["t", "orders", "grüppe", "polygenelubricants"])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_topic_and_partition_say_which_fetcher(topic: str, count: int) -> None:
    """Against 31 * hash + partition in wrapping 32 bits; the smallest int counts as 0."""
    for index in range(100):
        value = c_int32(31 * java_hash(topic) + index).value
        expected = 0 if value == -(1 << 31) else abs(value) % count
        assert fetcher_of(TopicPartition(topic, index), count) == expected


def test_fetchers_are_those_of_kafka() -> None:
    """`"t".hashCode()` is 116; that of "polygenelubricants" has no absolute value, nor has 31x."""
    assert [fetcher_of(TopicPartition("t", index), 3) for index in range(4)] == [2, 0, 1, 2]
    assert fetcher_of(TopicPartition("polygenelubricants", 0), 3) == 0
    assert fetcher_of(TopicPartition("polygenelubricants", 1), 10) == (1 << 31) - 1 - 2147483640


def test_three_fetchers_share_what_a_leader_leads() -> None:
    world = ReplicaWorld(num_replica_fetchers="3")

    async def scenario() -> None:
        await world.start()
        world.create_topic(*[[1, 2, 3]] * PARTITIONS, min_insync_replicas="3")
        leader = await world.leads(1, PARTITIONS - 1)
        for index in range(PARTITIONS):
            end_offset = append(leader, f"a{index}", index=index)
            assert await committed(leader, end_offset, index=index) == ErrorCode.NONE
        for node_id in (2, 3):
            assert fetched(world.brokers[node_id]) == spread(1, 3)
            peers = [
                fetcher._peer
                for fetcher in world.brokers[node_id].replicas.fetchers._fetchers.values()
            ]
            assert all(peer.is_connected for peer in peers)
            assert sorted(peer._client_id for peer in peers) == [
                f"broker-{node_id}-fetcher-{fetcher_id}" for fetcher_id in range(3)
            ]
        assert len(leader.services.fetch_sessions) == 6

    world.run(scenario())


@pytest.mark.parametrize("seed", range(4))
def test_the_number_changes_while_records_flow(seed: int) -> None:
    """Each partition has one fetcher at any time, and nobody keeps a session that none uses."""
    world = ReplicaWorld(seed=seed)
    random = Random(seed)

    async def scenario() -> None:
        await world.start()
        world.create_topic(*[[1, 2, 3]] * PARTITIONS, min_insync_replicas="2")
        leader = await world.leads(1, PARTITIONS - 1)
        await in_sync(world, 1, 2, 3)
        count = 1
        for number in (2, 4, 3, 5, 2, 1, 3):
            for step in range(30):
                append(leader, f"{number}.{step}", index=random.randrange(PARTITIONS))
                if step == 15:
                    resize(world, number)
                    count = number
                await asyncio.sleep(random.random() * 0.002)
                for follower in (world.brokers[2], world.brokers[3]):
                    found = fetched(follower)
                    assert sorted(found) == list(range(PARTITIONS))
                    assert all(len(keys) == 1 for keys in found.values()), found
            await in_sync(world, 1, 2, 3)
            await world.until(partial(has_sessions, leader, 2 * count))
            for follower in (world.brokers[2], world.brokers[3]):
                assert fetched(follower) == spread(1, count)
                assert len(follower.replicas.fetchers._fetchers) == count
                assert not follower.replicas.fetchers._work
        for index in range(PARTITIONS):
            kept = leader.records(index)
            assert all(world.brokers[node_id].records(index) == kept for node_id in (2, 3))
        assert sum(ends(leader)) == 7 * 30

    world.run(scenario())


def test_a_fetcher_that_is_left_without_partitions_ends_its_session() -> None:
    world = ReplicaWorld(num_replica_fetchers="2")

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2, 3], min_insync_replicas="2")
        leader = await world.leads(1)
        for count, expected in ((2, 0), (3, 2)):
            resize(world, count)
            for follower in (world.brokers[2], world.brokers[3]):
                await world.until(partial(has_fetchers, follower, (1, expected)))
            assert await committed(leader, append(leader, "a")) == ErrorCode.NONE
            await world.in_sync(1, 2, 3)
            await world.until(partial(has_sessions, leader, 2))

    world.run(scenario())


def test_what_is_to_be_forced_to_the_medium_moves_when_it_is_there() -> None:
    """The next fetch acknowledges what the log holds, whichever fetcher sends it."""
    world = ReplicaWorld(2)

    async def scenario() -> None:
        await world.start()
        world.create_topic(*[[1, 2]] * PARTITIONS, min_insync_replicas="1", flush_messages="1")
        leader = await world.leads(1, PARTITIONS - 1)
        follower = world.brokers[2]
        await in_sync(world, 1, 2)
        follower.disk.make_slow(200.0, 0.0)
        moving = next(index for index in range(PARTITIONS) if spread(1, 2)[index] != [(1, 0)])
        end_offset = append(leader, "a", index=moving)
        log = follower.partition(moving).log
        await world.until(lambda: log.needs_flush)
        resize(world, 2)
        await world.until(lambda: (1, 1) in follower.replicas.fetchers._fetchers)
        assert log.needs_flush
        assert moving not in fetched(follower)
        assert leader.partition(moving).high_watermark == 0
        assert await committed(leader, end_offset, index=moving) == ErrorCode.NONE
        assert fetched(follower) == spread(1, 2)

    world.run(scenario())


def test_a_partition_whose_directory_fails_meanwhile_stays_where_nobody_fetches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = ReplicaWorld(2)

    async def scenario() -> None:
        await world.start()
        world.create_topic(*[[1, 2]] * PARTITIONS)
        await world.leads(1, PARTITIONS - 1)
        follower = world.brokers[2]
        await in_sync(world, 1, 2)
        moving = next(index for index in range(PARTITIONS) if spread(1, 2)[index] != [(1, 0)])
        lost = follower.partition(moving).log
        monkeypatch.setattr(
            PartitionLog, "is_offline", property(lambda log: log is lost), raising=True
        )
        resize(world, 2)
        await world.until(lambda: (1, 1) in follower.replicas.fetchers._fetchers)
        expected = spread(1, 2)
        del expected[moving]
        assert fetched(follower) == expected

    world.run(scenario())


def test_a_leader_dies_that_several_fetchers_follow() -> None:
    world = ReplicaWorld(num_replica_fetchers="3")

    async def scenario() -> None:
        await world.start()
        world.create_topic(*[[1, 2, 3]] * PARTITIONS, min_insync_replicas="2")
        old = await world.leads(1, PARTITIONS - 1)
        await in_sync(world, 1, 2, 3)
        for index in range(PARTITIONS):
            append(old, f"a{index}", index=index)
        await in_sync(world, 1, 2, 3)
        old.kill()
        world.fence(1)
        new = await world.leads(2, PARTITIONS - 1)
        for index in range(PARTITIONS):
            end_offset = append(new, f"b{index}", index=index)
            assert await committed(new, end_offset, index=index) == ErrorCode.NONE
        survivor = world.brokers[3]
        assert fetched(survivor) == spread(2, 3)
        for key, fetcher in survivor.replicas.fetchers._fetchers.items():
            assert fetcher._peer.is_connected == (key[0] == 2)
        await old.start()
        await in_sync(world, 1, 2, 3)
        assert fetched(old) == spread(2, 3)
        assert all(old.values(index) == [f"a{index}", f"b{index}"] for index in range(PARTITIONS))

    world.run(scenario())


def test_every_fetcher_goes_where_the_leader_answers_now() -> None:
    """One that had lost its partitions before that knows already; the others must learn it."""
    world = ReplicaWorld(2, num_replica_fetchers="3")

    async def scenario() -> None:
        await world.start()
        world.create_topic(*[[1, 2]] * PARTITIONS)
        await world.leads(1, PARTITIONS - 1)
        follower = world.brokers[2]
        await world.until(lambda: fetched(follower) == spread(1, 3))
        manager = follower.replicas.fetchers
        moved = replace(world.image.brokers[1], listeners={"PLAINTEXT": Endpoint("new", 9, 0)})
        manager.brokers = {**world.image.brokers, 1: moved}
        for index in range(PARTITIONS):
            if spread(1, 3)[index] == [(1, 1)]:
                manager.stop(follower.partition(index))
        manager.brokers_changed([1])
        assert [str(fetcher._peer) for fetcher in manager._fetchers.values()] == ["new:9"] * 3

    world.run(scenario())


def test_what_was_set_before_holds_for_a_broker_that_starts() -> None:
    world = ReplicaWorld(2)
    configure(world, "num.replica.fetchers", "4")
    configure(world, "follower.replication.throttled.rate", "1000")

    async def scenario() -> None:
        await world.start()
        world.create_topic(*[[1, 2]] * PARTITIONS)
        await world.leads(1, PARTITIONS - 1)
        await in_sync(world, 1, 2)
        assert fetched(world.brokers[2]) == spread(1, 4)
        assert world.brokers[2].replicas.fetchers.follower_quota.rate_max == 1000
        configure(world, "num.replica.fetchers", "2", broker="2")
        await world.until(lambda: fetched(world.brokers[2]) == spread(1, 2))
        configure(world, "num.replica.fetchers", None, broker="2")
        await world.until(lambda: fetched(world.brokers[2]) == spread(1, 4))
        configure(world, "num.replica.fetchers", None)
        await world.until(lambda: fetched(world.brokers[2]) == spread(1, 1))

    world.run(scenario())


def test_a_leader_that_is_gone_is_not_waited_for() -> None:
    """The sessions of fetchers that are no more cannot be ended there; the others go on."""
    world = ReplicaWorld(num_replica_fetchers="4")

    async def scenario() -> None:
        await world.start()
        world.create_topic(*[[1, 2, 3]] * PARTITIONS, min_insync_replicas="1")
        leader = await world.leads(1, PARTITIONS - 1)
        for index in range(PARTITIONS):
            append(leader, f"a{index}", index=index)
        await in_sync(world, 1, 2, 3)
        follower = world.brokers[3]
        assert has_sessions(leader, 8)
        world.wire.cut("broker1", "broker3")
        resize(world, 2)
        await world.until(lambda: len(follower.replicas.fetchers._fetchers) == 2)
        assert fetched(follower) == spread(1, 2)
        assert follower.replicas.fetchers._work
        await follower.replicas.fetchers.close()
        assert not follower.replicas.fetchers._work

    world.run(scenario())


def test_a_full_disk_is_a_line_for_each_partition(caplog: pytest.LogCaptureFixture) -> None:
    world = ReplicaWorld(2)

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2], [1, 2])
        await world.leads(1, 1)
        leader, follower = world.brokers[1], world.brokers[2]
        await world.in_sync(1, 2)
        await world.in_sync(1, 2, index=1)
        caplog.clear()
        follower.disk.fill_up(0)
        append(leader, "a")
        append(leader, "b", index=1)
        await world.until(lambda: not fetched(follower))

    world.run(scenario())
    told = [record for record in caplog.records if record.name.endswith("fetcher")]
    assert [record.exc_info for record in told] == [None, None]
    assert sorted(record.getMessage()[:29] for record in told) == [
        "t-0 is no longer followed: lo",
        "t-1 is no longer followed: lo",
    ]


def was_told(leader: Broker, high_watermark: int) -> bool:
    """Return whether the leader has sent a high watermark of partition 0 to its follower."""
    (session,) = leader.services.fetch_sessions._sessions.values()
    return any(
        target.index == 0 and target.high_watermark_sent == high_watermark
        for target in session.targets.values()
    )


def test_a_partition_that_is_followed_again_hears_what_it_missed_meanwhile() -> None:
    """It was removed while the answer with the high watermark was under way."""
    world = ReplicaWorld(2)

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2], [1, 2])
        leader = await world.leads(1, 1)
        follower = world.brokers[2]
        for index in (0, 1):
            end_offset = append(leader, "a", index=index)
            assert await committed(leader, end_offset, index) == ErrorCode.NONE
        fetchers = follower.replicas.fetchers
        session_id = fetchers._fetchers[1, 0].session_id
        partition = follower.partition()
        await world.until(lambda: partition.high_watermark == 1)
        end_offset = append(leader, "b")
        await world.until(lambda: was_told(leader, end_offset))
        assert partition.log.log_end_offset == end_offset
        assert partition.high_watermark < end_offset
        fetchers.follow(partition)
        await world.until(lambda: partition.high_watermark == end_offset, within_s=5)
        assert await committed(leader, append(leader, "c")) == ErrorCode.NONE
        assert fetchers._fetchers[1, 0].session_id == session_id

    world.run(scenario())
