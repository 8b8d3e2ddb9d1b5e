"""The APIs of Kafka 4.3: numbers, versions, headers. Source: Kafka's ApiKeys and KIP-482."""

from dataclasses import dataclass
from enum import IntEnum

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


class ApiKey(IntEnum):
    """The number of an API, the first field of each request."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92


@dataclass(frozen=True, slots=True)
class Api:
    """One API. `max_version` may be unstable; `flexible_from` may exceed it."""

    key: ApiKey
    request: type[Message]
    response: type[Message]
    min_version: int
    max_version: int
    flexible_from: int
    listeners: tuple[str, ...]
    latest_version_unstable: bool

    @property
    def max_stable_version(self) -> int:
        """The highest version to offer unless unstable ones are enabled."""
        return self.max_version - 1 if self.latest_version_unstable else self.max_version

    def request_header_version(self, version: int) -> int:
        """2 for a flexible version, else 1; also for versions that we do not know."""
        return 2 if version >= self.flexible_from else 1

    def response_header_version(self, version: int) -> int:
        """1 for a flexible version, else 0; always 0 for ApiVersions (KIP-511)."""
        if self.key == ApiKey.API_VERSIONS:
            return 0
        return 1 if version >= self.flexible_from else 0


NEVER_FLEXIBLE = 32768
"""`flexible_from` of an API whose versions are all older than KIP-482."""


def _api(request: type[Message], response: type[Message]) -> Api:
    """Build an entry from what both messages declare, which must agree."""
    schema, answer = request.SCHEMA, response.SCHEMA
    assert schema.api_key is not None
    assert (schema.api_key, schema.versions, schema.flexible) == (
        answer.api_key,
        answer.versions,
        answer.flexible,
    ), request
    return Api(
        ApiKey(schema.api_key),
        request,
        response,
        schema.versions.first,
        schema.versions.last,
        NEVER_FLEXIBLE if schema.flexible.is_empty else schema.flexible.first,
        schema.listeners,
        schema.latest_version_unstable,
    )


APIS: dict[int, Api] = {
    api.key: api
    for api in (
        _api(produce.ProduceRequest, produce.ProduceResponse),
        _api(fetch.FetchRequest, fetch.FetchResponse),
        _api(list_offsets.ListOffsetsRequest, list_offsets.ListOffsetsResponse),
        _api(metadata.MetadataRequest, metadata.MetadataResponse),
        _api(offset_commit.OffsetCommitRequest, offset_commit.OffsetCommitResponse),
        _api(offset_fetch.OffsetFetchRequest, offset_fetch.OffsetFetchResponse),
        _api(find_coordinator.FindCoordinatorRequest, find_coordinator.FindCoordinatorResponse),
        _api(join_group.JoinGroupRequest, join_group.JoinGroupResponse),
        _api(heartbeat.HeartbeatRequest, heartbeat.HeartbeatResponse),
        _api(leave_group.LeaveGroupRequest, leave_group.LeaveGroupResponse),
        _api(sync_group.SyncGroupRequest, sync_group.SyncGroupResponse),
        _api(describe_groups.DescribeGroupsRequest, describe_groups.DescribeGroupsResponse),
        _api(list_groups.ListGroupsRequest, list_groups.ListGroupsResponse),
        _api(sasl_handshake.SaslHandshakeRequest, sasl_handshake.SaslHandshakeResponse),
        _api(api_versions.ApiVersionsRequest, api_versions.ApiVersionsResponse),
        _api(create_topics.CreateTopicsRequest, create_topics.CreateTopicsResponse),
        _api(delete_topics.DeleteTopicsRequest, delete_topics.DeleteTopicsResponse),
        _api(delete_records.DeleteRecordsRequest, delete_records.DeleteRecordsResponse),
        _api(init_producer_id.InitProducerIdRequest, init_producer_id.InitProducerIdResponse),
        _api(
            offset_for_leader_epoch.OffsetForLeaderEpochRequest,
            offset_for_leader_epoch.OffsetForLeaderEpochResponse,
        ),
        _api(
            add_partitions_to_txn.AddPartitionsToTxnRequest,
            add_partitions_to_txn.AddPartitionsToTxnResponse,
        ),
        _api(add_offsets_to_txn.AddOffsetsToTxnRequest, add_offsets_to_txn.AddOffsetsToTxnResponse),
        _api(end_txn.EndTxnRequest, end_txn.EndTxnResponse),
        _api(write_txn_markers.WriteTxnMarkersRequest, write_txn_markers.WriteTxnMarkersResponse),
        _api(txn_offset_commit.TxnOffsetCommitRequest, txn_offset_commit.TxnOffsetCommitResponse),
        _api(describe_acls.DescribeAclsRequest, describe_acls.DescribeAclsResponse),
        _api(create_acls.CreateAclsRequest, create_acls.CreateAclsResponse),
        _api(delete_acls.DeleteAclsRequest, delete_acls.DeleteAclsResponse),
        _api(describe_configs.DescribeConfigsRequest, describe_configs.DescribeConfigsResponse),
        _api(alter_configs.AlterConfigsRequest, alter_configs.AlterConfigsResponse),
        _api(
            alter_replica_log_dirs.AlterReplicaLogDirsRequest,
            alter_replica_log_dirs.AlterReplicaLogDirsResponse,
        ),
        _api(describe_log_dirs.DescribeLogDirsRequest, describe_log_dirs.DescribeLogDirsResponse),
        _api(sasl_authenticate.SaslAuthenticateRequest, sasl_authenticate.SaslAuthenticateResponse),
        _api(create_partitions.CreatePartitionsRequest, create_partitions.CreatePartitionsResponse),
        _api(
            create_delegation_token.CreateDelegationTokenRequest,
            create_delegation_token.CreateDelegationTokenResponse,
        ),
        _api(
            renew_delegation_token.RenewDelegationTokenRequest,
            renew_delegation_token.RenewDelegationTokenResponse,
        ),
        _api(
            expire_delegation_token.ExpireDelegationTokenRequest,
            expire_delegation_token.ExpireDelegationTokenResponse,
        ),
        _api(
            describe_delegation_token.DescribeDelegationTokenRequest,
            describe_delegation_token.DescribeDelegationTokenResponse,
        ),
        _api(delete_groups.DeleteGroupsRequest, delete_groups.DeleteGroupsResponse),
        _api(elect_leaders.ElectLeadersRequest, elect_leaders.ElectLeadersResponse),
        _api(
            incremental_alter_configs.IncrementalAlterConfigsRequest,
            incremental_alter_configs.IncrementalAlterConfigsResponse,
        ),
        _api(
            alter_partition_reassignments.AlterPartitionReassignmentsRequest,
            alter_partition_reassignments.AlterPartitionReassignmentsResponse,
        ),
        _api(
            list_partition_reassignments.ListPartitionReassignmentsRequest,
            list_partition_reassignments.ListPartitionReassignmentsResponse,
        ),
        _api(offset_delete.OffsetDeleteRequest, offset_delete.OffsetDeleteResponse),
        _api(
            describe_client_quotas.DescribeClientQuotasRequest,
            describe_client_quotas.DescribeClientQuotasResponse,
        ),
        _api(
            alter_client_quotas.AlterClientQuotasRequest,
            alter_client_quotas.AlterClientQuotasResponse,
        ),
        _api(
            describe_user_scram_credentials.DescribeUserScramCredentialsRequest,
            describe_user_scram_credentials.DescribeUserScramCredentialsResponse,
        ),
        _api(
            alter_user_scram_credentials.AlterUserScramCredentialsRequest,
            alter_user_scram_credentials.AlterUserScramCredentialsResponse,
        ),
        _api(vote.VoteRequest, vote.VoteResponse),
        _api(
            begin_quorum_epoch.BeginQuorumEpochRequest, begin_quorum_epoch.BeginQuorumEpochResponse
        ),
        _api(end_quorum_epoch.EndQuorumEpochRequest, end_quorum_epoch.EndQuorumEpochResponse),
        _api(describe_quorum.DescribeQuorumRequest, describe_quorum.DescribeQuorumResponse),
        _api(alter_partition.AlterPartitionRequest, alter_partition.AlterPartitionResponse),
        _api(update_features.UpdateFeaturesRequest, update_features.UpdateFeaturesResponse),
        _api(envelope.EnvelopeRequest, envelope.EnvelopeResponse),
        _api(fetch_snapshot.FetchSnapshotRequest, fetch_snapshot.FetchSnapshotResponse),
        _api(describe_cluster.DescribeClusterRequest, describe_cluster.DescribeClusterResponse),
        _api(
            describe_producers.DescribeProducersRequest,
            describe_producers.DescribeProducersResponse,
        ),
        _api(
            broker_registration.BrokerRegistrationRequest,
            broker_registration.BrokerRegistrationResponse,
        ),
        _api(broker_heartbeat.BrokerHeartbeatRequest, broker_heartbeat.BrokerHeartbeatResponse),
        _api(unregister_broker.UnregisterBrokerRequest, unregister_broker.UnregisterBrokerResponse),
        _api(
            describe_transactions.DescribeTransactionsRequest,
            describe_transactions.DescribeTransactionsResponse,
        ),
        _api(list_transactions.ListTransactionsRequest, list_transactions.ListTransactionsResponse),
        _api(
            allocate_producer_ids.AllocateProducerIdsRequest,
            allocate_producer_ids.AllocateProducerIdsResponse,
        ),
        _api(
            consumer_group_heartbeat.ConsumerGroupHeartbeatRequest,
            consumer_group_heartbeat.ConsumerGroupHeartbeatResponse,
        ),
        _api(
            consumer_group_describe.ConsumerGroupDescribeRequest,
            consumer_group_describe.ConsumerGroupDescribeResponse,
        ),
        _api(
            controller_registration.ControllerRegistrationRequest,
            controller_registration.ControllerRegistrationResponse,
        ),
        _api(
            get_telemetry_subscriptions.GetTelemetrySubscriptionsRequest,
            get_telemetry_subscriptions.GetTelemetrySubscriptionsResponse,
        ),
        _api(push_telemetry.PushTelemetryRequest, push_telemetry.PushTelemetryResponse),
        _api(
            assign_replicas_to_dirs.AssignReplicasToDirsRequest,
            assign_replicas_to_dirs.AssignReplicasToDirsResponse,
        ),
        _api(
            list_config_resources.ListConfigResourcesRequest,
            list_config_resources.ListConfigResourcesResponse,
        ),
        _api(
            describe_topic_partitions.DescribeTopicPartitionsRequest,
            describe_topic_partitions.DescribeTopicPartitionsResponse,
        ),
        _api(
            share_group_heartbeat.ShareGroupHeartbeatRequest,
            share_group_heartbeat.ShareGroupHeartbeatResponse,
        ),
        _api(
            share_group_describe.ShareGroupDescribeRequest,
            share_group_describe.ShareGroupDescribeResponse,
        ),
        _api(share_fetch.ShareFetchRequest, share_fetch.ShareFetchResponse),
        _api(share_acknowledge.ShareAcknowledgeRequest, share_acknowledge.ShareAcknowledgeResponse),
        _api(add_raft_voter.AddRaftVoterRequest, add_raft_voter.AddRaftVoterResponse),
        _api(remove_raft_voter.RemoveRaftVoterRequest, remove_raft_voter.RemoveRaftVoterResponse),
        _api(update_raft_voter.UpdateRaftVoterRequest, update_raft_voter.UpdateRaftVoterResponse),
        _api(
            initialize_share_group_state.InitializeShareGroupStateRequest,
            initialize_share_group_state.InitializeShareGroupStateResponse,
        ),
        _api(
            read_share_group_state.ReadShareGroupStateRequest,
            read_share_group_state.ReadShareGroupStateResponse,
        ),
        _api(
            write_share_group_state.WriteShareGroupStateRequest,
            write_share_group_state.WriteShareGroupStateResponse,
        ),
        _api(
            delete_share_group_state.DeleteShareGroupStateRequest,
            delete_share_group_state.DeleteShareGroupStateResponse,
        ),
        _api(
            read_share_group_state_summary.ReadShareGroupStateSummaryRequest,
            read_share_group_state_summary.ReadShareGroupStateSummaryResponse,
        ),
        _api(
            streams_group_heartbeat.StreamsGroupHeartbeatRequest,
            streams_group_heartbeat.StreamsGroupHeartbeatResponse,
        ),
        _api(
            streams_group_describe.StreamsGroupDescribeRequest,
            streams_group_describe.StreamsGroupDescribeResponse,
        ),
        _api(
            describe_share_group_offsets.DescribeShareGroupOffsetsRequest,
            describe_share_group_offsets.DescribeShareGroupOffsetsResponse,
        ),
        _api(
            alter_share_group_offsets.AlterShareGroupOffsetsRequest,
            alter_share_group_offsets.AlterShareGroupOffsetsResponse,
        ),
        _api(
            delete_share_group_offsets.DeleteShareGroupOffsetsRequest,
            delete_share_group_offsets.DeleteShareGroupOffsetsResponse,
        ),
    )
}
"""Every API by its number."""
