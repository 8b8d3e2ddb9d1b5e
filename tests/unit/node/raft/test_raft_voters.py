"""Lists of voters, and the quorum-state file."""

import random
from pathlib import Path

import pytest

from barnabas.base.ids import ZERO_UUID, Uuid, uuid_from_text, uuid_to_text
from barnabas.base.local_disk import LocalDisk
from barnabas.node.raft.quorum_state import (
    ElectionState,
    QuorumStateError,
    read_quorum_state,
    write_quorum_state,
)
from barnabas.node.raft.voters import (
    ReplicaKey,
    VoterEndpoint,
    VotersError,
    parse_dynamic_voters,
    parse_static_voters,
    voter_set_from_record,
)
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages.quorum import VotersRecord

DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"


def test_static_voters() -> None:
    voters = parse_static_voters(["1@a:9093", "2@[::1]:9094", "3@c:0"], "CONTROLLER")
    assert voters.majority == 2
    assert voters.by_id[2].endpoints == (VoterEndpoint("CONTROLLER", "::1", 9094),)
    assert voters.is_voter(ReplicaKey(1, Uuid(random.Random(1).randbytes(16))))
    assert not voters.is_voter(ReplicaKey(4, ZERO_UUID))


def test_dynamic_voters_know_their_directory() -> None:
    voters = parse_dynamic_voters(f"0@h:8082:{DIRECTORY},1@[fe80::1]:1:{DIRECTORY}", "C")
    key = ReplicaKey(0, uuid_from_text(DIRECTORY))
    assert voters.by_id[0].key == key
    assert voters.is_voter(key)
    assert not voters.is_voter(ReplicaKey(0, ZERO_UUID)), "the disk was replaced"


def test_voters_survive_their_record() -> None:
    voters = parse_dynamic_voters(f"0@h:8082:{DIRECTORY},5@i:1:{uuid_to_text(ZERO_UUID)}", "C")
    data = encode(voters.to_record(), 0)
    assert voter_set_from_record(decode(VotersRecord, 0, data)) == voters


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "1",
        "1@",
        "1@h",
        "@h:1",
        "x@h:1",
        "-1@h:1",
        "1@h:port",
        "1@h:70000",
        "1@[::1",
        "1@[::1]1",
        "1@:1",
    ],
)
def test_entries_that_name_no_voter(entry: str) -> None:
    with pytest.raises(VotersError):
        parse_static_voters([entry], "C")


@pytest.mark.parametrize("text", ["", "0@h:1", "0@h:1:short", f"0@h:x:{DIRECTORY}"])
def test_initial_controllers_that_are_none(text: str) -> None:
    with pytest.raises(VotersError):
        parse_dynamic_voters(text, "C")


def test_a_voter_listed_twice() -> None:
    with pytest.raises(VotersError, match="twice"):
        parse_static_voters(["1@a:1", "1@b:1"], "C")


# -- quorum-state


@pytest.mark.parametrize("kraft_version", [0, 1])
@pytest.mark.parametrize(
    "state",
    [
        ElectionState(3, 7),
        ElectionState(3, -1),
        ElectionState(9, -1, ReplicaKey(2, uuid_from_text(DIRECTORY))),
    ],
)
def test_quorum_state_round_trip(tmp_path: Path, kraft_version: int, state: ElectionState) -> None:
    disk = LocalDisk()
    write_quorum_state(disk, str(tmp_path), state, kraft_version=kraft_version, voters=[2, 7])
    read = read_quorum_state(disk, str(tmp_path))
    if kraft_version == 0 and state.voted is not None:
        state = ElectionState(state.epoch, -1, ReplicaKey(state.voted.id, ZERO_UUID))
    assert read == state
    disk.close()


def test_quorum_state_is_what_kafka_writes(tmp_path: Path) -> None:
    disk = LocalDisk()
    write_quorum_state(disk, str(tmp_path), ElectionState(1, 1), kraft_version=1, voters=[1])
    assert (tmp_path / "quorum-state").read_text() == (
        '{"leaderId":1,"leaderEpoch":1,"votedId":-1,'
        '"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )
    write_quorum_state(disk, str(tmp_path), ElectionState(2, 1), kraft_version=0, voters=[1])
    assert (tmp_path / "quorum-state").read_text() == (
        '{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    disk.close()


def test_no_quorum_state(tmp_path: Path) -> None:
    disk = LocalDisk()
    assert read_quorum_state(disk, str(tmp_path)) is None
    disk.close()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"data_version":2,"leaderId":1,"leaderEpoch":1,"votedId":1}'],
)
def test_a_quorum_state_that_cannot_be_trusted(tmp_path: Path, text: str) -> None:
    (tmp_path / "quorum-state").write_text(text)
    disk = LocalDisk()
    with pytest.raises(QuorumStateError, match="quorum-state"):
        read_quorum_state(disk, str(tmp_path))
    disk.close()
