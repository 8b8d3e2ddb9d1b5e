"""The APIs of Kafka 4.3, each a constant that knows the types of its messages."""

from typing import TypeVar

from barnabas.protocol.api import NEVER_FLEXIBLE, AnyApi, Api, ApiKey
from barnabas.protocol.messages import (
    acls,
    configs,
    connections,
    consumer_groups,
    credentials,
    fetch,
    groups,
    metadata,
    nodes,
    offsets,
    partitions,
    produce,
    quorum,
    quotas,
    share_fetch,
    share_groups,
    share_state,
    streams_groups,
    telemetry,
    topics,
    transactions,
    voters,
)
from barnabas.protocol.schema import Message

__all__ = ["APIS", "API_OF", "AnyApi", "Api", "ApiKey"]

Req = TypeVar("Req", bound=Message)
Resp = TypeVar("Resp", bound=Message)

APIS: dict[int, AnyApi] = {}
"""Every API by its number."""
API_OF: dict[type[Message], AnyApi] = {}
"""Every API by the type of its request."""


def _api(request: type[Req], response: type[Resp]) -> Api[Req, Resp]:
    """Make an API of what both its messages declare, which must agree, and list it."""
    schema, answer = request.SCHEMA, response.SCHEMA
    assert schema.api_key is not None
    assert (schema.api_key, schema.versions, schema.flexible) == (
        answer.api_key,
        answer.versions,
        answer.flexible,
    ), request
    api = Api(
        ApiKey(schema.api_key),
        request,
        response,
        schema.versions.first,
        schema.versions.last,
        NEVER_FLEXIBLE if schema.flexible.is_empty else schema.flexible.first,
        schema.listeners,
        schema.latest_version_unstable,
    )
    APIS[api.key] = api
    API_OF[request] = api
    return api


PRODUCE = _api(produce.ProduceRequest, produce.ProduceResponse)
FETCH = _api(fetch.FetchRequest, fetch.FetchResponse)
LIST_OFFSETS = _api(fetch.ListOffsetsRequest, fetch.ListOffsetsResponse)
METADATA = _api(metadata.MetadataRequest, metadata.MetadataResponse)
OFFSET_COMMIT = _api(offsets.OffsetCommitRequest, offsets.OffsetCommitResponse)
OFFSET_FETCH = _api(offsets.OffsetFetchRequest, offsets.OffsetFetchResponse)
FIND_COORDINATOR = _api(groups.FindCoordinatorRequest, groups.FindCoordinatorResponse)
JOIN_GROUP = _api(groups.JoinGroupRequest, groups.JoinGroupResponse)
HEARTBEAT = _api(groups.HeartbeatRequest, groups.HeartbeatResponse)
LEAVE_GROUP = _api(groups.LeaveGroupRequest, groups.LeaveGroupResponse)
SYNC_GROUP = _api(groups.SyncGroupRequest, groups.SyncGroupResponse)
DESCRIBE_GROUPS = _api(groups.DescribeGroupsRequest, groups.DescribeGroupsResponse)
LIST_GROUPS = _api(groups.ListGroupsRequest, groups.ListGroupsResponse)
SASL_HANDSHAKE = _api(credentials.SaslHandshakeRequest, credentials.SaslHandshakeResponse)
API_VERSIONS = _api(connections.ApiVersionsRequest, connections.ApiVersionsResponse)
CREATE_TOPICS = _api(topics.CreateTopicsRequest, topics.CreateTopicsResponse)
DELETE_TOPICS = _api(topics.DeleteTopicsRequest, topics.DeleteTopicsResponse)
DELETE_RECORDS = _api(topics.DeleteRecordsRequest, topics.DeleteRecordsResponse)
INIT_PRODUCER_ID = _api(transactions.InitProducerIdRequest, transactions.InitProducerIdResponse)
OFFSET_FOR_LEADER_EPOCH = _api(
    fetch.OffsetForLeaderEpochRequest,
    fetch.OffsetForLeaderEpochResponse,
)
ADD_PARTITIONS_TO_TXN = _api(
    transactions.AddPartitionsToTxnRequest,
    transactions.AddPartitionsToTxnResponse,
)
ADD_OFFSETS_TO_TXN = _api(transactions.AddOffsetsToTxnRequest, transactions.AddOffsetsToTxnResponse)
END_TXN = _api(transactions.EndTxnRequest, transactions.EndTxnResponse)
WRITE_TXN_MARKERS = _api(transactions.WriteTxnMarkersRequest, transactions.WriteTxnMarkersResponse)
TXN_OFFSET_COMMIT = _api(transactions.TxnOffsetCommitRequest, transactions.TxnOffsetCommitResponse)
DESCRIBE_ACLS = _api(acls.DescribeAclsRequest, acls.DescribeAclsResponse)
CREATE_ACLS = _api(acls.CreateAclsRequest, acls.CreateAclsResponse)
DELETE_ACLS = _api(acls.DeleteAclsRequest, acls.DeleteAclsResponse)
DESCRIBE_CONFIGS = _api(configs.DescribeConfigsRequest, configs.DescribeConfigsResponse)
ALTER_CONFIGS = _api(configs.AlterConfigsRequest, configs.AlterConfigsResponse)
ALTER_REPLICA_LOG_DIRS = _api(
    partitions.AlterReplicaLogDirsRequest,
    partitions.AlterReplicaLogDirsResponse,
)
DESCRIBE_LOG_DIRS = _api(partitions.DescribeLogDirsRequest, partitions.DescribeLogDirsResponse)
SASL_AUTHENTICATE = _api(credentials.SaslAuthenticateRequest, credentials.SaslAuthenticateResponse)
CREATE_PARTITIONS = _api(topics.CreatePartitionsRequest, topics.CreatePartitionsResponse)
CREATE_DELEGATION_TOKEN = _api(
    credentials.CreateDelegationTokenRequest,
    credentials.CreateDelegationTokenResponse,
)
RENEW_DELEGATION_TOKEN = _api(
    credentials.RenewDelegationTokenRequest,
    credentials.RenewDelegationTokenResponse,
)
EXPIRE_DELEGATION_TOKEN = _api(
    credentials.ExpireDelegationTokenRequest,
    credentials.ExpireDelegationTokenResponse,
)
DESCRIBE_DELEGATION_TOKEN = _api(
    credentials.DescribeDelegationTokenRequest,
    credentials.DescribeDelegationTokenResponse,
)
DELETE_GROUPS = _api(groups.DeleteGroupsRequest, groups.DeleteGroupsResponse)
ELECT_LEADERS = _api(partitions.ElectLeadersRequest, partitions.ElectLeadersResponse)
INCREMENTAL_ALTER_CONFIGS = _api(
    configs.IncrementalAlterConfigsRequest,
    configs.IncrementalAlterConfigsResponse,
)
ALTER_PARTITION_REASSIGNMENTS = _api(
    partitions.AlterPartitionReassignmentsRequest,
    partitions.AlterPartitionReassignmentsResponse,
)
LIST_PARTITION_REASSIGNMENTS = _api(
    partitions.ListPartitionReassignmentsRequest,
    partitions.ListPartitionReassignmentsResponse,
)
OFFSET_DELETE = _api(offsets.OffsetDeleteRequest, offsets.OffsetDeleteResponse)
DESCRIBE_CLIENT_QUOTAS = _api(
    quotas.DescribeClientQuotasRequest,
    quotas.DescribeClientQuotasResponse,
)
ALTER_CLIENT_QUOTAS = _api(quotas.AlterClientQuotasRequest, quotas.AlterClientQuotasResponse)
DESCRIBE_USER_SCRAM_CREDENTIALS = _api(
    credentials.DescribeUserScramCredentialsRequest,
    credentials.DescribeUserScramCredentialsResponse,
)
ALTER_USER_SCRAM_CREDENTIALS = _api(
    credentials.AlterUserScramCredentialsRequest,
    credentials.AlterUserScramCredentialsResponse,
)
VOTE = _api(quorum.VoteRequest, quorum.VoteResponse)
BEGIN_QUORUM_EPOCH = _api(quorum.BeginQuorumEpochRequest, quorum.BeginQuorumEpochResponse)
END_QUORUM_EPOCH = _api(quorum.EndQuorumEpochRequest, quorum.EndQuorumEpochResponse)
DESCRIBE_QUORUM = _api(voters.DescribeQuorumRequest, voters.DescribeQuorumResponse)
ALTER_PARTITION = _api(partitions.AlterPartitionRequest, partitions.AlterPartitionResponse)
UPDATE_FEATURES = _api(nodes.UpdateFeaturesRequest, nodes.UpdateFeaturesResponse)
ENVELOPE = _api(connections.EnvelopeRequest, connections.EnvelopeResponse)
FETCH_SNAPSHOT = _api(quorum.FetchSnapshotRequest, quorum.FetchSnapshotResponse)
DESCRIBE_CLUSTER = _api(metadata.DescribeClusterRequest, metadata.DescribeClusterResponse)
DESCRIBE_PRODUCERS = _api(
    transactions.DescribeProducersRequest, transactions.DescribeProducersResponse
)
BROKER_REGISTRATION = _api(nodes.BrokerRegistrationRequest, nodes.BrokerRegistrationResponse)
BROKER_HEARTBEAT = _api(nodes.BrokerHeartbeatRequest, nodes.BrokerHeartbeatResponse)
UNREGISTER_BROKER = _api(nodes.UnregisterBrokerRequest, nodes.UnregisterBrokerResponse)
DESCRIBE_TRANSACTIONS = _api(
    transactions.DescribeTransactionsRequest,
    transactions.DescribeTransactionsResponse,
)
LIST_TRANSACTIONS = _api(
    transactions.ListTransactionsRequest, transactions.ListTransactionsResponse
)
ALLOCATE_PRODUCER_IDS = _api(
    transactions.AllocateProducerIdsRequest,
    transactions.AllocateProducerIdsResponse,
)
CONSUMER_GROUP_HEARTBEAT = _api(
    consumer_groups.ConsumerGroupHeartbeatRequest,
    consumer_groups.ConsumerGroupHeartbeatResponse,
)
CONSUMER_GROUP_DESCRIBE = _api(
    consumer_groups.ConsumerGroupDescribeRequest,
    consumer_groups.ConsumerGroupDescribeResponse,
)
CONTROLLER_REGISTRATION = _api(
    nodes.ControllerRegistrationRequest,
    nodes.ControllerRegistrationResponse,
)
GET_TELEMETRY_SUBSCRIPTIONS = _api(
    telemetry.GetTelemetrySubscriptionsRequest,
    telemetry.GetTelemetrySubscriptionsResponse,
)
PUSH_TELEMETRY = _api(telemetry.PushTelemetryRequest, telemetry.PushTelemetryResponse)
ASSIGN_REPLICAS_TO_DIRS = _api(
    partitions.AssignReplicasToDirsRequest,
    partitions.AssignReplicasToDirsResponse,
)
LIST_CONFIG_RESOURCES = _api(
    configs.ListConfigResourcesRequest,
    configs.ListConfigResourcesResponse,
)
DESCRIBE_TOPIC_PARTITIONS = _api(
    metadata.DescribeTopicPartitionsRequest,
    metadata.DescribeTopicPartitionsResponse,
)
SHARE_GROUP_HEARTBEAT = _api(
    share_groups.ShareGroupHeartbeatRequest,
    share_groups.ShareGroupHeartbeatResponse,
)
SHARE_GROUP_DESCRIBE = _api(
    share_groups.ShareGroupDescribeRequest, share_groups.ShareGroupDescribeResponse
)
SHARE_FETCH = _api(share_fetch.ShareFetchRequest, share_fetch.ShareFetchResponse)
SHARE_ACKNOWLEDGE = _api(share_fetch.ShareAcknowledgeRequest, share_fetch.ShareAcknowledgeResponse)
ADD_RAFT_VOTER = _api(voters.AddRaftVoterRequest, voters.AddRaftVoterResponse)
REMOVE_RAFT_VOTER = _api(voters.RemoveRaftVoterRequest, voters.RemoveRaftVoterResponse)
UPDATE_RAFT_VOTER = _api(voters.UpdateRaftVoterRequest, voters.UpdateRaftVoterResponse)
INITIALIZE_SHARE_GROUP_STATE = _api(
    share_state.InitializeShareGroupStateRequest,
    share_state.InitializeShareGroupStateResponse,
)
READ_SHARE_GROUP_STATE = _api(
    share_state.ReadShareGroupStateRequest,
    share_state.ReadShareGroupStateResponse,
)
WRITE_SHARE_GROUP_STATE = _api(
    share_state.WriteShareGroupStateRequest,
    share_state.WriteShareGroupStateResponse,
)
DELETE_SHARE_GROUP_STATE = _api(
    share_state.DeleteShareGroupStateRequest,
    share_state.DeleteShareGroupStateResponse,
)
READ_SHARE_GROUP_STATE_SUMMARY = _api(
    share_state.ReadShareGroupStateSummaryRequest,
    share_state.ReadShareGroupStateSummaryResponse,
)
STREAMS_GROUP_HEARTBEAT = _api(
    streams_groups.StreamsGroupHeartbeatRequest,
    streams_groups.StreamsGroupHeartbeatResponse,
)
STREAMS_GROUP_DESCRIBE = _api(
    streams_groups.StreamsGroupDescribeRequest,
    streams_groups.StreamsGroupDescribeResponse,
)
DESCRIBE_SHARE_GROUP_OFFSETS = _api(
    share_groups.DescribeShareGroupOffsetsRequest,
    share_groups.DescribeShareGroupOffsetsResponse,
)
ALTER_SHARE_GROUP_OFFSETS = _api(
    share_groups.AlterShareGroupOffsetsRequest,
    share_groups.AlterShareGroupOffsetsResponse,
)
DELETE_SHARE_GROUP_OFFSETS = _api(
    share_groups.DeleteShareGroupOffsetsRequest,
    share_groups.DeleteShareGroupOffsetsResponse,
)
