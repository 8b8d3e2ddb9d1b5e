"""kraft.version rises from 0 to 1: a quorum with static voters becomes a dynamic one (KIP-853).

A VotersRecord names each voter with its directory, its endpoints and what it supports, of which
`controller.quorum.voters` says only one address. So while kraft.version is 0 each voter tells
every new leader of itself by UpdateVoter, a fetch timeout after it began to follow, and the leader
keeps that in mind: nothing is logged, and it ends with the epoch. Once all have told, kraft.version
and the voters are appended as one batch. The ids stay the same, and with them every majority.
Source: Kafka's LeaderState.maybeAppendUpgradedKRaftVersion and UpdateVoterHandler.
"""

from barnabas.node.raft.core.events import AppendVoters, Effect
from barnabas.node.raft.core.state import Leader, RaftState
from barnabas.node.raft.voters import Voter, VoterSet
from barnabas.protocol.errors import ErrorCode


def note_voter(state: RaftState, leader: Leader, voter: Voter) -> ErrorCode:
    """A voter of a static quorum says who it is; it counts, with any earlier directory."""
    if leader.high_watermark is None:
        return ErrorCode.REQUEST_TIMED_OUT
    if not voter.kraft_version_min <= state.history.kraft_version:
        return ErrorCode.INVALID_REQUEST
    if voter.key.id not in state.voters.by_id:
        return ErrorCode.VOTER_NOT_FOUND
    leader.told[voter.key.id] = voter
    return ErrorCode.NONE


def upgrade_refusal(state: RaftState, level: int) -> str | None:
    """As leader: why kraft.version cannot be raised to `level` now; None if it can, or is there.

    The text begins as Kafka's does.
    """
    current = state.history.kraft_version
    if level == current:
        return None
    wanted = f"kraft.version to {_name(level)}"
    if level < current:
        return (
            f"Invalid upgrade of kraft.version from version {_name(current)} to {_name(level)} "
            "because the new version is a downgrade"
        )
    leader = state.role_state
    assert isinstance(leader, Leader)
    known = _known(state, leader)
    unheard = [voter_id for voter_id in sorted(state.voters.by_id) if voter_id not in known]
    unable = [
        voter_id
        for voter_id, voter in sorted(known.items())
        if not voter.kraft_version_min <= level <= voter.kraft_version_max
    ]
    reason = f"Invalid upgrade of {wanted} because not all of the voters support it"
    if unable:
        return f"{reason}: voters {unable} do not."
    if unheard:
        return (
            f"{reason}: voters {unheard} have not told this leader what they support, as each "
            "does soon after it began to follow."
        )
    return None


def upgrade(state: RaftState, level: int, out: list[Effect]) -> None:
    """Append kraft.version and the voters as they told of themselves, unless it is there."""
    leader = state.role_state
    if not isinstance(leader, Leader) or level == state.history.kraft_version:
        return
    assert upgrade_refusal(state, level) is None, "kraft.version is raised where it cannot be"
    voters = VoterSet(
        {voter_id: _known(state, leader)[voter_id] for voter_id in state.voters.by_id}
    )
    out.append(AppendVoters(state.epoch, voters, level))


def _known(state: RaftState, leader: Leader) -> dict[int, Voter]:
    """The voters that are known by more than their id; the leader knows itself."""
    return {**leader.told, state.key.id: state.local}


def _name(level: int) -> str:
    """As Kafka calls a level where it refuses it."""
    return f"KRAFT_VERSION_{level}"
