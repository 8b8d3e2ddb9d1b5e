"""Transitions between a replica's roles, and what it learns of other replicas' epochs.

A replica that hears of a later epoch joins it. A replica that hears who leads its epoch follows
that leader.
"""

from barnabas.base.ids import NO_NODE
from barnabas.node.raft.core.events import (
    AbandonSnapshot,
    Answer,
    AppendEpochStart,
    Effect,
    ReportViolation,
)
from barnabas.node.raft.core.messages import AddVoterReply, FetchReply, RemoveVoterReply, Standing
from barnabas.node.raft.core.state import (
    Candidate,
    Follower,
    Leader,
    Progress,
    Prospective,
    RaftState,
    Resigned,
    Tally,
    Trigger,
    Unattached,
    election_backoff_ms,
    election_timeout_ms,
    enter,
    set_election,
)
from barnabas.node.raft.core.voter_history import NEVER_LOGGED
from barnabas.node.raft.quorum_state import ElectionState
from barnabas.node.raft.voters import ReplicaKey, VoterEndpoint
from barnabas.protocol.errors import ErrorCode

CHECK_QUORUM_FACTOR = 1.5
"""A leader waits this many fetch timeouts for a majority to fetch (Kafka's constant)."""


def learn(state: RaftState, standing: Standing, now_ms: int, out: list[Effect]) -> None:
    """Learn the epoch and the leader that another replica knows."""
    if standing.epoch < state.epoch:
        return
    leader_id = standing.leader_id
    endpoints = standing.endpoints
    if not endpoints and leader_id in state.voters.by_id:
        endpoints = state.voters.by_id[leader_id].endpoints
    if leader_id == state.key.id:
        # It led that epoch before it resigned or restarted; nobody else can.
        leader_id = NO_NODE
    is_known = leader_id != NO_NODE and bool(endpoints)
    if standing.epoch > state.epoch:
        if is_known:
            become_follower(state, standing.epoch, leader_id, endpoints, now_ms, out)
        else:
            become_unattached(state, standing.epoch, now_ms, out)
    elif leader_id != NO_NODE and _leads_another(state, leader_id):
        out.append(
            ReportViolation(
                f"replica {leader_id} is said to lead epoch {state.epoch}, which replica "
                f"{state.election.leader_id} leads"
            )
        )
    elif is_known and _wants_leader(state):
        become_follower(state, standing.epoch, leader_id, endpoints, now_ms, out)


def _leads_another(state: RaftState, leader_id: int) -> bool:
    return state.election.leader_id not in (NO_NODE, leader_id)


def _wants_leader(state: RaftState) -> bool:
    role_state = state.role_state
    if isinstance(role_state, Prospective):
        return role_state.returns_to is None
    return isinstance(role_state, Unattached | Candidate)


def become_unattached(state: RaftState, epoch: int, now_ms: int, out: list[Effect]) -> None:
    """Join a later epoch whose leader is not known."""
    assert epoch > state.epoch, f"epoch {epoch} is no news in epoch {state.epoch}"
    role_state = state.role_state
    deadline_ms = now_ms + election_timeout_ms(state)
    if isinstance(role_state, Unattached | Prospective | Candidate):
        deadline_ms = min(role_state.deadline_ms, deadline_ms)
    elif isinstance(role_state, Follower | Resigned):
        # Nobody leads here; it may be this replica's turn if the one who asked is not elected.
        deadline_ms = now_ms + election_backoff_ms(state)
    leave_role(state, out)
    enter(state, Trigger.HIGHER_EPOCH, Unattached(deadline_ms))
    state.leader_endpoints = ()
    set_election(state, ElectionState(epoch), out)


def become_follower(
    state: RaftState,
    epoch: int,
    leader_id: int,
    endpoints: tuple[VoterEndpoint, ...],
    now_ms: int,
    out: list[Effect],
) -> None:
    """Follow the leader of this epoch or a later one."""
    assert leader_id != state.key.id, "nobody follows itself"
    assert epoch > state.epoch or not isinstance(state.role_state, Leader | Resigned)
    leave_role(state, out)
    enter(
        state,
        Trigger.LEADER_FOUND,
        Follower(
            now_ms + state.settings.fetch_timeout_ms,
            update_at_ms=now_ms + state.settings.fetch_timeout_ms,
        ),
    )
    state.leader_endpoints = endpoints
    # The vote of this epoch is kept: it is part of the file's truth even when it has done its work.
    voted = state.election.voted if epoch == state.epoch else None
    set_election(state, ElectionState(epoch, leader_id, voted), out)


def become_prospective(state: RaftState, now_ms: int, out: list[Effect]) -> None:
    """Ask whether an election would be won."""
    assert state.may_stand, "only a voter stands for election"
    role_state = state.role_state
    returns_to = role_state if isinstance(role_state, Follower) else None
    leave_role(state, out)
    enter(
        state,
        Trigger.ELECTION_TIMED_OUT,
        Prospective(now_ms + election_timeout_ms(state), Tally({state.key.id: None}), returns_to),
    )


def give_up(state: RaftState, now_ms: int, out: list[Effect]) -> None:
    """The pre-vote was not won: go back, and wait longer before the next try."""
    role_state = state.role_state
    assert isinstance(role_state, Prospective)
    state.failed_elections += 1
    follower = role_state.returns_to
    if follower is None:
        enter(state, Trigger.PRE_VOTE_LOST, Unattached(now_ms + election_backoff_ms(state)))
        return
    follower.fetch_deadline_ms = now_ms + state.settings.fetch_timeout_ms
    if follower.is_cut_off:
        follower.stand_at_ms = now_ms + election_backoff_ms(state)
    enter(state, Trigger.LEADER_STILL_LEADS, follower)


def become_candidate(state: RaftState, now_ms: int, out: list[Effect]) -> None:
    """Begin an epoch, with one's own vote."""
    enter(
        state,
        Trigger.PRE_VOTE_WON,
        Candidate(now_ms + election_timeout_ms(state), Tally({state.key.id: None})),
    )
    state.leader_endpoints = ()
    set_election(state, ElectionState(state.epoch + 1, NO_NODE, state.key), out)


def become_leader(state: RaftState, now_ms: int, out: list[Effect]) -> None:
    """Lead the epoch, which begins with its own control records."""
    role_state = state.role_state
    assert isinstance(role_state, Candidate)
    granted_by = tuple(sorted(role_state.tally.granted))
    others = {voter: None for voter in state.voters.by_id if voter != state.key.id}
    enter(
        state,
        Trigger.VOTE_WON,
        Leader(
            epoch_start_offset=state.log.end_offset,
            check_quorum_at_ms=now_ms + check_quorum_ms(state),
            begin_epoch_at_ms=now_ms + state.settings.fetch_timeout_ms // 2,
            progress={voter.key: Progress() for voter in state.voters.by_id.values()},
            to_begin=others,
        ),
    )
    state.failed_elections = 0
    set_election(state, ElectionState(state.epoch, state.key.id), out)
    history = state.history
    must_write = (
        history.kraft_version >= 1
        and state.is_voter
        and (
            history.latest_offset == NEVER_LOGGED
            or history.latest.by_id[state.key.id] != state.local
        )
    )
    out.append(
        AppendEpochStart(
            state.epoch,
            granted_by,
            history.kraft_version if must_write else 0,
            history.latest.with_voter(state.local) if must_write else None,
        )
    )


def become_resigned(state: RaftState, now_ms: int, out: list[Effect]) -> None:
    """Lead no more; the voters are told, the one with most of the log first."""
    role_state = state.role_state
    assert isinstance(role_state, Leader)
    voters = [voter.key for voter in state.voters.by_id.values() if voter.key.id != state.key.id]

    def end_offset(key: ReplicaKey) -> int:
        progress = role_state.progress.get(key)
        return -1 if progress is None else progress.end_offset

    preferred = tuple(sorted(voters, key=lambda key: (-end_offset(key), key.id)))
    leave_role(state, out)
    enter(
        state,
        Trigger.RESIGNED,
        Resigned(now_ms + election_timeout_ms(state), {key.id: None for key in voters}, preferred),
    )


def leave_role(state: RaftState, out: list[Effect]) -> None:
    """Answer who waits on this role, and drop what only it was to finish."""
    role_state = state.role_state
    if isinstance(role_state, Follower):
        role_state.is_busy = False
        if role_state.download is not None:
            role_state.download = None
            out.append(AbandonSnapshot())
    elif isinstance(role_state, Leader):
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        out.extend(
            Answer(waiting.token, FetchReply(state.standing, error, waiting.offset))
            for waiting in role_state.waiting.values()
        )
        change = role_state.change
        if change is not None and not change.is_answered:
            reply = AddVoterReply if change.is_addition else RemoveVoterReply
            out.append(Answer(change.token, reply(error, "The leader lost its epoch.")))


def check_quorum_ms(state: RaftState) -> int:
    """Return how long a leader continues without a majority."""
    return int(state.settings.fetch_timeout_ms * CHECK_QUORUM_FACTOR)
