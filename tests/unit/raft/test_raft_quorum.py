"""Several replicas at work: they elect, replicate, fail over, and lose nothing."""

import pytest
from quorum_harness import Quorum


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
