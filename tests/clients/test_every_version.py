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

from barnabas.broker.handlers import HANDLERS, RAW_HANDLERS
from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    alter_configs,
    alter_partition_reassignments,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_quorum,
    describe_topic_partitions,
    elect_leaders,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
    update_features,
)
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.protocol.records.records import Record, encode_batch
from support.raw_client import RawClient

GROUP = "versions"
WAITABLE = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


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

    def batch(self) -> bytearray:
        now_ms = int(time.time() * 1000)
        return encode_batch(
            [Record(offset=n, timestamp=now_ms, key=b"k", value=b"v") for n in range(3)]
        )


@pytest.fixture(scope="module")
def setting(kafka_bootstrap_servers: str) -> Iterator[Setting]:
    with RawClient(kafka_bootstrap_servers) as raw:
        yield Setting(raw)


def _topic_resource(module: Any, s: Setting, name: str) -> Any:
    return getattr(module, name)(resource_type=2, resource_name=s.topic)


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
    ApiKey.UNREGISTER_BROKER: lambda s, v: UnregisterBrokerRequest(broker_id=4711),
}

EXPECTED_ERRORS: dict[ApiKey, set[ErrorCode]] = {
    ApiKey.JOIN_GROUP: {ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED},
    ApiKey.SYNC_GROUP: {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND},
    ApiKey.HEARTBEAT: {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND},
    ApiKey.LEAVE_GROUP: {ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID},
    ApiKey.DELETE_GROUPS: {ErrorCode.GROUP_ID_NOT_FOUND},
    ApiKey.DESCRIBE_GROUPS: {ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND},
    ApiKey.DELETE_TOPICS: {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    ApiKey.UPDATE_FEATURES: {ErrorCode.INVALID_REQUEST},  # it names no feature
    ApiKey.ELECT_LEADERS: {ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED},
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: {ErrorCode.NONE, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS},
    ApiKey.UNREGISTER_BROKER: {ErrorCode.BROKER_ID_NOT_REGISTERED},
}
CASES = [
    (key, version)
    for key in sorted((*HANDLERS, *RAW_HANDLERS))
    for version in range(APIS[key].min_version, APIS[key].max_stable_version + 1)
]


@pytest.mark.parametrize(("key", "version"), CASES, ids=[f"{k.name}-v{v}" for k, v in CASES])
def test_a_version_is_answered(
    kafka_bootstrap_servers: str, setting: Setting, key: ApiKey, version: int
) -> None:
    request = REQUESTS[key](setting, version)
    with RawClient(kafka_bootstrap_servers) as raw:
        response = raw.call(request, APIS[key].response, version)
    errors = set(error_codes(response))
    assert errors <= {int(code) for code in EXPECTED_ERRORS.get(key, {ErrorCode.NONE})}, response


def error_codes(value: Any) -> Iterator[int]:
    """Every error code anywhere in a message."""
    if isinstance(value, list):
        for element in value:
            yield from error_codes(element)
    elif hasattr(value, "SCHEMA"):
        for field in value.SCHEMA.fields:
            inner = getattr(value, field.name)
            if field.name == "error_code":
                yield inner
            else:
                yield from error_codes(inner)
