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
    acls,
    configs,
    consumer_groups,
    credentials,
    fetch,
    groups,
    metadata,
    nodes,
    offsets,
    partitions,
    produce,
    quotas,
    share_fetch,
    share_groups,
    share_state,
    streams_groups,
    transactions,
    voters,
)
from barnabas.protocol.messages import topics as topics_messages
from barnabas.protocol.messages.connections import ApiVersionsRequest
from barnabas.protocol.messages.metadata import DescribeClusterRequest
from barnabas.protocol.messages.nodes import UnregisterBrokerRequest
from barnabas.protocol.messages.voters import AddRaftVoterRequest, RemoveRaftVoterRequest
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
            find = groups.FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
            found = self.raw.call(find, groups.FindCoordinatorResponse).coordinators[0]
            assert found.error_code in {ErrorCode.NONE, *WAITABLE}
            if found.node_id == here:
                return group

    def begin(self) -> dict[str, Any]:
        """A producer of a new transactional id that this node coordinates."""
        here = self.raw.node_id()
        while True:
            name = f"{GROUP}-{uuid.uuid4().hex[:8]}"
            find = groups.FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
            found = self.raw.call(find, groups.FindCoordinatorResponse).coordinators[0]
            if found.node_id == here:
                break
        request = transactions.InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=60_000
        )
        while True:
            given = self.raw.call(request, transactions.InitProducerIdResponse)
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
            request: Any = transactions.AddOffsetsToTxnRequest(group_id=self.group, **producer)
            response = self.raw.call(request, transactions.AddOffsetsToTxnResponse)
        else:
            request = add_partitions(self, producer, 3)
            response = self.raw.call(request, transactions.AddPartitionsToTxnResponse, 3)
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
    topics = [transactions.AddPartitionsToTxnTopic(name=s.topic, partitions=[0])]
    if version < 4:
        return transactions.AddPartitionsToTxnRequest(
            v3_and_below_topics=topics,
            **{f"v3_and_below_{name}": value for name, value in producer.items()},
        )
    return transactions.AddPartitionsToTxnRequest(
        transactions=[transactions.AddPartitionsToTxnTransaction(topics=topics, **producer)]
    )


def _topic_resource(resource: Any, s: Setting) -> Any:
    return resource(resource_type=2, resource_name=s.topic)


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
    ApiKey.LIST_OFFSETS: lambda s, v: fetch.ListOffsetsRequest(
        replica_id=-1,
        topics=[
            fetch.ListOffsetsTopic(
                name=s.topic, partitions=[fetch.ListOffsetsPartition(timestamp=-1)]
            )
        ],
    ),
    ApiKey.METADATA: lambda s, v: metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=s.topic)],
        include_topic_authorized_operations=v >= 8,
        include_cluster_authorized_operations=8 <= v <= 10,
    ),
    ApiKey.OFFSET_COMMIT: lambda s, v: offsets.OffsetCommitRequest(
        group_id=s.group,
        topics=[
            offsets.OffsetCommitRequestTopic(
                name=s.topic,
                topic_id=s.topic_id,
                partitions=[
                    offsets.OffsetCommitRequestPartition(committed_offset=2, committed_metadata="m")
                ],
            )
        ],
    ),
    ApiKey.OFFSET_FETCH: lambda s, v: offsets.OffsetFetchRequest(
        **(
            {
                "groups": [
                    offsets.OffsetFetchRequestGroup(
                        group_id=s.group,
                        topics=[
                            offsets.OffsetFetchRequestTopics(
                                name=s.topic, topic_id=s.topic_id, partition_indexes=[0]
                            )
                        ],
                    )
                ]
            }
            if v >= 8
            else {
                "group_id": s.group,
                "topics": [offsets.OffsetFetchRequestTopic(name=s.topic, partition_indexes=[0])],
            }
        )
    ),
    ApiKey.FIND_COORDINATOR: lambda s, v: groups.FindCoordinatorRequest(
        **({"coordinator_keys": [s.group]} if v >= 4 else {"key": s.group})
    ),
    ApiKey.JOIN_GROUP: lambda s, v: groups.JoinGroupRequest(
        group_id=s.new_group(),
        session_timeout_ms=6000,
        rebalance_timeout_ms=6000 if v >= 1 else -1,
        protocol_type="consumer",
        protocols=[groups.JoinGroupRequestProtocol(name="range", metadata=b"")],
    ),
    ApiKey.SYNC_GROUP: lambda s, v: groups.SyncGroupRequest(
        group_id=s.group, generation_id=1, member_id="nobody"
    ),
    ApiKey.HEARTBEAT: lambda s, v: groups.HeartbeatRequest(
        group_id=s.group, generation_id=1, member_id="nobody"
    ),
    ApiKey.LEAVE_GROUP: lambda s, v: groups.LeaveGroupRequest(
        group_id=s.group,
        **(
            {"members": [groups.MemberIdentity(member_id="nobody")]}
            if v >= 3
            else {"member_id": "nobody"}
        ),
    ),
    ApiKey.DESCRIBE_GROUPS: lambda s, v: groups.DescribeGroupsRequest(
        groups=[s.group, s.new_group()], include_authorized_operations=v >= 3
    ),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: lambda s, v: consumer_groups.ConsumerGroupHeartbeatRequest(
        group_id=s.new_group(),
        member_id="member" if v >= 1 else "",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[s.topic],
        topic_partitions=[],
        **_only(v >= 1, subscribed_topic_regex="x.*"),
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: lambda s, v: consumer_groups.ConsumerGroupDescribeRequest(
        group_ids=[s.new_group()], include_authorized_operations=True
    ),
    ApiKey.STREAMS_GROUP_HEARTBEAT: lambda s, v: streams_groups.StreamsGroupHeartbeatRequest(
        group_id=s.new_group(),
        member_id="member",
        rebalance_timeout_ms=60_000,
        topology=streams_groups.StreamsGroupHeartbeatTopology(
            subtopologies=[
                streams_groups.StreamsGroupHeartbeatSubtopology(
                    subtopology_id="0", source_topics=[s.topic]
                )
            ]
        ),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="process",
    ),
    ApiKey.STREAMS_GROUP_DESCRIBE: lambda s, v: streams_groups.StreamsGroupDescribeRequest(
        group_ids=[s.new_group()], include_authorized_operations=True
    ),
    ApiKey.LIST_GROUPS: lambda s, v: groups.ListGroupsRequest(),
    ApiKey.DELETE_GROUPS: lambda s, v: groups.DeleteGroupsRequest(groups_names=[s.new_group()]),
    ApiKey.OFFSET_DELETE: lambda s, v: offsets.OffsetDeleteRequest(
        group_id=s.group,
        topics=[
            offsets.OffsetDeleteRequestTopic(
                name=s.topic, partitions=[offsets.OffsetDeleteRequestPartition()]
            )
        ],
    ),
    ApiKey.API_VERSIONS: lambda s, v: ApiVersionsRequest(
        **({"client_software_name": "t", "client_software_version": "1"} if v >= 3 else {})
    ),
    ApiKey.CREATE_TOPICS: lambda s, v: topics_messages.CreateTopicsRequest(
        topics=[
            topics_messages.CreatableTopic(
                name=f"{s.topic}-{v}",
                num_partitions=1,
                replication_factor=1,
                configs=[
                    topics_messages.CreatableTopicConfig(name="retention.ms", value="1000000")
                ],
            )
        ],
        timeout_ms=5000,
    ),
    ApiKey.DELETE_TOPICS: lambda s, v: topics_messages.DeleteTopicsRequest(
        timeout_ms=5000,
        **(
            {"topics": [topics_messages.DeleteTopicState(name="no-such-topic")]}
            if v >= 6
            else {"topic_names": ["no-such-topic"]}
        ),
    ),
    ApiKey.CREATE_PARTITIONS: lambda s, v: topics_messages.CreatePartitionsRequest(
        topics=[topics_messages.CreatePartitionsTopic(name=s.topic, count=v + 2, assignments=None)],
        timeout_ms=5000,
    ),
    ApiKey.DELETE_RECORDS: lambda s, v: topics_messages.DeleteRecordsRequest(
        topics=[
            topics_messages.DeleteRecordsTopic(
                name=s.topic, partitions=[topics_messages.DeleteRecordsPartition(offset=0)]
            )
        ],
        timeout_ms=1000,
    ),
    ApiKey.INIT_PRODUCER_ID: lambda s, v: transactions.InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=1000
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: lambda s, v: fetch.OffsetForLeaderEpochRequest(
        topics=[
            fetch.OffsetForLeaderTopic(
                topic=s.topic,
                partitions=[fetch.OffsetForLeaderPartition()],
            )
        ]
    ),
    ApiKey.DESCRIBE_CONFIGS: lambda s, v: configs.DescribeConfigsRequest(
        resources=[
            configs.DescribeConfigsResource(resource_type=kind, resource_name=name)
            for kind, name in ((2, s.topic), (4, "1"), (4, ""))
        ],
        include_synonyms=v >= 1,
        include_documentation=v >= 3,
    ),
    ApiKey.ALTER_CONFIGS: lambda s, v: configs.AlterConfigsRequest(
        resources=[_topic_resource(configs.AlterConfigsAlterConfigsResource, s)]
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda s, v: configs.IncrementalAlterConfigsRequest(
        resources=[_topic_resource(configs.AlterConfigsResource, s)]
    ),
    ApiKey.DESCRIBE_LOG_DIRS: lambda s, v: partitions.DescribeLogDirsRequest(topics=None),
    ApiKey.ALTER_REPLICA_LOG_DIRS: lambda s, v: partitions.AlterReplicaLogDirsRequest(
        dirs=[
            partitions.AlterReplicaLogDir(
                path="/no/such/directory",
                topics=[partitions.AlterReplicaLogDirTopic(name=s.topic, partitions=[0])],
            )
        ]
    ),
    ApiKey.DESCRIBE_CLUSTER: lambda s, v: DescribeClusterRequest(),
    ApiKey.DESCRIBE_QUORUM: lambda s, v: voters.DescribeQuorumRequest(
        topics=[
            voters.DescribeQuorumRequestTopicData(
                topic_name="__cluster_metadata",
                partitions=[voters.DescribeQuorumRequestPartitionData()],
            )
        ]
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: lambda s, v: metadata.DescribeTopicPartitionsRequest(
        topics=[metadata.TopicRequest(name=s.topic)]
    ),
    ApiKey.LIST_CONFIG_RESOURCES: lambda s, v: configs.ListConfigResourcesRequest(),
    ApiKey.UPDATE_FEATURES: lambda s, v: nodes.UpdateFeaturesRequest(timeout_ms=1000),
    ApiKey.ELECT_LEADERS: lambda s, v: partitions.ElectLeadersRequest(
        topic_partitions=[partitions.TopicPartitions(topic=s.topic, partitions=[0])],
        timeout_ms=1000,
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda s, v: (
        partitions.AlterPartitionReassignmentsRequest(
            timeout_ms=1000,
            topics=[
                partitions.ReassignableTopic(
                    name=s.topic,
                    partitions=[partitions.ReassignablePartition(replicas=None)],
                )
            ],
        )
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: lambda s, v: partitions.ListPartitionReassignmentsRequest(
        timeout_ms=1000
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: lambda s, v: add_partitions(s, s.begin(), v),
    ApiKey.ADD_OFFSETS_TO_TXN: lambda s, v: transactions.AddOffsetsToTxnRequest(
        group_id=s.group, **s.begin()
    ),
    ApiKey.END_TXN: lambda s, v: transactions.EndTxnRequest(committed=True, **s.began()),
    ApiKey.WRITE_TXN_MARKERS: lambda s, v: transactions.WriteTxnMarkersRequest(
        markers=[
            transactions.WritableTxnMarker(
                producer_id=4711,
                producer_epoch=v,
                topics=[transactions.WritableTxnMarkerTopic(name=s.topic, partition_indexes=[0])],
            )
        ]
    ),
    ApiKey.TXN_OFFSET_COMMIT: lambda s, v: transactions.TxnOffsetCommitRequest(
        group_id=s.group,
        topics=[
            transactions.TxnOffsetCommitRequestTopic(
                name=s.topic,
                partitions=[
                    transactions.TxnOffsetCommitRequestPartition(
                        committed_offset=1, committed_metadata="m"
                    )
                ],
            )
        ],
        **s.began(with_offsets=True),
    ),
    ApiKey.DESCRIBE_PRODUCERS: lambda s, v: transactions.DescribeProducersRequest(
        topics=[transactions.TopicRequest(name=s.topic, partition_indexes=[0])]
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: lambda s, v: transactions.DescribeTransactionsRequest(
        transactional_ids=[s.began()["transactional_id"]]
    ),
    ApiKey.LIST_TRANSACTIONS: lambda s, v: transactions.ListTransactionsRequest(
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
    ApiKey.SHARE_GROUP_HEARTBEAT: lambda s, v: share_groups.ShareGroupHeartbeatRequest(
        group_id=s.new_group(), member_id="member", subscribed_topic_names=[s.topic]
    ),
    ApiKey.SHARE_GROUP_DESCRIBE: lambda s, v: share_groups.ShareGroupDescribeRequest(
        group_ids=[s.new_group()], include_authorized_operations=True
    ),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: lambda s, v: share_groups.DescribeShareGroupOffsetsRequest(
        groups=[
            share_groups.DescribeShareGroupOffsetsRequestGroup(
                group_id=s.new_group(),
                topics=[
                    share_groups.DescribeShareGroupOffsetsRequestTopic(
                        topic_name=s.topic, partitions=[0]
                    )
                ],
            )
        ]
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: lambda s, v: share_groups.AlterShareGroupOffsetsRequest(
        group_id=s.new_group(),
        topics=[
            share_groups.AlterShareGroupOffsetsRequestTopic(
                topic_name=s.topic,
                partitions=[share_groups.AlterShareGroupOffsetsRequestPartition(start_offset=1)],
            )
        ],
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: lambda s, v: share_groups.DeleteShareGroupOffsetsRequest(
        group_id=s.new_group(),
        topics=[share_groups.DeleteShareGroupOffsetsRequestTopic(topic_name=s.topic)],
    ),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: lambda s, v: share_state.InitializeShareGroupStateRequest(
        group_id="share",
        topics=[
            share_state.InitializeStateData(
                topic_id=s.topic_id,
                partitions=[share_state.InitializeShareGroupStatePartitionData(state_epoch=1)],
            )
        ],
    ),
    ApiKey.READ_SHARE_GROUP_STATE: lambda s, v: share_state.ReadShareGroupStateRequest(
        group_id="share",
        topics=[
            share_state.ReadStateData(
                topic_id=s.topic_id, partitions=[share_state.ReadShareGroupStatePartitionData()]
            )
        ],
    ),
    ApiKey.WRITE_SHARE_GROUP_STATE: lambda s, v: share_state.WriteShareGroupStateRequest(
        group_id="share",
        topics=[
            share_state.WriteStateData(
                topic_id=s.topic_id,
                partitions=[
                    share_state.WriteShareGroupStatePartitionData(
                        state_epoch=1,
                        state_batches=[share_state.StateBatch(last_offset=4)],
                        **({"delivery_complete_count": 1} if v >= 1 else {}),
                    )
                ],
            )
        ],
    ),
    ApiKey.SHARE_FETCH: lambda s, v: share_fetch.ShareFetchRequest(
        group_id=GROUP, member_id="versions", max_records=1
    ),
    ApiKey.SHARE_ACKNOWLEDGE: lambda s, v: share_fetch.ShareAcknowledgeRequest(
        group_id=GROUP, member_id="nobody", share_session_epoch=1
    ),
    ApiKey.DELETE_SHARE_GROUP_STATE: lambda s, v: share_state.DeleteShareGroupStateRequest(
        group_id="share",
        topics=[
            share_state.DeleteStateData(
                topic_id=s.topic_id, partitions=[share_state.DeleteShareGroupStatePartitionData()]
            )
        ],
    ),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: lambda s, v: (
        share_state.ReadShareGroupStateSummaryRequest(
            group_id="share",
            topics=[
                share_state.ReadStateSummaryData(
                    topic_id=s.topic_id,
                    partitions=[share_state.ReadShareGroupStateSummaryPartitionData()],
                )
            ],
        )
    ),
    ApiKey.SASL_HANDSHAKE: lambda s, v: credentials.SaslHandshakeRequest(mechanism="PLAIN"),
    ApiKey.SASL_AUTHENTICATE: lambda s, v: credentials.SaslAuthenticateRequest(),
    ApiKey.DESCRIBE_ACLS: lambda s, v: acls.DescribeAclsRequest(
        resource_type_filter=ANY, pattern_type_filter=ANY, operation=ANY, permission_type=ANY
    ),
    ApiKey.CREATE_ACLS: lambda s, v: acls.CreateAclsRequest(),
    ApiKey.DELETE_ACLS: lambda s, v: acls.DeleteAclsRequest(
        filters=[
            acls.DeleteAclsFilter(
                resource_type_filter=ANY,
                pattern_type_filter=ANY,
                operation=ANY,
                permission_type=ANY,
            )
        ]
    ),
    ApiKey.CREATE_DELEGATION_TOKEN: lambda s, v: credentials.CreateDelegationTokenRequest(
        max_lifetime_ms=1000
    ),
    ApiKey.RENEW_DELEGATION_TOKEN: lambda s, v: credentials.RenewDelegationTokenRequest(
        hmac=b"none", renew_period_ms=1000
    ),
    ApiKey.EXPIRE_DELEGATION_TOKEN: lambda s, v: credentials.ExpireDelegationTokenRequest(
        hmac=b"none"
    ),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: lambda s, v: credentials.DescribeDelegationTokenRequest(
        owners=None
    ),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: lambda s, v: quotas.DescribeClientQuotasRequest(),
    ApiKey.ALTER_CLIENT_QUOTAS: lambda s, v: quotas.AlterClientQuotasRequest(),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: lambda s, v: (
        credentials.DescribeUserScramCredentialsRequest(users=None)
    ),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: lambda s, v: credentials.AlterUserScramCredentialsRequest(
        deletions=[credentials.ScramCredentialDeletion(name="nobody", mechanism=1)]
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
