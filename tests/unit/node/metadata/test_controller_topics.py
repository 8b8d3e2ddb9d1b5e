"""CreateTopics, DeleteTopics and CreatePartitions as the controller decides them."""

from typing import Any

import pytest
from controller_harness import Harness, directory

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.metadata.image import ConfigResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import MetadataVersion
from barnabas.protocol.messages.metadata_records import (
    ClearElrRecord,
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from barnabas.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)


def topic(name: str, partitions: int = 1, factor: int = 1, **fields: Any) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor, **fields)


def assigned(name: str, *assignments: tuple[int, list[int]]) -> CreatableTopic:
    return topic(
        name,
        -1,
        -1,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in assignments
        ],
    )


def with_configs(name: str, **configs: str | None) -> CreatableTopic:
    return topic(
        name,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


@pytest.fixture
def controller() -> Harness:
    harness = Harness()
    harness.add_brokers(3)
    return harness


def test_creation_writes_topic_configs_and_partitions_in_order(controller: Harness) -> None:
    wanted = with_configs("clicks", retention_ms="1000")
    wanted.num_partitions, wanted.replication_factor = 2, 3
    [result] = controller.do(CreateTopicsRequest(topics=[wanted])).topics
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 2, 3)
    kinds = [type(record.message) for record in controller.records]
    assert kinds == [TopicRecord, ConfigRecord, PartitionRecord, PartitionRecord]
    image = controller.image.topics.by_name["clicks"]
    assert image.id == result.topic_id != ZERO_UUID
    for partition in image.partitions.values():
        assert sorted(partition.replicas) == [0, 1, 2]
        assert partition.isr == partition.replicas
        assert partition.leader == partition.replicas[0]
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)
        assert partition.directories == tuple(map(directory, partition.replicas))
    configs = controller.image.configs.for_resource(ConfigResourceType.TOPIC, "clicks")
    assert configs == {"retention.ms": "1000"}


def test_response_lists_every_config_with_its_source(controller: Harness) -> None:
    wanted = with_configs("clicks", cleanup_policy="compact")
    [result] = controller.do(CreateTopicsRequest(topics=[wanted])).topics
    entries = {entry.name: entry for entry in result.configs}
    assert (entries["cleanup.policy"].value, entries["cleanup.policy"].config_source) == (
        "compact",
        1,
    )
    assert (entries["retention.ms"].value, entries["retention.ms"].config_source) == (
        "604800000",
        5,
    )
    # Written down for the whole cluster when eligible leader replicas came (KIP-966).
    assert entries["min.insync.replicas"].config_source == 3
    assert [entry.name for entry in result.configs] == sorted(entries)


def test_defaults_come_from_the_configuration() -> None:
    harness = Harness(num_partitions="4", default_replication_factor="2")
    harness.add_brokers(3)
    [result] = harness.do(CreateTopicsRequest(topics=[topic("t", -1, -1)])).topics
    assert (result.num_partitions, result.replication_factor) == (4, 2)


def test_validate_only_decides_and_changes_nothing(controller: Harness) -> None:
    request = CreateTopicsRequest(topics=[topic("good"), topic("bad", 1, 9)], validate_only=True)
    good, bad = controller.do(request).topics
    assert good.error_code == 0
    assert bad.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert controller.records == []


def test_one_bad_topic_does_not_hold_up_the_others(controller: Harness) -> None:
    response = controller.do(CreateTopicsRequest(topics=[topic("a/b"), topic("fine")]))
    assert [result.error_code for result in response.topics] == [
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.NONE,
    ]
    assert set(controller.image.topics.by_name) == {"fine"}


REFUSED_TOPICS = {
    "empty name": (topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION, "empty string"),
    "dot": (topic("."), ErrorCode.INVALID_TOPIC_EXCEPTION, "'.' is not allowed"),
    "two dots": (topic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION, "'..' is not allowed"),
    "too long": (topic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION, "longer than"),
    "illegal character": (topic("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "other than ASCII"),
    "metadata": (topic("__cluster_metadata"), ErrorCode.INVALID_REQUEST, "prohibited"),
    "exists": (topic("my.topic"), ErrorCode.TOPIC_ALREADY_EXISTS, "already exists"),
    "collides": (
        topic("my_topic"),
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "collides with existing topic: my.topic",
    ),
    "no partitions": (topic("t", 0), ErrorCode.INVALID_PARTITIONS, "non-positive"),
    "negative partitions": (topic("t", -2), ErrorCode.INVALID_PARTITIONS, "non-positive"),
    "too many partitions": (topic("t", 100_000), ErrorCode.POLICY_VIOLATION, "split"),
    "no replicas": (topic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
    "too few brokers": (topic("t", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR, "only 3 broker"),
    "unknown config": (
        with_configs("t", no_such_key="1"),
        ErrorCode.INVALID_CONFIG,
        "no.such.key",
    ),
    "bad config value": (
        with_configs("t", retention_ms="soon"),
        ErrorCode.INVALID_CONFIG,
        "retention.ms",
    ),
    "null config": (
        with_configs("t", retention_ms=None),
        ErrorCode.INVALID_CONFIG,
        "Null value not supported for topic configs: retention.ms",
    ),
    "configs that exclude each other": (
        with_configs("t", min_compaction_lag_ms="5", max_compaction_lag_ms="4"),
        ErrorCode.INVALID_CONFIG,
        "min.compaction.lag.ms",
    ),
    "assignment and partitions": (
        topic("t", 1, -1, assignments=[CreatableReplicaAssignment(broker_ids=[0])]),
        ErrorCode.INVALID_REQUEST,
        "numPartitions was not set to -1",
    ),
    "assignment and factor": (
        topic("t", -1, 1, assignments=[CreatableReplicaAssignment(broker_ids=[0])]),
        ErrorCode.INVALID_REQUEST,
        "replication factor was not set to -1",
    ),
    "assignment twice": (
        assigned("t", (0, [0]), (0, [1])),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "multiple manual partition assignments for partition 0",
    ),
    "assignment with a gap": (
        assigned("t", (0, [0]), (2, [1])),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "consecutive",
    ),
    "assignment of nobody": (
        assigned("t", (0, [])),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "empty replica list",
    ),
    "assignment to a stranger": (
        assigned("t", (0, [0, 7])),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "broker 7, but no such broker",
    ),
    "assignment names one twice": (
        assigned("t", (0, [1, 1])),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "broker 1 more than once",
    ),
    "assignments of unlike size": (
        assigned("t", (0, [0, 1]), (1, [2])),
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "not consistent",
    ),
}


@pytest.mark.parametrize("case", REFUSED_TOPICS)
def test_refused_topics(controller: Harness, case: str) -> None:
    controller.do(CreateTopicsRequest(topics=[topic("my.topic")]))
    wanted, code, words = REFUSED_TOPICS[case]
    [result] = controller.do(CreateTopicsRequest(topics=[wanted])).topics
    assert ErrorCode(result.error_code) is code
    assert words in result.error_message
    assert controller.records == []
    assert set(controller.image.topics.by_name) == {"my.topic"}


def test_a_name_given_twice_is_refused_once(controller: Harness) -> None:
    response = controller.do(CreateTopicsRequest(topics=[topic("t"), topic("t"), topic("u")]))
    assert [(result.name, result.error_code) for result in response.topics] == [
        ("t", ErrorCode.INVALID_REQUEST),
        ("u", ErrorCode.NONE),
    ]


def test_topics_of_one_request_may_not_collide(controller: Harness) -> None:
    response = controller.do(CreateTopicsRequest(topics=[topic("a.b"), topic("a_b")]))
    assert [result.error_code for result in response.topics] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]


def test_manual_assignment_is_kept_and_only_live_brokers_are_in_sync(controller: Harness) -> None:
    controller.heartbeat(1, want_fence=True)
    [result] = controller.do(
        CreateTopicsRequest(topics=[assigned("t", (1, [2, 0]), (0, [1, 2]))])
    ).topics
    assert result.error_code == 0
    first, second = controller.image.topics.by_name["t"].partitions.values()
    assert (first.replicas, first.isr, first.leader) == ((1, 2), (2,), 2)
    assert (second.replicas, second.isr, second.leader) == ((2, 0), (2, 0), 2)


def test_assignment_to_fenced_brokers_alone_is_refused(controller: Harness) -> None:
    controller.heartbeat(1, want_fence=True)
    [result] = controller.do(CreateTopicsRequest(topics=[assigned("t", (0, [1]))])).topics
    assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_no_broker_at_all() -> None:
    [result] = Harness().do(CreateTopicsRequest(topics=[topic("t")])).topics
    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert "fenced" in result.error_message


def test_a_minimum_of_replicas_clears_eligible_leaders(controller: Harness) -> None:
    controller.do(CreateTopicsRequest(topics=[with_configs("t", min_insync_replicas="1")]))
    clearing = [r.message for r in controller.records if isinstance(r.message, ClearElrRecord)]
    assert [message.topic_name for message in clearing] == ["t"]


def test_old_levels_write_old_records() -> None:
    harness = Harness(MetadataVersion.IBP_3_3_IV3)
    harness.add_brokers(1)
    harness.do(CreateTopicsRequest(topics=[topic("t")]))
    assert [record.version for record in harness.records] == [0, 0]
    assert harness.image.topics.by_name["t"].partitions[0].directories == (ZERO_UUID,)


# -- DeleteTopics


def test_delete_by_name_and_by_id(controller: Harness) -> None:
    controller.do(CreateTopicsRequest(topics=[with_configs("a", retention_ms="1"), topic("b")]))
    topic_id = controller.image.topics.by_name["b"].id
    by_name, by_id = controller.do(
        DeleteTopicsRequest(
            topics=[DeleteTopicState(name="a"), DeleteTopicState(topic_id=topic_id)]
        )
    ).responses
    assert (by_name.error_code, by_name.name) == (0, "a")
    assert (by_id.error_code, by_id.name, by_id.topic_id) == (0, "b", topic_id)
    assert [type(record.message) for record in controller.records] == [RemoveTopicRecord] * 2
    assert controller.image.topics.by_name == {}
    assert controller.image.configs.for_resource(ConfigResourceType.TOPIC, "a") == {}


def test_delete_by_the_names_of_old_versions(controller: Harness) -> None:
    controller.do(CreateTopicsRequest(topics=[topic("a")]))
    [result] = controller.do(DeleteTopicsRequest(topic_names=["a"])).responses
    assert (result.name, result.error_code) == ("a", 0)


def test_a_name_can_be_used_again_with_another_id(controller: Harness) -> None:
    controller.do(CreateTopicsRequest(topics=[topic("a", 5)]))
    first = controller.image.topics.by_name["a"].id
    controller.do(DeleteTopicsRequest(topic_names=["a"]))
    controller.do(CreateTopicsRequest(topics=[topic("a", 1)]))
    image = controller.image.topics.by_name["a"]
    assert image.id != first
    assert list(image.partitions) == [0]


UNKNOWN_ID = Uuid(bytes([5] * 16))
REFUSED_DELETIONS = {
    "unknown name": ([DeleteTopicState(name="x")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "unknown id": ([DeleteTopicState(topic_id=UNKNOWN_ID)], ErrorCode.UNKNOWN_TOPIC_ID),
    "neither": ([DeleteTopicState()], ErrorCode.INVALID_REQUEST),
    "both": ([DeleteTopicState(name="a", topic_id=UNKNOWN_ID)], ErrorCode.INVALID_REQUEST),
    "name twice": ([DeleteTopicState(name="a")] * 2, ErrorCode.INVALID_REQUEST),
    "id twice": ([DeleteTopicState(topic_id=UNKNOWN_ID)] * 2, ErrorCode.INVALID_REQUEST),
}


@pytest.mark.parametrize("case", REFUSED_DELETIONS)
def test_refused_deletions(controller: Harness, case: str) -> None:
    controller.do(CreateTopicsRequest(topics=[topic("a")]))
    topics, code = REFUSED_DELETIONS[case]
    [result] = controller.do(DeleteTopicsRequest(topics=topics)).responses
    assert ErrorCode(result.error_code) is code
    assert controller.records == []


def test_deletion_can_be_switched_off() -> None:
    harness = Harness(delete_topic_enable="false")
    harness.add_brokers(1)
    harness.do(CreateTopicsRequest(topics=[topic("a")]))
    [result] = harness.do(DeleteTopicsRequest(topic_names=["a"])).responses
    assert result.error_code == ErrorCode.TOPIC_DELETION_DISABLED
    assert "a" in harness.image.topics.by_name


# -- CreatePartitions


def grow(name: str, count: int, assignments: list[list[int]] | None = None) -> Any:
    return CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=None
        if assignments is None
        else [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments],
    )


def test_partitions_are_added_with_the_topics_factor(controller: Harness) -> None:
    controller.do(CreateTopicsRequest(topics=[topic("t", 2, 2)]))
    before = dict(controller.image.topics.by_name["t"].partitions)
    [result] = controller.do(
        CreatePartitionsRequest(topics=[grow("t", 5)], validate_only=False)
    ).results
    assert (result.name, result.error_code, result.error_message) == ("t", 0, None)
    after = controller.image.topics.by_name["t"].partitions
    assert list(after) == [0, 1, 2, 3, 4]
    assert {number: after[number] for number in before} == before
    assert all(len(partition.replicas) == 2 for partition in after.values())


def test_partitions_are_added_where_the_request_says(controller: Harness) -> None:
    controller.do(CreateTopicsRequest(topics=[topic("t", 1, 2)]))
    controller.do(CreatePartitionsRequest(topics=[grow("t", 3, [[2, 1], [0, 2]])]))
    partitions = controller.image.topics.by_name["t"].partitions
    assert [partitions[number].replicas for number in (1, 2)] == [(2, 1), (0, 2)]


def test_validate_only_adds_nothing(controller: Harness) -> None:
    controller.do(CreateTopicsRequest(topics=[topic("t")]))
    [result] = controller.do(
        CreatePartitionsRequest(topics=[grow("t", 5)], validate_only=True)
    ).results
    assert result.error_code == 0
    assert list(controller.image.topics.by_name["t"].partitions) == [0]


REFUSED_GROWTH = {
    "unknown": ([grow("x", 5)], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
    "same": ([grow("t", 2)], ErrorCode.INVALID_PARTITIONS, "already has 2 partition(s)"),
    "fewer": ([grow("t", 1)], ErrorCode.INVALID_PARTITIONS, "would not be an increase"),
    "twice": ([grow("t", 3)] * 2, ErrorCode.INVALID_REQUEST, "Duplicate topic name"),
    "too many": ([grow("t", 50_000)], ErrorCode.POLICY_VIOLATION, "split"),
    "assignments missing": (
        [grow("t", 5, [[0]])],
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "only 1 assignment(s)",
    ),
    "assignment of another size": (
        [grow("t", 3, [[0, 1]])],
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "not consistent",
    ),
}


@pytest.mark.parametrize("case", REFUSED_GROWTH)
def test_refused_growth(controller: Harness, case: str) -> None:
    controller.do(CreateTopicsRequest(topics=[topic("t", 2, 1)]))
    topics, code, words = REFUSED_GROWTH[case]
    [result] = controller.do(CreatePartitionsRequest(topics=topics)).results
    assert ErrorCode(result.error_code) is code
    assert words in (result.error_message or "")
    assert controller.records == []
