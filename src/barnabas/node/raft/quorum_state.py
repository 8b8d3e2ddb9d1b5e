"""The `quorum-state` file: the epoch a node has seen, whom it voted for, and the leader it knows.

What is written here is what a vote rests on, so it is on the medium before the node acts on it.
Both of Kafka's forms are read: data_version 0 (static voters) and 1 (KIP-853).
Source: Kafka's FileQuorumStateStore and ElectionState.
"""

import json
from dataclasses import dataclass
from typing import Any

from barnabas.base.disk import Disk
from barnabas.base.errors import ShownError
from barnabas.base.ids import NO_NODE, ZERO_UUID, uuid_from_text, uuid_to_text
from barnabas.node.raft.voters import ReplicaKey

FILE_NAME = "quorum-state"
INT_MAX = 2**31 - 1


class QuorumStateError(ShownError, ValueError):
    """A quorum-state file that cannot be trusted."""


@dataclass(frozen=True, slots=True)
class ElectionState:
    """An epoch with its leader (or -1) and this node's vote in it, if it gave one."""

    epoch: int = 0
    leader_id: int = NO_NODE
    voted: ReplicaKey | None = None


def read_quorum_state(disk: Disk, directory: str) -> ElectionState | None:
    """Read the file in `directory`, or None.

    Raises QuorumStateError if it holds something else than a quorum state.
    """
    path = f"{directory}/{FILE_NAME}"
    if not disk.exists(path):
        return None
    try:
        data = json.loads(disk.read(path))
        return _from_json(data)
    except (ValueError, KeyError, TypeError) as error:
        raise QuorumStateError(
            f"{path} is not a quorum state ({error!r}); restore it from a backup. A voter may have "
            "voted: without it take it out of the quorum, format its directory and add it again; "
            "a node that is only a broker can start without the file"
        ) from error


def write_quorum_state(
    disk: Disk, directory: str, state: ElectionState, *, kraft_version: int, voters: list[int]
) -> None:
    """Replace the file and force it to the medium. `voters` are named only by version 0."""
    text = json.dumps(_to_json(state, kraft_version, voters), separators=(",", ":"))
    disk.write_atomic(f"{directory}/{FILE_NAME}", text.encode())


def _to_json(state: ElectionState, kraft_version: int, voters: list[int]) -> dict[str, Any]:
    voted = state.voted
    if kraft_version == 0:
        return {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": NO_NODE if voted is None else voted.id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in voters],
            "data_version": 0,
        }
    return {
        "leaderId": state.leader_id,
        "leaderEpoch": state.epoch,
        "votedId": NO_NODE if voted is None else voted.id,
        "votedDirectoryId": uuid_to_text(ZERO_UUID if voted is None else voted.directory_id),
        "data_version": 1,
    }


def _from_json(data: dict[str, Any]) -> ElectionState:
    version = data["data_version"]
    if version not in (0, 1):
        raise ValueError(f"data_version {version} is not supported, only 0 and 1")
    voted_id = _number(data["votedId"], NO_NODE)
    directory_id = ZERO_UUID
    if version == 1:
        directory_id = uuid_from_text(data["votedDirectoryId"])
    return ElectionState(
        epoch=_number(data["leaderEpoch"], 0),
        leader_id=_number(data["leaderId"], NO_NODE),
        voted=None if voted_id == NO_NODE else ReplicaKey(voted_id, directory_id),
    )


def _number(value: object, least: int) -> int:
    """Raises ValueError for what is not a node or epoch."""
    if type(value) is not int or not least <= value <= INT_MAX:
        raise ValueError(f"{value!r} is not a node or epoch")
    return value
