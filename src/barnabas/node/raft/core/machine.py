"""The quorum's state machine: one replica of the metadata log, without disk, clock or network.

               ┌──────── a later epoch, from any role ────────┐
               ▼                                               │
          UNATTACHED ──▶ PROSPECTIVE ──▶ CANDIDATE ──▶ LEADER ──▶ RESIGNED
            ▲  │          │      ▲           │
            │  └──────────┼──────┼───────────┴──▶ FOLLOWER ◀── any role that hears of a leader
            └─ not won ───┘      └── no answer from the leader ──┘

`step(state, event, now_ms)` changes the state and returns what must be done, in order. The
driver (raft/node.py) does it before the next event: a vote or an epoch is persisted before
anything that rests on it, and what was done to the log comes back as an event. After each event
the role is polled: it sends what may be sent now, takes another role when its time is over, and
leaves in `state.wake_at_ms` when it wants to be stepped at the latest.

A replica without a leader first asks whether it would be elected (PROSPECTIVE), and only with a
majority's yes begins an epoch and stands (CANDIDATE); so one that is cut off, or late, disturbs
nobody. Observers are UNATTACHED or FOLLOWER and never anything else.
Source: KIP-595, KIP-630, KIP-853, KIP-996; Kafka's KafkaRaftClient and QuorumState.
"""

from barnabas.base.ids import NO_NODE
from barnabas.node.raft.core.election import (
    on_begin_epoch,
    on_end_epoch,
    on_vote,
    on_vote_reply,
    poll_candidate,
    poll_prospective,
    poll_resigned,
    poll_unattached,
)
from barnabas.node.raft.core.events import (
    AnnounceLeader,
    AppendRejected,
    Effect,
    Event,
    Failure,
    LogAppended,
    LogFlushed,
    LogTruncated,
    ReplyReceived,
    RequestFailed,
    RequestReceived,
    ResignRequested,
    SnapshotInstalled,
    SnapshotRejected,
    SnapshotStored,
    Started,
    StopRequested,
    TimePassed,
    UpgradeRequested,
)
from barnabas.node.raft.core.following import (
    QuorumError,
    advance,
    note_evidence,
    on_append_rejected,
    on_fetch_reply,
    on_fetch_snapshot_reply,
    on_leader_failed,
    on_snapshot_rejected,
    on_snapshot_stored,
    on_update_voter_reply,
    poll_follower,
    poll_seeker,
)
from barnabas.node.raft.core.leading import (
    check_leader,
    leader_log_changed,
    on_fetch,
    on_fetch_snapshot,
    poll_leader,
)
from barnabas.node.raft.core.membership import (
    on_add_voter,
    on_remove_voter,
    on_update_voter,
    on_versions_failed,
    on_versions_reply,
)
from barnabas.node.raft.core.messages import (
    AddVoter,
    AddVoterReply,
    AskVersions,
    BeginEpoch,
    BeginEpochReply,
    EndEpoch,
    EndEpochReply,
    Fetch,
    FetchReply,
    FetchSnapshot,
    FetchSnapshotReply,
    RemoveVoter,
    RemoveVoterReply,
    Reply,
    Request,
    UpdateVoter,
    UpdateVoterReply,
    VersionsReply,
    Vote,
    VoteReply,
)
from barnabas.node.raft.core.peers import answered, back_off
from barnabas.node.raft.core.state import (
    ELECTION_BACKOFF_BASE_MS,
    NEVER,
    Candidate,
    Follower,
    Leader,
    Prospective,
    RaftState,
    Resigned,
    Unattached,
    draw,
)
from barnabas.node.raft.core.transitions import learn
from barnabas.node.raft.core.upgrade import upgrade
from barnabas.node.raft.quorum_state import ElectionState
from barnabas.protocol.errors import ErrorCode

__all__ = ["QuorumError", "step"]


def step(state: RaftState, event: Event, now_ms: int) -> list[Effect]:
    """Change `state` for `event`; returns what is to be done, in order.

    Raises TransitionError for a step that no rule allows, and QuorumError where the quorum broke
    its promises.
    """
    out: list[Effect] = []
    _handle(state, event, now_ms, out)
    _poll(state, now_ms, out)
    announced = (state.leader_id, state.epoch)
    if announced != state.announced:
        state.announced = announced
        out.append(AnnounceLeader(*announced))
    return out


def _handle(state: RaftState, event: Event, now_ms: int, out: list[Effect]) -> None:
    match event:
        case Started():
            _start(state, now_ms, out)
        case TimePassed():
            pass
        case RequestReceived(token, request):
            _on_request(state, token, request, now_ms, out)
        case ReplyReceived(peer_id, number, reply):
            _on_reply(state, peer_id, number, reply, now_ms, out)
        case RequestFailed(peer_id, number, failure):
            _on_failure(state, peer_id, number, failure, now_ms, out)
        case UpgradeRequested(level):
            upgrade(state, level, out)
        case ResignRequested():
            if isinstance(state.role_state, Leader):
                state.role_state.must_resign = True
        case StopRequested():
            state.is_stopping = True
        case _:
            _on_storage(state, event, now_ms, out)


def _start(state: RaftState, now_ms: int, out: list[Effect]) -> None:
    """Begin as what one was, except that nobody goes on as leader or candidate.

    A leader may have lost what it appended and had not flushed, so it gives up its epoch.
    Source: Kafka's QuorumState.initialize.
    """
    election = state.election
    if election.epoch < state.log.last_epoch:
        # A log copied without its quorum-state must not fall back to epochs it has seen.
        election = state.election = ElectionState(state.log.last_epoch)
    # Asking whether one would be elected disturbs nobody: there is no need to wait long.
    soon_ms = now_ms + draw(state, 2 * ELECTION_BACKOFF_BASE_MS)
    voters = state.voters
    if state.is_voter and len(voters.by_id) == 1:
        state.role_state = Unattached(now_ms)
    elif election.leader_id == state.key.id:
        others = {voter: None for voter in voters.by_id if voter != state.key.id}
        state.role_state = Resigned(soon_ms, others)
    elif election.leader_id != NO_NODE and election.leader_id in voters.by_id:
        state.leader_endpoints = voters.by_id[election.leader_id].endpoints
        fetch_timeout_ms = state.settings.fetch_timeout_ms
        state.role_state = Follower(
            now_ms + fetch_timeout_ms,
            update_at_ms=now_ms + fetch_timeout_ms,
        )
    else:
        state.role_state = Unattached(soon_ms)


# -- requests and answers


def _on_request(
    state: RaftState, token: int, request: Request, now_ms: int, out: list[Effect]
) -> None:
    match request:
        case Vote():
            on_vote(state, token, request, now_ms, out)
        case BeginEpoch():
            on_begin_epoch(state, token, request, now_ms, out)
        case EndEpoch():
            on_end_epoch(state, token, request, now_ms, out)
        case Fetch():
            on_fetch(state, token, request, now_ms, out)
        case FetchSnapshot():
            on_fetch_snapshot(state, token, request, now_ms, out)
        case AddVoter():
            on_add_voter(state, token, request, now_ms, out)
        case RemoveVoter():
            on_remove_voter(state, token, request, now_ms, out)
        case UpdateVoter():
            error = check_leader(state, request.epoch)
            on_update_voter(state, token, request, error, out)
        case AskVersions():
            raise AssertionError("ApiVersions is answered elsewhere")


def _on_reply(
    state: RaftState, peer_id: int, number: int, reply: Reply, now_ms: int, out: list[Effect]
) -> None:
    """Process an answer: always learn its sender's epoch and leader; process the rest only if
    its request is outstanding.
    """
    request = answered(state, peer_id, number)
    epoch = state.epoch
    if not isinstance(reply, AddVoterReply | RemoveVoterReply | VersionsReply):
        learn(state, reply.standing, now_ms, out)
    if request is None or state.epoch != epoch:
        return
    role_state = state.role_state
    error = reply.error
    if isinstance(reply, VersionsReply):
        on_versions_reply(state, peer_id, reply, now_ms, out)
    elif isinstance(reply, VoteReply) and isinstance(request, Vote):
        if error == ErrorCode.NONE:
            on_vote_reply(state, peer_id, request, reply, out)
        else:
            _retry_later(state, peer_id, now_ms)
    elif isinstance(reply, BeginEpochReply):
        if isinstance(role_state, Leader):
            if error == ErrorCode.NONE:
                role_state.to_begin.pop(peer_id, None)
            else:
                _retry_later(state, peer_id, now_ms)
    elif isinstance(reply, EndEpochReply):
        if isinstance(role_state, Resigned):
            role_state.unacked.pop(peer_id, None)
    elif isinstance(role_state, Follower) and peer_id == state.election.leader_id:
        _on_leader_reply(state, role_state, request, reply, now_ms, out)
    elif error != ErrorCode.NONE or isinstance(reply, FetchReply):
        _retry_later(state, peer_id, now_ms)


def _on_leader_reply(
    state: RaftState,
    follower: Follower,
    request: Request,
    reply: Reply,
    now_ms: int,
    out: list[Effect],
) -> None:
    leader_id = state.election.leader_id
    if reply.error == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        # It resigned or restarted.
        note_evidence(state, follower, now_ms)
        _retry_later(state, leader_id, now_ms)
    elif isinstance(reply, FetchReply) and isinstance(request, Fetch):
        if reply.error == ErrorCode.NONE:
            on_fetch_reply(state, follower, request, reply, now_ms, out)
        else:
            _retry_later(state, leader_id, now_ms)
    elif isinstance(reply, FetchSnapshotReply):
        on_fetch_snapshot_reply(state, follower, reply, now_ms, out)
    elif isinstance(reply, UpdateVoterReply):
        on_update_voter_reply(follower, reply)


def _retry_later(state: RaftState, peer_id: int, now_ms: int) -> None:
    """The node is there and cannot do as asked now."""
    if peer_id in state.peers:
        back_off(state, peer_id, now_ms)


def _on_failure(
    state: RaftState,
    peer_id: int,
    number: int,
    failure: Failure,
    now_ms: int,
    out: list[Effect],
) -> None:
    peer = state.peers.get(peer_id)
    if peer is None or peer.number != number:
        return
    request = peer.request
    back_off(state, peer_id, now_ms, at_once=failure is Failure.LOST)
    role_state = state.role_state
    if isinstance(request, AskVersions):
        on_versions_failed(state, peer_id, out)
    elif isinstance(role_state, Follower) and peer_id == state.election.leader_id:
        on_leader_failed(state, role_state, failure, now_ms)
    elif isinstance(role_state, Resigned) and failure is Failure.REFUSED:
        role_state.unacked.pop(peer_id, None)  # who is not there need not be told


# -- the log


def _on_storage(state: RaftState, event: Event, now_ms: int, out: list[Effect]) -> None:
    match event:
        case LogAppended() | LogTruncated():
            _on_log_changed(state, event, now_ms, out)
        case LogFlushed():
            state.is_flushing = False
            if isinstance(state.role_state, Leader):
                leader_log_changed(state, state.role_state, now_ms, out)
        case AppendRejected():
            on_append_rejected(state, now_ms)
        case SnapshotStored(snapshot_id):
            on_snapshot_stored(state, snapshot_id, out)
        case SnapshotInstalled():
            _on_installed(state, event)
        case SnapshotRejected():
            on_snapshot_rejected(state, now_ms)
        case _:
            raise AssertionError(f"nobody handles {event}")


def _on_log_changed(
    state: RaftState, event: LogAppended | LogTruncated, now_ms: int, out: list[Effect]
) -> None:
    history = state.history
    if isinstance(event, LogAppended):
        history.append(event.voters, event.kraft_versions)
    else:
        history.truncate_to(state.log.end_offset)
    role_state = state.role_state
    if isinstance(role_state, Follower):
        role_state.is_busy = False
        advance(state, role_state, out)
    elif isinstance(role_state, Leader):
        leader_log_changed(state, role_state, now_ms, out)


def _on_installed(state: RaftState, event: SnapshotInstalled) -> None:
    end_offset = event.snapshot_id.end_offset
    state.history.restart(end_offset, event.voters, event.kraft_version)
    state.high_watermark = max(state.high_watermark, end_offset)
    if isinstance(state.role_state, Follower):
        state.role_state.download = None
        state.role_state.is_busy = False


# -- roles


def _poll(state: RaftState, now_ms: int, out: list[Effect]) -> None:
    """Have the role do what it does now, and the next role if that leads to one."""
    role_state = None
    while state.role_state is not role_state:
        role_state = state.role_state
        state.wake_at_ms = NEVER
        match role_state:
            case Unattached():
                poll_unattached(state, now_ms, out)
                if state.role_state is role_state and (state.bootstrap or not state.is_voter):
                    poll_seeker(state, now_ms, out)
            case Prospective():
                poll_prospective(state, now_ms, out)
            case Candidate():
                poll_candidate(state, now_ms, out)
            case Leader():
                poll_leader(state, now_ms, out)
            case Follower():
                poll_follower(state, now_ms, out)
            case Resigned():
                poll_resigned(state, now_ms, out)
