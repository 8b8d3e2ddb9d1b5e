"""Defects to plant in the quorum's machine, each of which breaks one rule of Raft.

A simulation that cannot find them proves nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import machine_world
import pytest
from machine_chaos import Chaos
from machine_disk import ModelLog
from machine_world import Node, RuleBrokenError, World

from barnabas.node.raft.core import election, leading, machine, membership, transitions, upgrade
from barnabas.node.raft.core.events import AppendVoters, Effect, PersistElection
from barnabas.node.raft.core.messages import LogPosition, Vote
from barnabas.node.raft.core.state import Leader, RaftState, Unattached
from barnabas.node.raft.quorum_state import ElectionState
from barnabas.node.raft.voters import VoterSet

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True)
class Defect:
    """A defect: its name, how to plant it, its world, and seeds that find it."""

    name: str
    plant: Plant
    world: Callable[[int], Chaos]
    seeds: range


def three(seed: int) -> Chaos:
    return Chaos(World(seed, 3, drop=0.02))


def five(seed: int) -> Chaos:
    return Chaos(World(seed, 5, drop=0.02), snapshots=True)


def growing(seed: int) -> Chaos:
    return Chaos(World(seed, 3, 2, drop=0.02), membership=True, snapshots=True)


def ragged(seed: int) -> Chaos:
    """Logs that differ: little is copied at a time, and leaders change soon."""
    world = World(seed, 5, drop=0.1, fetch_entries_max=1)
    return Chaos(world, pause_ms=80, appends=20)


def restless(seed: int) -> Chaos:
    """Voters that come and go faster than they can be committed."""
    chaos = Chaos(World(seed, 3, 2, drop=0.02), membership=True, pause_ms=100, appends=30)
    chaos.acts.append((chaos._change_voters, 40))
    return chaos


class Upgrading(Chaos):
    """Static voters, and somebody who tries again and again to raise kraft.version.

    `raised` counts how often a leader did; more than once if its batch was lost with it.
    """

    def __init__(self, world: World, *, membership: bool = False) -> None:
        super().__init__(world, membership=membership, snapshots=True, pause_ms=600)
        self.raised = 0
        self.acts += [(self._upgrade, 40)]

    def _upgrade(self) -> None:
        """The leader may die in the middle: some have the batch, or nobody has."""
        world = self.world
        leader = world.leader()
        if leader is None or leader.state is None or leader.state.history.kraft_version:
            return
        if world.upgrade(leader):
            self.raised += 1
            if world.random.random() < 0.7:
                world.run(world.random.choice((0, 3, 10)))
                self._crash_leader()

    def heal(self) -> None:
        super().heal()
        world = self.world
        for _ in range(20):  # the leader may have been elected just now, since messages can be late
            leader = world.leader()
            state = None if leader is None else leader.state
            was = 0 if state is None else state.history.kraft_version
            if leader is not None and world.upgrade(leader):
                self.raised += was == 0
                break
            world.run(1_000)
        else:
            raise RuleBrokenError("kraft.version cannot be raised though everything works")
        world.run(10_000)
        assert leader.state is not None
        voters = leader.state.voters
        for node in world.nodes.values():
            assert node.state is not None
            history = node.state.history
            if (history.kraft_version, history.latest) != (1, voters):
                raise RuleBrokenError(f"node {node.local.key.id} has {history}, not {voters}")
        if any(voter != world.nodes[voter_id].local for voter_id, voter in voters.by_id.items()):
            raise RuleBrokenError(f"{voters} are not what the voters are")


def upgrading(seed: int) -> Upgrading:
    return Upgrading(World(seed, 3, drop=0.02, kraft_version=0))


def upgrading_five(seed: int) -> Upgrading:
    """Once it is raised, voters come and go."""
    return Upgrading(World(seed, 5, 2, drop=0.02, kraft_version=0), membership=True)


def vote_twice(patch: pytest.MonkeyPatch) -> None:
    """A voter forgets whom it voted for when the next one asks."""
    vote = election._vote

    def forgetful(state: RaftState, request: Vote, now_ms: int, out: list[Effect]) -> bool:
        if isinstance(state.role_state, Unattached):
            state.election = ElectionState(state.epoch, state.election.leader_id)
        return vote(state, request, now_ms, out)

    patch.setattr(election, "_vote", forgetful)


def vote_not_persisted(patch: pytest.MonkeyPatch) -> None:
    """A vote is given before it is on the medium, so that a crash forgets it."""
    do = World._do

    def forgetful(self: World, node: Node, effect: Effect) -> Any:
        if isinstance(effect, PersistElection):
            return None
        return do(self, node, effect)

    patch.setattr(World, "_do", forgetful)


def vote_for_any_log(patch: pytest.MonkeyPatch) -> None:
    """A voter does not compare the candidate's log with its own."""
    vote, would_vote = election._vote, election.would_vote
    far = LogPosition(1 << 30, 1 << 60)

    def generous(request: Vote) -> Vote:
        return Vote(request.epoch, request.candidate, request.voter, far, request.is_pre_vote)

    patch.setattr(
        election, "_vote", lambda state, request, *rest: vote(state, generous(request), *rest)
    )
    patch.setattr(
        election, "would_vote", lambda state, request: would_vote(state, generous(request))
    )


def no_truncation(patch: pytest.MonkeyPatch) -> None:
    """A leader does not check that a follower's log is a prefix of its log."""
    locate = leading.locate

    def trusting(log: Any, offset: int, last_epoch: int) -> Any:
        diverging, snapshot_id = locate(log, offset, last_epoch)
        return (None, None) if offset <= log.end_offset and diverging else (diverging, snapshot_id)

    patch.setattr(leading, "locate", trusting)


def commit_of_earlier_epochs(patch: pytest.MonkeyPatch) -> None:
    """A leader counts copies of what it did not append itself (the Raft paper, figure 8)."""
    become_leader = transitions.become_leader

    def hasty(state: RaftState, now_ms: int, out: list[Effect]) -> None:
        become_leader(state, now_ms, out)
        assert isinstance(state.role_state, Leader)
        state.role_state.epoch_start_offset = -1

    patch.setattr(election, "become_leader", hasty)


def ack_before_flush(patch: pytest.MonkeyPatch) -> None:
    """A follower fetches on before what it has is on the medium."""
    patch.setattr(RaftState, "must_flush", property(lambda self: False))


def count_unflushed(patch: pytest.MonkeyPatch) -> None:
    """A leader counts its own copy before it is on the medium."""
    patch.setattr(ModelLog, "flushed_offset", property(lambda self: self.end_offset))


def minority_commits(patch: pytest.MonkeyPatch) -> None:
    """One voter less than a majority is enough to commit."""
    update = leading.update_high_watermark

    def cheap(state: RaftState, leader: Leader, now_ms: int, out: list[Effect]) -> None:
        voters = type(state.voters)
        majority = voters.majority
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(
                voters,
                "majority",
                property(lambda self: max(1, majority.fget(self) - 1)),  # type: ignore[attr-defined]
            )
            update(state, leader, now_ms, out)

    patch.setattr(leading, "update_high_watermark", cheap)


def several_changes_at_once(patch: pytest.MonkeyPatch) -> None:
    """The voters change again before the last change is committed."""
    obstacle = membership._obstacle

    def careless(state: RaftState, leader: Leader, verb: str) -> Any:
        leader.change = None
        refused = obstacle(state, leader, verb)
        return None if leader.high_watermark is not None else refused

    patch.setattr(membership, "_obstacle", careless)


def snapshot_of_uncommitted(patch: pytest.MonkeyPatch) -> None:
    """A snapshot is taken of all there is, committed or not."""
    snapshot = World.snapshot

    def greedy(self: World, node: Node) -> None:
        assert node.log is not None
        committed = node.high_watermark
        node.high_watermark = node.log.end_offset
        snapshot(self, node)
        node.high_watermark = committed

    patch.setattr(World, "snapshot", greedy)


def upgrade_with_some(patch: pytest.MonkeyPatch) -> None:
    """kraft.version is raised with those voters that told of themselves, and the others are out."""

    def hasty(state: RaftState, level: int, out: list[Effect]) -> None:
        leader = state.role_state
        if isinstance(leader, Leader) and level != state.history.kraft_version:
            known = upgrade._known(state, leader)
            out.append(AppendVoters(state.epoch, VoterSet(dict(sorted(known.items()))), level))

    patch.setattr(machine, "upgrade", hasty)
    patch.setattr(machine_world, "upgrade_refusal", lambda state, level: None)


DEFECTS = [
    Defect("vote twice", vote_twice, ragged, range(40)),
    Defect("vote not persisted", vote_not_persisted, three, range(40)),
    Defect("vote for any log", vote_for_any_log, three, range(40)),
    Defect("no truncation", no_truncation, three, range(40)),
    Defect("commit of earlier epochs", commit_of_earlier_epochs, ragged, range(160, 170)),
    Defect("ack before flush", ack_before_flush, three, range(40)),
    Defect("count unflushed", count_unflushed, three, range(40)),
    Defect("minority commits", minority_commits, three, range(40)),
    Defect("several changes at once", several_changes_at_once, restless, range(40)),
    Defect("snapshot of uncommitted", snapshot_of_uncommitted, five, range(40)),
    Defect("upgrade with some of the voters", upgrade_with_some, upgrading, range(40)),
]
