"""A follower: it asks its leader for what comes next, and does as the answer says.

Each fetch says where the follower's log ends, and that all of it is on the medium; so the next
one waits for the fsync of the last. The answer is records to append, or where the logs part
(records after that point are cut off), or a snapshot to begin with. An observer does the same, but
stands for no election: without a leader it asks whomever it knows of.
Source: KIP-595, KIP-630, KIP-853; Kafka's KafkaRaftClient and FollowerState.
"""

from barnabas.base.ids import NO_NODE
from barnabas.node.raft.core.events import (
    AbandonSnapshot,
    AdvanceHighWatermark,
    AppendRecords,
    AppendSnapshot,
    BeginSnapshot,
    Effect,
    Failure,
    InstallSnapshot,
    ReportViolation,
    StoreSnapshot,
    TruncateLog,
)
from barnabas.node.raft.core.messages import (
    AddVoter,
    Fetch,
    FetchReply,
    FetchSnapshot,
    FetchSnapshotReply,
    LogPosition,
    RemoveVoter,
    Request,
    UpdateVoter,
    UpdateVoterReply,
)
from barnabas.node.raft.core.peers import RETRY_BACKOFF_MAX_MS, back_off, send_when_ready
from barnabas.node.raft.core.state import (
    NEVER,
    Download,
    Follower,
    RaftState,
    Trigger,
    Unattached,
    draw,
    election_backoff_ms,
    enter,
    flush,
    wake_at,
)
from barnabas.node.raft.core.transitions import become_prospective, leave_role
from barnabas.node.raft.snapshot_files import SnapshotId
from barnabas.protocol.errors import ErrorCode

EVIDENCE_BACKOFF_MS = 50
"""After its leader's death a follower stands within this time, by chance, so that one is first."""


class QuorumError(Exception):
    """The quorum does what a correct one cannot: what was committed here is to be undone."""


# -- answers


def on_fetch_reply(
    state: RaftState,
    follower: Follower,
    request: Fetch,
    reply: FetchReply,
    now_ms: int,
    out: list[Effect],
) -> None:
    """Do as the leader says. Raises QuorumError if it says to undo what is committed."""
    if request.offset != state.log.end_offset or follower.is_busy:
        return
    note_success(state, follower, now_ms)
    if reply.diverging is not None:
        _truncate(state, follower, reply.diverging, out)
    elif reply.snapshot_id is not None:
        _begin_download(state, follower, reply.snapshot_id, out)
    else:
        follower.leader_high_watermark = max(follower.leader_high_watermark, reply.high_watermark)
        if reply.records:
            follower.is_busy = True
            out.append(AppendRecords(state.epoch, reply.records))
        else:
            advance(state, follower, out)


def note_success(state: RaftState, follower: Follower, now_ms: int) -> None:
    """The leader lives, and leads."""
    follower.has_fetched = True
    follower.is_cut_off = False
    follower.stand_at_ms = NEVER
    follower.fetch_deadline_ms = now_ms + state.settings.fetch_timeout_ms
    state.failed_elections = 0


def _truncate(
    state: RaftState, follower: Follower, diverging: LogPosition, out: list[Effect]
) -> None:
    """Cut the log where it diverges from the leader's. Source: Kafka's truncateToEndOffset."""
    offset = diverging.offset
    if diverging.epoch != 0:
        local = state.log.end_of_epoch(diverging.epoch)
        same_epoch = local.epoch == diverging.epoch
        offset = min(local.offset, diverging.offset) if same_epoch else local.offset
    if offset < state.high_watermark:
        raise QuorumError(
            f"leader {state.election.leader_id} of epoch {state.epoch} lacks what was committed: "
            f"its log diverges from this one at offset {offset}, the high watermark is "
            f"{state.high_watermark}; a voter has lost its data"
        )
    follower.is_busy = True
    out.append(TruncateLog(offset))


def advance(state: RaftState, follower: Follower, out: list[Effect]) -> None:
    """Follow the leader's high watermark as far as the log goes."""
    high_watermark = min(follower.leader_high_watermark, state.log.end_offset)
    if high_watermark > state.high_watermark:
        state.high_watermark = high_watermark
        out.append(AdvanceHighWatermark(high_watermark))
    if not state.is_whole and _is_restored(state, follower):
        state.lost_from = NEVER


def _is_restored(state: RaftState, follower: Follower) -> bool:
    """Return whether the log has all committed records despite any loss.

    A leader knows the true high watermark once a record of its own epoch is committed; its log
    has all that was committed before, and so has one that agrees with it up to there.
    """
    if state.log.last_epoch != state.epoch:
        return False
    before = state.log.end_of_epoch(state.epoch - 1)
    epoch_start = before.offset if before.epoch < state.epoch else state.log.start_offset
    return epoch_start < follower.leader_high_watermark <= state.log.flushed_offset


def _begin_download(
    state: RaftState, follower: Follower, snapshot_id: SnapshotId, out: list[Effect]
) -> None:
    if snapshot_id.end_offset < 0 or snapshot_id.epoch < 0:
        out.append(ReportViolation(f"the leader offers snapshot {snapshot_id}"))
        return
    if snapshot_id.end_offset <= state.high_watermark:
        # All of it is here and committed; there is nothing to learn from it.
        out.append(
            ReportViolation(
                f"the leader offers snapshot {snapshot_id}, and everything before "
                f"{state.high_watermark} is committed here"
            )
        )
        return
    follower.download = Download(snapshot_id)
    out.append(BeginSnapshot(snapshot_id))


def on_fetch_snapshot_reply(
    state: RaftState,
    follower: Follower,
    reply: FetchSnapshotReply,
    now_ms: int,
    out: list[Effect],
) -> None:
    """Write down a piece of the snapshot; with the last one it is whole."""
    download = follower.download
    if download is None or follower.is_busy:
        return
    note_success(state, follower, now_ms)
    size_bytes = len(reply.data) if reply.data is not None else 0
    is_expected = (
        reply.snapshot_id == download.snapshot_id
        and reply.position == download.position
        and 0 < size_bytes <= reply.size_bytes - download.position
    )
    if reply.error != ErrorCode.NONE or not is_expected:
        # Gone from the leader, most likely for a newer one: the next fetch tells.
        follower.download = None
        out.append(AbandonSnapshot())
        return
    assert reply.data is not None
    download.position += size_bytes
    out.append(AppendSnapshot(reply.data))
    if download.position == reply.size_bytes:
        follower.is_busy = True
        out.append(StoreSnapshot(download.snapshot_id))


def on_update_voter_reply(follower: Follower, reply: UpdateVoterReply) -> None:
    """The leader knows of this voter; or it is of a release that wants no more while static."""
    if reply.error in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
        follower.has_told = True


def on_snapshot_stored(state: RaftState, snapshot_id: SnapshotId, out: list[Effect]) -> None:
    """Start over from it, if it is still wanted."""
    follower = state.role_state
    if (
        isinstance(follower, Follower)
        and follower.download is not None
        and follower.download.snapshot_id == snapshot_id
        and snapshot_id.end_offset > state.high_watermark
    ):
        out.append(InstallSnapshot(snapshot_id))
    else:
        out.append(AbandonSnapshot())


def on_snapshot_rejected(state: RaftState, now_ms: int) -> None:
    """It was damaged: fetch it again."""
    follower = state.role_state
    if isinstance(follower, Follower):
        follower.download = None
        follower.is_busy = False
        _pause(state, now_ms)


def on_append_rejected(state: RaftState, now_ms: int) -> None:
    """Fetch again, after a while."""
    follower = state.role_state
    if isinstance(follower, Follower):
        follower.is_busy = False
        _pause(state, now_ms)


def _pause(state: RaftState, now_ms: int) -> None:
    if state.election.leader_id in state.peers:
        back_off(state, state.election.leader_id, now_ms)


def on_leader_failed(state: RaftState, follower: Follower, failure: Failure, now_ms: int) -> None:
    """A request to the leader failed: is it dead?"""
    if failure is Failure.REFUSED:
        note_evidence(state, follower, now_ms)


def note_evidence(state: RaftState, follower: Follower, now_ms: int) -> None:
    """The leader is dead, or says that it does not lead: do not wait for the fetch timeout."""
    if not follower.is_cut_off:
        follower.is_cut_off = True
        stand_at_ms = now_ms + draw(state, EVIDENCE_BACKOFF_MS)
        follower.stand_at_ms = min(follower.stand_at_ms, stand_at_ms)


# -- as time passes


def poll_follower(state: RaftState, now_ms: int, out: list[Effect]) -> None:
    """Stand for election, or ask the leader for more."""
    follower = state.role_state
    assert isinstance(follower, Follower)
    if follower.is_busy:
        return
    deadline_ms = min(follower.fetch_deadline_ms, follower.stand_at_ms)
    if now_ms >= deadline_ms and not state.is_stopping:
        if state.may_stand:
            become_prospective(state, now_ms, out)
        else:
            _lose_leader(state, now_ms, out)
        return
    if not state.is_stopping:
        wake_at(state, deadline_ms)
    if state.must_flush and not state.is_flushed and follower.download is None:
        flush(state, out)
        return
    leader_id = state.election.leader_id
    change = _voter_change(state, follower, now_ms)
    if change is not None:
        if send_when_ready(state, leader_id, lambda: change, now_ms, out):
            follower.update_at_ms = now_ms + state.settings.fetch_timeout_ms
    else:
        send_when_ready(state, leader_id, lambda: _next_request(state, follower), now_ms, out)


def _lose_leader(state: RaftState, now_ms: int, out: list[Effect]) -> None:
    """An observer goes and asks others."""
    leave_role(state, out)
    enter(state, Trigger.LEADER_LOST, Unattached(now_ms + election_backoff_ms(state)))


def _next_request(state: RaftState, follower: Follower) -> Request:
    if follower.download is not None:
        return FetchSnapshot(
            state.epoch,
            state.key,
            follower.download.snapshot_id,
            follower.download.position,
            state.settings.fetch_snapshot_max_bytes,
        )
    return _fetch(state)


def _fetch(state: RaftState) -> Fetch:
    return Fetch(
        state.epoch,
        state.key,
        state.log.end_offset,
        state.log.last_epoch,
        state.settings.fetch_max_wait_ms,
        state.high_watermark,
        state.settings.fetch_max_bytes,
    )


def _voter_change(state: RaftState, follower: Follower, now_ms: int) -> Request | None:
    """The request that reports this replica's new endpoints to the leader, or asks to vote.

    While kraft.version is 0 a voter tells every leader who it is: the directory and supported
    versions are in no log, and the leader must know them of all voters to raise kraft.version.
    """
    if not state.is_controller or not follower.has_fetched:
        return None
    voters = state.voters
    if state.history.kraft_version < 1:
        if follower.has_told or not state.is_voter:
            return None
    elif state.is_voter:
        if voters.by_id[state.key.id] == state.local:
            return None
    elif not state.settings.auto_join:
        return None
    if now_ms < follower.update_at_ms:
        wake_at(state, follower.update_at_ms)
        return None
    if state.is_voter:
        return UpdateVoter(state.epoch, state.local)
    namesake = voters.by_id.get(state.key.id)
    if namesake is not None:
        return RemoveVoter(namesake.key)
    return AddVoter(state.local, ack_when_committed=False)


def poll_seeker(state: RaftState, now_ms: int, out: list[Effect]) -> None:
    """Without a leader, ask a bootstrap server or a voter, one after another, who leads."""
    seeker = state.role_state
    assert isinstance(seeker, Unattached)
    if state.is_stopping or any(isinstance(peer.request, Fetch) for peer in state.peers.values()):
        return
    if now_ms < seeker.seek_at_ms:
        wake_at(state, seeker.seek_at_ms)
        return
    local = [(end.host, end.port) for end in state.local.endpoints]
    candidates = [
        NO_NODE - 1 - index for index, address in enumerate(state.bootstrap) if address not in local
    ]
    candidates += [voter for voter in state.voters.by_id if voter != state.key.id]
    for step in range(len(candidates)):
        index = (state.next_bootstrap + step) % len(candidates)
        if send_when_ready(state, candidates[index], lambda: _fetch(state), now_ms, out):
            state.next_bootstrap = index + 1
            seeker.seek_count += 1
            pause_ms = state.settings.retry_backoff_ms * (seeker.seek_count // len(candidates) + 1)
            seeker.seek_at_ms = now_ms + min(pause_ms, RETRY_BACKOFF_MAX_MS)
            return
