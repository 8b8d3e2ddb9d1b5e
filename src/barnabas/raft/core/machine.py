"""The election and commitment rules of one replica of the metadata log, as a pure machine.

    UNATTACHED ──ElectionTimedOut──▶ CANDIDATE ──VoteGranted by a majority──▶ LEADER

`step(state, event)` changes the state and returns what must be done, in order. The driver
(raft/node.py) does it: a vote or an epoch is persisted before anything that rests on it, and
what was done comes back as an event. A candidate votes for itself; where it is the whole
electorate that is a majority, and the same step makes it leader.

A leader's epoch begins with a LeaderChange control record (and, in a dynamic quorum that does
not have them in its log yet, the kraft.version and the voters). The high watermark is the
greatest offset that a majority has on its medium, and it moves only once it passes the start of
the leader's own epoch: until then an entry of an earlier epoch that a majority holds may still
be overwritten (the Raft paper, section 5.4.2).
Source: KIP-595, KIP-853; Kafka's QuorumState and LeaderState.
"""

from dataclasses import dataclass, field
from enum import Enum, auto

from barnabas.raft.quorum_state import NO_NODE, ElectionState
from barnabas.raft.voters import ReplicaKey, VoterSet


class Role(Enum):
    """What a replica is in its epoch."""

    UNATTACHED = auto()
    CANDIDATE = auto()
    LEADER = auto()


# -- events


@dataclass(frozen=True, slots=True)
class ElectionTimedOut:
    """No leader was heard of for long enough to look for one."""


@dataclass(frozen=True, slots=True)
class VoteGranted:
    """A voter gave this candidate its vote in `epoch`."""

    voter_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class EpochStartAppended:
    """The control records that begin the leader's epoch are in the log, from `offset`."""

    offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class RecordsAppended:
    """The log now ends at `end_offset`."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class ReplicaFlushed:
    """A voter has everything before `end_offset` on its medium."""

    voter_id: int
    end_offset: int


Event = ElectionTimedOut | VoteGranted | EpochStartAppended | RecordsAppended | ReplicaFlushed

# -- effects


@dataclass(frozen=True, slots=True)
class PersistElection:
    """Write the quorum-state file and force it to the medium before the next effect."""

    election: ElectionState


@dataclass(frozen=True, slots=True)
class AppendEpochStart:
    """Append the control records that begin the epoch."""

    epoch: int
    granted_by: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FlushLog:
    """Force the log to the medium; a ReplicaFlushed of this replica follows."""


@dataclass(frozen=True, slots=True)
class AdvanceHighWatermark:
    """Everything before `offset` is committed."""

    offset: int


@dataclass(frozen=True, slots=True)
class AnnounceLeader:
    """This replica leads `epoch`: it may append from now on."""

    epoch: int


Effect = PersistElection | AppendEpochStart | FlushLog | AdvanceHighWatermark | AnnounceLeader


@dataclass(slots=True)
class RaftState:
    """One replica. Offsets are those after the last record."""

    local: ReplicaKey
    voters: VoterSet
    election: ElectionState
    log_end_offset: int
    role: Role = Role.UNATTACHED
    votes: set[int] = field(default_factory=set)
    flushed: dict[int, int] = field(default_factory=dict)
    """By voter: how far its log is on its medium, as this leader knows."""
    epoch_start_offset: int | None = None
    high_watermark: int = 0


class TransitionError(AssertionError):
    """An event that this role cannot get: a bug in the driver."""


TRANSITIONS: dict[tuple[Role, type[Event]], frozenset[Role]] = {
    (Role.UNATTACHED, ElectionTimedOut): frozenset({Role.CANDIDATE, Role.LEADER}),
    (Role.CANDIDATE, ElectionTimedOut): frozenset({Role.CANDIDATE}),
    (Role.CANDIDATE, VoteGranted): frozenset({Role.CANDIDATE, Role.LEADER}),
    (Role.LEADER, VoteGranted): frozenset({Role.LEADER}),
    (Role.LEADER, EpochStartAppended): frozenset({Role.LEADER}),
    (Role.LEADER, RecordsAppended): frozenset({Role.LEADER}),
    (Role.LEADER, ReplicaFlushed): frozenset({Role.LEADER}),
}
"""The roles that may follow a role and an event; a pair not listed raises TransitionError."""


def step(state: RaftState, event: Event) -> list[Effect]:
    """Change `state` for `event`; returns what is to be done, in order.

    Raises TransitionError for an event that TRANSITIONS does not list for the role.
    """
    allowed = TRANSITIONS.get((state.role, type(event)))
    if allowed is None:
        raise TransitionError(f"{type(event).__name__} reached a replica that is {state.role.name}")
    effects = _decide(state, event)
    assert state.role in allowed, f"{type(event).__name__} led to {state.role.name}"
    return effects


def _decide(state: RaftState, event: Event) -> list[Effect]:
    match event:
        case ElectionTimedOut():
            return _stand(state)
        case VoteGranted(voter_id, epoch):
            return _count_vote(state, voter_id, epoch)
        case EpochStartAppended(offset, end_offset):
            state.epoch_start_offset = offset
            state.log_end_offset = end_offset
            return [FlushLog()]
        case RecordsAppended(end_offset):
            assert end_offset >= state.log_end_offset, "a leader's log never shrinks"
            state.log_end_offset = end_offset
            return [FlushLog()]
        case ReplicaFlushed(voter_id, end_offset):
            return _note_flushed(state, voter_id, end_offset)


def _stand(state: RaftState) -> list[Effect]:
    """Begin an epoch as candidate, with one's own vote."""
    assert state.voters.is_voter(state.local), "only a voter stands for election"
    epoch = state.election.epoch + 1
    state.role = Role.CANDIDATE
    state.election = ElectionState(epoch, NO_NODE, state.local)
    state.votes = set()
    return [PersistElection(state.election), *_count_vote(state, state.local.id, epoch)]


def _count_vote(state: RaftState, voter_id: int, epoch: int) -> list[Effect]:
    if epoch != state.election.epoch or voter_id not in state.voters.by_id:
        return []
    state.votes.add(voter_id)
    if state.role is Role.LEADER or len(state.votes) < state.voters.majority:
        return []
    state.role = Role.LEADER
    state.election = ElectionState(epoch, state.local.id)
    state.flushed = dict.fromkeys(state.voters.by_id, 0)
    state.epoch_start_offset = None
    return [
        PersistElection(state.election),
        AppendEpochStart(epoch, tuple(sorted(state.votes))),
        AnnounceLeader(epoch),
    ]


def _note_flushed(state: RaftState, voter_id: int, end_offset: int) -> list[Effect]:
    if voter_id not in state.flushed or end_offset <= state.flushed[voter_id]:
        return []
    state.flushed[voter_id] = end_offset
    ranked = sorted(state.flushed.values(), reverse=True)
    agreed = ranked[state.voters.majority - 1]
    start = state.epoch_start_offset
    if start is None or agreed <= start or agreed <= state.high_watermark:
        return []
    state.high_watermark = agreed
    return [AdvanceHighWatermark(agreed)]
