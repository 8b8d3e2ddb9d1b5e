"""DescribeQuorum (API 55, versions 0-2; KIP-595, 836, 853): the quorum as its leader sees it.

A partition that a request names repeatedly is described once: the answer for it is many times as
large as its name.
"""

from barnabas.node.raft.core.state import Leader, Progress, RaftState
from barnabas.node.raft.voters import ReplicaKey, Voter
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.voters import (
    DescribeQuorumListener,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Node,
    ReplicaState,
)
from barnabas.protocol.well_known import CLUSTER_METADATA


def describe_quorum(
    state: RaftState, request: DescribeQuorumRequest, *, now_ms: int, monotonic_ms: int
) -> DescribeQuorumResponse:
    """Answer for the one partition that has a quorum; any other is unknown.

    `now_ms` is the wall clock's, `monotonic_ms` the clock's that the state counts by.
    """
    leader = state.role_state
    if not isinstance(leader, Leader):
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return DescribeQuorumResponse(error_code=code, error_message=code.message)
    skew_ms = now_ms - monotonic_ms
    asked: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        indexes = asked.setdefault(topic.topic_name, {})
        indexes.update((partition.partition_index, None) for partition in topic.partitions)
    return DescribeQuorumResponse(
        error_message=None,
        topics=[
            DescribeQuorumResponseTopicData(
                topic_name=name,
                partitions=[
                    _partition(state, leader, name, index, now_ms, skew_ms) for index in indexes
                ],
            )
            for name, indexes in asked.items()
        ],
        nodes=[
            Node(
                node_id=voter.key.id,
                listeners=[
                    DescribeQuorumListener(name=end.listener, host=end.host, port=end.port)
                    for end in voter.endpoints
                ],
            )
            for voter in _voters(state)
        ],
    )


def _partition(
    state: RaftState,
    leader: Leader,
    topic_name: str,
    index: int,
    now_ms: int,
    skew_ms: int,
) -> DescribeQuorumResponsePartitionData:
    if topic_name != CLUSTER_METADATA or index != 0:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return DescribeQuorumResponsePartitionData(
            partition_index=index,
            error_code=code,
            error_message=code.message,
        )
    voters = [voter.key for voter in _voters(state)]

    def replica(key: ReplicaKey) -> ReplicaState:
        if key.id == state.key.id:
            # The leader itself never fetches: it is caught up as of now.
            return ReplicaState(
                replica_id=key.id,
                replica_directory_id=key.directory_id,
                log_end_offset=state.log.end_offset,
                last_fetch_timestamp=now_ms,
                last_caught_up_timestamp=now_ms,
            )
        return _replica(key, leader.progress.get(key, Progress()), skew_ms)

    return DescribeQuorumResponsePartitionData(
        partition_index=0,
        error_message=None,
        leader_id=state.key.id,
        leader_epoch=state.epoch,
        high_watermark=-1 if leader.high_watermark is None else leader.high_watermark,
        current_voters=[replica(key) for key in voters],
        observers=[
            replica(key)
            for key in sorted(leader.progress)
            if key not in voters and key.id != state.key.id
        ],
    )


def _replica(key: ReplicaKey, progress: Progress, skew_ms: int) -> ReplicaState:
    def wall(time_ms: int) -> int:
        return -1 if time_ms < 0 else time_ms + skew_ms

    return ReplicaState(
        replica_id=key.id,
        replica_directory_id=key.directory_id,
        log_end_offset=progress.end_offset,
        last_fetch_timestamp=wall(progress.last_fetch_ms),
        last_caught_up_timestamp=wall(progress.last_caught_up_ms),
    )


def _voters(state: RaftState) -> list[Voter]:
    return [voter for _, voter in sorted(state.voters.by_id.items())]
