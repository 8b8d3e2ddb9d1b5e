"""DescribeQuorum (API 55, versions 0-2; KIP-595, 836, 853): the quorum as its leader sees it."""

from barnabas.metadata.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)
from barnabas.raft.node import RaftNode
from barnabas.raft.voters import Voter


def describe_quorum(
    raft: RaftNode, request: DescribeQuorumRequest, now_ms: int
) -> DescribeQuorumResponse:
    """Answer for the one partition that has a quorum; any other is unknown."""
    if not raft.is_leader:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return DescribeQuorumResponse(error_code=code, error_message=code.message)
    return DescribeQuorumResponse(
        error_message=None,
        topics=[_topic(raft, topic, now_ms) for topic in request.topics],
        nodes=[
            Node(
                node_id=voter.key.id,
                listeners=[
                    Listener(name=end.listener, host=end.host, port=end.port)
                    for end in voter.endpoints
                ],
            )
            for voter in _voters(raft)
        ],
    )


def _topic(
    raft: RaftNode, topic: DescribeQuorumRequestTopicData, now_ms: int
) -> DescribeQuorumResponseTopicData:
    return DescribeQuorumResponseTopicData(
        topic_name=topic.topic_name,
        partitions=[
            _partition(raft, topic.topic_name, partition, now_ms) for partition in topic.partitions
        ],
    )


def _partition(
    raft: RaftNode, topic_name: str, partition: DescribeQuorumRequestPartitionData, now_ms: int
) -> DescribeQuorumResponsePartitionData:
    if topic_name != CLUSTER_METADATA_TOPIC or partition.partition_index != 0:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return DescribeQuorumResponsePartitionData(
            partition_index=partition.partition_index,
            error_code=code,
            error_message=code.message,
        )
    return DescribeQuorumResponsePartitionData(
        partition_index=0,
        error_message=None,
        leader_id=raft.leader_id,
        leader_epoch=raft.epoch,
        high_watermark=raft.high_watermark,
        current_voters=[_replica(raft, voter, now_ms) for voter in _voters(raft)],
    )


def _replica(raft: RaftNode, voter: Voter, now_ms: int) -> ReplicaState:
    """The leader itself never fetches: it is caught up as of now."""
    assert voter.key.id == raft.leader_id, "a quorum of one voter has no followers"
    return ReplicaState(
        replica_id=voter.key.id,
        replica_directory_id=voter.key.directory_id,
        log_end_offset=raft.log_end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )


def _voters(raft: RaftNode) -> list[Voter]:
    return [voter for _, voter in sorted(raft.voters.by_id.items())]
