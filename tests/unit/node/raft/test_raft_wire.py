"""The quorum's requests and answers in Kafka's messages: there and back, and what is refused."""

from dataclasses import replace
from typing import Any, cast

import pytest
from machine_world import member

from barnabas.base.ids import ZERO_UUID
from barnabas.node.raft.core import messages as core
from barnabas.node.raft.core.messages import LogPosition, Standing
from barnabas.node.raft.snapshot_files import SnapshotId
from barnabas.node.raft.voters import ReplicaKey, VoterEndpoint
from barnabas.node.raft.wire_requests import decode_reply, encode_request
from barnabas.node.raft.wire_responses import RefusedRequestError, decode_request, encode_reply
from barnabas.protocol.apis import APIS
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.quorum import EndQuorumEpochRequest

CLUSTER_ID = "wNy8cT3ESyCmV0WqO_SnvA"
API_OF = {api.request: api for api in APIS.values()}
ONE, TWO = member(1), member(2)
KNOWN = Standing(6, 2, (VoterEndpoint("", "node2", 1),))
UNKNOWN = Standing(6)

PAIRS: list[tuple[core.Request, core.Reply]] = [
    (
        core.Vote(6, ONE.key, TWO.key, LogPosition(4, 10), is_pre_vote=True),
        core.VoteReply(UNKNOWN, is_granted=True),
    ),
    (
        core.Vote(6, ONE.key, TWO.key, LogPosition(4, 10), is_pre_vote=False),
        core.VoteReply(KNOWN, ErrorCode.FENCED_LEADER_EPOCH),
    ),
    (core.BeginEpoch(6, 1, ONE.endpoints, TWO.key), core.BeginEpochReply(KNOWN)),
    (core.EndEpoch(6, 1, ONE.endpoints, (TWO.key, ONE.key)), core.EndEpochReply(UNKNOWN)),
    (
        core.Fetch(6, ONE.key, 10, 4, 500, 7),
        core.FetchReply(KNOWN, offset=10, high_watermark=9, log_start_offset=2, records=b"some"),
    ),
    (
        core.Fetch(6, ONE.key, 10, 4, 500),
        core.FetchReply(KNOWN, offset=10, diverging=LogPosition(3, 8), records=b""),
    ),
    (
        core.Fetch(6, ONE.key, 10, 4, 500),
        core.FetchReply(KNOWN, offset=10, snapshot_id=SnapshotId(8, 3), records=b""),
    ),
    (
        core.Fetch(6, ONE.key, 10, 4, 500),
        core.FetchReply(UNKNOWN, ErrorCode.NOT_LEADER_OR_FOLLOWER, 10, records=b""),
    ),
    (
        core.FetchSnapshot(6, ONE.key, SnapshotId(8, 3), 100, 1000),
        core.FetchSnapshotReply(KNOWN, ErrorCode.NONE, SnapshotId(8, 3), 104, 100, b"tail"),
    ),
    (core.UpdateVoter(6, ONE), core.UpdateVoterReply(KNOWN, ErrorCode.VOTER_NOT_FOUND)),
    (core.AddVoter(ONE, ack_when_committed=False), core.AddVoterReply()),
    (core.RemoveVoter(ONE.key), core.RemoveVoterReply(ErrorCode.VOTER_NOT_FOUND, "who?")),
]


def travel(message: Any, kind: type, version: int) -> Any:
    return decode(kind, version, encode(message, version))


@pytest.mark.parametrize(("asked", "reply"), PAIRS, ids=lambda value: type(value).__name__)
def test_there_and_back(asked: core.Request, reply: core.Reply) -> None:
    message = encode_request(asked, CLUSTER_ID, 2_000)
    api = API_OF[type(message)]
    version = api.max_stable_version
    arrived = decode_request(travel(message, api.request, version), CLUSTER_ID)
    assert arrived == asked
    answer = travel(encode_reply(reply, version), api.response, version)
    got = decode_reply(asked, answer)
    if isinstance(got, core.FetchReply | core.FetchSnapshotReply):
        data = "records" if isinstance(got, core.FetchReply) else "data"
        got = replace(got, **cast("Any", {data: bytes(getattr(got, data))}))
    assert got == reply


@pytest.mark.parametrize(("asked", "reply"), PAIRS, ids=lambda value: type(value).__name__)
def test_every_version_can_be_answered(asked: core.Request, reply: core.Reply) -> None:
    api = API_OF[type(encode_request(asked, CLUSTER_ID, 2_000))]
    for version in range(api.min_version, api.max_stable_version + 1):
        if isinstance(asked, core.Fetch) and version < 12:
            continue  # the quorum's fields begin with it
        answer = travel(encode_reply(reply, version), api.response, version)
        assert decode_reply(asked, answer).error == reply.error


@pytest.mark.parametrize(("asked", "reply"), PAIRS, ids=lambda value: type(value).__name__)
def test_another_cluster_is_refused(asked: core.Request, reply: core.Reply) -> None:
    message: Any = encode_request(asked, "another", 2_000)
    with pytest.raises(RefusedRequestError) as refused:
        decode_request(message, CLUSTER_ID)
    response: Any = refused.value.response
    assert response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert decode_reply(asked, response).error == ErrorCode.INCONSISTENT_CLUSTER_ID


@pytest.mark.parametrize(
    "asked", [asked for asked, _ in PAIRS if hasattr(encode_request(asked, "", 0), "topics")]
)
def test_another_partition_is_refused(asked: core.Request) -> None:
    for spoil in ("topics", "partitions", "index"):
        message: Any = encode_request(asked, CLUSTER_ID, 2_000)
        topic = message.topics[0]
        if spoil == "topics":
            message.topics.append(topic)
        elif spoil == "partitions":
            topic.partitions.clear()
        else:
            name = "partition" if hasattr(topic.partitions[0], "partition") else "partition_index"
            setattr(topic.partitions[0], name, 1)
        with pytest.raises(RefusedRequestError) as refused:
            decode_request(message, CLUSTER_ID)
        response: Any = refused.value.response
        assert response.error_code == ErrorCode.INVALID_REQUEST


def test_the_successors_of_an_old_version_count_too() -> None:
    asked = core.EndEpoch(6, 1, (), (TWO.key,))
    message = travel(encode_request(asked, CLUSTER_ID, 2_000), EndQuorumEpochRequest, 0)
    arrived = decode_request(message, CLUSTER_ID)
    assert isinstance(arrived, core.EndEpoch)
    assert arrived.preferred == (ReplicaKey(2, ZERO_UUID),)
