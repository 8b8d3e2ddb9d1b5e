"""Several replicas at work: they elect, replicate, fail over, and lose nothing."""

import asyncio

import pytest
from quorum_harness import LOG_DIRECTORY, Quorum, voter_set

from barnabas.node.log.errors import LogDirFailure
from barnabas.node.raft.core.state import Role
from barnabas.node.raft.interfaces import NotLeaderError
from barnabas.node.raft.recovery import MetadataLogError


def three(seed: int, **settings: int) -> Quorum:
    quorum = Quorum(seed, **settings)
    quorum.add_static(1, 2, 3)
    return quorum


@pytest.mark.parametrize("seed", range(5))
def test_three_elect_and_replicate(seed: int) -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        assert quorum.loop.now_ms < 1_000
        await leader.commit(b"a", b"b")
        await leader.commit(b"c")
        await quorum.until(
            lambda: all(n.listener.values == [b"a", b"b", b"c"] for n in quorum.nodes.values()),
            within_ms=100,
        )

    three(seed).run(scenario)


def test_a_replica_that_was_not_started_knows_nothing_and_gives_no_vote() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        node = await quorum.leader()
        await node.stop()
        path = f"{LOG_DIRECTORY}/quorum-state"
        state = node.disk.read(path)
        node.prepare()
        node.make()
        raft = node.raft
        assert (raft.is_recovered, raft.epoch, raft.leader_id) == (False, 0, -1)
        assert (raft.role, raft.leader_endpoint, raft.progress) == (Role.UNATTACHED, None, {})
        assert raft.voters == node.static
        with pytest.raises(AssertionError):
            raft.resign()
        await raft.stop()
        assert node.disk.read(path) == state
        assert not node.failures
        await node.start()
        await quorum.leader()
        assert node.raft.is_recovered

    three(1).run(scenario)


@pytest.mark.parametrize("seed", range(5))
def test_a_killed_leader_is_replaced_at_once(seed: int) -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        await leader.commit(b"kept")
        began_ms = quorum.loop.now_ms
        leader.kill(power=True)
        successor = await quorum.leader()
        assert quorum.loop.now_ms - began_ms < 1_000
        assert successor.listener.values == [b"kept"]
        await successor.commit(b"more")
        await leader.start()
        await quorum.until(lambda: leader.listener.values == [b"kept", b"more"])
        assert await quorum.leader() is successor

    three(seed).run(scenario)


@pytest.mark.parametrize("seed", range(5))
def test_after_all_were_killed_a_leader_is_there_soon(seed: int) -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        await leader.commit(b"kept")
        for node in quorum.nodes.values():
            node.kill(power=True)
        began_ms = quorum.loop.now_ms
        await quorum.start()
        leader = await quorum.leader()
        assert quorum.loop.now_ms - began_ms < 1_500
        assert leader.listener.values == [b"kept"]

    three(seed).run(scenario)


@pytest.mark.parametrize("seed", range(3))
def test_a_leader_without_a_majority_resigns_and_what_it_wrote_is_void(seed: int) -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        await leader.commit(b"kept")
        quorum.network.isolate(leader.local.key.id)
        lost = asyncio.ensure_future(leader.raft.wait_committed(leader.append(b"lost")))
        others = [i for i in quorum.nodes if i != leader.local.key.id]
        successor = await quorum.leader(among=others)
        await successor.commit(b"won")
        with pytest.raises(NotLeaderError):
            await lost
        assert not leader.raft.is_leader
        with pytest.raises(NotLeaderError):
            leader.raft.append([b"no"])
        quorum.network.heal()
        await quorum.until(lambda: leader.listener.values == [b"kept", b"won"])
        assert (await quorum.leader()).raft.epoch >= successor.raft.epoch

    three(seed).run(scenario)


def test_a_follower_that_was_cut_off_disturbs_nobody() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        epoch = leader.raft.epoch
        follower = next(n for n in quorum.nodes.values() if n is not leader)
        quorum.network.isolate(follower.local.key.id)
        await leader.commit(b"a")
        await quorum.until(lambda: follower.raft.role is Role.PROSPECTIVE)
        await asyncio.sleep(20)
        quorum.network.heal()
        await quorum.until(lambda: follower.listener.values == [b"a"])
        assert await quorum.leader() is leader
        assert leader.raft.epoch == epoch

    three(0).run(scenario)


def test_a_leader_that_stops_hands_over_at_once() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        await leader.commit(b"kept")
        began_ms = quorum.loop.now_ms
        await leader.stop()
        successor = await quorum.leader()
        assert quorum.loop.now_ms - began_ms < 500
        assert successor.listener.values == [b"kept"]
        assert leader.listener.leaders[-1][0] == -1

    three(0).run(scenario)


def test_a_leader_that_is_slow_is_replaced_after_the_fetch_timeout() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        assert leader.process is not None
        quorum.loop.stop_process(leader.process)
        began_ms = quorum.loop.now_ms
        await quorum.leader(among=[i for i in quorum.nodes if i != leader.local.key.id])
        took_ms = quorum.loop.now_ms - began_ms
        assert 1_000 < took_ms < 5_000, "slow is no evidence"
        quorum.loop.continue_process(leader.process)
        await quorum.leader()

    three(0).run(scenario)


def test_nothing_is_committed_before_a_majority_has_it_on_the_medium() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        await leader.commit(b"a")
        gates = []
        for node in quorum.nodes.values():
            if node is not leader:
                node.disk.held = asyncio.Event()
                gates.append(node.disk.held)
        waiting = asyncio.ensure_future(leader.raft.wait_committed(leader.append(b"b")))
        await asyncio.sleep(0.5)
        assert not waiting.done()
        gates[0].set()
        await waiting
        gates[1].set()

    three(0).run(scenario)


def test_observers_find_the_leader_and_follow() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start(1, 2, 3)
        leader = await quorum.leader()
        await leader.commit(b"a")
        broker = quorum.add(4, is_controller=False)
        broker.static = voter_set(1, 2, 3)
        await broker.start()
        await quorum.until(lambda: broker.listener.values == [b"a"])
        leader.kill()
        successor = await quorum.leader()
        await successor.commit(b"b")
        await quorum.until(lambda: broker.listener.values == [b"a", b"b"])
        assert broker.raft.leader_endpoint == (f"node{successor.local.key.id}", 9093)
        assert not broker.raft.is_voter

    three(0).run(scenario)


def test_a_sole_voter_leads_when_start_returns() -> None:
    async def scenario(quorum: Quorum) -> None:
        node = quorum.nodes[1]
        await node.start()
        assert node.raft.is_leader
        assert node.listener.leaders == [(1, 1)]
        await node.commit(b"a", b"b")
        await node.stop()
        await node.start()
        assert node.listener.values == [b"a", b"b"]
        assert node.listener.leaders[-1] == (1, 2)

    for is_dynamic in (False, True):
        quorum = Quorum()
        if is_dynamic:
            quorum.add_dynamic(1)
        else:
            quorum.add_static(1)
        quorum.run(scenario)


def test_a_directory_without_voters_says_what_to_do() -> None:
    async def scenario(quorum: Quorum) -> None:
        quorum.add(1)
        with pytest.raises(MetadataLogError, match=r"controller\.quorum\.voters"):
            await quorum.nodes[1].start()
        quorum.add(4).static = voter_set(1, 2, 3)
        with pytest.raises(MetadataLogError, match="not among the voters"):
            await quorum.nodes[4].start()

    Quorum().run(scenario)


def test_a_disk_that_fails_ends_the_replica_and_not_the_quorum() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        leader.disk.fail("fsync")
        with pytest.raises(LogDirFailure):
            await leader.commit(b"lost")
        assert [type(error) for error in leader.failures] == [LogDirFailure]
        leader.failures.clear()
        assert leader.process is None
        successor = await quorum.leader()
        await successor.commit(b"kept")

    three(0).run(scenario)
