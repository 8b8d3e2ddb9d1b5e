"""kraft.version rises from 0 to 1 while the quorum works (KIP-853). Times are milliseconds."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from machine_world import configured, member
from quorum_harness import LOG_DIRECTORY, PORT, Quorum, QuorumNode, voter
from test_raft_membership import add_request, ask, remove_request
from test_raft_roles import EPOCH, Replica, begin, fetch, fetched

from barnabas.base.ids import ZERO_UUID
from barnabas.node.raft.core.events import (
    AppendVoters,
    LogAppended,
    Send,
    UpgradeRequested,
)
from barnabas.node.raft.core.messages import (
    Fetch,
    FetchReply,
    Standing,
    UpdateVoter,
    UpdateVoterReply,
)
from barnabas.node.raft.core.state import Leader
from barnabas.node.raft.core.upgrade import upgrade_refusal
from barnabas.node.raft.core.voter_history import VoterHistory
from barnabas.node.raft.interfaces import NotLeaderError
from barnabas.node.raft.recovery import MetadataLogError
from barnabas.node.raft.snapshot_files import SnapshotId
from barnabas.node.raft.voters import ReplicaKey, Voter, VoterSet
from barnabas.protocol.errors import ErrorCode

FETCH_TIMEOUT_MS = 2_000


def static_replica() -> Replica:
    """Node 1 of three, as `controller.quorum.voters` makes it."""
    replica = Replica()
    replica.state.history.static = VoterSet({i: configured(i) for i in (1, 2, 3)})
    return replica


# -- a voter tells its leader


def follower() -> Replica:
    replica = static_replica().follow()
    replica.reply(2, fetched())
    return replica


def told(replica: Replica) -> list[UpdateVoter]:
    """What the last step told the leader; fetches that were under way are answered before."""
    return [
        effect.request
        for effect in replica.effects
        if isinstance(effect, Send) and isinstance(effect.request, UpdateVoter)
    ]


def go_on(replica: Replica, duration_ms: int, epoch: int = EPOCH) -> list[UpdateVoter]:
    """Fetch for a while, or until the replica sends UpdateVoter; return what it sent."""
    reply = FetchReply(Standing(epoch, 2, member(2).endpoints), offset=10)
    said: list[UpdateVoter] = []
    for _ in range(duration_ms // 100):
        replica.later(100)
        if not said and isinstance(replica.state.peers[2].request, Fetch):
            replica.reply(2, reply)
        said += told(replica)
        if said:
            break
    return said


def updated(error: ErrorCode) -> UpdateVoterReply:
    return UpdateVoterReply(Standing(EPOCH, 2, member(2).endpoints), error)


@pytest.mark.parametrize(
    ("error", "is_repeated"),
    [
        (ErrorCode.NONE, False),
        (ErrorCode.UNSUPPORTED_VERSION, False),  # a release that asks for it in version 1 alone
        (ErrorCode.REQUEST_TIMED_OUT, True),
        (ErrorCode.INVALID_REQUEST, True),
    ],
)
def test_a_static_voter_tells_a_leader_once(error: ErrorCode, is_repeated: bool) -> None:
    replica = follower()
    assert go_on(replica, FETCH_TIMEOUT_MS - 200) == [], "only once the epoch has lasted"
    assert go_on(replica, 300) == [UpdateVoter(EPOCH, member(1))]
    replica.reply(2, updated(error))
    assert replica.sent() == [(2, "Fetch")]
    assert go_on(replica, FETCH_TIMEOUT_MS - 200) == []
    assert bool(go_on(replica, 300)) is is_repeated
    assert is_repeated or go_on(replica, 30 * FETCH_TIMEOUT_MS) == []


def test_every_new_leader_is_told() -> None:
    replica = follower()
    assert len(go_on(replica, FETCH_TIMEOUT_MS + 100)) == 1
    replica.reply(2, updated(ErrorCode.NONE))
    replica.ask(begin(EPOCH + 1))
    assert go_on(replica, FETCH_TIMEOUT_MS - 200, EPOCH + 1) == []
    assert go_on(replica, 300, EPOCH + 1) == [UpdateVoter(EPOCH + 1, member(1))]


@pytest.mark.parametrize("case", ["not a voter", "not a controller"])
def test_who_does_not_vote_tells_nobody(case: str) -> None:
    replica = follower()
    if case == "not a voter":
        replica.state.history.static = VoterSet({i: configured(i) for i in (2, 3)})
    else:
        replica.state.is_controller = False
    assert go_on(replica, 30 * FETCH_TIMEOUT_MS) == []


def test_no_follower_raises_it() -> None:
    assert follower().step(UpgradeRequested(1)) == []


# -- the leader


def leader(*, is_settled: bool = True) -> Replica:
    replica = static_replica().lead()
    replica.flush()
    if is_settled:
        replica.ask(fetch(2, 11, last_epoch=EPOCH + 1))
    return replica


def tell(replica: Replica, *node_ids: int) -> None:
    for node_id in node_ids:
        reply = replica.ask(UpdateVoter(EPOCH + 1, member(node_id)))
        assert reply.error is ErrorCode.NONE, node_id


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (UpdateVoter(EPOCH + 1, member(2)), ErrorCode.NONE),
        (UpdateVoter(EPOCH, member(2)), ErrorCode.FENCED_LEADER_EPOCH),
        (UpdateVoter(EPOCH + 2, member(2)), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (UpdateVoter(EPOCH + 1, member(9)), ErrorCode.VOTER_NOT_FOUND),
        (UpdateVoter(EPOCH + 1, configured(2)), ErrorCode.INVALID_REQUEST),
        (UpdateVoter(EPOCH + 1, replace(member(2), endpoints=())), ErrorCode.INVALID_REQUEST),
        (
            UpdateVoter(EPOCH + 1, replace(member(2), kraft_version_min=1)),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            UpdateVoter(EPOCH + 1, Voter(member(2).key, member(2).endpoints, 1, 0)),
            ErrorCode.INVALID_REQUEST,
        ),
        (UpdateVoter(EPOCH + 1, replace(member(2), kraft_version_max=0)), ErrorCode.NONE),
    ],
)
def test_what_a_voter_may_say_of_itself(request_: UpdateVoter, error: ErrorCode) -> None:
    replica = leader()
    assert replica.ask(request_).error is error
    role_state = replica.state.role_state
    assert isinstance(role_state, Leader)
    assert role_state.told == ({2: request_.voter} if error is ErrorCode.NONE else {})
    assert not any(isinstance(effect, AppendVoters) for effect in replica.effects)


def test_a_leader_that_has_committed_nothing_hears_nobody() -> None:
    reply = leader(is_settled=False).ask(UpdateVoter(EPOCH + 1, member(2)))
    assert reply.error is ErrorCode.REQUEST_TIMED_OUT


KAFKAS = "Invalid upgrade of kraft.version to KRAFT_VERSION_1 because not all of the voters"


@pytest.mark.parametrize(
    ("voters", "level", "refusal"),
    [
        ([], 0, None),
        ([], 1, f"{KAFKAS} support it: voters [2, 3] have not told"),
        ([member(2)], 1, f"{KAFKAS} support it: voters [3] have not told"),
        (
            [member(2), replace(member(3), kraft_version_max=0)],
            1,
            f"{KAFKAS} support it: voters [3] do",
        ),
        ([member(2), member(3)], 1, None),
    ],
)
def test_kraft_version_rises_once_all_can_have_it(
    voters: list[Voter], level: int, refusal: str | None
) -> None:
    replica = leader()
    for told_of in voters:
        assert replica.ask(UpdateVoter(EPOCH + 1, told_of)).error is ErrorCode.NONE
    text = upgrade_refusal(replica.state, level)
    assert (text is None) is (refusal is None)
    assert (text or "").startswith(refusal or "")


def upgraded(replica: Replica) -> Replica:
    """The upgrade is appended, and not committed."""
    tell(replica, 2, 3)
    [effect] = [e for e in replica.step(UpgradeRequested(1)) if isinstance(e, AppendVoters)]
    assert effect == AppendVoters(EPOCH + 1, VoterSet({i: member(i) for i in (1, 2, 3)}), 1)
    offset = replica.log.end_offset
    replica.log.disk.entries += [replica.log.disk.entries[-1]] * 2
    replica.step(LogAppended(((offset + 1, effect.voters),), ((offset, 1),)))
    return replica


def test_the_voters_are_who_they_said_and_keep_what_they_have() -> None:
    replica = upgraded(leader())
    state, role_state = replica.state, replica.state.role_state
    assert isinstance(role_state, Leader)
    assert (state.history.kraft_version, state.voters.by_id[2]) == (1, member(2))
    assert role_state.progress[member(2).key].end_offset == 11
    assert not any(key.directory_id == ZERO_UUID for key in role_state.progress if key.id != 1)
    assert 2 not in role_state.to_begin, "it knows who leads"
    replica.flush()
    replica.ask(fetch(3, 13, last_epoch=EPOCH + 1))
    assert state.high_watermark == 13
    assert upgrade_refusal(state, 1) is None
    assert not any(isinstance(e, AppendVoters) for e in replica.step(UpgradeRequested(1)))
    downgrade = upgrade_refusal(state, 0)
    assert downgrade is not None
    assert downgrade.endswith("because the new version is a downgrade")


def test_who_was_a_voter_by_its_id_stands_until_the_upgrade_is_committed() -> None:
    """Its disk was replaced after it had told of itself; it may have what nobody else has."""
    replica = ReplicaKey(2, member(7).key.directory_id)
    history = VoterHistory(static=VoterSet({i: configured(i) for i in (1, 2, 3)}))
    history.append([(11, VoterSet({i: member(i) for i in (1, 2, 3)}))], [(10, 1)])
    assert not history.latest.is_voter(replica)
    assert history.is_needed(replica, high_watermark=11)
    assert not history.is_needed(replica, high_watermark=12)
    history.truncate_to(10)
    assert (history.kraft_version, history.latest) == (0, history.static)
    assert history.latest.is_voter(replica)


# -- several replicas on virtual time, with their files


def three(seed: int = 0) -> Quorum:
    quorum = Quorum(seed)
    quorum.add_static(1, 2, 3)
    known = {
        node_id: replace(node.local, key=ReplicaKey(node_id, ZERO_UUID))
        for node_id, node in quorum.nodes.items()
    }
    for node in quorum.nodes.values():
        node.static = VoterSet(known)
    return quorum


def do(node: QuorumNode, level: int = 1) -> None:
    """As the node's own tasks would."""
    assert node.process is not None
    node.process.context.run(node.raft.upgrade, level)


async def settled(quorum: Quorum) -> QuorumNode:
    """A leader that every voter has told of itself."""
    node = await quorum.leader()
    await quorum.until(lambda: node.raft.upgrade_refusal(1) is None)
    return node


async def raised(quorum: Quorum) -> QuorumNode:
    node = await settled(quorum)
    do(node)
    await node.raft.wait_committed(node.raft.log_end_offset - 1)
    await quorum.until(lambda: all(n.raft.kraft_version == 1 for n in quorum.nodes.values()))
    return node


VOTERS = VoterSet({node_id: voter(node_id) for node_id in (1, 2, 3)})


@pytest.mark.parametrize("seed", range(3))
def test_static_voters_become_dynamic_and_stay_so(seed: int) -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        node = await quorum.leader()
        await node.commit(b"before")
        assert "have not told" in (node.raft.upgrade_refusal(1) or "")
        node = await raised(quorum)
        await node.commit(b"after")
        for other in quorum.nodes.values():
            other.kill(power=True)
        await quorum.start()
        node = await quorum.leader()
        await quorum.until(lambda: all(n.raft.voters == VOTERS for n in quorum.nodes.values()))
        await node.commit(b"again")
        for other in quorum.nodes.values():
            other.static = None
            other.bootstrap = [(f"node{i}", PORT) for i in quorum.nodes]
            other.kill()
        await quorum.start()
        node = await quorum.leader()
        assert node.listener.values == [b"before", b"after", b"again"]
        assert node.raft.kraft_version == 1

    three(seed).run(scenario)


def quorum_state(node: QuorumNode) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(node.disk.read(f"{LOG_DIRECTORY}/quorum-state"))
    return data


def test_the_quorum_state_has_its_new_form_from_the_next_epoch_on() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        node = await raised(quorum)
        assert quorum_state(node)["data_version"] == 0
        node.kill(power=True)
        await node.start()
        await quorum.leader()
        for other in quorum.nodes.values():
            state = quorum_state(other)
            assert state["data_version"] == 1
            assert "currentVoters" not in state

    three().run(scenario)


def test_voters_come_and_go_after_the_upgrade() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        node = await raised(quorum)
        newcomer = quorum.add(4)
        newcomer.bootstrap = [(f"node{i}", PORT) for i in (1, 2, 3)]
        await newcomer.start()
        await quorum.until(lambda: newcomer.raft.high_watermark > 0)
        assert await ask(node, add_request(newcomer.local)) == (ErrorCode.NONE, None)
        gone = next(n for n in quorum.nodes.values() if n not in (node, newcomer))
        assert await ask(node, remove_request(gone.local)) == (ErrorCode.NONE, None)
        remaining = sorted({1, 2, 3, 4} - {gone.local.key.id})
        for other in quorum.nodes.values():
            other.kill()
        # A removed voter continues as an observer, although its configuration has static voters.
        await quorum.start()
        await quorum.leader()
        await quorum.until(
            lambda: all(sorted(n.raft.voters.by_id) == remaining for n in quorum.nodes.values())
        )
        assert not gone.raft.is_voter

    three().run(scenario)


def test_a_snapshot_carries_it() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        node = await settled(quorum)
        late = next(n for n in quorum.nodes.values() if n is not node)
        late.kill()
        do(node)
        await node.commit(b"a")
        end_offset = node.raft.high_watermark
        await node.raft.write_snapshot(SnapshotId(end_offset, node.raft.epoch), [b"a"], 1)
        node.raft.clean(retention_bytes=0, retention_ms=-1)
        for name in late.disk.list(LOG_DIRECTORY):
            if name != "quorum-state":
                late.disk.remove(f"{LOG_DIRECTORY}/{name}")
        await late.start()
        await quorum.until(lambda: late.listener.values == [b"a"])
        assert (late.raft.kraft_version, late.raft.voters) == (1, VOTERS)
        late.kill(power=True)
        await late.start()
        await quorum.until(lambda: late.raft.high_watermark >= end_offset)
        assert (late.raft.kraft_version, late.raft.voters) == (1, VOTERS)

    three().run(scenario)


@pytest.mark.parametrize("has_follower", [False, True])
def test_a_leader_dies_in_the_middle(has_follower: bool) -> None:
    """What nobody has is undone; who has it is elected, and carries it on."""

    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        old = await settled(quorum)
        first, second = (n for n in quorum.nodes.values() if n is not old)
        cut = [second] if has_follower else [first, second]
        for node in cut:
            quorum.network.cut |= {
                (old.local.key.id, node.local.key.id),
                (node.local.key.id, old.local.key.id),
            }
        do(old)
        assert old.raft.kraft_version == 1
        if has_follower:
            await quorum.until(lambda: first.raft.kraft_version == 1)
            quorum.network.isolate(first.local.key.id)
            old.kill()
        else:
            await asyncio.sleep(0.1)
            old.kill()
        quorum.network.heal()
        successor = await quorum.leader(among=[first.local.key.id, second.local.key.id])
        assert successor.raft.kraft_version == int(has_follower)
        await successor.commit(b"a")
        await old.start()
        await quorum.until(lambda: old.listener.values == [b"a"])
        assert old.raft.kraft_version == int(has_follower)
        await raised(quorum)
        assert all(n.raft.voters == VOTERS for n in quorum.nodes.values())

    three().run(scenario)


def test_only_a_leader_is_asked() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        node = await settled(quorum)
        other = next(n for n in quorum.nodes.values() if n is not node)
        with pytest.raises(NotLeaderError):
            other.raft.upgrade_refusal(1)
        with pytest.raises(NotLeaderError):
            do(other)

    three().run(scenario)


def test_a_voter_that_is_alone_needs_nobody() -> None:
    async def scenario(quorum: Quorum) -> None:
        await quorum.start()
        node = await quorum.leader()
        do(node)
        await node.commit(b"a")
        node.kill(power=True)
        await node.start()
        assert (node.raft.kraft_version, node.listener.values) == (1, [b"a"])

    quorum = Quorum()
    quorum.add_static(1)
    quorum.run(scenario)


def test_a_stranger_is_refused_while_the_voters_are_static() -> None:
    async def scenario(quorum: Quorum) -> None:
        stranger = quorum.add(4)
        stranger.static = quorum.nodes[1].static
        with pytest.raises(MetadataLogError, match="not among the voters"):
            await stranger.start()
        stranger.process = None

    three().run(scenario)
