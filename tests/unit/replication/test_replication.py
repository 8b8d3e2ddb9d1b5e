"""Leaders and followers over a simulated network: what is copied, committed, cut off and kept."""

import asyncio

from barnabas.protocol.errors import ErrorCode
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
