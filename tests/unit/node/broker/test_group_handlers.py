"""The APIs of groups and offsets over a connection to a node, version by version."""

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.app.cluster import Cluster
from barnabas.base.ids import Uuid
from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from support.raw_client import RawClient

NOBODY = Uuid(bytes(15) + b"\x63")


def versions(key: ApiKey) -> range:
    return range(APIS[key].min_version, APIS[key].max_version + 1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(config={"group.initial.rebalance.delay.ms": "0"}) as running:
        with RawClient(running.bootstrap_servers) as client:
            topics = [CreatableTopic(name="t", num_partitions=2, replication_factor=1)]
            client.call(CreateTopicsRequest(topics=topics), CreateTopicsResponse)
            find(client, "warm")
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[RawClient]:
    with RawClient(cluster.bootstrap_servers) as connected:
        yield connected


def find(client: RawClient, *keys: str, version: int = 6, key_type: int = 0) -> Any:
    request = FindCoordinatorRequest(
        key_type=key_type,
        coordinator_keys=list(keys) if version >= 4 else [],
        key=keys[0] if version < 4 else "",
    )
    response = client.call(request, FindCoordinatorResponse, version)
    return response.coordinators if version >= 4 else response


def commit(client: RawClient, group: str, version: int = 9, **offsets: int) -> Any:
    """Commit `t_0=5`; unknown topics and partitions too."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for name, offset in offsets.items():
        topic, _, partition = name.rpartition("_")
        if topic not in topics:
            topics[topic] = (
                OffsetCommitRequestTopic(name=topic)
                if version < 10
                else OffsetCommitRequestTopic(
                    topic_id=client.topic_id(topic) if topic == "t" else NOBODY
                )
            )
        topics[topic].partitions.append(
            OffsetCommitRequestPartition(
                partition_index=int(partition), committed_offset=offset, committed_metadata="m"
            )
        )
    request = OffsetCommitRequest(group_id=group, topics=list(topics.values()))
    return client.call(request, OffsetCommitResponse, version).topics


def fetch(client: RawClient, group: str, partitions: list[int] | None, version: int) -> Any:
    """The topics of a fetch of `t`, or of everything."""
    if version < 8:
        topics = (
            None
            if partitions is None
            else [OffsetFetchRequestTopic(name="t", partition_indexes=partitions)]
        )
        request = OffsetFetchRequest(group_id=group, topics=topics)
        return client.call(request, OffsetFetchResponse, version).topics
    asked = None
    if partitions is not None:
        topic = OffsetFetchRequestTopics(partition_indexes=partitions)
        if version < 10:
            topic.name = "t"
        else:
            topic.topic_id = client.topic_id("t")
        asked = [topic]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=asked)], require_stable=True
    )
    (found,) = client.call(request, OffsetFetchResponse, version).groups
    assert found.group_id == group
    return found.topics


# FindCoordinator


@pytest.mark.parametrize("version", versions(ApiKey.FIND_COORDINATOR))
def test_the_coordinator_is_found(cluster, client, version):
    found = find(client, "g", version=version)
    one = found[0] if version >= 4 else found
    assert one.error_code == ErrorCode.NONE
    assert f"{one.host}:{one.port}" == cluster.bootstrap_servers


def test_several_coordinators_are_found_at_once(client):
    found = find(client, "a", "b", "")
    assert [(one.key, one.error_code) for one in found] == [("a", 0), ("b", 0), ("", 0)]
    assert find(client) == []


@pytest.mark.parametrize(
    ("key_type", "expected"),
    [
        (2, ErrorCode.INVALID_REQUEST),
        (3, ErrorCode.INVALID_REQUEST),
        (-1, ErrorCode.INVALID_REQUEST),
    ],
)
def test_other_coordinators_are_refused(client, key_type, expected):
    assert find(client, "k", key_type=key_type)[0].error_code == expected
    assert find(client, "k", key_type=key_type, version=3).error_code == expected


# OffsetCommit and OffsetFetch


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_COMMIT))
def test_offsets_are_committed(client, version):
    group = f"commit-{version}"
    (topic,) = commit(client, group, version, t_0=version)
    assert topic.partitions[0].error_code == ErrorCode.NONE
    (found,) = fetch(client, group, [0], 9)
    assert found.partitions[0].committed_offset == version
    assert found.partitions[0].metadata == "m"


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FETCH))
def test_offsets_are_fetched(client, version):
    group = f"fetch-{version}"
    commit(client, group, t_1=7)
    (topic,) = fetch(client, group, [0, 1], version)
    assert [p.committed_offset for p in topic.partitions] == [-1, 7]
    if version >= 2:
        (topic,) = fetch(client, group, None, version)
        assert [(p.partition_index, p.committed_offset) for p in topic.partitions] == [(1, 7)]
        assert (topic.topic_id if version >= 10 else topic.name) == (
            client.topic_id("t") if version >= 10 else "t"
        )


@pytest.mark.parametrize("version", [9, 10])
def test_unknown_topics_and_partitions_are_answered_one_by_one(client, version):
    topics = commit(client, f"mixed-{version}", version, t_0=1, t_9=1, other_0=1)
    outcomes = {
        (topic.name or topic.topic_id, partition.partition_index): partition.error_code
        for topic in topics
        for partition in topic.partitions
    }
    known = client.topic_id("t") if version >= 10 else "t"
    unknown = NOBODY if version >= 10 else "other"
    assert outcomes == {
        (known, 0): ErrorCode.NONE,
        (known, 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (unknown, 0): ErrorCode.UNKNOWN_TOPIC_ID
        if version >= 10
        else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert len(topics) == 2


def test_nothing_known_to_commit(client):
    (topic,) = commit(client, "nothing", 9, other_0=1)
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    listed = client.call(ListGroupsRequest(), ListGroupsResponse).groups
    assert "nothing" not in [group.group_id for group in listed]


def test_unknown_topic_ids_are_fetched_one_by_one(client):
    topics = [
        OffsetFetchRequestTopics(topic_id=NOBODY, partition_indexes=[0]),
        OffsetFetchRequestTopics(topic_id=client.topic_id("t"), partition_indexes=[0]),
    ]
    groups = [
        OffsetFetchRequestGroup(group_id="one", topics=topics),
        OffsetFetchRequestGroup(group_id="two", topics=[]),
    ]
    response = client.call(OffsetFetchRequest(groups=groups), OffsetFetchResponse, 10)
    one, two = response.groups
    assert [p.error_code for topic in one.topics for p in topic.partitions] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]
    assert two.topics == []


def test_offsets_of_a_deleted_topic_are_gone(client):
    topics = [CreatableTopic(name="short", num_partitions=1, replication_factor=1)]
    client.call(CreateTopicsRequest(topics=topics), CreateTopicsResponse)
    commit(client, "leaver", t_0=1, short_0=5)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="short")], timeout_ms=5_000)
    client.call(request, DeleteTopicsResponse)
    client.call(CreateTopicsRequest(topics=topics), CreateTopicsResponse)
    (topic,) = fetch(client, "leaver", None, 9)
    assert topic.name == "t"


def test_offset_delete(client):
    commit(client, "forgetful", t_0=1, t_1=2)
    request = OffsetDeleteRequest(
        group_id="forgetful",
        topics=[
            OffsetDeleteRequestTopic(
                name="t",
                partitions=[
                    OffsetDeleteRequestPartition(partition_index=0),
                    OffsetDeleteRequestPartition(partition_index=9),
                ],
            ),
            OffsetDeleteRequestTopic(
                name="other", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
            ),
        ],
    )
    response = client.call(request, OffsetDeleteResponse)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert {topic.name: [p.error_code for p in topic.partitions] for topic in response.topics} == {
        "t": [ErrorCode.NONE, unknown],
        "other": [unknown],
    }
    (topic,) = fetch(client, "forgetful", None, 9)
    assert [p.partition_index for p in topic.partitions] == [1]
    nobody = OffsetDeleteRequest(group_id="nobody")
    assert client.call(nobody, OffsetDeleteResponse).error_code == ErrorCode.GROUP_ID_NOT_FOUND


# The classic protocol


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
def test_a_member_joins_syncs_and_leaves(client, version):
    group = f"join-{version}"
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"mine")],
    )
    if version >= 1:
        request.rebalance_timeout_ms = 5_000
    joined = client.call(request, JoinGroupResponse, version)
    if version >= 4:
        assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
        request.member_id = joined.member_id
        joined = client.call(request, JoinGroupResponse, version)
    assert (joined.error_code, joined.generation_id) == (ErrorCode.NONE, 1)
    assert (joined.leader, joined.protocol_name) == (joined.member_id, "range")
    assert joined.members[0].metadata == b"mine"
    sync = SyncGroupRequest(
        group_id=group,
        generation_id=1,
        member_id=joined.member_id,
        assignments=[
            SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all of it")
        ],
    )
    synced = client.call(sync, SyncGroupResponse, min(version, 5))
    assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, b"all of it")
    leave = LeaveGroupRequest(group_id=group, member_id=joined.member_id)
    assert client.call(leave, LeaveGroupResponse, 2).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [6, 7])
def test_a_refused_join(client, version):
    request = JoinGroupRequest(
        group_id="refused", session_timeout_ms=1, rebalance_timeout_ms=1, protocol_type="consumer"
    )
    response = client.call(request, JoinGroupResponse, version)
    assert response.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert response.protocol_name == (None if version >= 7 else "")


def test_describe_says_what_one_may_do(client):
    commit(client, "described", t_0=1)
    request = DescribeGroupsRequest(
        groups=["described", "nobody"], include_authorized_operations=True
    )
    known, unknown = client.call(request, DescribeGroupsResponse).groups
    assert known.authorized_operations > 0
    assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert unknown.authorized_operations == -(2**31)
