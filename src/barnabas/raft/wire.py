"""Between the machine's requests and answers and Kafka's messages.

The quorum has one topic with one partition, and Kafka's messages have room for many; a request
for any other is answered with INVALID_REQUEST, one of another cluster with
INCONSISTENT_CLUSTER_ID, before the machine hears of it. Endpoints of the leader travel beside
the partitions, in the versions that know them.
Source: Kafka's RaftUtil and KafkaRaftClient.
"""

from collections.abc import Sequence
from typing import Any, Final

from barnabas.base.ids import METADATA_TOPIC_ID, ZERO_UUID
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages import (
    add_raft_voter,
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.schema import Message
from barnabas.raft.core import messages as core
from barnabas.raft.core.messages import LogPosition, Standing
from barnabas.raft.quorum_state import NO_NODE
from barnabas.raft.snapshot_files import SnapshotId
from barnabas.raft.voters import ReplicaKey, Voter, VoterEndpoint

TOPIC: Final = "__cluster_metadata"
KRAFT_VERSION_FEATURE: Final = "kraft.version"
FETCH_ENDPOINTS_VERSION_MIN: Final = 16


class RefusedRequestError(Exception):
    """A request that the machine need not see; `response` says why."""

    def __init__(self, response: Message) -> None:
        super().__init__(type(response).__name__)
        self.response = response


# -- what this node asks


def encode_request(request: core.Request, cluster_id: str, timeout_ms: int) -> Message:
    """The Kafka message that asks it."""
    match request:
        case core.Vote(epoch, candidate, voter, last, is_pre_vote):
            assert voter is not None
            return vote.VoteRequest(
                cluster_id=cluster_id,
                voter_id=voter.id,
                topics=[
                    vote.VoteRequestTopicData(
                        topic_name=TOPIC,
                        partitions=[
                            vote.VoteRequestPartitionData(
                                replica_epoch=epoch,
                                replica_id=candidate.id,
                                replica_directory_id=candidate.directory_id,
                                voter_directory_id=voter.directory_id,
                                last_offset_epoch=last.epoch,
                                last_offset=last.offset,
                                pre_vote=is_pre_vote,
                            )
                        ],
                    )
                ],
            )
        case core.BeginEpoch(epoch, leader_id, endpoints, voter):
            assert voter is not None
            return begin_quorum_epoch.BeginQuorumEpochRequest(
                cluster_id=cluster_id,
                voter_id=voter.id,
                topics=[
                    begin_quorum_epoch.BeginQuorumEpochRequestTopicData(
                        topic_name=TOPIC,
                        partitions=[
                            begin_quorum_epoch.BeginQuorumEpochRequestPartitionData(
                                voter_directory_id=voter.directory_id,
                                leader_id=leader_id,
                                leader_epoch=epoch,
                            )
                        ],
                    )
                ],
                leader_endpoints=[
                    begin_quorum_epoch.LeaderEndpoint(
                        name=end.listener, host=end.host, port=end.port
                    )
                    for end in endpoints
                ],
            )
        case core.EndEpoch(epoch, leader_id, endpoints, preferred):
            return end_quorum_epoch.EndQuorumEpochRequest(
                cluster_id=cluster_id,
                topics=[
                    end_quorum_epoch.EndQuorumEpochRequestTopicData(
                        topic_name=TOPIC,
                        partitions=[
                            end_quorum_epoch.EndQuorumEpochRequestPartitionData(
                                leader_id=leader_id,
                                leader_epoch=epoch,
                                preferred_successors=[key.id for key in preferred],
                                preferred_candidates=[
                                    end_quorum_epoch.ReplicaInfo(
                                        candidate_id=key.id,
                                        candidate_directory_id=key.directory_id,
                                    )
                                    for key in preferred
                                ],
                            )
                        ],
                    )
                ],
                leader_endpoints=_named(end_quorum_epoch.LeaderEndpoint, endpoints),
            )
        case core.Fetch():
            return _encode_fetch(request, cluster_id)
        case core.FetchSnapshot(epoch, replica, snapshot_id, position, max_bytes):
            return fetch_snapshot.FetchSnapshotRequest(
                cluster_id=cluster_id,
                replica_id=replica.id,
                max_bytes=max_bytes,
                topics=[
                    fetch_snapshot.FetchSnapshotRequestTopicSnapshot(
                        name=TOPIC,
                        partitions=[
                            fetch_snapshot.FetchSnapshotRequestPartitionSnapshot(
                                current_leader_epoch=epoch,
                                snapshot_id=fetch_snapshot.FetchSnapshotRequestSnapshotId(
                                    end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch
                                ),
                                position=position,
                                replica_directory_id=replica.directory_id,
                            )
                        ],
                    )
                ],
            )
        case _:
            return _encode_membership(request, cluster_id, timeout_ms)


def _encode_fetch(request: core.Fetch, cluster_id: str) -> Message:
    return fetch.FetchRequest(
        cluster_id=cluster_id,
        replica_state=fetch.ReplicaState(replica_id=request.replica.id),
        max_wait_ms=request.max_wait_ms,
        max_bytes=request.max_bytes,
        topics=[
            fetch.FetchTopic(
                topic=TOPIC,
                topic_id=METADATA_TOPIC_ID,
                partitions=[
                    fetch.FetchPartition(
                        current_leader_epoch=request.epoch,
                        fetch_offset=request.offset,
                        last_fetched_epoch=request.last_epoch,
                        replica_directory_id=request.replica.directory_id,
                        high_watermark=request.high_watermark,
                    )
                ],
            )
        ],
    )


def _encode_membership(request: core.Request, cluster_id: str, timeout_ms: int) -> Message:
    match request:
        case core.UpdateVoter(epoch, voter):
            return update_raft_voter.UpdateRaftVoterRequest(
                cluster_id=cluster_id,
                current_leader_epoch=epoch,
                voter_id=voter.key.id,
                voter_directory_id=voter.key.directory_id,
                listeners=_named(update_raft_voter.Listener, voter.endpoints),
                k_raft_version_feature=update_raft_voter.KRaftVersionFeature(
                    min_supported_version=voter.kraft_version_min,
                    max_supported_version=voter.kraft_version_max,
                ),
            )
        case core.AddVoter(voter, ack_when_committed):
            return add_raft_voter.AddRaftVoterRequest(
                cluster_id=cluster_id,
                timeout_ms=timeout_ms,
                voter_id=voter.key.id,
                voter_directory_id=voter.key.directory_id,
                listeners=_named(add_raft_voter.Listener, voter.endpoints),
                ack_when_committed=ack_when_committed,
            )
        case core.RemoveVoter(key):
            return remove_raft_voter.RemoveRaftVoterRequest(
                cluster_id=cluster_id, voter_id=key.id, voter_directory_id=key.directory_id
            )
        case core.AskVersions():
            return ApiVersionsRequest(
                client_software_name="barnabas", client_software_version="unknown"
            )
        case _:
            raise AssertionError(f"{request} has no message")


def _named(kind: Any, endpoints: Sequence[VoterEndpoint]) -> list[Any]:
    return [kind(name=end.listener, host=end.host, port=end.port) for end in endpoints]


# -- what others answer


def decode_reply(request: core.Request, response: Any) -> core.Reply:
    """The answer in a response to `request`. Raises DecodeError for one that makes no sense."""
    match request:
        case core.Vote():
            partition, error, standing = _one(response, response.topics, "partitions")
            granted = partition is not None and partition.vote_granted
            return core.VoteReply(standing, error, granted)
        case core.BeginEpoch():
            _, error, standing = _one(response, response.topics, "partitions")
            return core.BeginEpochReply(standing, error)
        case core.EndEpoch():
            _, error, standing = _one(response, response.topics, "partitions")
            return core.EndEpochReply(standing, error)
        case core.Fetch():
            return _decode_fetch(request, response)
        case core.FetchSnapshot():
            partition, error, standing = _one(response, response.topics, "partitions")
            if partition is None:
                return core.FetchSnapshotReply(standing, error)
            snapshot_id = partition.snapshot_id
            return core.FetchSnapshotReply(
                standing,
                error,
                SnapshotId(snapshot_id.end_offset, snapshot_id.epoch),
                partition.size,
                partition.position,
                partition.unaligned_records,
            )
        case core.UpdateVoter():
            leader = response.current_leader
            endpoints = (
                (VoterEndpoint("", leader.host, leader.port),)
                if leader.leader_id >= 0 and leader.host
                else ()
            )
            return core.UpdateVoterReply(
                Standing(leader.leader_epoch, leader.leader_id, endpoints),
                ErrorCode.of(response.error_code),
            )
        case core.AddVoter():
            return core.AddVoterReply(ErrorCode.of(response.error_code), response.error_message)
        case core.RemoveVoter():
            return core.RemoveVoterReply(ErrorCode.of(response.error_code), response.error_message)
        case core.AskVersions():
            return _decode_versions(response)


def _one(response: Any, topics: Sequence[Any], name: str) -> tuple[Any, ErrorCode, Standing]:
    """(the one partition or None, its error or the whole answer's, where the sender stands)."""
    error = ErrorCode.of(response.error_code)
    if error != ErrorCode.NONE:
        return None, error, Standing(-1)
    if len(topics) != 1 or len(getattr(topics[0], name)) != 1:
        raise DecodeError(f"{type(response).__name__} is not about one partition")
    partition = getattr(topics[0], name)[0]
    leader = getattr(partition, "current_leader", partition)
    endpoints = tuple(
        VoterEndpoint("", end.host, end.port)
        for end in response.node_endpoints
        if end.node_id == leader.leader_id
    )
    standing = Standing(leader.leader_epoch, leader.leader_id, endpoints)
    return partition, ErrorCode.of(partition.error_code), standing


def _decode_fetch(request: core.Fetch, response: Any) -> core.Reply:
    partition, error, standing = _one(response, response.responses, "partitions")
    if partition is None:
        return core.FetchReply(standing, error)
    diverging, snapshot_id = partition.diverging_epoch, partition.snapshot_id
    return core.FetchReply(
        standing,
        error,
        request.offset,
        partition.high_watermark,
        partition.log_start_offset,
        LogPosition(diverging.epoch, diverging.end_offset) if diverging.epoch >= 0 else None,
        SnapshotId(snapshot_id.end_offset, snapshot_id.epoch)
        if snapshot_id.epoch >= 0 or snapshot_id.end_offset >= 0
        else None,
        partition.records,
    )


def _decode_versions(response: ApiVersionsResponse) -> core.VersionsReply:
    levels = None
    for feature in response.supported_features:
        if feature.name == KRAFT_VERSION_FEATURE:
            levels = (feature.min_version, feature.max_version)
    return core.VersionsReply(ErrorCode.of(response.error_code), levels)


# -- what others ask


def decode_request(request: Any, cluster_id: str) -> core.Request:
    """What a Kafka message asks. Raises RefusedRequestError with the response if it is refused."""
    if request.cluster_id is not None and request.cluster_id != cluster_id:
        raise RefusedRequestError(
            _error(
                request,
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                f"This is cluster {cluster_id}, not {request.cluster_id}.",
            )
        )
    match request:
        case vote.VoteRequest():
            partition = _requested(request)
            return core.Vote(
                partition.replica_epoch,
                ReplicaKey(partition.replica_id, partition.replica_directory_id),
                _addressee(request, partition),
                LogPosition(partition.last_offset_epoch, partition.last_offset),
                partition.pre_vote,
            )
        case begin_quorum_epoch.BeginQuorumEpochRequest():
            partition = _requested(request)
            return core.BeginEpoch(
                partition.leader_epoch,
                partition.leader_id,
                _endpoints(request.leader_endpoints),
                _addressee(request, partition),
            )
        case end_quorum_epoch.EndQuorumEpochRequest():
            partition = _requested(request)
            preferred = tuple(
                ReplicaKey(replica.candidate_id, replica.candidate_directory_id)
                for replica in partition.preferred_candidates
            ) or tuple(ReplicaKey(node_id, ZERO_UUID) for node_id in partition.preferred_successors)
            return core.EndEpoch(
                partition.leader_epoch,
                partition.leader_id,
                _endpoints(request.leader_endpoints),
                preferred,
            )
        case fetch.FetchRequest():
            return _decode_fetch_request(request)
        case fetch_snapshot.FetchSnapshotRequest():
            partition = _requested(request)
            return core.FetchSnapshot(
                partition.current_leader_epoch,
                ReplicaKey(request.replica_id, partition.replica_directory_id),
                SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
                partition.position,
                request.max_bytes,
            )
        case update_raft_voter.UpdateRaftVoterRequest():
            levels = request.k_raft_version_feature
            return core.UpdateVoter(
                request.current_leader_epoch,
                Voter(
                    ReplicaKey(request.voter_id, request.voter_directory_id),
                    _endpoints(request.listeners),
                    levels.min_supported_version,
                    levels.max_supported_version,
                ),
            )
        case add_raft_voter.AddRaftVoterRequest():
            key = ReplicaKey(request.voter_id, request.voter_directory_id)
            return core.AddVoter(
                Voter(key, _endpoints(request.listeners)), request.ack_when_committed
            )
        case remove_raft_voter.RemoveRaftVoterRequest():
            return core.RemoveVoter(ReplicaKey(request.voter_id, request.voter_directory_id))
        case _:
            raise AssertionError(f"{type(request).__name__} is no request of the quorum's")


def _requested(request: Any) -> Any:
    topics = request.topics
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        raise RefusedRequestError(_error(request, ErrorCode.INVALID_REQUEST))
    topic, partition = topics[0], topics[0].partitions[0]
    name = topic.topic_name if hasattr(topic, "topic_name") else topic.name
    index = getattr(partition, "partition_index", None)
    if name != TOPIC or (partition.partition if index is None else index) != 0:
        raise RefusedRequestError(_error(request, ErrorCode.INVALID_REQUEST))
    return partition


def _decode_fetch_request(request: fetch.FetchRequest) -> core.Fetch:
    topics = request.topics
    if (
        len(topics) != 1
        or len(topics[0].partitions) != 1
        or topics[0].partitions[0].partition != 0
        or (topics[0].topic_id != METADATA_TOPIC_ID and topics[0].topic != TOPIC)
    ):
        raise RefusedRequestError(_error(request, ErrorCode.INVALID_REQUEST))
    partition = topics[0].partitions[0]
    replica_id = request.replica_state.replica_id
    return core.Fetch(
        partition.current_leader_epoch,
        ReplicaKey(
            request.replica_id if replica_id == NO_NODE else replica_id,
            partition.replica_directory_id,
        ),
        partition.fetch_offset,
        partition.last_fetched_epoch,
        request.max_wait_ms,
        partition.high_watermark,
        request.max_bytes,
    )


def _addressee(request: Any, partition: Any) -> ReplicaKey | None:
    if request.voter_id < 0:
        return None
    return ReplicaKey(request.voter_id, partition.voter_directory_id)


def _endpoints(entries: Sequence[Any]) -> tuple[VoterEndpoint, ...]:
    return tuple(VoterEndpoint(entry.name, entry.host, entry.port) for entry in entries)


def _error(request: Any, error: ErrorCode, text: str | None = None) -> Message:
    """A response that is an error as a whole."""
    match request:
        case vote.VoteRequest():
            return vote.VoteResponse(error_code=error)
        case begin_quorum_epoch.BeginQuorumEpochRequest():
            return begin_quorum_epoch.BeginQuorumEpochResponse(error_code=error)
        case end_quorum_epoch.EndQuorumEpochRequest():
            return end_quorum_epoch.EndQuorumEpochResponse(error_code=error)
        case fetch.FetchRequest():
            return fetch.FetchResponse(error_code=error)
        case fetch_snapshot.FetchSnapshotRequest():
            return fetch_snapshot.FetchSnapshotResponse(error_code=error)
        case update_raft_voter.UpdateRaftVoterRequest():
            return update_raft_voter.UpdateRaftVoterResponse(error_code=error)
        case add_raft_voter.AddRaftVoterRequest():
            return add_raft_voter.AddRaftVoterResponse(error_code=error, error_message=text)
        case remove_raft_voter.RemoveRaftVoterRequest():
            return remove_raft_voter.RemoveRaftVoterResponse(error_code=error, error_message=text)
        case _:
            raise AssertionError(f"{type(request).__name__} is no request of the quorum's")


# -- what this node answers


def encode_reply(reply: core.Reply, version: int) -> Message:
    """The response that says it, in a version of its API."""
    match reply:
        case core.VoteReply(standing, error, is_granted):
            return vote.VoteResponse(
                topics=[
                    vote.VoteResponseTopicData(
                        topic_name=TOPIC,
                        partitions=[
                            vote.VoteResponsePartitionData(
                                error_code=error,
                                leader_id=standing.leader_id,
                                leader_epoch=standing.epoch,
                                vote_granted=is_granted,
                            )
                        ],
                    )
                ],
                node_endpoints=_node_endpoints(vote.NodeEndpoint, standing, version >= 1),
            )
        case core.BeginEpochReply(standing, error):
            return begin_quorum_epoch.BeginQuorumEpochResponse(
                topics=[
                    begin_quorum_epoch.BeginQuorumEpochResponseTopicData(
                        topic_name=TOPIC,
                        partitions=[
                            begin_quorum_epoch.BeginQuorumEpochResponsePartitionData(
                                error_code=error,
                                leader_id=standing.leader_id,
                                leader_epoch=standing.epoch,
                            )
                        ],
                    )
                ],
                node_endpoints=_node_endpoints(
                    begin_quorum_epoch.NodeEndpoint, standing, version >= 1
                ),
            )
        case core.EndEpochReply(standing, error):
            return end_quorum_epoch.EndQuorumEpochResponse(
                topics=[
                    end_quorum_epoch.EndQuorumEpochResponseTopicData(
                        topic_name=TOPIC,
                        partitions=[
                            end_quorum_epoch.EndQuorumEpochResponsePartitionData(
                                error_code=error,
                                leader_id=standing.leader_id,
                                leader_epoch=standing.epoch,
                            )
                        ],
                    )
                ],
                node_endpoints=_node_endpoints(
                    end_quorum_epoch.NodeEndpoint, standing, version >= 1
                ),
            )
        case core.FetchReply():
            return _encode_fetch_reply(reply, version)
        case core.FetchSnapshotReply():
            return _encode_fetch_snapshot_reply(reply, version)
        case core.UpdateVoterReply(standing, error):
            endpoint = standing.endpoints[0] if standing.endpoints else VoterEndpoint("", "", 0)
            return update_raft_voter.UpdateRaftVoterResponse(
                error_code=error,
                current_leader=update_raft_voter.CurrentLeader(
                    leader_id=standing.leader_id,
                    leader_epoch=standing.epoch,
                    host=endpoint.host,
                    port=endpoint.port,
                ),
            )
        case core.AddVoterReply(error, text):
            return add_raft_voter.AddRaftVoterResponse(error_code=error, error_message=text)
        case core.RemoveVoterReply(error, text):
            return remove_raft_voter.RemoveRaftVoterResponse(error_code=error, error_message=text)
        case core.VersionsReply():
            raise AssertionError("ApiVersions is answered elsewhere")


def _encode_fetch_reply(reply: core.FetchReply, version: int) -> Message:
    standing = reply.standing
    partition = fetch.PartitionData(
        partition_index=0,
        error_code=reply.error,
        high_watermark=reply.high_watermark,
        log_start_offset=reply.log_start_offset,
        current_leader=fetch.LeaderIdAndEpoch(
            leader_id=standing.leader_id, leader_epoch=standing.epoch
        ),
        records=reply.records if reply.records is not None else b"",
    )
    if reply.diverging is not None:
        partition.diverging_epoch = fetch.EpochEndOffset(
            epoch=reply.diverging.epoch, end_offset=reply.diverging.offset
        )
    if reply.snapshot_id is not None:
        partition.snapshot_id = fetch.SnapshotId(
            end_offset=reply.snapshot_id.end_offset, epoch=reply.snapshot_id.epoch
        )
    return fetch.FetchResponse(
        responses=[
            fetch.FetchableTopicResponse(
                topic=TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition]
            )
        ],
        node_endpoints=_node_endpoints(
            fetch.NodeEndpoint, standing, version >= FETCH_ENDPOINTS_VERSION_MIN
        ),
    )


def _encode_fetch_snapshot_reply(reply: core.FetchSnapshotReply, version: int) -> Message:
    standing, snapshot_id = reply.standing, reply.snapshot_id
    return fetch_snapshot.FetchSnapshotResponse(
        topics=[
            fetch_snapshot.FetchSnapshotResponseTopicSnapshot(
                name=TOPIC,
                partitions=[
                    fetch_snapshot.FetchSnapshotResponsePartitionSnapshot(
                        error_code=reply.error,
                        snapshot_id=fetch_snapshot.FetchSnapshotResponseSnapshotId(
                            end_offset=-1 if snapshot_id is None else snapshot_id.end_offset,
                            epoch=-1 if snapshot_id is None else snapshot_id.epoch,
                        ),
                        current_leader=fetch_snapshot.LeaderIdAndEpoch(
                            leader_id=standing.leader_id, leader_epoch=standing.epoch
                        ),
                        size=reply.size_bytes,
                        position=reply.position,
                        unaligned_records=reply.data if reply.data is not None else b"",
                    )
                ],
            )
        ],
        node_endpoints=_node_endpoints(fetch_snapshot.NodeEndpoint, standing, version >= 1),
    )


def _node_endpoints(kind: Any, standing: Standing, is_known: bool) -> list[Any]:
    """Where the leader answers; the first of its endpoints, as they are for controllers."""
    if not is_known or standing.leader_id == NO_NODE or not standing.endpoints:
        return []
    end = standing.endpoints[0]
    return [kind(node_id=standing.leader_id, host=end.host, port=end.port)]
