"""Voters that come and go while the quorum works (KIP-853)."""

import asyncio
from typing import Any

import pytest
from quorum_harness import CLUSTER_ID, Quorum, QuorumNode, voter

from barnabas.node.raft.voters import Voter
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.voters import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    Listener,
    RemoveRaftVoterRequest,
)


def add_request(added: Voter, **fields: Any) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        timeout_ms=1000,
        voter_id=added.key.id,
        voter_directory_id=added.key.directory_id,
        listeners=[Listener(name=e.listener, host=e.host, port=e.port) for e in added.endpoints],
        **fields,
    )


def remove_request(removed: Voter) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        voter_id=removed.key.id,
        voter_directory_id=removed.key.directory_id,
    )


async def ask(node: QuorumNode, request: Any) -> tuple[ErrorCode, str | None]:
    response = await node.raft.handle(request, 0)
    return ErrorCode.of(response.error_code), response.error_message


def three(**settings: Any) -> Quorum:
    quorum = Quorum(2, **settings)
    quorum.add_dynamic(1, 2, 3)
    return quorum


async def join(quorum: Quorum, node_id: int, *, directory: int = 0) -> QuorumNode:
    """Start another controller, that follows but does not vote."""
    node = quorum.add(node_id, directory=directory)
    node.bootstrap = [(f"node{other}", 9093) for other in (1, 2, 3)]
    await node.start()
    await quorum.until(lambda: node.raft.leader_id >= 0 and node.raft.high_watermark > 0)
    return node


async def grow(leader: QuorumNode, node: QuorumNode) -> None:
    assert await ask(leader, add_request(node.local)) == (ErrorCode.NONE, None)


def test_a_voter_is_added_and_counts() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        await leader.commit(b"a")
        newcomer = await join(quorum, 4)
        assert not newcomer.raft.is_voter
        await grow(leader, newcomer)
        await quorum.until(lambda: newcomer.raft.is_voter)
        assert sorted(leader.raft.voters.by_id) == [1, 2, 3, 4]
        for node_id in (1, 2, 3):
            if quorum.nodes[node_id] is not leader:
                quorum.nodes[node_id].kill()
                break
        await leader.commit(b"b")
        for node in quorum.nodes.values():
            if node.is_up:
                node.kill(power=True)
        await quorum.start()
        leader = await quorum.leader()
        assert sorted(leader.raft.voters.by_id) == [1, 2, 3, 4]
        assert leader.listener.values == [b"a", b"b"]

    three().run(scenario)


def test_a_leader_that_is_removed_resigns_once_that_is_committed() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        assert await ask(leader, remove_request(leader.local)) == (ErrorCode.NONE, None)
        others = [i for i in quorum.nodes if i != leader.local.key.id]
        successor = await quorum.leader(among=others)
        assert sorted(successor.raft.voters.by_id) == others
        await successor.commit(b"a")
        await quorum.until(lambda: leader.listener.values == [b"a"])
        assert not leader.raft.is_voter
        leader.kill()
        await leader.start()
        await quorum.until(lambda: leader.listener.values == [b"a"])
        assert await quorum.leader() is successor

    three().run(scenario)


def test_a_replaced_disk_is_removed_and_added() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        old = next(node for node in quorum.nodes.values() if node is not leader)
        node_id = old.local.key.id
        old.kill()
        new = await join(quorum, node_id, directory=1)
        code, message = await ask(leader, add_request(new.local))
        assert (code, message and "remove it first" in message) == (ErrorCode.DUPLICATE_VOTER, True)
        code, _ = await ask(leader, remove_request(new.local))
        assert code is ErrorCode.VOTER_NOT_FOUND
        assert await ask(leader, remove_request(old.local)) == (ErrorCode.NONE, None)
        await grow(leader, new)
        assert leader.raft.voters.by_id[node_id] == new.local

    three().run(scenario)


def test_a_controller_joins_by_itself() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        newcomer = await join(quorum, 4)
        await quorum.until(lambda: sorted(leader.raft.voters.by_id) == [1, 2, 3, 4])
        newcomer.kill()
        again = await join(quorum, 4, directory=1)
        await quorum.until(lambda: leader.raft.voters.by_id.get(4) == again.local)

    three(auto_join=True).run(scenario)


def test_a_voter_that_answers_elsewhere_says_so() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        node = next(node for node in quorum.nodes.values() if node is not leader)
        node.kill()
        node.local = voter(node.local.key.id, port=9999)
        await node.start()
        await quorum.until(lambda: leader.raft.voters.by_id[node.local.key.id] == node.local)
        leader.kill()
        leader.local = voter(leader.local.key.id, port=9998)
        await quorum.leader()
        await leader.start()
        await quorum.until(
            lambda: all(
                n.raft.voters.by_id[leader.local.key.id] == leader.local
                for n in quorum.nodes.values()
            )
        )

    three().run(scenario)


def test_what_would_cost_the_majority_is_refused() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        dead, alive = (node for node in quorum.nodes.values() if node is not leader)
        dead.kill()
        await asyncio.sleep(4)
        code, message = await ask(leader, remove_request(alive.local))
        assert code is ErrorCode.INVALID_REQUEST
        assert message is not None
        assert "no majority" in message
        assert await ask(leader, remove_request(dead.local)) == (ErrorCode.NONE, None)
        assert await ask(leader, remove_request(alive.local)) == (ErrorCode.NONE, None)
        code, message = await ask(leader, remove_request(leader.local))
        assert (code, message) == (
            ErrorCode.VOTER_NOT_FOUND,
            f"Node {leader.local.key.id} is the last voter and has to stay.",
        )

    three().run(scenario)


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        ("stranger", ErrorCode.REQUEST_TIMED_OUT, "has not caught up"),
        ("dead", ErrorCode.REQUEST_TIMED_OUT, "does not answer"),
        ("no endpoint", ErrorCode.INVALID_REQUEST, "CONTROLLER"),
        ("no directory", ErrorCode.INVALID_REQUEST, "directory"),
        ("other cluster", ErrorCode.INCONSISTENT_CLUSTER_ID, "This is cluster"),
    ],
)
def test_voters_that_cannot_be_added(change: str, code: ErrorCode, text: str) -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start(1, 2, 3)
        leader = await quorum.leader()
        request = add_request(voter(4))
        quorum.add(4)
        if change == "stranger":
            newcomer = quorum.nodes[4]
            quorum.add(5)
            newcomer.bootstrap = [("node5", 9093)]
            await newcomer.start()
        elif change == "no endpoint":
            request.listeners = []
        elif change == "no directory":
            request.voter_directory_id = type(request)().voter_directory_id
        elif change == "other cluster":
            request.cluster_id = "another"
        got, message = await ask(leader, request)
        assert got is code
        assert message is not None
        assert text in message
        follower = next(
            node for node in quorum.nodes.values() if node.is_up and not node.raft.is_leader
        )
        assert (await ask(follower, add_request(voter(4))))[0] is ErrorCode.NOT_LEADER_OR_FOLLOWER

    three().run(scenario)


def test_one_change_at_a_time() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        followers = [node for node in quorum.nodes.values() if node is not leader]
        first = asyncio.ensure_future(ask(leader, remove_request(followers[0].local)))
        await asyncio.sleep(0)
        code, message = await ask(leader, remove_request(followers[1].local))
        assert code is ErrorCode.REQUEST_TIMED_OUT
        assert message is not None
        assert "under way" in message
        assert await first == (ErrorCode.NONE, None)

    three().run(scenario)


def test_static_voters_stay() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        code, message = await ask(leader, remove_request(leader.local))
        assert code is ErrorCode.UNSUPPORTED_VERSION
        assert message is not None
        assert "controller.quorum.voters" in message

    quorum = Quorum()
    quorum.add_static(1, 2, 3)
    quorum.run(scenario)


def test_the_quorum_is_described_by_its_leader() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        leader = await quorum.leader()
        await leader.commit(b"a")
        await join(quorum, 4)
        await asyncio.sleep(1)
        request = DescribeQuorumRequest(
            topics=[
                DescribeQuorumRequestTopicData(
                    topic_name="__cluster_metadata",
                    partitions=[DescribeQuorumRequestPartitionData()],
                )
            ]
        )
        response = await leader.raft.handle(request, 2)
        partition = response.topics[0].partitions[0]
        assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (
            leader.local.key.id,
            leader.raft.epoch,
            leader.raft.high_watermark,
        )
        assert [replica.replica_id for replica in partition.current_voters] == [1, 2, 3]
        assert [replica.replica_id for replica in partition.observers] == [4]
        for replica in partition.current_voters + partition.observers:
            assert replica.log_end_offset == leader.raft.log_end_offset
            assert replica.replica_directory_id == voter(replica.replica_id).key.directory_id
            assert 1_700_000_000_000 < replica.last_caught_up_timestamp < 1_700_000_100_000
        assert [node.node_id for node in response.nodes] == [1, 2, 3]
        follower = next(node for node in quorum.nodes.values() if node is not leader)
        response = await follower.raft.handle(request, 2)
        assert response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    three().run(scenario)
