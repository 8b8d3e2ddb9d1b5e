"""Votes and what follows from them: Vote, BeginQuorumEpoch and EndQuorumEpoch.

A vote that counts is on the medium before it is given, at most one in an epoch, and only for a
log that has all that this one has. A pre-vote costs nothing and changes nothing: replicas that do
not follow a live leader grant it (KIP-996). Beyond Kafka, a follower would not miss a leader
whose process is gone: whose port refuses connections, or that resigned.
"""

from barnabas.base.ids import NO_NODE, ZERO_UUID
from barnabas.node.raft.core.events import Answer, Effect
from barnabas.node.raft.core.messages import (
    BeginEpoch,
    BeginEpochReply,
    EndEpoch,
    EndEpochReply,
    Standing,
    Vote,
    VoteReply,
)
from barnabas.node.raft.core.peers import send_when_ready
from barnabas.node.raft.core.state import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    RaftState,
    Resigned,
    Tally,
    Trigger,
    Unattached,
    draw,
    election_backoff_ms,
    election_timeout_ms,
    enter,
    flush,
    set_election,
    wake_at,
)
from barnabas.node.raft.core.transitions import (
    become_candidate,
    become_leader,
    become_prospective,
    become_unattached,
    give_up,
    learn,
)
from barnabas.node.raft.quorum_state import ElectionState
from barnabas.node.raft.voters import ReplicaKey
from barnabas.protocol.errors import ErrorCode

GRANTED_PAUSE_MS = 100
"""A replica that would vote for another does not stand for this long, plus a random time up to the
same.
"""


# -- asked


def on_vote(state: RaftState, token: int, request: Vote, now_ms: int, out: list[Effect]) -> None:
    """Another replica asks for a vote, or whether it would get it."""
    error = _check_vote(state, request)
    is_granted = False
    if error == ErrorCode.NONE:
        if request.epoch > state.epoch:
            become_unattached(state, request.epoch, now_ms, out)
        if not is_local(state, request.voter):
            error = ErrorCode.INVALID_VOTER_KEY
        elif request.is_pre_vote:
            is_granted = would_vote(state, request)
            if is_granted:
                _make_way(state, request, now_ms)
        else:
            is_granted = _vote(state, request, now_ms, out)
    out.append(Answer(token, VoteReply(state.standing, error, is_granted)))


def _check_vote(state: RaftState, request: Vote) -> ErrorCode:
    last_epoch, last_offset = request.last
    # A candidate is in a new epoch; a prospective candidate may have records of its epoch.
    latest = request.epoch if request.is_pre_vote else request.epoch - 1
    if last_offset < 0 or not 0 <= last_epoch <= latest:
        return ErrorCode.INVALID_REQUEST
    if request.epoch < state.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if request.candidate.id < 0:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def would_vote(state: RaftState, request: Vote) -> bool:
    """Return whether a pre-vote is given."""
    if request.last < state.end or not state.is_whole:
        return False
    role_state = state.role_state
    if isinstance(role_state, Follower):
        return role_state.is_cut_off or not role_state.has_fetched
    if isinstance(role_state, Leader):
        return role_state.high_watermark is None
    return True


def _make_way(state: RaftState, request: Vote, now_ms: int) -> None:
    """Let the one that asked go first, lest two stand at once and neither wins."""
    pause_until_ms = now_ms + GRANTED_PAUSE_MS + draw(state, GRANTED_PAUSE_MS)
    role_state = state.role_state
    if isinstance(role_state, Unattached):
        role_state.deadline_ms = max(role_state.deadline_ms, pause_until_ms)
    elif isinstance(role_state, Follower):
        role_state.stand_at_ms = max(role_state.stand_at_ms, pause_until_ms)
    elif isinstance(role_state, Prospective):
        other = (request.last, request.candidate.id)
        if other > (state.end, state.key.id):
            enter(state, Trigger.PRE_VOTE_LOST, Unattached(pause_until_ms))


def _vote(state: RaftState, request: Vote, now_ms: int, out: list[Effect]) -> bool:
    """Give this epoch's vote, if it is still to be given and the candidate may have it."""
    if not isinstance(state.role_state, Unattached | Prospective) or not state.is_whole:
        return False
    election = state.election
    if election.voted is not None:
        return _is_same(election.voted, request.candidate)
    if election.leader_id != NO_NODE or request.last < state.end:
        return False
    enter(state, Trigger.VOTE_GIVEN, Unattached(now_ms + election_timeout_ms(state)))
    set_election(state, ElectionState(state.epoch, NO_NODE, request.candidate), out)
    return True


def _is_same(voted: ReplicaKey, candidate: ReplicaKey) -> bool:
    """Directories are compared where both are known: static quorums remember ids alone."""
    return voted.id == candidate.id and (
        voted.directory_id == ZERO_UUID
        or candidate.directory_id == ZERO_UUID
        or voted.directory_id == candidate.directory_id
    )


def is_local(state: RaftState, key: ReplicaKey | None) -> bool:
    """Return whether a request that names its addressee means this replica."""
    if key is None:
        return True
    return key.id == state.key.id and key.directory_id in (ZERO_UUID, state.key.directory_id)


def on_begin_epoch(
    state: RaftState, token: int, request: BeginEpoch, now_ms: int, out: list[Effect]
) -> None:
    """A leader makes itself known."""
    error = _check_leader(state, request.epoch, request.leader_id)
    if error == ErrorCode.NONE:
        learn(state, Standing(request.epoch, request.leader_id, request.endpoints), now_ms, out)
        if not is_local(state, request.voter):
            error = ErrorCode.INVALID_VOTER_KEY
    out.append(Answer(token, BeginEpochReply(state.standing, error)))


def on_end_epoch(
    state: RaftState, token: int, request: EndEpoch, now_ms: int, out: list[Effect]
) -> None:
    """A leader resigns: the one it prefers stands at once, the others give it time."""
    error = _check_leader(state, request.epoch, request.leader_id)
    if error == ErrorCode.NONE:
        learn(state, Standing(request.epoch, request.leader_id, request.endpoints), now_ms, out)
        role_state = state.role_state
        if isinstance(role_state, Follower) and state.election.leader_id == request.leader_id:
            role_state.is_cut_off = True
            role_state.stand_at_ms = now_ms + _successor_backoff_ms(state, request.preferred)
    out.append(Answer(token, EndEpochReply(state.standing, error)))


def _check_leader(state: RaftState, epoch: int, leader_id: int) -> ErrorCode:
    if epoch < state.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if leader_id < 0:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _successor_backoff_ms(state: RaftState, preferred: tuple[ReplicaKey, ...]) -> int:
    """Kafka's rule: the first none, each further one twice the one before it."""
    backoff_max_ms = state.settings.election_backoff_max_ms
    if not preferred:
        return election_backoff_ms(state)
    for position, key in enumerate(preferred):
        if is_local(state, key):
            if position == 0:
                return 0
            return min(backoff_max_ms, (backoff_max_ms >> (len(preferred) - 1)) << (position - 1))
    return backoff_max_ms


# -- answered


def on_vote_reply(
    state: RaftState,
    peer_id: int,
    request: Vote,
    reply: VoteReply,
    out: list[Effect],
) -> None:
    """Count a voter's answer, if it was asked for what is being counted now."""
    role_state = state.role_state
    if request.epoch != state.epoch or not isinstance(role_state, Prospective | Candidate):
        return
    if request.is_pre_vote is not isinstance(role_state, Prospective):
        return
    tally = role_state.tally
    if reply.is_granted:
        tally.granted[peer_id] = None
    else:
        tally.rejected[peer_id] = None


# -- as time passes


def poll_unattached(state: RaftState, now_ms: int, out: list[Effect]) -> None:
    """A voter without a leader asks for one to be elected."""
    role_state = state.role_state
    assert isinstance(role_state, Unattached)
    if state.is_stopping or not state.may_stand:
        return
    if now_ms >= role_state.deadline_ms:
        become_prospective(state, now_ms, out)
    else:
        wake_at(state, role_state.deadline_ms)


def poll_prospective(state: RaftState, now_ms: int, out: list[Effect]) -> None:
    """Ask for pre-votes until it is clear whether there is a majority."""
    role_state = state.role_state
    assert isinstance(role_state, Prospective)
    tally = role_state.tally
    if not state.may_stand or state.is_stopping or tally.is_lost(state.voters):
        give_up(state, now_ms, out)
    elif tally.is_won(state.voters):
        # A voter counts on what a candidate says it has; one that is alone asks nobody.
        if len(state.voters.by_id) == 1 or state.is_flushed:
            become_candidate(state, now_ms, out)
        else:
            flush(state, out)
    elif now_ms >= role_state.deadline_ms:
        give_up(state, now_ms, out)
    else:
        wake_at(state, role_state.deadline_ms)
        _ask_for_votes(state, tally, now_ms, out, is_pre_vote=True)


def poll_candidate(state: RaftState, now_ms: int, out: list[Effect]) -> None:
    """Ask for votes; after a lost election wait a little and ask again whether one can be won."""
    role_state = state.role_state
    assert isinstance(role_state, Candidate)
    tally = role_state.tally
    if tally.is_won(state.voters):
        become_leader(state, now_ms, out)
        return
    if role_state.backoff_until_ms is None:
        if now_ms < role_state.deadline_ms and not tally.is_lost(state.voters):
            wake_at(state, role_state.deadline_ms)
            _ask_for_votes(state, tally, now_ms, out, is_pre_vote=False)
            return
        state.failed_elections += 1
        role_state.backoff_until_ms = now_ms + election_backoff_ms(state)
    if now_ms < role_state.backoff_until_ms:
        wake_at(state, role_state.backoff_until_ms)
    elif state.may_stand and not state.is_stopping:
        become_prospective(state, now_ms, out)


def _ask_for_votes(
    state: RaftState, tally: Tally, now_ms: int, out: list[Effect], *, is_pre_vote: bool
) -> None:
    for voter in state.voters.by_id.values():
        if not tally.is_open(voter.key.id):
            continue

        def make(key: ReplicaKey = voter.key) -> Vote:
            return Vote(state.epoch, state.key, key, state.end, is_pre_vote)

        send_when_ready(state, voter.key.id, make, now_ms, out)


def poll_resigned(state: RaftState, now_ms: int, out: list[Effect]) -> None:
    """Tell the voters, and after a while take part again in a later epoch."""
    role_state = state.role_state
    assert isinstance(role_state, Resigned)
    if now_ms >= role_state.deadline_ms and not state.is_stopping:
        # In its own epoch others would go on to take it for the leader.
        epoch = state.epoch + 1
        enter(
            state,
            Trigger.ELECTION_TIMED_OUT,
            Unattached(now_ms + election_backoff_ms(state)),
        )
        state.leader_endpoints = ()
        set_election(state, ElectionState(epoch), out)
        return
    if not state.is_stopping:
        wake_at(state, role_state.deadline_ms)
    for voter_id in role_state.unacked:
        send_when_ready(
            state,
            voter_id,
            lambda: EndEpoch(
                state.epoch, state.key.id, state.local.endpoints, role_state.preferred
            ),
            now_ms,
            out,
        )
