"""A leader: it serves fetches, and from their offsets knows what is committed.

The offset of a voter's fetch says what that voter has on its medium. The high watermark is the
greatest offset that a majority has there, the leader with what it has flushed itself, and it
moves only once it passes the start of the leader's own epoch: until then an entry of an earlier
epoch that a majority holds may still be overwritten (the Raft paper, section 5.4.2).
Source: KIP-595, KIP-853, KIP-1166; Kafka's LeaderState.
"""

from barnabas.base.ids import ZERO_UUID
from barnabas.node.raft.core.events import AdvanceHighWatermark, Answer, Effect
from barnabas.node.raft.core.membership import expire_change, high_watermark_advanced
from barnabas.node.raft.core.messages import (
    HIGH_WATERMARK_NOT_COMPARED,
    BeginEpoch,
    Fetch,
    FetchReply,
    FetchSnapshot,
    FetchSnapshotReply,
    LogPosition,
)
from barnabas.node.raft.core.peers import send_when_ready
from barnabas.node.raft.core.state import (
    Leader,
    LogView,
    Progress,
    RaftState,
    WaitingFetch,
    flush,
    wake_at,
)
from barnabas.node.raft.core.transitions import become_resigned, check_quorum_ms
from barnabas.node.raft.snapshot_files import BOOTSTRAP_SNAPSHOT, SnapshotId
from barnabas.node.raft.voters import ReplicaKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import NO_OFFSET

OBSERVER_SESSION_MS = 300_000
"""An observer that has not fetched for this long is forgotten (Kafka's constant)."""


def check_leader(state: RaftState, epoch: int) -> ErrorCode:
    """Check that this replica is the leader of `epoch`; no other may answer the request."""
    if epoch < state.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > state.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(state.role_state, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


# -- fetches


def on_fetch(state: RaftState, token: int, request: Fetch, now_ms: int, out: list[Effect]) -> None:
    """A replica asks for what comes after its log."""
    if (
        request.max_wait_ms < 0
        or request.offset < 0
        or not 0 <= request.last_epoch <= request.epoch
        or request.replica.id == state.key.id
    ):
        out.append(Answer(token, FetchReply(state.standing, ErrorCode.INVALID_REQUEST)))
        return
    error = check_leader(state, request.epoch)
    if error != ErrorCode.NONE:
        out.append(Answer(token, FetchReply(state.standing, error, request.offset)))
        return
    leader = state.role_state
    assert isinstance(leader, Leader)
    diverging, snapshot_id = locate(state.log, request.offset, request.last_epoch)
    if diverging is None and snapshot_id is None:
        _note_fetch(state, leader, request, now_ms, out)
    reply = FetchReply(
        state.standing,
        offset=request.offset,
        high_watermark=_known(leader),
        log_start_offset=state.log.start_offset,
        diverging=diverging,
        snapshot_id=snapshot_id,
    )
    has_news = (
        diverging is not None
        or snapshot_id is not None
        or request.offset < state.log.end_offset
        or _is_behind(leader, request.high_watermark)
    )
    if has_news or request.max_wait_ms == 0 or state.is_stopping:
        out.append(Answer(token, reply))
        return
    earlier = leader.waiting.pop(request.replica, None)
    if earlier is not None:  # it has given up waiting
        _answer(state, leader, earlier, out)
    deadline_ms = now_ms + min(request.max_wait_ms, state.settings.fetch_timeout_ms)
    leader.waiting[request.replica] = WaitingFetch(
        token, request.replica, request.offset, request.high_watermark, deadline_ms
    )


def locate(
    log: LogView, offset: int, last_epoch: int
) -> tuple[LogPosition | None, SnapshotId | None]:
    """Find where the logs diverge, or the snapshot to begin with; neither if the fetch can
    continue.

    Source: Kafka's ReplicatedLog.validateOffsetAndEpoch.
    """
    snapshot_id = log.snapshot_id
    if offset == 0 and snapshot_id is not None and snapshot_id != BOOTSTRAP_SNAPSHOT:
        return None, snapshot_id
    start_offset = log.start_offset
    if offset == 0 and start_offset == 0:
        return None, None
    is_before = (
        offset < start_offset
        or (offset == start_offset and last_epoch != log.start_epoch)
        or last_epoch < log.start_epoch
    )
    if start_offset > 0 and is_before:
        assert snapshot_id is not None, "a log that begins later has a snapshot"
        return None, snapshot_id
    end = log.end_of_epoch(last_epoch)
    if end.epoch != last_epoch or end.offset < offset:
        return end, None
    return None, None


def _known(leader: Leader) -> int:
    return NO_OFFSET if leader.high_watermark is None else leader.high_watermark


def _is_behind(leader: Leader, high_watermark: int) -> bool:
    """Return whether a follower that knows `high_watermark` has something to learn (KIP-1166)."""
    return (
        high_watermark != HIGH_WATERMARK_NOT_COMPARED
        and leader.high_watermark is not None
        and leader.high_watermark > high_watermark
    )


def _answer(state: RaftState, leader: Leader, fetch: WaitingFetch, out: list[Effect]) -> None:
    out.append(
        Answer(
            fetch.token,
            FetchReply(
                state.standing,
                offset=fetch.offset,
                high_watermark=_known(leader),
                log_start_offset=state.log.start_offset,
            ),
        )
    )


def answer_waiting(state: RaftState, leader: Leader, now_ms: int, out: list[Effect]) -> None:
    """Answer the fetches for which there is something now, or that waited long enough."""
    end_offset = state.log.end_offset
    for replica, fetch in list(leader.waiting.items()):
        if (
            fetch.offset < end_offset
            or _is_behind(leader, fetch.high_watermark)
            or now_ms >= fetch.deadline_ms
            or state.is_stopping
        ):
            del leader.waiting[replica]
            _answer(state, leader, fetch, out)
        else:
            wake_at(state, fetch.deadline_ms)


def on_fetch_snapshot(
    state: RaftState, token: int, request: FetchSnapshot, now_ms: int, out: list[Effect]
) -> None:
    """A replica asks for a piece of a snapshot; the driver reads it when it answers."""
    error = check_leader(state, request.epoch)
    if error == ErrorCode.NONE:
        leader = state.role_state
        assert isinstance(leader, Leader)
        _hear(state, leader, request.replica, now_ms)
        if request.snapshot_id == BOOTSTRAP_SNAPSHOT:
            # The first leader has written the snapshot's content to the log.
            error = ErrorCode.SNAPSHOT_NOT_FOUND
    out.append(
        Answer(
            token,
            FetchSnapshotReply(
                state.standing, error, request.snapshot_id, position=request.position
            ),
        )
    )


# -- who has what


def progress_key(state: RaftState, replica: ReplicaKey) -> ReplicaKey:
    """Under which key a replica's progress is kept: a voter's may lack the directory."""
    voters = state.voters
    return voters.by_id[replica.id].key if voters.is_voter(replica) else replica


def _note_fetch(
    state: RaftState, leader: Leader, request: Fetch, now_ms: int, out: list[Effect]
) -> None:
    if request.replica.id < 0:
        return  # somebody who only reads
    key = progress_key(state, request.replica)
    progress = leader.progress.get(key)
    if progress is None:
        _forget_idle(state, leader, now_ms)
        progress = leader.progress[key] = Progress()
    end_offset = state.log.end_offset
    if request.offset >= end_offset:
        progress.last_caught_up_ms = max(progress.last_caught_up_ms, now_ms)
    elif 0 < progress.leader_end_offset <= request.offset:
        progress.last_caught_up_ms = max(progress.last_caught_up_ms, progress.last_fetch_ms)
    progress.leader_end_offset = end_offset
    progress.last_fetch_ms = max(progress.last_fetch_ms, now_ms)
    progress.end_offset = request.offset
    _hear(state, leader, request.replica, now_ms)
    update_high_watermark(state, leader, now_ms, out)


def _hear(state: RaftState, leader: Leader, replica: ReplicaKey, now_ms: int) -> None:
    """A voter that fetches is with this leader; a majority of them keeps it in office."""
    voters = state.voters
    if not voters.is_voter(replica):
        return
    leader.to_begin.pop(replica.id, None)
    leader.heard[replica.id] = None
    heard = sum(voter in leader.heard for voter in voters.by_id)
    if heard >= voters.majority - voters.is_voter(state.key):
        leader.heard.clear()
        leader.check_quorum_at_ms = now_ms + check_quorum_ms(state)


def _forget_idle(state: RaftState, leader: Leader, now_ms: int) -> None:
    keys = {voter.key for voter in state.voters.by_id.values()}
    for key, progress in list(leader.progress.items()):
        if key not in keys and now_ms - progress.last_fetch_ms >= OBSERVER_SESSION_MS:
            del leader.progress[key]


def update_high_watermark(state: RaftState, leader: Leader, now_ms: int, out: list[Effect]) -> None:
    """Commit what a majority has."""
    voters = state.voters
    if not voters.by_id:
        return
    ends = []
    for voter in voters.by_id.values():
        if voter.key.id == state.key.id:
            ends.append(state.log.flushed_offset)
        else:
            progress = leader.progress.get(voter.key)
            ends.append(NO_OFFSET if progress is None else progress.end_offset)
    agreed = min(sorted(ends, reverse=True)[voters.majority - 1], state.log.end_offset)
    if agreed <= leader.epoch_start_offset:
        return
    if leader.high_watermark is not None and agreed <= leader.high_watermark:
        return
    leader.high_watermark = agreed
    if agreed > state.high_watermark:
        state.high_watermark = agreed
        out.append(AdvanceHighWatermark(agreed))
    high_watermark_advanced(state, leader, out)


# -- the log, and time


def leader_log_changed(state: RaftState, leader: Leader, now_ms: int, out: list[Effect]) -> None:
    """The leader's log grew, or more of it is on the medium; the voters may be others."""
    for voter in state.voters.by_id.values():
        if voter.key.id == state.key.id or voter.key in leader.progress:
            continue
        # Before kraft.version was raised, a voter was known by its id alone.
        known = leader.progress.pop(ReplicaKey(voter.key.id, ZERO_UUID), None)
        leader.progress[voter.key] = known or Progress()
        if known is None:
            leader.to_begin[voter.key.id] = None
    update_high_watermark(state, leader, now_ms, out)


def poll_leader(state: RaftState, now_ms: int, out: list[Effect]) -> None:
    """Make itself known, see whether a majority still follows, answer who waited long enough."""
    leader = state.role_state
    assert isinstance(leader, Leader)
    answer_waiting(state, leader, now_ms, out)
    expire_change(state, leader, now_ms, out)
    others = [voter for voter in state.voters.by_id if voter != state.key.id]
    if state.is_stopping or leader.must_resign or (others and now_ms >= leader.check_quorum_at_ms):
        become_resigned(state, now_ms, out)
        return
    if not state.is_flushed:
        flush(state, out)
    if not others:
        return
    wake_at(state, leader.check_quorum_at_ms)
    if now_ms >= leader.begin_epoch_at_ms:
        period_ms = state.settings.fetch_timeout_ms // 2
        leader.begin_epoch_at_ms = now_ms + period_ms
        for voter_id in others:
            progress = leader.progress.get(state.voters.by_id[voter_id].key)
            if progress is None or now_ms - progress.last_fetch_ms >= period_ms:
                leader.to_begin[voter_id] = None
    wake_at(state, leader.begin_epoch_at_ms)
    for voter_id in leader.to_begin:
        if voter_id in state.voters.by_id:
            _send_begin_epoch(state, state.voters.by_id[voter_id].key, now_ms, out)


def _send_begin_epoch(state: RaftState, voter: ReplicaKey, now_ms: int, out: list[Effect]) -> None:
    request = BeginEpoch(state.epoch, state.key.id, state.local.endpoints, voter)
    send_when_ready(state, voter.id, lambda: request, now_ms, out)
