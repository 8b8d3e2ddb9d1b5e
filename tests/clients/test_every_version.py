"""Each version of each API that is advertised is answered, with success where that is possible.

A handler sees one class for all versions; this is where a field that some version cannot carry,
or that only some versions have, comes to light.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.node.broker.handlers import ROUTES
from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_share_group_offsets,
    alter_user_scram_credentials,
    consumer_group_describe,
    consumer_group_heartbeat,
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
    end_txn,
    expire_delegation_token,
    fetch,
    find_coordinator,
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
    read_share_group_state,
    read_share_group_state_summary,
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
    update_features,
    write_share_group_state,
    write_txn_markers,
)
from barnabas.protocol.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.protocol.records.records import Record, encode_batch
from support.patience import PATIENCE_S
from support.raw_client import RawClient

GROUP = "versions"
ANY = 1
"""Of filters of ACLs."""
WAITABLE = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
}
"""A coordinator is on its way: nothing was done, and a client asks again."""


class Setting:
    """A topic with three records, and a group with a committed offset."""

    def __init__(self, raw: RawClient) -> None:
        self.raw = raw
        self.topic = f"versions-{uuid.uuid4().hex[:8]}"
        raw.create_topic(self.topic)
        self.topic_id = raw.topic_id(self.topic)
        answer = raw.produce(self.topic, bytes(self.batch()))
        assert answer.error_code == ErrorCode.NONE
        self.group = self.new_group()

    def new_group(self) -> str:
        """A name that nobody has used, of a group that this node coordinates."""
        here = self.raw.node_id()
        while True:
            group = f"{GROUP}-{uuid.uuid4().hex[:8]}"
            find = find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
            found = self.raw.call(find, find_coordinator.FindCoordinatorResponse).coordinators[0]
            assert found.error_code in {ErrorCode.NONE, *WAITABLE}
            if found.node_id == here:
                return group

    def begin(self) -> dict[str, Any]:
        """A producer of a new transactional id that this node coordinates."""
        here = self.raw.node_id()
        while True:
            name = f"{GROUP}-{uuid.uuid4().hex[:8]}"
            find = find_coordinator.FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
            found = self.raw.call(find, find_coordinator.FindCoordinatorResponse).coordinators[0]
            if found.node_id == here:
                break
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=60_000
        )
        while True:
            given = self.raw.call(request, init_producer_id.InitProducerIdResponse)
            if given.error_code not in WAITABLE:
                break
        assert given.error_code == ErrorCode.NONE
        return {
            "transactional_id": name,
            "producer_id": given.producer_id,
            "producer_epoch": given.producer_epoch,
        }

    def began(self, *, with_offsets: bool = False) -> dict[str, Any]:
        """As `begin`, with a transaction under way that has a partition, or the group's offsets."""
        producer = self.begin()
        response: Any
        if with_offsets:
            request: Any = add_offsets_to_txn.AddOffsetsToTxnRequest(
                group_id=self.group, **producer
            )
            response = self.raw.call(request, add_offsets_to_txn.AddOffsetsToTxnResponse)
        else:
            request = add_partitions(self, producer, 3)
            response = self.raw.call(request, add_partitions_to_txn.AddPartitionsToTxnResponse, 3)
        assert set(error_codes(response)) <= {ErrorCode.NONE}
        return producer

    def batch(self) -> bytearray:
        now_ms = int(time.time() * 1000)
        return encode_batch(
            [Record(offset=n, timestamp=now_ms, key=b"k", value=b"v") for n in range(3)]
        )


@pytest.fixture(scope="module")
def setting(kafka_bootstrap_servers: str) -> Iterator[Setting]:
    with RawClient(kafka_bootstrap_servers) as raw:
        yield Setting(raw)


def add_partitions(s: Setting, producer: dict[str, Any], version: int) -> Any:
    topics = [add_partitions_to_txn.AddPartitionsToTxnTopic(name=s.topic, partitions=[0])]
    if version < 4:
        return add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_topics=topics,
            **{f"v3_and_below_{name}": value for name, value in producer.items()},
        )
    return add_partitions_to_txn.AddPartitionsToTxnRequest(
        transactions=[
            add_partitions_to_txn.AddPartitionsToTxnTransaction(topics=topics, **producer)
        ]
    )


def _topic_resource(module: Any, s: Setting, name: str) -> Any:
    return getattr(module, name)(resource_type=2, resource_name=s.topic)


def _only(is_known: bool, **fields: Any) -> dict[str, Any]:
    """Fields that a version knows, or none."""
    return fields if is_known else {}


REQUESTS: dict[ApiKey, Callable[[Setting, int], Any]] = {
    ApiKey.PRODUCE: lambda s, v: produce.ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[
            produce.TopicProduceData(
                name=s.topic,
                topic_id=s.topic_id,
                partition_data=[produce.PartitionProduceData(index=0, records=s.batch())],
            )
        ],
    ),
    ApiKey.FETCH: lambda s, v: fetch.FetchRequest(
        max_bytes=1 << 20,
        topics=[
            fetch.FetchTopic(
                topic=s.topic,
                topic_id=s.topic_id,
                partitions=[fetch.FetchPartition(partition_max_bytes=1 << 20)],
            )
        ],
    ),
    ApiKey.LIST_OFFSETS: lambda s, v: list_offsets.ListOffsetsRequest(
        replica_id=-1,
        topics=[
            list_offsets.ListOffsetsTopic(
                name=s.topic, partitions=[list_offsets.ListOffsetsPartition(timestamp=-1)]
            )
        ],
    ),
    ApiKey.METADATA: lambda s, v: metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=s.topic)],
        include_topic_authorized_operations=v >= 8,
        include_cluster_authorized_operations=8 <= v <= 10,
    ),
    ApiKey.OFFSET_COMMIT: lambda s, v: offset_commit.OffsetCommitRequest(
        group_id=s.group,
        topics=[
            offset_commit.OffsetCommitRequestTopic(
                name=s.topic,
                topic_id=s.topic_id,
                partitions=[
                    offset_commit.OffsetCommitRequestPartition(
                        committed_offset=2, committed_metadata="m"
                    )
                ],
            )
        ],
    ),
    ApiKey.OFFSET_FETCH: lambda s, v: offset_fetch.OffsetFetchRequest(
        **(
            {
                "groups": [
                    offset_fetch.OffsetFetchRequestGroup(
                        group_id=s.group,
                        topics=[
                            offset_fetch.OffsetFetchRequestTopics(
                                name=s.topic, topic_id=s.topic_id, partition_indexes=[0]
                            )
                        ],
                    )
                ]
            }
            if v >= 8
            else {
                "group_id": s.group,
                "topics": [
                    offset_fetch.OffsetFetchRequestTopic(name=s.topic, partition_indexes=[0])
                ],
            }
        )
    ),
    ApiKey.FIND_COORDINATOR: lambda s, v: find_coordinator.FindCoordinatorRequest(
        **({"coordinator_keys": [s.group]} if v >= 4 else {"key": s.group})
    ),
    ApiKey.JOIN_GROUP: lambda s, v: join_group.JoinGroupRequest(
        group_id=s.new_group(),
        session_timeout_ms=6000,
        rebalance_timeout_ms=6000 if v >= 1 else -1,
        protocol_type="consumer",
        protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=b"")],
    ),
    ApiKey.SYNC_GROUP: lambda s, v: sync_group.SyncGroupRequest(
        group_id=s.group, generation_id=1, member_id="nobody"
    ),
    ApiKey.HEARTBEAT: lambda s, v: heartbeat.HeartbeatRequest(
        group_id=s.group, generation_id=1, member_id="nobody"
    ),
    ApiKey.LEAVE_GROUP: lambda s, v: leave_group.LeaveGroupRequest(
        group_id=s.group,
        **(
            {"members": [leave_group.MemberIdentity(member_id="nobody")]}
            if v >= 3
            else {"member_id": "nobody"}
        ),
    ),
    ApiKey.DESCRIBE_GROUPS: lambda s, v: describe_groups.DescribeGroupsRequest(
        groups=[s.group, s.new_group()], include_authorized_operations=v >= 3
    ),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: lambda s, v: (
        consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=s.new_group(),
            member_id="member" if v >= 1 else "",
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[s.topic],
            topic_partitions=[],
            **_only(v >= 1, subscribed_topic_regex="x.*"),
        )
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: lambda s, v: (
        consumer_group_describe.ConsumerGroupDescribeRequest(
            group_ids=[s.new_group()], include_authorized_operations=True
        )
    ),
    ApiKey.STREAMS_GROUP_HEARTBEAT: lambda s, v: (
        streams_group_heartbeat.StreamsGroupHeartbeatRequest(
            group_id=s.new_group(),
            member_id="member",
            rebalance_timeout_ms=60_000,
            topology=streams_group_heartbeat.Topology(
                subtopologies=[
                    streams_group_heartbeat.Subtopology(subtopology_id="0", source_topics=[s.topic])
                ]
            ),
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
            process_id="process",
        )
    ),
    ApiKey.STREAMS_GROUP_DESCRIBE: lambda s, v: streams_group_describe.StreamsGroupDescribeRequest(
        group_ids=[s.new_group()], include_authorized_operations=True
    ),
    ApiKey.LIST_GROUPS: lambda s, v: list_groups.ListGroupsRequest(),
    ApiKey.DELETE_GROUPS: lambda s, v: delete_groups.DeleteGroupsRequest(
        groups_names=[s.new_group()]
    ),
    ApiKey.OFFSET_DELETE: lambda s, v: offset_delete.OffsetDeleteRequest(
        group_id=s.group,
        topics=[
            offset_delete.OffsetDeleteRequestTopic(
                name=s.topic, partitions=[offset_delete.OffsetDeleteRequestPartition()]
            )
        ],
    ),
    ApiKey.API_VERSIONS: lambda s, v: ApiVersionsRequest(
        **({"client_software_name": "t", "client_software_version": "1"} if v >= 3 else {})
    ),
    ApiKey.CREATE_TOPICS: lambda s, v: create_topics.CreateTopicsRequest(
        topics=[
            create_topics.CreatableTopic(
                name=f"{s.topic}-{v}",
                num_partitions=1,
                replication_factor=1,
                configs=[create_topics.CreatableTopicConfig(name="retention.ms", value="1000000")],
            )
        ],
        timeout_ms=5000,
    ),
    ApiKey.DELETE_TOPICS: lambda s, v: delete_topics.DeleteTopicsRequest(
        timeout_ms=5000,
        **(
            {"topics": [delete_topics.DeleteTopicState(name="no-such-topic")]}
            if v >= 6
            else {"topic_names": ["no-such-topic"]}
        ),
    ),
    ApiKey.CREATE_PARTITIONS: lambda s, v: create_partitions.CreatePartitionsRequest(
        topics=[
            create_partitions.CreatePartitionsTopic(name=s.topic, count=v + 2, assignments=None)
        ],
        timeout_ms=5000,
    ),
    ApiKey.DELETE_RECORDS: lambda s, v: delete_records.DeleteRecordsRequest(
        topics=[
            delete_records.DeleteRecordsTopic(
                name=s.topic, partitions=[delete_records.DeleteRecordsPartition(offset=0)]
            )
        ],
        timeout_ms=1000,
    ),
    ApiKey.INIT_PRODUCER_ID: lambda s, v: init_producer_id.InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=1000
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: lambda s, v: (
        offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            topics=[
                offset_for_leader_epoch.OffsetForLeaderTopic(
                    topic=s.topic,
                    partitions=[offset_for_leader_epoch.OffsetForLeaderPartition()],
                )
            ]
        )
    ),
    ApiKey.DESCRIBE_CONFIGS: lambda s, v: describe_configs.DescribeConfigsRequest(
        resources=[
            describe_configs.DescribeConfigsResource(resource_type=kind, resource_name=name)
            for kind, name in ((2, s.topic), (4, "1"), (4, ""))
        ],
        include_synonyms=v >= 1,
        include_documentation=v >= 3,
    ),
    ApiKey.ALTER_CONFIGS: lambda s, v: alter_configs.AlterConfigsRequest(
        resources=[_topic_resource(alter_configs, s, "AlterConfigsResource")]
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda s, v: (
        incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[_topic_resource(incremental_alter_configs, s, "AlterConfigsResource")]
        )
    ),
    ApiKey.DESCRIBE_LOG_DIRS: lambda s, v: describe_log_dirs.DescribeLogDirsRequest(topics=None),
    ApiKey.ALTER_REPLICA_LOG_DIRS: lambda s, v: alter_replica_log_dirs.AlterReplicaLogDirsRequest(
        dirs=[
            alter_replica_log_dirs.AlterReplicaLogDir(
                path="/no/such/directory",
                topics=[
                    alter_replica_log_dirs.AlterReplicaLogDirTopic(name=s.topic, partitions=[0])
                ],
            )
        ]
    ),
    ApiKey.DESCRIBE_CLUSTER: lambda s, v: DescribeClusterRequest(),
    ApiKey.DESCRIBE_QUORUM: lambda s, v: describe_quorum.DescribeQuorumRequest(
        topics=[
            describe_quorum.DescribeQuorumRequestTopicData(
                topic_name="__cluster_metadata",
                partitions=[describe_quorum.DescribeQuorumRequestPartitionData()],
            )
        ]
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: lambda s, v: (
        describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=[describe_topic_partitions.TopicRequest(name=s.topic)]
        )
    ),
    ApiKey.LIST_CONFIG_RESOURCES: lambda s, v: list_config_resources.ListConfigResourcesRequest(),
    ApiKey.UPDATE_FEATURES: lambda s, v: update_features.UpdateFeaturesRequest(timeout_ms=1000),
    ApiKey.ELECT_LEADERS: lambda s, v: elect_leaders.ElectLeadersRequest(
        topic_partitions=[elect_leaders.TopicPartitions(topic=s.topic, partitions=[0])],
        timeout_ms=1000,
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda s, v: (
        alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            timeout_ms=1000,
            topics=[
                alter_partition_reassignments.ReassignableTopic(
                    name=s.topic,
                    partitions=[alter_partition_reassignments.ReassignablePartition(replicas=None)],
                )
            ],
        )
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: lambda s, v: (
        list_partition_reassignments.ListPartitionReassignmentsRequest(timeout_ms=1000)
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: lambda s, v: add_partitions(s, s.begin(), v),
    ApiKey.ADD_OFFSETS_TO_TXN: lambda s, v: add_offsets_to_txn.AddOffsetsToTxnRequest(
        group_id=s.group, **s.begin()
    ),
    ApiKey.END_TXN: lambda s, v: end_txn.EndTxnRequest(committed=True, **s.began()),
    ApiKey.WRITE_TXN_MARKERS: lambda s, v: write_txn_markers.WriteTxnMarkersRequest(
        markers=[
            write_txn_markers.WritableTxnMarker(
                producer_id=4711,
                producer_epoch=v,
                topics=[
                    write_txn_markers.WritableTxnMarkerTopic(name=s.topic, partition_indexes=[0])
                ],
            )
        ]
    ),
    ApiKey.TXN_OFFSET_COMMIT: lambda s, v: txn_offset_commit.TxnOffsetCommitRequest(
        group_id=s.group,
        topics=[
            txn_offset_commit.TxnOffsetCommitRequestTopic(
                name=s.topic,
                partitions=[
                    txn_offset_commit.TxnOffsetCommitRequestPartition(
                        committed_offset=1, committed_metadata="m"
                    )
                ],
            )
        ],
        **s.began(with_offsets=True),
    ),
    ApiKey.DESCRIBE_PRODUCERS: lambda s, v: describe_producers.DescribeProducersRequest(
        topics=[describe_producers.TopicRequest(name=s.topic, partition_indexes=[0])]
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: lambda s, v: describe_transactions.DescribeTransactionsRequest(
        transactional_ids=[s.began()["transactional_id"]]
    ),
    ApiKey.LIST_TRANSACTIONS: lambda s, v: list_transactions.ListTransactionsRequest(
        state_filters=["Ongoing"],
        **_only(v >= 1, duration_filter=0),
        **_only(v >= 2, transactional_id_pattern="versions-.*"),
    ),
    ApiKey.UNREGISTER_BROKER: lambda s, v: UnregisterBrokerRequest(broker_id=4711),
    ApiKey.ADD_RAFT_VOTER: lambda s, v: AddRaftVoterRequest(
        cluster_id="another", voter_id=4711, timeout_ms=1000
    ),
    ApiKey.REMOVE_RAFT_VOTER: lambda s, v: RemoveRaftVoterRequest(
        cluster_id="another", voter_id=4711
    ),
    ApiKey.SHARE_GROUP_HEARTBEAT: lambda s, v: share_group_heartbeat.ShareGroupHeartbeatRequest(
        group_id=s.new_group(), member_id="member", subscribed_topic_names=[s.topic]
    ),
    ApiKey.SHARE_GROUP_DESCRIBE: lambda s, v: share_group_describe.ShareGroupDescribeRequest(
        group_ids=[s.new_group()], include_authorized_operations=True
    ),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: lambda s, v: (
        describe_share_group_offsets.DescribeShareGroupOffsetsRequest(
            groups=[
                describe_share_group_offsets.DescribeShareGroupOffsetsRequestGroup(
                    group_id=s.new_group(),
                    topics=[
                        describe_share_group_offsets.DescribeShareGroupOffsetsRequestTopic(
                            topic_name=s.topic, partitions=[0]
                        )
                    ],
                )
            ]
        )
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: lambda s, v: (
        alter_share_group_offsets.AlterShareGroupOffsetsRequest(
            group_id=s.new_group(),
            topics=[
                alter_share_group_offsets.AlterShareGroupOffsetsRequestTopic(
                    topic_name=s.topic,
                    partitions=[
                        alter_share_group_offsets.AlterShareGroupOffsetsRequestPartition(
                            start_offset=1
                        )
                    ],
                )
            ],
        )
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: lambda s, v: (
        delete_share_group_offsets.DeleteShareGroupOffsetsRequest(
            group_id=s.new_group(),
            topics=[
                delete_share_group_offsets.DeleteShareGroupOffsetsRequestTopic(topic_name=s.topic)
            ],
        )
    ),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: lambda s, v: (
        initialize_share_group_state.InitializeShareGroupStateRequest(
            group_id="share",
            topics=[
                initialize_share_group_state.InitializeStateData(
                    topic_id=s.topic_id,
                    partitions=[initialize_share_group_state.PartitionData(state_epoch=1)],
                )
            ],
        )
    ),
    ApiKey.READ_SHARE_GROUP_STATE: lambda s, v: read_share_group_state.ReadShareGroupStateRequest(
        group_id="share",
        topics=[
            read_share_group_state.ReadStateData(
                topic_id=s.topic_id, partitions=[read_share_group_state.PartitionData()]
            )
        ],
    ),
    ApiKey.WRITE_SHARE_GROUP_STATE: lambda s, v: (
        write_share_group_state.WriteShareGroupStateRequest(
            group_id="share",
            topics=[
                write_share_group_state.WriteStateData(
                    topic_id=s.topic_id,
                    partitions=[
                        write_share_group_state.PartitionData(
                            state_epoch=1,
                            state_batches=[write_share_group_state.StateBatch(last_offset=4)],
                            **({"delivery_complete_count": 1} if v >= 1 else {}),
                        )
                    ],
                )
            ],
        )
    ),
    ApiKey.SHARE_FETCH: lambda s, v: share_fetch.ShareFetchRequest(
        group_id=GROUP, member_id="versions", max_records=1
    ),
    ApiKey.SHARE_ACKNOWLEDGE: lambda s, v: share_acknowledge.ShareAcknowledgeRequest(
        group_id=GROUP, member_id="nobody", share_session_epoch=1
    ),
    ApiKey.DELETE_SHARE_GROUP_STATE: lambda s, v: (
        delete_share_group_state.DeleteShareGroupStateRequest(
            group_id="share",
            topics=[
                delete_share_group_state.DeleteStateData(
                    topic_id=s.topic_id, partitions=[delete_share_group_state.PartitionData()]
                )
            ],
        )
    ),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: lambda s, v: (
        read_share_group_state_summary.ReadShareGroupStateSummaryRequest(
            group_id="share",
            topics=[
                read_share_group_state_summary.ReadStateSummaryData(
                    topic_id=s.topic_id,
                    partitions=[read_share_group_state_summary.PartitionData()],
                )
            ],
        )
    ),
    ApiKey.SASL_HANDSHAKE: lambda s, v: sasl_handshake.SaslHandshakeRequest(mechanism="PLAIN"),
    ApiKey.SASL_AUTHENTICATE: lambda s, v: sasl_authenticate.SaslAuthenticateRequest(),
    ApiKey.DESCRIBE_ACLS: lambda s, v: describe_acls.DescribeAclsRequest(
        resource_type_filter=ANY, pattern_type_filter=ANY, operation=ANY, permission_type=ANY
    ),
    ApiKey.CREATE_ACLS: lambda s, v: create_acls.CreateAclsRequest(),
    ApiKey.DELETE_ACLS: lambda s, v: delete_acls.DeleteAclsRequest(
        filters=[
            delete_acls.DeleteAclsFilter(
                resource_type_filter=ANY,
                pattern_type_filter=ANY,
                operation=ANY,
                permission_type=ANY,
            )
        ]
    ),
    ApiKey.CREATE_DELEGATION_TOKEN: lambda s, v: (
        create_delegation_token.CreateDelegationTokenRequest(max_lifetime_ms=1000)
    ),
    ApiKey.RENEW_DELEGATION_TOKEN: lambda s, v: renew_delegation_token.RenewDelegationTokenRequest(
        hmac=b"none", renew_period_ms=1000
    ),
    ApiKey.EXPIRE_DELEGATION_TOKEN: lambda s, v: (
        expire_delegation_token.ExpireDelegationTokenRequest(hmac=b"none")
    ),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: lambda s, v: (
        describe_delegation_token.DescribeDelegationTokenRequest(owners=None)
    ),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: lambda s, v: (
        describe_client_quotas.DescribeClientQuotasRequest()
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: lambda s, v: alter_client_quotas.AlterClientQuotasRequest(),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: lambda s, v: (
        describe_user_scram_credentials.DescribeUserScramCredentialsRequest(users=None)
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: lambda s, v: (
        alter_user_scram_credentials.AlterUserScramCredentialsRequest(
            deletions=[
                alter_user_scram_credentials.ScramCredentialDeletion(name="nobody", mechanism=1)
            ]
        )
    ),
}

EXPECTED_ERRORS: dict[ApiKey, set[ErrorCode]] = {
    **{
        key: {ErrorCode.SECURITY_DISABLED}
        for key in (ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS)
    },
    **{
        key: {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED}  # nobody has logged in
        for key in (
            ApiKey.CREATE_DELEGATION_TOKEN,
            ApiKey.RENEW_DELEGATION_TOKEN,
            ApiKey.EXPIRE_DELEGATION_TOKEN,
            ApiKey.DESCRIBE_DELEGATION_TOKEN,
        )
    },
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: {ErrorCode.RESOURCE_NOT_FOUND},
    ApiKey.SASL_HANDSHAKE: {ErrorCode.ILLEGAL_SASL_STATE},
    ApiKey.SASL_AUTHENTICATE: {ErrorCode.ILLEGAL_SASL_STATE},
    ApiKey.JOIN_GROUP: {ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED},
    ApiKey.SYNC_GROUP: {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND},
    ApiKey.HEARTBEAT: {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND},
    ApiKey.LEAVE_GROUP: {ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID},
    ApiKey.DELETE_GROUPS: {ErrorCode.GROUP_ID_NOT_FOUND},
    ApiKey.DESCRIBE_GROUPS: {ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND},
    ApiKey.CONSUMER_GROUP_DESCRIBE: {ErrorCode.GROUP_ID_NOT_FOUND},
    ApiKey.SHARE_GROUP_DESCRIBE: {ErrorCode.GROUP_ID_NOT_FOUND},
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: {ErrorCode.GROUP_ID_NOT_FOUND},
    ApiKey.STREAMS_GROUP_DESCRIBE: {ErrorCode.GROUP_ID_NOT_FOUND},
    ApiKey.SHARE_ACKNOWLEDGE: {ErrorCode.SHARE_SESSION_NOT_FOUND},
    ApiKey.DELETE_TOPICS: {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    ApiKey.UPDATE_FEATURES: {ErrorCode.INVALID_REQUEST},  # it names no feature
    ApiKey.ELECT_LEADERS: {ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED},
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: {ErrorCode.NONE, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS},
    ApiKey.ALTER_REPLICA_LOG_DIRS: {ErrorCode.LOG_DIR_NOT_FOUND},
    ApiKey.UNREGISTER_BROKER: {ErrorCode.BROKER_ID_NOT_REGISTERED},
    ApiKey.ADD_RAFT_VOTER: {ErrorCode.INCONSISTENT_CLUSTER_ID},
    ApiKey.REMOVE_RAFT_VOTER: {ErrorCode.INCONSISTENT_CLUSTER_ID},
    **{
        key: {ErrorCode.NONE, ErrorCode.NOT_COORDINATOR}
        for key in (
            ApiKey.INITIALIZE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE,
            ApiKey.WRITE_SHARE_GROUP_STATE,
            ApiKey.DELETE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        )
    },
}
CASES = [
    (key, version)
    for key in [route.api.key for route in ROUTES]
    for version in range(APIS[key].min_version, APIS[key].max_stable_version + 1)
]


@pytest.mark.parametrize(("key", "version"), CASES, ids=[f"{k.name}-v{v}" for k, v in CASES])
def test_a_version_is_answered(
    kafka_bootstrap_servers: str, setting: Setting, key: ApiKey, version: int
) -> None:
    request = REQUESTS[key](setting, version)
    expected = EXPECTED_ERRORS.get(key, {ErrorCode.NONE})
    with RawClient(kafka_bootstrap_servers) as raw:
        response = raw.call(request, APIS[key].response, version)
        deadline_s = time.monotonic() + PATIENCE_S
        while (WAITABLE - expected) & set(error_codes(response)) and time.monotonic() < deadline_s:
            response = raw.call(request, APIS[key].response, version)
    assert set(error_codes(response)) <= {int(code) for code in expected}, response


def error_codes(value: Any) -> Iterator[int]:
    """Every error code anywhere in a message."""
    if isinstance(value, list):
        for element in value:
            yield from error_codes(element)
    elif hasattr(value, "SCHEMA"):
        for field in value.SCHEMA.fields:
            inner = getattr(value, field.name)
            if field.name in ("error_code", "partition_error_code"):
                yield inner
            else:
                yield from error_codes(inner)
