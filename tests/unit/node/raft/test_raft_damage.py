"""A voter whose log lost what had been on its medium: it must not help to elect."""

import asyncio

import pytest
from quorum_harness import LOG_DIRECTORY, Quorum, QuorumNode

from barnabas.node.raft.quorum_state import FILE_NAME as QUORUM_STATE
from barnabas.node.raft.quorum_state import QuorumStateError
from barnabas.node.raft.replica_log import MARK_FILE_NAME
from barnabas.protocol.records.batch import iterate_headers


def damage(node: QuorumNode, how: str) -> None:
    """Take the last batches away, as a truncated file or a flipped bit does."""
    file = node.disk.open(f"{LOG_DIRECTORY}/{0:020d}.log")
    if how == "cut":
        file.truncate(file.size() - 100)
    else:
        position = file.size() - 100
        byte = file.pread(1, position)[0]
        file.pwrite(bytes([byte ^ 1]), position)


@pytest.mark.parametrize("how", ["cut", "flip"])
@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_voter_elects_nobody_who_lacks_what_it_acknowledged(seed: int, how: str) -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        await leader.commit(b"early")
        others = [node for node in quorum.nodes.values() if node is not leader]
        behind, witness, damaged = others[:2], others[2], others[3]
        for node in behind:
            node.kill()
        await leader.commit(b"kept" * 30)
        await quorum.until(lambda: damaged.raft.log_end_offset == leader.raft.log_end_offset)
        await quorum.until(lambda: witness.raft.log_end_offset == leader.raft.log_end_offset)
        for node in (damaged, witness, leader):
            node.kill()
        damage(damaged, how)
        # A majority, and not one of them has all that is committed.
        for node in (*behind, damaged):
            await node.start()
        await asyncio.sleep(20)  # of virtual time
        assert not any(node.raft.is_leader for node in (*behind, damaged))
        await witness.start()
        assert await quorum.leader() is witness
        await quorum.until(lambda: damaged.listener.values == [b"early", b"kept" * 30])
        # It is whole again, and its vote counts.
        behind[0].kill()
        witness.kill()
        await leader.start()
        successor = await quorum.leader()
        await successor.commit(b"more")
        assert successor.listener.values == [b"early", b"kept" * 30, b"more"]

    five(seed).run(scenario)


def test_a_power_cut_of_all_is_no_damage() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        await leader.commit(b"kept")
        leader.append(b"perhaps")
        for node in quorum.nodes.values():
            node.kill(power=True)
        await quorum.start()
        assert all(node.raft._state.is_whole for node in quorum.nodes.values())
        leader = await quorum.leader()
        assert leader.listener.values[0] == b"kept"

    five(7).run(scenario)


def test_an_unreadable_mark_says_nothing() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        await leader.commit(b"kept")
        for node in quorum.nodes.values():
            node.kill()
            node.disk.write_atomic(f"{LOG_DIRECTORY}/{MARK_FILE_NAME}", b"\xff\x00")
        await quorum.start()
        await quorum.leader()

    five(1).run(scenario)


@pytest.mark.parametrize("at", [1, 7, 8, 16, 65], ids=["far", "near", "length", "magic", "record"])
def test_a_leader_with_a_damaged_log_gives_none_of_it_away(at: int) -> None:
    """A follower that asks for it pauses between requests, and gets it from the next leader."""

    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        behind = next(node for node in quorum.nodes.values() if node is not leader)
        behind.kill()
        end = leader.raft.log_end_offset
        for value in (b"a", b"b", b"c"):
            await leader.commit(value)
        log = leader.raft._log.log
        data = leader.disk.inode(log.active.files.log_path).data
        places = [place for place, header in iterate_headers(data) if header.base_offset > end]
        data[places[0] + at] ^= 0x60
        log.tail.clear()
        await behind.start()
        await asyncio.sleep(5)  # of virtual time
        asked = len(quorum.network.requests)
        await asyncio.sleep(5)
        assert len(quorum.network.requests) - asked < 500
        assert b"b" not in behind.listener.values
        assert not behind.failures
        if leader.is_up:
            leader.kill()
        assert await quorum.leader() is not leader
        await quorum.until(lambda: behind.listener.values == [b"a", b"b", b"c"])

    five(3).run(scenario)


def test_a_replica_that_cannot_start_says_why_and_stops() -> None:
    """Its end must not hide what kept it from starting."""

    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        await quorum.leader()
        damaged = quorum.nodes[1]
        damaged.kill()
        damaged.disk.write_atomic(f"{LOG_DIRECTORY}/{QUORUM_STATE}", b"\x00")
        with pytest.raises(QuorumStateError):
            await damaged.start()
        await damaged.raft.stop()
        assert not damaged.failures

    five(2).run(scenario)


def five(seed: int) -> Quorum:
    quorum = Quorum(seed)
    quorum.add_dynamic(1, 2, 3, 4, 5)
    return quorum
