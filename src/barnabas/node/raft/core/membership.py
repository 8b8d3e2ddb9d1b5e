"""Voters come and go while the quorum works, one at a time (KIP-853).

A new set of voters holds as soon as it is in the leader's log. That is safe because two sets that
differ by one voter have no majorities without a common member; so a change is refused while one
is not committed, and before the leader has committed its own epoch's start. Beyond Kafka, a
voter is not let go when those who remain and are there would be no majority.
Source: Kafka's AddVoterHandler, RemoveVoterHandler and UpdateVoterHandler.
"""

from barnabas.base.ids import ZERO_UUID
from barnabas.node.raft.core.events import Answer, AppendVoters, Effect
from barnabas.node.raft.core.messages import (
    AddVoter,
    AddVoterReply,
    AskVersions,
    RemoveVoter,
    RemoveVoterReply,
    UpdateVoter,
    UpdateVoterReply,
    VersionsReply,
)
from barnabas.node.raft.core.peers import pick_endpoint, send_when_ready
from barnabas.node.raft.core.state import Leader, RaftState, VoterChange, wake_at
from barnabas.node.raft.core.transitions import check_quorum_ms
from barnabas.node.raft.core.upgrade import note_voter
from barnabas.node.raft.voters import ReplicaKey, Voter, VoterSet
from barnabas.protocol.errors import ErrorCode

CAUGHT_UP_WITHIN_MS = 3_600_000
"""A replica may become a voter if it once caught up and fetched within the last hour (Kafka's)."""


def _obstacle(state: RaftState, leader: Leader, verb: str) -> tuple[ErrorCode, str] | None:
    """Why no change can begin now."""
    if leader.change is not None:
        return (
            ErrorCode.REQUEST_TIMED_OUT,
            "Another change of the voters is under way; try again when it is done.",
        )
    if leader.high_watermark is None:
        return (
            ErrorCode.REQUEST_TIMED_OUT,
            "The leader was elected just now and has committed nothing yet; try again.",
        )
    if state.history.kraft_version < 1:
        return (
            ErrorCode.UNSUPPORTED_VERSION,
            (
                f"Cannot {verb} a voter: kraft.version is {state.history.kraft_version}, and the "
                "voters of such a quorum are those of controller.quorum.voters."
            ),
        )
    if state.history.latest_offset >= leader.high_watermark:
        return (
            ErrorCode.REQUEST_TIMED_OUT,
            (
                f"The last change of the voters, at offset {state.history.latest_offset}, is not "
                f"committed yet (the high watermark is {leader.high_watermark}); try again."
            ),
        )
    return None


def on_add_voter(
    state: RaftState, token: int, request: AddVoter, now_ms: int, out: list[Effect]
) -> None:
    """Begin to add a voter: first it is asked what it supports."""

    def refuse(error: ErrorCode, message: str) -> None:
        out.append(Answer(token, AddVoterReply(error, message)))

    leader = state.role_state
    voter = request.voter
    if not isinstance(leader, Leader):
        refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER, "This replica does not lead the quorum.")
        return
    if voter.key.id < 0 or voter.key.directory_id == ZERO_UUID:
        refuse(ErrorCode.INVALID_REQUEST, "A voter has an id and the id of its directory.")
        return
    address = _default_endpoint(state, voter)
    if address is None:
        refuse(
            ErrorCode.INVALID_REQUEST,
            f"The voter names no endpoint for listener {_default_listener(state)}.",
        )
        return
    obstacle = _obstacle(state, leader, "add")
    if obstacle is not None:
        refuse(*obstacle)
        return
    if voter.key.id in state.voters.by_id:
        refuse(
            ErrorCode.DUPLICATE_VOTER,
            f"Node {voter.key.id} is a voter already; remove it first if its disk was replaced.",
        )
        return
    if not send_when_ready(state, voter.key.id, AskVersions, now_ms, out, address):
        refuse(ErrorCode.REQUEST_TIMED_OUT, f"Node {voter.key.id} cannot be asked now; try again.")
        return
    leader.change = VoterChange(
        token,
        now_ms + state.settings.request_timeout_ms,
        is_addition=True,
        voter=voter,
        ack_when_committed=request.ack_when_committed,
    )


def on_versions_reply(
    state: RaftState, peer_id: int, reply: VersionsReply, now_ms: int, out: list[Effect]
) -> None:
    """Go on with the addition of a voter, now that it is known what it supports."""
    leader = state.role_state
    if not isinstance(leader, Leader):
        return
    change = leader.change
    if change is None or change.voter is None or change.voter.key.id != peer_id:
        return
    voter = change.voter
    version = state.history.kraft_version
    if reply.error != ErrorCode.NONE:
        _finish(
            leader,
            ErrorCode.REQUEST_TIMED_OUT,
            f"Node {peer_id} answered ApiVersions with {reply.error.name}.",
            out,
        )
        return
    levels = reply.levels or (0, 0)
    if not levels[0] <= version <= levels[1]:
        _finish(
            leader,
            ErrorCode.INVALID_REQUEST,
            f"Node {peer_id} supports kraft.version {levels[0]} to {levels[1]}, and the quorum "
            f"runs {version}.",
            out,
        )
        return
    if not _is_caught_up(leader, voter.key, now_ms):
        _finish(
            leader,
            ErrorCode.REQUEST_TIMED_OUT,
            f"Node {peer_id} with this directory has not caught up with the metadata log; try "
            "again when it has.",
            out,
        )
        return
    added = Voter(voter.key, voter.endpoints, *levels)
    _append(state, leader, change, state.voters.with_voter(added), out)
    if not change.ack_when_committed:
        _answer(change, ErrorCode.NONE, None, out)


def on_versions_failed(state: RaftState, peer_id: int, out: list[Effect]) -> None:
    """The node that was to become a voter cannot be asked."""
    leader = state.role_state
    if not isinstance(leader, Leader):
        return
    change = leader.change
    if change is None or change.voter is None or change.voter.key.id != peer_id:
        return
    _finish(leader, ErrorCode.REQUEST_TIMED_OUT, f"Node {peer_id} does not answer the leader.", out)


def _is_caught_up(leader: Leader, key: ReplicaKey, now_ms: int) -> bool:
    progress = leader.progress.get(key)
    return (
        progress is not None
        and progress.last_caught_up_ms >= 0
        and now_ms - progress.last_fetch_ms < CAUGHT_UP_WITHIN_MS
    )


def on_remove_voter(
    state: RaftState, token: int, request: RemoveVoter, now_ms: int, out: list[Effect]
) -> None:
    """Take a voter out, unless the rest would be no quorum."""

    def refuse(error: ErrorCode, message: str) -> None:
        out.append(Answer(token, RemoveVoterReply(error, message)))

    leader = state.role_state
    key = request.key
    if not isinstance(leader, Leader):
        refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER, "This replica does not lead the quorum.")
        return
    if key.id < 0 or key.directory_id == ZERO_UUID:
        refuse(ErrorCode.INVALID_REQUEST, "A voter has an id and the id of its directory.")
        return
    obstacle = _obstacle(state, leader, "remove")
    if obstacle is not None:
        refuse(*obstacle)
        return
    voters = state.voters
    if key.id not in voters.by_id or voters.by_id[key.id].key != key:
        refuse(
            ErrorCode.VOTER_NOT_FOUND,
            f"Node {key.id} with this directory is not among the voters {sorted(voters.by_id)}.",
        )
        return
    remaining = voters.without_voter(key.id)
    if not remaining.by_id:
        refuse(ErrorCode.VOTER_NOT_FOUND, f"Node {key.id} is the last voter and has to stay.")
        return
    there = [
        voter_id
        for voter_id, voter in remaining.by_id.items()
        if voter_id == state.key.id or _is_there(state, leader, voter.key, now_ms)
    ]
    if len(there) < remaining.majority:
        refuse(
            ErrorCode.INVALID_REQUEST,
            f"Without node {key.id} only {sorted(there)} of the voters {sorted(remaining.by_id)} "
            "would be there, which is no majority; bring the others back first.",
        )
        return
    change = VoterChange(token, now_ms + state.settings.request_timeout_ms, is_addition=False)
    leader.change = change
    _append(state, leader, change, remaining, out)


def _is_there(state: RaftState, leader: Leader, key: ReplicaKey, now_ms: int) -> bool:
    progress = leader.progress.get(key)
    return (
        progress is not None
        and progress.last_fetch_ms >= 0
        and now_ms - progress.last_fetch_ms < check_quorum_ms(state)
    )


def on_update_voter(
    state: RaftState, token: int, request: UpdateVoter, error: ErrorCode, out: list[Effect]
) -> None:
    """A voter answers elsewhere now; the leader tells it at once, before the change is
    committed."""
    if error == ErrorCode.NONE:
        error = _update_voter(state, request.voter, out)
    out.append(Answer(token, UpdateVoterReply(state.standing, error)))


def _update_voter(state: RaftState, voter: Voter, out: list[Effect]) -> ErrorCode:
    leader = state.role_state
    assert isinstance(leader, Leader)
    if voter.key.id < 0 or voter.key.directory_id == ZERO_UUID:
        return ErrorCode.INVALID_REQUEST
    if _default_endpoint(state, voter) is None:
        return ErrorCode.INVALID_REQUEST
    if not 0 <= voter.kraft_version_min <= voter.kraft_version_max:
        return ErrorCode.INVALID_REQUEST
    if state.history.kraft_version < 1:
        return note_voter(state, leader, voter)
    obstacle = _obstacle(state, leader, "update")
    if obstacle is not None:
        return obstacle[0]
    if not voter.kraft_version_min <= state.history.kraft_version <= voter.kraft_version_max:
        return ErrorCode.INVALID_REQUEST
    if not state.voters.is_voter(voter.key):
        return ErrorCode.VOTER_NOT_FOUND
    if state.voters.by_id[voter.key.id] != voter:
        out.append(AppendVoters(state.epoch, state.voters.with_voter(voter)))
    return ErrorCode.NONE


def _default_listener(state: RaftState) -> str:
    return state.local.endpoints[0].listener if state.local.endpoints else ""


def _default_endpoint(state: RaftState, voter: Voter) -> tuple[str, int] | None:
    names = [endpoint.listener for endpoint in voter.endpoints]
    if _default_listener(state) not in names:
        return None
    return pick_endpoint(state, voter.endpoints)


def _append(
    state: RaftState, leader: Leader, change: VoterChange, voters: VoterSet, out: list[Effect]
) -> None:
    change.voter = None
    change.is_appended = True
    change.end_offset = state.log.end_offset + 1
    out.append(AppendVoters(state.epoch, voters))


def high_watermark_advanced(state: RaftState, leader: Leader, out: list[Effect]) -> None:
    """Finish the change that is committed now; a leader that is no voter any more resigns."""
    change = leader.change
    assert leader.high_watermark is not None
    if change is not None and leader.high_watermark >= change.end_offset:
        _finish(leader, ErrorCode.NONE, None, out)
    is_settled = leader.high_watermark > state.history.latest_offset
    if is_settled and not state.voters.is_voter(state.key):
        leader.must_resign = True


def expire_change(state: RaftState, leader: Leader, now_ms: int, out: list[Effect]) -> None:
    """Do not have anyone wait for a change for ever; one that is appended may yet come to be."""
    change = leader.change
    if change is None:
        return
    if now_ms >= change.deadline_ms:
        _finish(
            leader,
            ErrorCode.REQUEST_TIMED_OUT,
            "The change was not committed in time; it may still be."
            if change.is_appended
            else "The new voter did not answer in time.",
            out,
        )
    else:
        wake_at(state, change.deadline_ms)


def _finish(leader: Leader, error: ErrorCode, message: str | None, out: list[Effect]) -> None:
    change, leader.change = leader.change, None
    assert change is not None
    _answer(change, error, message, out)


def _answer(change: VoterChange, error: ErrorCode, message: str | None, out: list[Effect]) -> None:
    if change.is_answered:
        return
    change.is_answered = True
    reply = AddVoterReply if change.is_addition else RemoveVoterReply
    out.append(Answer(change.token, reply(error, message)))
