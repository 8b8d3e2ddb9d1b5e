"""A node that holds large things, which a short request can ask for.

A group's metadata, offsets with metadata, a topic of many producers, a share-partition's state.
"""

from __future__ import annotations

from struct import pack
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.protocol.messages.share_state import (
    StateBatch,
    WriteShareGroupStatePartitionData,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateData,
)
from barnabas.protocol.messages.voters import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from barnabas.protocol.records.records import Record, encode_batch
from barnabas.protocol.well_known import CLUSTER_METADATA
from support.long_requests import KNOWN, Case, Known, frame_of
from support.node_process import wait_until
from support.patience import PATIENCE_S
from support.raw_client import RawClient
from support.share_client import begin_group

METADATA_BYTES = 50_000
OFFSET_METADATA = "m" * 4000
PRODUCERS = 200
SHARE_BATCHES = 300


class LargeThings:
    """A node of a cluster with its data, and clients of it."""

    def __init__(self, bootstrap_servers: str, *, with_share_state: bool) -> None:
        """Make them. The share-partition's state may be on another node: it can be left out."""
        with RawClient(bootstrap_servers) as client:
            wait_until(lambda: coordinator(client) != "", "a coordinator")
            self.address = coordinator(client)
            self._controller = active_controller(client)
        with RawClient(self.address) as client:
            client.create_topic(KNOWN)
            for producer_id in range(PRODUCERS):
                record = Record(timestamp=1, value=b"held")
                batch = encode_batch(
                    [record], producer_id=producer_id, producer_epoch=0, base_sequence=0
                )
                assert client.produce(KNOWN, bytes(batch)).error_code == ErrorCode.NONE
            wait_until(lambda: coordinates(client), "the group's coordinator to be loaded")
            commit(client)
            join(client)
            self.known = Known(client.topic_id(KNOWN), 1000)
            if with_share_state:
                share(client, self.known.topic_id)

    def connect(self, *, is_for_controller: bool, timeout_s: float = PATIENCE_S) -> RawClient:
        """A client of the node, or of the active controller."""
        return RawClient(self._controller if is_for_controller else self.address, timeout_s)

    def sizes(self, client: RawClient, case: Case, count: int) -> tuple[int, int]:
        """The bytes of a request with so many elements, and of its answer."""
        frame = frame_of(case, count, self.known)
        client.send_bytes(pack(">i", len(frame)) + frame)
        return len(frame), len(client.receive_frame())


def active_controller(client: RawClient) -> str:
    """The address of the quorum's leader."""
    asked = DescribeQuorumRequest(
        topics=[
            DescribeQuorumRequestTopicData(
                topic_name=CLUSTER_METADATA,
                partitions=[DescribeQuorumRequestPartitionData(partition_index=0)],
            )
        ]
    )
    answer = client.call(asked, DescribeQuorumResponse)
    leader = answer.topics[0].partitions[0].leader_id
    (node,) = [node for node in answer.nodes if node.node_id == leader]
    return f"{node.listeners[0].host}:{node.listeners[0].port}"


def coordinator(client: RawClient) -> str:
    """The address of the group's coordinator, empty without one."""
    asked = FindCoordinatorRequest(coordinator_keys=[KNOWN])
    (found,) = client.call(asked, FindCoordinatorResponse).coordinators
    return "" if found.error_code else f"{found.host}:{found.port}"


def coordinates(client: RawClient) -> bool:
    """Return whether the group can be described."""
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


def share(client: RawClient, topic_id: Any) -> None:
    """Give a share-partition a state that says much."""
    begin_group(client, KNOWN, topic_id)
    partition = WriteShareGroupStatePartitionData(
        partition=0,
        state_epoch=1,
        leader_epoch=0,
        start_offset=0,
        state_batches=[
            StateBatch(first_offset=at, last_offset=at, delivery_state=0, delivery_count=1 + at % 2)
            for at in range(SHARE_BATCHES)
        ],
    )
    topic = WriteStateData(topic_id=topic_id, partitions=[partition])
    request = WriteShareGroupStateRequest(group_id=KNOWN, topics=[topic])
    (answered,) = client.call(request, WriteShareGroupStateResponse).results
    assert answered.partitions[0].error_code == ErrorCode.NONE
