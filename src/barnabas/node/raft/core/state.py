"""State of a replica of the quorum: its role, its epoch, and its outstanding requests."""

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from barnabas.base.backoff import doubled
from barnabas.base.ids import NO_NODE
from barnabas.node.raft.core.events import Effect, FlushLog, PersistElection
from barnabas.node.raft.core.messages import LogPosition, Request, Standing
from barnabas.node.raft.core.voter_history import VoterHistory
from barnabas.node.raft.quorum_state import ElectionState
from barnabas.node.raft.settings import RaftSettings
from barnabas.node.raft.snapshot_files import SnapshotId
from barnabas.node.raft.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet

NEVER = 1 << 62
"""A time that does not come, in milliseconds."""
ELECTION_BACKOFF_BASE_MS = 50
"""The first waits before standing for election are drawn from this; asking costs nothing."""


class Role(Enum):
    """The role of a replica in its epoch."""

    UNATTACHED = auto()
    PROSPECTIVE = auto()
    CANDIDATE = auto()
    LEADER = auto()
    FOLLOWER = auto()
    RESIGNED = auto()


class Trigger(Enum):
    """Why a replica takes another role."""

    ELECTION_TIMED_OUT = auto()
    PRE_VOTE_WON = auto()
    PRE_VOTE_LOST = auto()
    LEADER_STILL_LEADS = auto()
    VOTE_WON = auto()
    VOTE_GIVEN = auto()
    HIGHER_EPOCH = auto()
    LEADER_FOUND = auto()
    LEADER_LOST = auto()
    RESIGNED = auto()


TRANSITIONS: dict[tuple[Role, Trigger], Role] = {
    (Role.UNATTACHED, Trigger.ELECTION_TIMED_OUT): Role.PROSPECTIVE,
    (Role.FOLLOWER, Trigger.ELECTION_TIMED_OUT): Role.PROSPECTIVE,
    (Role.CANDIDATE, Trigger.ELECTION_TIMED_OUT): Role.PROSPECTIVE,
    (Role.RESIGNED, Trigger.ELECTION_TIMED_OUT): Role.UNATTACHED,
    (Role.PROSPECTIVE, Trigger.PRE_VOTE_WON): Role.CANDIDATE,
    (Role.PROSPECTIVE, Trigger.PRE_VOTE_LOST): Role.UNATTACHED,
    (Role.PROSPECTIVE, Trigger.LEADER_STILL_LEADS): Role.FOLLOWER,
    (Role.CANDIDATE, Trigger.VOTE_WON): Role.LEADER,
    (Role.UNATTACHED, Trigger.VOTE_GIVEN): Role.UNATTACHED,
    (Role.PROSPECTIVE, Trigger.VOTE_GIVEN): Role.UNATTACHED,
    (Role.FOLLOWER, Trigger.LEADER_LOST): Role.UNATTACHED,
    (Role.LEADER, Trigger.RESIGNED): Role.RESIGNED,
    **{(role, Trigger.HIGHER_EPOCH): Role.UNATTACHED for role in Role},
    **{(role, Trigger.LEADER_FOUND): Role.FOLLOWER for role in Role},
}
"""The role that follows a role and a trigger; a pair that is not listed raises TransitionError.

A leader or one that resigned finds a leader only in a later epoch.
"""


class TransitionError(AssertionError):
    """A step that no rule allows: a bug."""


class LogView(Protocol):
    """The replica's log as the machine sees it; it changes only by the machine's effects."""

    @property
    def start_offset(self) -> int:
        """The first offset that is there."""

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""

    @property
    def flushed_offset(self) -> int:
        """Everything before is on the medium."""

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, be it in a snapshot; 0 where there never was one."""

    @property
    def start_epoch(self) -> int:
        """The epoch of the record before `start_offset`."""

    @property
    def snapshot_id(self) -> SnapshotId | None:
        """The newest snapshot."""

    def end_of_epoch(self, epoch: int) -> LogPosition:
        """The greatest epoch in the log that is not after `epoch`, and where it ends."""


# -- roles


@dataclass(slots=True)
class Unattached:
    """It knows no leader; it may have given its vote."""

    deadline_ms: int
    seek_at_ms: int = 0
    """When to ask the next one who leads."""
    seek_count: int = 0


@dataclass(slots=True)
class Tally:
    """Votes, by voter id."""

    granted: dict[int, None] = field(default_factory=dict)
    rejected: dict[int, None] = field(default_factory=dict)

    def is_won(self, voters: VoterSet) -> bool:
        """Return whether a majority said yes."""
        return sum(voter in voters.by_id for voter in self.granted) >= voters.majority

    def is_lost(self, voters: VoterSet) -> bool:
        """Return whether too many refused for a majority to be possible."""
        against = sum(voter in voters.by_id for voter in self.rejected)
        return len(voters.by_id) - against < voters.majority

    def is_open(self, voter_id: int) -> bool:
        """Return whether a voter has not said anything."""
        return voter_id not in self.granted and voter_id not in self.rejected


@dataclass(slots=True)
class Prospective:
    """It asks whether it would be elected; nobody's epoch changes by that (KIP-996)."""

    deadline_ms: int
    tally: Tally = field(default_factory=Tally)
    returns_to: "Follower | None" = None
    """Its state while it had a leader."""


@dataclass(slots=True)
class Candidate:
    """It stands for election, with its own vote."""

    deadline_ms: int
    tally: Tally = field(default_factory=Tally)
    backoff_until_ms: int | None = None
    """It lost, and when it will try again."""


@dataclass(slots=True)
class Download:
    """A snapshot that is being fetched."""

    snapshot_id: SnapshotId
    position: int = 0


@dataclass(slots=True)
class Follower:
    """It copies its leader's log."""

    fetch_deadline_ms: int
    has_fetched: bool = False
    """True if the leader answered a fetch in this epoch."""
    is_cut_off: bool = False
    """There is evidence that the leader is dead or resigned."""
    stand_at_ms: int = NEVER
    """When to stand for election, before the fetch deadline."""
    leader_high_watermark: int = 0
    download: Download | None = None
    is_busy: bool = False
    """The log or a snapshot is being changed: the end of the log is not known yet."""
    update_at_ms: int = 0
    """When to look whether the leader knows where this voter answers."""
    has_told: bool = False
    """True if the leader knows this voter's directory, which voters report while kraft.version is
    0."""


@dataclass(slots=True)
class Progress:
    """A replica as its leader knows it. Times are monotonic milliseconds; -1: never."""

    end_offset: int = -1
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    leader_end_offset: int = -1
    """The leader's log end offset at the replica's last fetch."""


@dataclass(slots=True)
class WaitingFetch:
    """A fetch that found nothing new."""

    token: int
    replica: ReplicaKey
    offset: int
    high_watermark: int
    deadline_ms: int


@dataclass(slots=True)
class VoterChange:
    """A change of the voters under way: at most one at a time."""

    token: int
    deadline_ms: int
    is_addition: bool
    voter: Voter | None = None
    """The voter to add, until its VotersRecord is appended."""
    ack_when_committed: bool = True
    is_appended: bool = False
    is_answered: bool = False
    end_offset: int = NEVER
    """It is committed when the high watermark gets here."""


@dataclass(slots=True)
class Leader:
    """It appends, and counts who has what."""

    epoch_start_offset: int
    check_quorum_at_ms: int
    begin_epoch_at_ms: int
    high_watermark: int | None = None
    """None until a majority has the start of this epoch."""
    progress: dict[ReplicaKey, Progress] = field(default_factory=dict)
    heard: dict[int, None] = field(default_factory=dict)
    """The voters that fetched since the check of the quorum was begun."""
    to_begin: dict[int, None] = field(default_factory=dict)
    """The voters that have not yet heard of this epoch."""
    waiting: dict[ReplicaKey, WaitingFetch] = field(default_factory=dict)
    change: VoterChange | None = None
    told: dict[int, Voter] = field(default_factory=dict)
    """Reports of voters about themselves while kraft.version is 0, by id; they are in no log."""
    must_resign: bool = False


@dataclass(slots=True)
class Resigned:
    """It led this epoch and does not any more; it says so to the voters."""

    deadline_ms: int
    unacked: dict[int, None] = field(default_factory=dict)
    preferred: tuple[ReplicaKey, ...] = ()


RoleState = Unattached | Prospective | Candidate | Leader | Follower | Resigned

_ROLES: dict[type, Role] = {
    Unattached: Role.UNATTACHED,
    Prospective: Role.PROSPECTIVE,
    Candidate: Role.CANDIDATE,
    Leader: Role.LEADER,
    Follower: Role.FOLLOWER,
    Resigned: Role.RESIGNED,
}


@dataclass(slots=True)
class PeerRequests:
    """Requests to one other node: one at a time, and after failures not at once."""

    number: int | None = None
    """The number of the request under way."""
    request: Request | None = None
    failures: int = 0
    backoff_until_ms: int = 0


@dataclass(slots=True)
class RaftState:
    """One replica. Times are monotonic milliseconds."""

    local: Voter
    settings: RaftSettings
    log: LogView
    election: ElectionState
    history: VoterHistory
    bootstrap: tuple[tuple[str, int], ...] = ()
    """Addresses at which to look for the leader before anything is known about the quorum."""
    is_controller: bool = True
    seed: int = 1
    """The state of the random number generator."""
    role_state: RoleState = field(default_factory=lambda: Unattached(0))
    leader_endpoints: tuple[VoterEndpoint, ...] = ()
    high_watermark: int = 0
    lost_from: int = NEVER
    """The offset at which damage cut records that had been on disk. Until a leader's log is here
    again this replica neither votes nor stands: it may lack what it once acknowledged."""
    failed_elections: int = 0
    """Since a leader was last heard of."""
    peers: dict[int, PeerRequests] = field(default_factory=dict)
    """By node id; below -1, bootstrap servers."""
    next_number: int = 0
    next_bootstrap: int = 0
    is_flushing: bool = False
    is_stopping: bool = False
    announced: tuple[int, int] = (NO_NODE, -1)
    """The leader and epoch last told."""
    wake_at_ms: int = NEVER
    """When the machine wants to be stepped, if nothing happens before."""

    @property
    def role(self) -> Role:
        """The replica's role."""
        return _ROLES[type(self.role_state)]

    @property
    def epoch(self) -> int:
        """The epoch it is in."""
        return self.election.epoch

    @property
    def key(self) -> ReplicaKey:
        """The replica's id and directory."""
        return self.local.key

    @property
    def voters(self) -> VoterSet:
        """The voters that hold now."""
        return self.history.latest

    @property
    def is_voter(self) -> bool:
        """True if this replica votes."""
        return self.is_controller and self.voters.is_voter(self.key)

    @property
    def is_whole(self) -> bool:
        """True if its log has all that it ever acknowledged."""
        return self.lost_from == NEVER

    @property
    def may_stand(self) -> bool:
        """True if it stands for election: a voter, or one whose removal may not be committed.

        The latter may be the only one that has all of the log, so that nobody else is elected
        (Ongaro's dissertation, section 4.2.2). Its own vote does not count.
        """
        return (
            self.is_controller
            and self.is_whole
            and self.history.is_needed(self.key, self.high_watermark)
        )

    @property
    def leader_id(self) -> int:
        """The leader it follows or is, or -1."""
        if isinstance(self.role_state, Leader | Follower):
            return self.election.leader_id
        return NO_NODE

    @property
    def end(self) -> LogPosition:
        """The end of its log."""
        return LogPosition(self.log.last_epoch, self.log.end_offset)

    @property
    def standing(self) -> Standing:
        """The state that this replica reports to others."""
        if isinstance(self.role_state, Leader | Resigned):
            return Standing(self.epoch, self.key.id, self.local.endpoints)
        if self.leader_id == NO_NODE:
            return Standing(self.epoch)
        return Standing(self.epoch, self.leader_id, self.leader_endpoints)

    @property
    def is_flushed(self) -> bool:
        """True if all of its log is on the medium."""
        return self.log.flushed_offset >= self.log.end_offset

    @property
    def must_flush(self) -> bool:
        """True if what it says it has may be counted on: a voter, or one that may become one."""
        return self.is_controller


def enter(state: RaftState, trigger: Trigger, role_state: RoleState) -> None:
    """Take another role. Requests under way are forgotten: their answers no longer matter.

    Raises TransitionError for what TRANSITIONS does not list.
    """
    role = _ROLES[type(role_state)]
    if TRANSITIONS.get((state.role, trigger)) is not role:
        raise TransitionError(f"{state.role.name} to {role.name} by {trigger.name}")
    state.role_state = role_state
    state.peers.clear()


def set_election(state: RaftState, election: ElectionState, out: list[Effect]) -> None:
    """Take over an epoch, leader and vote, and have them written down if they are news."""
    if election != state.election:
        state.election = election
        out.append(PersistElection(election))


def flush(state: RaftState, out: list[Effect]) -> None:
    """Have the log forced to the medium, unless that is under way: LogFlushed asks again."""
    if not state.is_flushing:
        state.is_flushing = True
        out.append(FlushLog())


def draw(state: RaftState, stop: int) -> int:
    """A number in [0, stop) by chance; 0 for an empty range."""
    state.seed = (state.seed * 6364136223846793005 + 1442695040888963407) & ((1 << 64) - 1)
    return (state.seed >> 33) % stop if stop > 0 else 0


def election_timeout_ms(state: RaftState) -> int:
    """The election timeout, drawn from one to two times what is configured."""
    timeout_ms = state.settings.election_timeout_ms
    return timeout_ms + draw(state, timeout_ms)


def election_backoff_ms(state: RaftState) -> int:
    """The pause before the next candidacy: short at first, doubled after each failure."""
    longest_ms = max(state.settings.election_backoff_max_ms, 1)
    limit_ms = doubled(ELECTION_BACKOFF_BASE_MS, longest_ms, min(state.failed_elections, 10))
    return min(limit_ms // 4, 100) + draw(state, limit_ms)


def wake_at(state: RaftState, time_ms: int) -> None:
    """Have the machine stepped at `time_ms` at the latest."""
    state.wake_at_ms = min(state.wake_at_ms, time_ms)
