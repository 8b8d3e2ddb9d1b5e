"""The quorum's state machine, step by step."""

import pytest

from barnabas.base.ids import Uuid
from barnabas.raft.core.machine import (
    TRANSITIONS,
    AdvanceHighWatermark,
    AnnounceLeader,
    AppendEpochStart,
    ElectionTimedOut,
    EpochStartAppended,
    FlushLog,
    PersistElection,
    RaftState,
    RecordsAppended,
    ReplicaFlushed,
    Role,
    TransitionError,
    VoteGranted,
    step,
)
from barnabas.raft.quorum_state import ElectionState
from barnabas.raft.voters import ReplicaKey, Voter, VoterSet


def replica(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, Uuid(bytes([node_id] * 16)))


def state(voters: int = 1, *, epoch: int = 4, end_offset: int = 10) -> RaftState:
    keys = [replica(node_id) for node_id in range(1, voters + 1)]
    return RaftState(
        local=keys[0],
        voters=VoterSet({key.id: Voter(key, ()) for key in keys}),
        election=ElectionState(epoch),
        log_end_offset=end_offset,
    )


def test_a_single_voter_elects_itself_in_one_step() -> None:
    machine = state()
    assert step(machine, ElectionTimedOut()) == [
        PersistElection(ElectionState(5, -1, replica(1))),
        PersistElection(ElectionState(5, 1)),
        AppendEpochStart(5, (1,)),
        AnnounceLeader(5),
    ]
    assert machine.role is Role.LEADER


def test_nothing_is_committed_before_the_epochs_own_start_is() -> None:
    machine = state()
    step(machine, ElectionTimedOut())
    assert step(machine, ReplicaFlushed(1, 10)) == []
    assert step(machine, EpochStartAppended(10, 11)) == [FlushLog()]
    assert step(machine, ReplicaFlushed(1, 10)) == []
    assert step(machine, ReplicaFlushed(1, 11)) == [AdvanceHighWatermark(11)]
    assert step(machine, RecordsAppended(15)) == [FlushLog()]
    assert step(machine, ReplicaFlushed(1, 13)) == [AdvanceHighWatermark(13)]
    assert step(machine, ReplicaFlushed(1, 13)) == []
    assert step(machine, ReplicaFlushed(1, 12)) == [], "the high watermark never goes back"
    assert machine.high_watermark == 13


def test_a_majority_elects_and_a_majority_commits() -> None:
    machine = state(3)
    assert step(machine, ElectionTimedOut()) == [PersistElection(ElectionState(5, -1, replica(1)))]
    assert machine.role is Role.CANDIDATE
    assert step(machine, VoteGranted(2, epoch=4)) == [], "a vote of another epoch"
    assert step(machine, VoteGranted(9, epoch=5)) == [], "a vote of a stranger"
    elected = step(machine, VoteGranted(3, epoch=5))
    assert elected[1:] == [AppendEpochStart(5, (1, 3)), AnnounceLeader(5)]
    assert step(machine, VoteGranted(2, epoch=5)) == [], "elected already"
    step(machine, EpochStartAppended(10, 11))
    assert step(machine, ReplicaFlushed(1, 11)) == []
    assert step(machine, ReplicaFlushed(9, 11)) == [], "observers commit nothing"
    assert step(machine, ReplicaFlushed(3, 11)) == [AdvanceHighWatermark(11)]
    assert step(machine, ReplicaFlushed(2, 11)) == []


def test_a_candidate_that_got_no_majority_tries_the_next_epoch() -> None:
    machine = state(3)
    step(machine, ElectionTimedOut())
    assert step(machine, ElectionTimedOut()) == [PersistElection(ElectionState(6, -1, replica(1)))]


@pytest.mark.parametrize("role", Role)
def test_events_that_are_not_in_the_table_are_bugs(role: Role) -> None:
    events = [
        ElectionTimedOut(),
        VoteGranted(1, 1),
        EpochStartAppended(0, 1),
        RecordsAppended(1),
        ReplicaFlushed(1, 1),
    ]
    for event in events:
        if (role, type(event)) not in TRANSITIONS:
            machine = state()
            machine.role = role
            with pytest.raises(TransitionError, match=role.name):
                step(machine, event)


def test_only_voters_stand_for_election() -> None:
    machine = state()
    machine.local = replica(7)
    with pytest.raises(AssertionError, match="only a voter"):
        step(machine, ElectionTimedOut())
