"""Requests of this replica to others, in Kafka's messages.

The quorum has one topic with one partition, and Kafka's messages have room for many. Endpoints
of the leader travel beside the partitions, in the versions that know them.
Source: Kafka's RaftUtil.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from barnabas.base.ids import METADATA_TOPIC_ID
from barnabas.node.raft.core import messages as core
from barnabas.node.raft.core.messages import LogPosition, Standing
from barnabas.node.raft.snapshot_files import SnapshotId
from barnabas.node.raft.voters import VoterEndpoint
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.features import KRAFT_VERSION
from barnabas.protocol.messages import fetch, quorum, voters
from barnabas.protocol.messages.connections import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.schema import Message
from barnabas.protocol.well_known import CLUSTER_METADATA

T = TypeVar("T")

# -- what this node asks


def encode_request(request: core.Request, cluster_id: str, timeout_ms: int) -> Message:
    """The Kafka message that asks it."""
    match request:
        case core.Vote(epoch, candidate, voter, last, is_pre_vote):
            assert voter is not None
            return quorum.VoteRequest(
                cluster_id=cluster_id,
                voter_id=voter.id,
                topics=only_topic(
                    quorum.VoteRequestTopicData,
                    quorum.VoteRequestPartitionData(
                        replica_epoch=epoch,
                        replica_id=candidate.id,
                        replica_directory_id=candidate.directory_id,
                        voter_directory_id=voter.directory_id,
                        last_offset_epoch=last.epoch,
                        last_offset=last.offset,
                        pre_vote=is_pre_vote,
                    ),
                ),
            )
        case core.BeginEpoch(epoch, leader_id, endpoints, voter):
            assert voter is not None
            return quorum.BeginQuorumEpochRequest(
                cluster_id=cluster_id,
                voter_id=voter.id,
                topics=only_topic(
                    quorum.BeginQuorumEpochRequestTopicData,
                    quorum.BeginQuorumEpochRequestPartitionData(
                        voter_directory_id=voter.directory_id,
                        leader_id=leader_id,
                        leader_epoch=epoch,
                    ),
                ),
                leader_endpoints=_named(quorum.LeaderEndpoint, endpoints),
            )
        case core.EndEpoch(epoch, leader_id, endpoints, preferred):
            return quorum.EndQuorumEpochRequest(
                cluster_id=cluster_id,
                topics=only_topic(
                    quorum.EndQuorumEpochRequestTopicData,
                    quorum.EndQuorumEpochRequestPartitionData(
                        leader_id=leader_id,
                        leader_epoch=epoch,
                        preferred_successors=[key.id for key in preferred],
                        preferred_candidates=[
                            quorum.ReplicaInfo(
                                candidate_id=key.id,
                                candidate_directory_id=key.directory_id,
                            )
                            for key in preferred
                        ],
                    ),
                ),
                leader_endpoints=_named(quorum.LeaderEndpoint, endpoints),
            )
        case core.Fetch():
            return _encode_fetch(request, cluster_id)
        case core.FetchSnapshot(epoch, replica, snapshot_id, position, max_bytes):
            return quorum.FetchSnapshotRequest(
                cluster_id=cluster_id,
                replica_id=replica.id,
                max_bytes=max_bytes,
                topics=[
                    quorum.FetchSnapshotRequestTopicSnapshot(
                        name=CLUSTER_METADATA,
                        partitions=[
                            quorum.FetchSnapshotRequestPartitionSnapshot(
                                current_leader_epoch=epoch,
                                snapshot_id=quorum.SnapshotId(
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
                topic=CLUSTER_METADATA,
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
            return voters.UpdateRaftVoterRequest(
                cluster_id=cluster_id,
                current_leader_epoch=epoch,
                voter_id=voter.key.id,
                voter_directory_id=voter.key.directory_id,
                listeners=_named(voters.Listener, voter.endpoints),
                k_raft_version_feature=voters.KRaftVersionFeature(
                    min_supported_version=voter.kraft_version_min,
                    max_supported_version=voter.kraft_version_max,
                ),
            )
        case core.AddVoter(voter, ack_when_committed):
            return voters.AddRaftVoterRequest(
                cluster_id=cluster_id,
                timeout_ms=timeout_ms,
                voter_id=voter.key.id,
                voter_directory_id=voter.key.directory_id,
                listeners=_named(voters.Listener, voter.endpoints),
                ack_when_committed=ack_when_committed,
            )
        case core.RemoveVoter(key):
            return voters.RemoveRaftVoterRequest(
                cluster_id=cluster_id, voter_id=key.id, voter_directory_id=key.directory_id
            )
        case core.AskVersions():
            return ApiVersionsRequest(
                client_software_name="barnabas", client_software_version="unknown"
            )
        case _:
            raise AssertionError(f"{request} has no message")


def only_topic(kind: Callable[..., T], partition: object) -> list[T]:
    """Topics of a message, each a `kind`: the quorum's alone, with its one partition."""
    return [kind(topic_name=CLUSTER_METADATA, partitions=[partition])]


def _named(kind: Any, endpoints: Sequence[VoterEndpoint]) -> list[Any]:
    return [kind(name=end.listener, host=end.host, port=end.port) for end in endpoints]


# -- what others answer


def decode_reply(request: core.Request, response: Any) -> core.Reply:
    """The answer in a response to `request`. Raises DecodeError for one that makes no sense."""
    match request:
        case core.Vote():
            partition, error, standing = _one(response, response.topics)
            granted = partition is not None and partition.vote_granted
            return core.VoteReply(standing, error, granted)
        case core.BeginEpoch():
            _, error, standing = _one(response, response.topics)
            return core.BeginEpochReply(standing, error)
        case core.EndEpoch():
            _, error, standing = _one(response, response.topics)
            return core.EndEpochReply(standing, error)
        case core.Fetch():
            return _decode_fetch(request, response)
        case core.FetchSnapshot():
            partition, error, standing = _one(response, response.topics)
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


def _one(response: Any, topics: Sequence[Any]) -> tuple[Any, ErrorCode, Standing]:
    """(the one partition or None, its error or the whole answer's, where the sender stands)."""
    error = ErrorCode.of(response.error_code)
    if error != ErrorCode.NONE:
        return None, error, Standing(-1)
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        raise DecodeError(f"{type(response).__name__} is not about one partition")
    partition = topics[0].partitions[0]
    leader = getattr(partition, "current_leader", partition)
    endpoints = tuple(
        VoterEndpoint("", end.host, end.port)
        for end in response.node_endpoints
        if end.node_id == leader.leader_id
    )
    standing = Standing(leader.leader_epoch, leader.leader_id, endpoints)
    return partition, ErrorCode.of(partition.error_code), standing


def _decode_fetch(request: core.Fetch, response: Any) -> core.Reply:
    partition, error, standing = _one(response, response.responses)
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
        if feature.name == KRAFT_VERSION:
            levels = (feature.min_version, feature.max_version)
    return core.VersionsReply(ErrorCode.of(response.error_code), levels)
