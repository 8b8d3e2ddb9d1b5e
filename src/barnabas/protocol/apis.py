"""The APIs of Kafka 4.3, each a constant that knows the types of its messages."""

from typing import TypeVar

from barnabas.protocol.api import NEVER_FLEXIBLE, AnyApi, Api, ApiKey
from barnabas.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    add_raft_voter,
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_share_group_offsets,
    alter_user_scram_credentials,
    api_versions,
    assign_replicas_to_dirs,
    begin_quorum_epoch,
    broker_heartbeat,
    broker_registration,
    consumer_group_describe,
    consumer_group_heartbeat,
    controller_registration,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_share_group_offsets,
    delete_share_group_state,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_delegation_token,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_share_group_offsets,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_quorum_epoch,
    end_txn,
    envelope,
    expire_delegation_token,
    fetch,
    fetch_snapshot,
    find_coordinator,
    get_telemetry_subscriptions,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    initialize_share_group_state,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    push_telemetry,
    read_share_group_state,
    read_share_group_state_summary,
    remove_raft_voter,
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
    streams_group_describe,
    streams_group_heartbeat,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
    update_raft_voter,
    vote,
    write_share_group_state,
    write_txn_markers,
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
LIST_OFFSETS = _api(list_offsets.ListOffsetsRequest, list_offsets.ListOffsetsResponse)
METADATA = _api(metadata.MetadataRequest, metadata.MetadataResponse)
OFFSET_COMMIT = _api(offset_commit.OffsetCommitRequest, offset_commit.OffsetCommitResponse)
OFFSET_FETCH = _api(offset_fetch.OffsetFetchRequest, offset_fetch.OffsetFetchResponse)
FIND_COORDINATOR = _api(
    find_coordinator.FindCoordinatorRequest, find_coordinator.FindCoordinatorResponse
)
JOIN_GROUP = _api(join_group.JoinGroupRequest, join_group.JoinGroupResponse)
HEARTBEAT = _api(heartbeat.HeartbeatRequest, heartbeat.HeartbeatResponse)
LEAVE_GROUP = _api(leave_group.LeaveGroupRequest, leave_group.LeaveGroupResponse)
SYNC_GROUP = _api(sync_group.SyncGroupRequest, sync_group.SyncGroupResponse)
DESCRIBE_GROUPS = _api(
    describe_groups.DescribeGroupsRequest, describe_groups.DescribeGroupsResponse
)
LIST_GROUPS = _api(list_groups.ListGroupsRequest, list_groups.ListGroupsResponse)
SASL_HANDSHAKE = _api(sasl_handshake.SaslHandshakeRequest, sasl_handshake.SaslHandshakeResponse)
API_VERSIONS = _api(api_versions.ApiVersionsRequest, api_versions.ApiVersionsResponse)
CREATE_TOPICS = _api(create_topics.CreateTopicsRequest, create_topics.CreateTopicsResponse)
DELETE_TOPICS = _api(delete_topics.DeleteTopicsRequest, delete_topics.DeleteTopicsResponse)
DELETE_RECORDS = _api(delete_records.DeleteRecordsRequest, delete_records.DeleteRecordsResponse)
INIT_PRODUCER_ID = _api(
    init_producer_id.InitProducerIdRequest, init_producer_id.InitProducerIdResponse
)
OFFSET_FOR_LEADER_EPOCH = _api(
    offset_for_leader_epoch.OffsetForLeaderEpochRequest,
    offset_for_leader_epoch.OffsetForLeaderEpochResponse,
)
ADD_PARTITIONS_TO_TXN = _api(
    add_partitions_to_txn.AddPartitionsToTxnRequest,
    add_partitions_to_txn.AddPartitionsToTxnResponse,
)
ADD_OFFSETS_TO_TXN = _api(
    add_offsets_to_txn.AddOffsetsToTxnRequest, add_offsets_to_txn.AddOffsetsToTxnResponse
)
END_TXN = _api(end_txn.EndTxnRequest, end_txn.EndTxnResponse)
WRITE_TXN_MARKERS = _api(
    write_txn_markers.WriteTxnMarkersRequest, write_txn_markers.WriteTxnMarkersResponse
)
TXN_OFFSET_COMMIT = _api(
    txn_offset_commit.TxnOffsetCommitRequest, txn_offset_commit.TxnOffsetCommitResponse
)
DESCRIBE_ACLS = _api(describe_acls.DescribeAclsRequest, describe_acls.DescribeAclsResponse)
CREATE_ACLS = _api(create_acls.CreateAclsRequest, create_acls.CreateAclsResponse)
DELETE_ACLS = _api(delete_acls.DeleteAclsRequest, delete_acls.DeleteAclsResponse)
DESCRIBE_CONFIGS = _api(
    describe_configs.DescribeConfigsRequest, describe_configs.DescribeConfigsResponse
)
ALTER_CONFIGS = _api(alter_configs.AlterConfigsRequest, alter_configs.AlterConfigsResponse)
ALTER_REPLICA_LOG_DIRS = _api(
    alter_replica_log_dirs.AlterReplicaLogDirsRequest,
    alter_replica_log_dirs.AlterReplicaLogDirsResponse,
)
DESCRIBE_LOG_DIRS = _api(
    describe_log_dirs.DescribeLogDirsRequest, describe_log_dirs.DescribeLogDirsResponse
)
SASL_AUTHENTICATE = _api(
    sasl_authenticate.SaslAuthenticateRequest, sasl_authenticate.SaslAuthenticateResponse
)
CREATE_PARTITIONS = _api(
    create_partitions.CreatePartitionsRequest, create_partitions.CreatePartitionsResponse
)
CREATE_DELEGATION_TOKEN = _api(
    create_delegation_token.CreateDelegationTokenRequest,
    create_delegation_token.CreateDelegationTokenResponse,
)
RENEW_DELEGATION_TOKEN = _api(
    renew_delegation_token.RenewDelegationTokenRequest,
    renew_delegation_token.RenewDelegationTokenResponse,
)
EXPIRE_DELEGATION_TOKEN = _api(
    expire_delegation_token.ExpireDelegationTokenRequest,
    expire_delegation_token.ExpireDelegationTokenResponse,
)
DESCRIBE_DELEGATION_TOKEN = _api(
    describe_delegation_token.DescribeDelegationTokenRequest,
    describe_delegation_token.DescribeDelegationTokenResponse,
)
DELETE_GROUPS = _api(delete_groups.DeleteGroupsRequest, delete_groups.DeleteGroupsResponse)
ELECT_LEADERS = _api(elect_leaders.ElectLeadersRequest, elect_leaders.ElectLeadersResponse)
INCREMENTAL_ALTER_CONFIGS = _api(
    incremental_alter_configs.IncrementalAlterConfigsRequest,
    incremental_alter_configs.IncrementalAlterConfigsResponse,
)
ALTER_PARTITION_REASSIGNMENTS = _api(
    alter_partition_reassignments.AlterPartitionReassignmentsRequest,
    alter_partition_reassignments.AlterPartitionReassignmentsResponse,
)
LIST_PARTITION_REASSIGNMENTS = _api(
    list_partition_reassignments.ListPartitionReassignmentsRequest,
    list_partition_reassignments.ListPartitionReassignmentsResponse,
)
OFFSET_DELETE = _api(offset_delete.OffsetDeleteRequest, offset_delete.OffsetDeleteResponse)
DESCRIBE_CLIENT_QUOTAS = _api(
    describe_client_quotas.DescribeClientQuotasRequest,
    describe_client_quotas.DescribeClientQuotasResponse,
)
ALTER_CLIENT_QUOTAS = _api(
    alter_client_quotas.AlterClientQuotasRequest, alter_client_quotas.AlterClientQuotasResponse
)
DESCRIBE_USER_SCRAM_CREDENTIALS = _api(
    describe_user_scram_credentials.DescribeUserScramCredentialsRequest,
    describe_user_scram_credentials.DescribeUserScramCredentialsResponse,
)
ALTER_USER_SCRAM_CREDENTIALS = _api(
    alter_user_scram_credentials.AlterUserScramCredentialsRequest,
    alter_user_scram_credentials.AlterUserScramCredentialsResponse,
)
VOTE = _api(vote.VoteRequest, vote.VoteResponse)
BEGIN_QUORUM_EPOCH = _api(
    begin_quorum_epoch.BeginQuorumEpochRequest, begin_quorum_epoch.BeginQuorumEpochResponse
)
END_QUORUM_EPOCH = _api(
    end_quorum_epoch.EndQuorumEpochRequest, end_quorum_epoch.EndQuorumEpochResponse
)
DESCRIBE_QUORUM = _api(
    describe_quorum.DescribeQuorumRequest, describe_quorum.DescribeQuorumResponse
)
ALTER_PARTITION = _api(
    alter_partition.AlterPartitionRequest, alter_partition.AlterPartitionResponse
)
UPDATE_FEATURES = _api(
    update_features.UpdateFeaturesRequest, update_features.UpdateFeaturesResponse
)
ENVELOPE = _api(envelope.EnvelopeRequest, envelope.EnvelopeResponse)
FETCH_SNAPSHOT = _api(fetch_snapshot.FetchSnapshotRequest, fetch_snapshot.FetchSnapshotResponse)
DESCRIBE_CLUSTER = _api(
    describe_cluster.DescribeClusterRequest, describe_cluster.DescribeClusterResponse
)
DESCRIBE_PRODUCERS = _api(
    describe_producers.DescribeProducersRequest, describe_producers.DescribeProducersResponse
)
BROKER_REGISTRATION = _api(
    broker_registration.BrokerRegistrationRequest, broker_registration.BrokerRegistrationResponse
)
BROKER_HEARTBEAT = _api(
    broker_heartbeat.BrokerHeartbeatRequest, broker_heartbeat.BrokerHeartbeatResponse
)
UNREGISTER_BROKER = _api(
    unregister_broker.UnregisterBrokerRequest, unregister_broker.UnregisterBrokerResponse
)
DESCRIBE_TRANSACTIONS = _api(
    describe_transactions.DescribeTransactionsRequest,
    describe_transactions.DescribeTransactionsResponse,
)
LIST_TRANSACTIONS = _api(
    list_transactions.ListTransactionsRequest, list_transactions.ListTransactionsResponse
)
ALLOCATE_PRODUCER_IDS = _api(
    allocate_producer_ids.AllocateProducerIdsRequest,
    allocate_producer_ids.AllocateProducerIdsResponse,
)
CONSUMER_GROUP_HEARTBEAT = _api(
    consumer_group_heartbeat.ConsumerGroupHeartbeatRequest,
    consumer_group_heartbeat.ConsumerGroupHeartbeatResponse,
)
CONSUMER_GROUP_DESCRIBE = _api(
    consumer_group_describe.ConsumerGroupDescribeRequest,
    consumer_group_describe.ConsumerGroupDescribeResponse,
)
CONTROLLER_REGISTRATION = _api(
    controller_registration.ControllerRegistrationRequest,
    controller_registration.ControllerRegistrationResponse,
)
GET_TELEMETRY_SUBSCRIPTIONS = _api(
    get_telemetry_subscriptions.GetTelemetrySubscriptionsRequest,
    get_telemetry_subscriptions.GetTelemetrySubscriptionsResponse,
)
PUSH_TELEMETRY = _api(push_telemetry.PushTelemetryRequest, push_telemetry.PushTelemetryResponse)
ASSIGN_REPLICAS_TO_DIRS = _api(
    assign_replicas_to_dirs.AssignReplicasToDirsRequest,
    assign_replicas_to_dirs.AssignReplicasToDirsResponse,
)
LIST_CONFIG_RESOURCES = _api(
    list_config_resources.ListConfigResourcesRequest,
    list_config_resources.ListConfigResourcesResponse,
)
DESCRIBE_TOPIC_PARTITIONS = _api(
    describe_topic_partitions.DescribeTopicPartitionsRequest,
    describe_topic_partitions.DescribeTopicPartitionsResponse,
)
SHARE_GROUP_HEARTBEAT = _api(
    share_group_heartbeat.ShareGroupHeartbeatRequest,
    share_group_heartbeat.ShareGroupHeartbeatResponse,
)
SHARE_GROUP_DESCRIBE = _api(
    share_group_describe.ShareGroupDescribeRequest, share_group_describe.ShareGroupDescribeResponse
)
SHARE_FETCH = _api(share_fetch.ShareFetchRequest, share_fetch.ShareFetchResponse)
SHARE_ACKNOWLEDGE = _api(
    share_acknowledge.ShareAcknowledgeRequest, share_acknowledge.ShareAcknowledgeResponse
)
ADD_RAFT_VOTER = _api(add_raft_voter.AddRaftVoterRequest, add_raft_voter.AddRaftVoterResponse)
REMOVE_RAFT_VOTER = _api(
    remove_raft_voter.RemoveRaftVoterRequest, remove_raft_voter.RemoveRaftVoterResponse
)
UPDATE_RAFT_VOTER = _api(
    update_raft_voter.UpdateRaftVoterRequest, update_raft_voter.UpdateRaftVoterResponse
)
INITIALIZE_SHARE_GROUP_STATE = _api(
    initialize_share_group_state.InitializeShareGroupStateRequest,
    initialize_share_group_state.InitializeShareGroupStateResponse,
)
READ_SHARE_GROUP_STATE = _api(
    read_share_group_state.ReadShareGroupStateRequest,
    read_share_group_state.ReadShareGroupStateResponse,
)
WRITE_SHARE_GROUP_STATE = _api(
    write_share_group_state.WriteShareGroupStateRequest,
    write_share_group_state.WriteShareGroupStateResponse,
)
DELETE_SHARE_GROUP_STATE = _api(
    delete_share_group_state.DeleteShareGroupStateRequest,
    delete_share_group_state.DeleteShareGroupStateResponse,
)
READ_SHARE_GROUP_STATE_SUMMARY = _api(
    read_share_group_state_summary.ReadShareGroupStateSummaryRequest,
    read_share_group_state_summary.ReadShareGroupStateSummaryResponse,
)
STREAMS_GROUP_HEARTBEAT = _api(
    streams_group_heartbeat.StreamsGroupHeartbeatRequest,
    streams_group_heartbeat.StreamsGroupHeartbeatResponse,
)
STREAMS_GROUP_DESCRIBE = _api(
    streams_group_describe.StreamsGroupDescribeRequest,
    streams_group_describe.StreamsGroupDescribeResponse,
)
DESCRIBE_SHARE_GROUP_OFFSETS = _api(
    describe_share_group_offsets.DescribeShareGroupOffsetsRequest,
    describe_share_group_offsets.DescribeShareGroupOffsetsResponse,
)
ALTER_SHARE_GROUP_OFFSETS = _api(
    alter_share_group_offsets.AlterShareGroupOffsetsRequest,
    alter_share_group_offsets.AlterShareGroupOffsetsResponse,
)
DELETE_SHARE_GROUP_OFFSETS = _api(
    delete_share_group_offsets.DeleteShareGroupOffsetsRequest,
    delete_share_group_offsets.DeleteShareGroupOffsetsResponse,
)
