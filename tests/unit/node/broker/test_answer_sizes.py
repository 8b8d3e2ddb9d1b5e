"""Repeating a name in a request does not multiply its answer.

The node holds large things: a group's metadata, offsets with metadata, a topic of many producers.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import pack

import pytest

from barnabas.app.cluster import Cluster
from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas.protocol.records.records import Record, encode_batch
from support.long_requests import CASES, KNOWN, Case, Known, frame_of
from support.node_process import wait_until
from support.raw_client import RawClient

COUNT = 300
TIMES_MAX = 16
"""A repetition of one byte adds at most so many bytes to the answer."""
METADATA_BYTES = 50_000
OFFSET_METADATA = "m" * 4000
PRODUCERS = 200
CHANGING = ("DELETE", "OFFSET_DELETE", "LEAVE", "ALTER", "CREATE", "TXN", "ADD", "JOIN", "WRITE")
"""APIs whose names begin so would change what the node holds."""
READING = [case for case in CASES if not ApiKey(case.key).name.startswith(CHANGING)]


@pytest.fixture(scope="module")
def node() -> Iterator[tuple[RawClient, Cluster, Known]]:
    with Cluster() as cluster, RawClient(cluster.bootstrap_servers) as client:
        client.create_topic(KNOWN)
        for producer_id in range(PRODUCERS):
            record = Record(timestamp=1, value=b"held")
            batch = encode_batch(
                [record], producer_id=producer_id, producer_epoch=0, base_sequence=0
            )
            assert client.produce(KNOWN, bytes(batch)).error_code == ErrorCode.NONE
        wait_until(lambda: coordinates(client), "a coordinator")
        commit(client)
        join(client)
        yield client, cluster, Known(client.topic_id(KNOWN), 1000)


def coordinates(client: RawClient) -> bool:
    """Whether the group can be described."""
    client.call(FindCoordinatorRequest(coordinator_keys=[KNOWN]), FindCoordinatorResponse)
    asked = DescribeGroupsRequest(groups=[KNOWN])
    (group,) = client.call(asked, DescribeGroupsResponse, 5).groups
    return group.error_code == ErrorCode.NONE


def commit(client: RawClient) -> None:
    """Give the group an offset that says much."""
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=OFFSET_METADATA
    )
    topic = OffsetCommitRequestTopic(name=KNOWN, partitions=[partition])
    request = OffsetCommitRequest(group_id=KNOWN, topics=[topic])
    (answered,) = client.call(request, OffsetCommitResponse, 8).topics
    assert answered.partitions[0].error_code == ErrorCode.NONE


def join(client: RawClient) -> None:
    """Give the group a member that says much."""
    said = JoinGroupRequestProtocol(name="range", metadata=bytes(METADATA_BYTES))
    request = JoinGroupRequest(
        group_id=KNOWN,
        session_timeout_ms=600_000,
        rebalance_timeout_ms=600_000,
        protocol_type="consumer",
        protocols=[said],
    )
    request.member_id = client.call(request, JoinGroupResponse).member_id
    joined = client.call(request, JoinGroupResponse)
    assert joined.error_code == ErrorCode.NONE
    assigned = SyncGroupRequestAssignment(
        member_id=joined.member_id, assignment=bytes(METADATA_BYTES)
    )
    sync = SyncGroupRequest(
        group_id=KNOWN,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[assigned],
    )
    assert client.call(sync, SyncGroupResponse).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    "case", [case for case in READING if case.is_same and not case.is_for_controller], ids=str
)
def test_repetitions_do_not_multiply_an_answer(
    node: tuple[RawClient, Cluster, Known], case: Case
) -> None:
    _, cluster, known = node
    sizes = []
    with RawClient(cluster.bootstrap_servers) as client:
        for count in (1, COUNT):
            frame = frame_of(case, count, known)
            client.send_bytes(pack(">i", len(frame)) + frame)
            sizes.append((len(frame), len(client.receive_frame())))
    (asked_once, answered_once), (asked, answered) = sizes
    assert answered - answered_once <= TIMES_MAX * (asked - asked_once)


def test_what_the_node_holds_is_large(node: tuple[RawClient, Cluster, Known]) -> None:
    """The test above would see nothing otherwise."""
    _, cluster, known = node
    with RawClient(cluster.bootstrap_servers) as asking:
        for key, size in {
            ApiKey.DESCRIBE_GROUPS: METADATA_BYTES,
            ApiKey.OFFSET_FETCH: len(OFFSET_METADATA),
            ApiKey.DESCRIBE_PRODUCERS: PRODUCERS * 16,
        }.items():
            case = next(case for case in CASES if case.key == key)
            frame = frame_of(case, 1, known)
            asking.send_bytes(pack(">i", len(frame)) + frame)
            assert len(asking.receive_frame()) > size, APIS[key]
