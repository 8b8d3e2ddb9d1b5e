"""Snapshots among several replicas: who is too far behind fetches one, in pieces."""

import asyncio

import pytest
from quorum_harness import LOG_DIRECTORY, Quorum, QuorumNode

from barnabas.node.raft.snapshot_files import SnapshotId


async def write_snapshot(node: QuorumNode) -> SnapshotId:
    """Write what the node's listener has, and drop the log that it covers."""
    end_offset = node.raft.high_watermark
    snapshot_id = SnapshotId(end_offset, node.raft.epoch)
    await node.raft.write_snapshot(snapshot_id, list(node.listener.values), 1)
    node.raft.clean(retention_bytes=0, retention_ms=-1)
    return snapshot_id


async def filled(quorum: Quorum) -> QuorumNode:
    """A leader with 100 values committed, its log cut behind its second snapshot."""
    await quorum.start()
    leader = await quorum.leader()
    for index in range(50):
        await leader.commit(b"%d" % index)
    await write_snapshot(leader)
    for index in range(50, 100):
        await leader.commit(b"%d" % index)
    await write_snapshot(leader)
    return leader


def quorum(*, dynamic: bool, chunk: int = 100) -> Quorum:
    quorum = Quorum(1, segment_bytes=1000, fetch_snapshot_max_bytes=chunk)
    if dynamic:
        quorum.add_dynamic(1, 2, 3)
    else:
        quorum.add_static(1, 2, 3)
    return quorum


VALUES = [b"%d" % index for index in range(100)]


@pytest.mark.parametrize("dynamic", [False, True])
def test_an_empty_replica_begins_with_the_snapshot(dynamic: bool) -> None:
    async def scenario(quorum: Quorum) -> None:
        leader = await filled(quorum)
        follower = next(node for node in quorum.nodes.values() if node is not leader)
        follower.kill()
        for name in follower.disk.list(LOG_DIRECTORY):
            if name not in ("quorum-state", "00000000000000000000-0000000000.checkpoint"):
                follower.disk.remove(f"{LOG_DIRECTORY}/{name}")
        await follower.start()
        await quorum.until(lambda: follower.listener.values == VALUES)
        assert follower.listener.snapshots[-1] == leader.raft.snapshot_id
        assert follower.raft.snapshot_id == leader.raft.snapshot_id
        assert follower.raft.voters == leader.raft.voters
        assert follower.raft.kraft_version == int(dynamic)
        await leader.commit(b"more")
        await quorum.until(lambda: follower.listener.values == [*VALUES, b"more"])
        follower.kill(power=True)
        await follower.start()
        await quorum.until(lambda: follower.listener.values == [*VALUES, b"more"])

    quorum(dynamic=dynamic).run(scenario)


def test_a_replica_that_was_away_begins_with_the_snapshot() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        await leader.commit(b"0")
        follower = next(node for node in quorum.nodes.values() if node is not leader)
        follower.kill()
        for index in range(1, 100):
            await leader.commit(b"%d" % index)
            if index in (30, 90):
                await write_snapshot(leader)
        assert leader.raft._log.start_offset > 1
        await follower.start()
        await quorum.until(lambda: follower.listener.values == VALUES)
        assert follower.listener.snapshots[-1] == leader.raft.snapshot_id

    quorum(dynamic=True).run(scenario)


def test_a_download_that_is_interrupted_begins_anew() -> None:
    async def scenario(quorum: Quorum) -> None:
        leader = await filled(quorum)
        newcomer = quorum.add(4)
        newcomer.bootstrap = [(f"node{node_id}", 9093) for node_id in (1, 2, 3)]
        await newcomer.start()
        fetches = ("FetchSnapshotRequest",)
        await quorum.until(lambda: any(r[2] in fetches for r in quorum.network.requests))
        newcomer.kill()
        quorum.network.requests.clear()
        await newcomer.start()
        await quorum.until(lambda: any(r[2] in fetches for r in quorum.network.requests))
        leader.kill()
        await quorum.leader(among=[1, 2, 3])
        await quorum.until(lambda: newcomer.listener.values == VALUES)
        leftovers = [n for n in newcomer.disk.list(LOG_DIRECTORY) if n.endswith(".part")]
        assert leftovers == []

    quorum(dynamic=True, chunk=20).run(scenario)


def test_a_snapshot_that_is_damaged_on_the_way_is_fetched_again() -> None:
    async def scenario(quorum: Quorum) -> None:
        leader = await filled(quorum)
        assert leader.raft.snapshot_id is not None
        path = f"{LOG_DIRECTORY}/{leader.raft.snapshot_id.file_name}"
        data = leader.disk.inode(path).data
        data[100] ^= 1
        newcomer = quorum.add(4)
        newcomer.bootstrap = [(f"node{node_id}", 9093) for node_id in (1, 2, 3)]
        await newcomer.start()
        await quorum.until(
            lambda: sum(r[2] == "FetchSnapshotRequest" for r in quorum.network.requests) > 40
        )
        assert newcomer.listener.values == []
        data[100] ^= 1
        await quorum.until(lambda: newcomer.listener.values == VALUES)

    quorum(dynamic=True).run(scenario)


def test_a_snapshot_holds_the_voters_of_its_offset() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        await leader.commit(b"a")
        snapshot_id = await write_snapshot(leader)
        await asyncio.sleep(0)
        snapshot = leader.raft.voters
        leader.kill()
        await quorum.leader()
        await leader.start()
        await quorum.until(lambda: leader.listener.values == [b"a"])
        assert leader.listener.snapshots == [snapshot_id]
        assert leader.raft.voters == snapshot

    quorum(dynamic=True).run(scenario)
