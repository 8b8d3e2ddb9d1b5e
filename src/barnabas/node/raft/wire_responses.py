"""Responses of this replica to other nodes' requests, in Kafka's messages.

A request for any partition but the quorum's own is answered with INVALID_REQUEST, one of another
cluster with INCONSISTENT_CLUSTER_ID, before the machine hears of it.
Source: Kafka's RaftUtil and KafkaRaftClient.
"""

from collections.abc import Sequence
from typing import Any, Final

from barnabas.base.ids import METADATA_TOPIC_ID, NO_NODE, ZERO_UUID
from barnabas.node.raft.core import messages as core
from barnabas.node.raft.core.messages import LogPosition, Standing
from barnabas.node.raft.snapshot_files import SnapshotId
from barnabas.node.raft.voters import ReplicaKey, Voter, VoterEndpoint
from barnabas.node.raft.wire_requests import only_topic
from barnabas.protocol.apis import API_OF
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import fetch, quorum, voters
from barnabas.protocol.schema import Message
from barnabas.protocol.well_known import CLUSTER_METADATA

FETCH_ENDPOINTS_VERSION_MIN: Final = 16


class RefusedRequestError(Exception):
    """A request that the machine need not see; `response` says why."""

    def __init__(self, response: Message) -> None:
        super().__init__(type(response).__name__)
        self.response = response


# -- what others ask


def decode_request(request: Any, cluster_id: str) -> core.Request:
    """The request in a Kafka message. Raises RefusedRequestError with the response if it is
    refused."""
    if request.cluster_id is not None and request.cluster_id != cluster_id:
        raise RefusedRequestError(
            _error(
                request,
                ErrorCode.INCONSISTENT_CLUSTER_ID,
                f"This is cluster {cluster_id}, not {request.cluster_id}.",
            )
        )
    match request:
        case quorum.VoteRequest():
            partition = _requested(request)
            return core.Vote(
                partition.replica_epoch,
                ReplicaKey(partition.replica_id, partition.replica_directory_id),
                _addressee(request, partition),
                LogPosition(partition.last_offset_epoch, partition.last_offset),
                partition.pre_vote,
            )
        case quorum.BeginQuorumEpochRequest():
            partition = _requested(request)
            return core.BeginEpoch(
                partition.leader_epoch,
                partition.leader_id,
                _endpoints(request.leader_endpoints),
                _addressee(request, partition),
            )
        case quorum.EndQuorumEpochRequest():
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
        case quorum.FetchSnapshotRequest():
            partition = _requested(request)
            return core.FetchSnapshot(
                partition.current_leader_epoch,
                ReplicaKey(request.replica_id, partition.replica_directory_id),
                SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
                partition.position,
                request.max_bytes,
            )
        case voters.UpdateRaftVoterRequest():
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
        case voters.AddRaftVoterRequest():
            key = ReplicaKey(request.voter_id, request.voter_directory_id)
            return core.AddVoter(
                Voter(key, _endpoints(request.listeners)), request.ack_when_committed
            )
        case voters.RemoveRaftVoterRequest():
            return core.RemoveVoter(ReplicaKey(request.voter_id, request.voter_directory_id))
        case _:
            raise AssertionError(f"{type(request).__name__} is not a request of the quorum")


def _requested(request: Any) -> Any:
    topics = request.topics
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        raise RefusedRequestError(_error(request, ErrorCode.INVALID_REQUEST))
    topic, partition = topics[0], topics[0].partitions[0]
    name = topic.topic_name if hasattr(topic, "topic_name") else topic.name
    index = getattr(partition, "partition_index", None)
    if name != CLUSTER_METADATA or (partition.partition if index is None else index) != 0:
        raise RefusedRequestError(_error(request, ErrorCode.INVALID_REQUEST))
    return partition


def _decode_fetch_request(request: fetch.FetchRequest) -> core.Fetch:
    topics = request.topics
    if (
        len(topics) != 1
        or len(topics[0].partitions) != 1
        or topics[0].partitions[0].partition != 0
        or (topics[0].topic_id != METADATA_TOPIC_ID and topics[0].topic != CLUSTER_METADATA)
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


def _error(request: Message, error: ErrorCode, text: str | None = None) -> Message:
    """A response that is an error as a whole, with `text` if its API has one."""
    response: Message = API_OF[type(request)].response(error_code=error)
    if hasattr(response, "error_message"):
        response.error_message = text
    return response


# -- what this node answers


def encode_reply(reply: core.Reply, version: int) -> Message:
    """The response that says it, in a version of its API."""
    match reply:
        case core.VoteReply(standing, error, is_granted):
            return quorum.VoteResponse(
                topics=only_topic(
                    quorum.VoteResponseTopicData,
                    quorum.VoteResponsePartitionData(
                        error_code=error,
                        leader_id=standing.leader_id,
                        leader_epoch=standing.epoch,
                        vote_granted=is_granted,
                    ),
                ),
                node_endpoints=_node_endpoints(quorum.NodeEndpoint, standing, version >= 1),
            )
        case core.BeginEpochReply(standing, error):
            return quorum.BeginQuorumEpochResponse(
                topics=only_topic(
                    quorum.BeginQuorumEpochResponseTopicData,
                    quorum.BeginQuorumEpochResponsePartitionData(
                        error_code=error,
                        leader_id=standing.leader_id,
                        leader_epoch=standing.epoch,
                    ),
                ),
                node_endpoints=_node_endpoints(quorum.NodeEndpoint, standing, version >= 1),
            )
        case core.EndEpochReply(standing, error):
            return quorum.EndQuorumEpochResponse(
                topics=only_topic(
                    quorum.EndQuorumEpochResponseTopicData,
                    quorum.EndQuorumEpochResponsePartitionData(
                        error_code=error,
                        leader_id=standing.leader_id,
                        leader_epoch=standing.epoch,
                    ),
                ),
                node_endpoints=_node_endpoints(quorum.NodeEndpoint, standing, version >= 1),
            )
        case core.FetchReply():
            return _encode_fetch_reply(reply, version)
        case core.FetchSnapshotReply():
            return _encode_fetch_snapshot_reply(reply, version)
        case core.UpdateVoterReply(standing, error):
            endpoint = standing.endpoints[0] if standing.endpoints else VoterEndpoint("", "", 0)
            return voters.UpdateRaftVoterResponse(
                error_code=error,
                current_leader=voters.CurrentLeader(
                    leader_id=standing.leader_id,
                    leader_epoch=standing.epoch,
                    host=endpoint.host,
                    port=endpoint.port,
                ),
            )
        case core.AddVoterReply(error, text):
            return voters.AddRaftVoterResponse(error_code=error, error_message=text)
        case core.RemoveVoterReply(error, text):
            return voters.RemoveRaftVoterResponse(error_code=error, error_message=text)
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
        partition.diverging_epoch = fetch.FetchEpochEndOffset(
            epoch=reply.diverging.epoch, end_offset=reply.diverging.offset
        )
    if reply.snapshot_id is not None:
        partition.snapshot_id = fetch.SnapshotId(
            end_offset=reply.snapshot_id.end_offset, epoch=reply.snapshot_id.epoch
        )
    return fetch.FetchResponse(
        responses=[
            fetch.FetchableTopicResponse(
                topic=CLUSTER_METADATA, topic_id=METADATA_TOPIC_ID, partitions=[partition]
            )
        ],
        node_endpoints=_node_endpoints(
            fetch.NodeEndpoint, standing, version >= FETCH_ENDPOINTS_VERSION_MIN
        ),
    )


def _encode_fetch_snapshot_reply(reply: core.FetchSnapshotReply, version: int) -> Message:
    standing, snapshot_id = reply.standing, reply.snapshot_id
    return quorum.FetchSnapshotResponse(
        topics=[
            quorum.FetchSnapshotResponseTopicSnapshot(
                name=CLUSTER_METADATA,
                partitions=[
                    quorum.FetchSnapshotResponsePartitionSnapshot(
                        error_code=reply.error,
                        snapshot_id=quorum.SnapshotId(
                            end_offset=-1 if snapshot_id is None else snapshot_id.end_offset,
                            epoch=-1 if snapshot_id is None else snapshot_id.epoch,
                        ),
                        current_leader=quorum.LeaderIdAndEpoch(
                            leader_id=standing.leader_id, leader_epoch=standing.epoch
                        ),
                        size=reply.size_bytes,
                        position=reply.position,
                        unaligned_records=reply.data if reply.data is not None else b"",
                    )
                ],
            )
        ],
        node_endpoints=_node_endpoints(quorum.NodeEndpoint, standing, version >= 1),
    )


def _node_endpoints(kind: Any, standing: Standing, is_known: bool) -> list[Any]:
    """The leader's endpoint: the first of its endpoints for controllers."""
    if not is_known or standing.leader_id == NO_NODE or not standing.endpoints:
        return []
    end = standing.endpoints[0]
    return [kind(node_id=standing.leader_id, host=end.host, port=end.port)]
