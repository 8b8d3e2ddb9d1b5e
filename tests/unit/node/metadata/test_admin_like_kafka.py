"""The same administration requests to Apache Kafka 4.3.1 and to Barnabas get the same responses.

They are compared field by field, except for ids, addresses, offsets, times and the wording of
messages (but both or neither must have one).
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from kafka_process import Kafka, format_with_kafka, node_properties

from barnabas.app.cluster import Cluster
from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.protocol.messages import configs as configs_messages
from barnabas.protocol.messages import metadata as paging
from barnabas.protocol.messages import nodes as features
from barnabas.protocol.messages import topics as topics_messages
from barnabas.protocol.messages.configs import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.protocol.messages.metadata import DescribeClusterRequest, DescribeClusterResponse
from barnabas.protocol.messages.voters import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from support.apache_kafka import needs_apache_kafka
from support.raw_client import RawClient

UNLIKE_CONFIGS = {
    "advertised.listeners",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "listeners",
    "log.dirs",
}
"""Addresses and paths."""
ADDED_CONFIGS = ("barnabas.", "confluent.", "super.users", "allow.everyone.")
"""Prefixes of keys that Apache Kafka does not have."""
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)

pytestmark = [needs_apache_kafka, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Bootstrap servers of Barnabas and of Kafka, with the same configuration."""
    directory = tmp_path_factory.mktemp("kafka")
    with Cluster(config={"auto.create.topics.enable": "false"}) as cluster:
        ours = cluster.nodes[1].properties
        properties = {**ours, **node_properties(directory / "data")}
        controller = properties.pop("controller.quorum.bootstrap.servers")
        properties["controller.quorum.voters"] = f"1@{controller}"
        format_with_kafka(properties, directory)
        kafka = Kafka(properties, directory)
        with kafka:
            yield {"kafka": kafka.bootstrap_servers, "ours": cluster.bootstrap_servers}


def topic(name: str, partitions: int = 1, factor: int = 1, **configs: str | None) -> Any:
    return topics_messages.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[
            topics_messages.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def assigned(name: str, *assignments: list[int]) -> Any:
    described = topic(name, -1, -1)
    described.assignments = [
        topics_messages.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
        for index, brokers in enumerate(assignments)
    ]
    return described


def create(*topics: Any, validate_only: bool = False) -> Any:
    return topics_messages.CreateTopicsRequest(topics=list(topics), validate_only=validate_only)


def grow(name: str, count: int, assignments: list[list[int]] | None = None) -> Any:
    lists = [
        topics_messages.CreatePartitionsAssignment(broker_ids=ids) for ids in assignments or ()
    ]
    described = topics_messages.CreatePartitionsTopic(
        name=name, count=count, assignments=None if assignments is None else lists
    )
    return topics_messages.CreatePartitionsRequest(topics=[described], timeout_ms=5000)


def alter(kind: int, name: str, *changes: tuple[str, int, str | None]) -> Any:
    return configs_messages.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            configs_messages.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )


def alter_all(*resources: Any, validate_only: bool = False) -> Any:
    return configs_messages.IncrementalAlterConfigsRequest(
        resources=list(resources), validate_only=validate_only
    )


def replace(kind: int, name: str, **values: str) -> Any:
    resource = configs_messages.AlterConfigsAlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            configs_messages.AlterConfigsAlterableConfig(name=key.replace("_", "."), value=value)
            for key, value in values.items()
        ],
    )
    return configs_messages.AlterConfigsRequest(resources=[resource])


def describe(*resources: tuple[int, str], keys: list[str] | None = None) -> Any:
    return configs_messages.DescribeConfigsRequest(
        resources=[
            configs_messages.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=keys
            )
            for kind, name in resources
        ],
        include_synonyms=True,
    )


def page(limit: int, cursor: tuple[str, int] | None = None, *names: str) -> Any:
    return paging.DescribeTopicPartitionsRequest(
        topics=[paging.TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None
        if cursor is None
        else paging.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def finalize(name: str, level: int, kind: int = 1) -> Any:
    update = features.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
    return features.UpdateFeaturesRequest(feature_updates=[update], validate_only=True)


def delete(*topics: Any) -> Any:
    return topics_messages.DeleteTopicsRequest(
        topics=[
            topics_messages.DeleteTopicState(name=name) if isinstance(name, str) else name
            for name in topics
        ],
        timeout_ms=5000,
    )


UNKNOWN_ID = Uuid(bytes([5] * 16))
STEPS: list[tuple[str, Any, int | None]] = [
    ("create", create(topic("a", 3), topic("b.c", -1, -1, retention_ms="1000")), None),
    ("create an old way", create(topic("old", 2)), 2),
    ("create assigned", create(assigned("assigned", [1], [1])), None),
    (
        "only validate",
        create(topic("v", 2, cleanup_policy="compact"), topic("v", 0), validate_only=True),
        None,
    ),
    (
        "refuse topics",
        create(
            topic("a"),
            topic("b_c"),
            topic("x y"),
            topic("."),
            topic("none", 0),
            topic("factor", 1, 0),
            topic("brokers", 1, 2),
            topic("key", no_key="1"),
            topic("value", retention_ms="x"),
            topic("null", retention_ms=None),
            topic("range", min_compaction_lag_ms="5", max_compaction_lag_ms="4"),
            assigned("stranger", [7]),
            assigned("twice", [1, 1]),
            topic("__cluster_metadata"),
        ),
        None,
    ),
    ("grow", grow("a", 5), None),
    ("grow assigned", grow("old", 3, [[1]]), None),
    ("not grow", grow("a", 5), None),
    ("shrink", grow("a", 1), None),
    ("grow the unknown", grow("nope", 5), None),
    ("grow with too few", grow("a", 9, [[1]]), None),
    ("page one", page(2), None),
    ("page two", page(4, ("a", 2)), None),
    ("page of some", page(9, None, "old", "nope", "a"), None),
    ("page beyond", page(9, ("zzz", 0)), None),
    ("bad cursor", page(9, ("a", -1), "a"), None),
    ("foreign cursor", page(9, ("b", 0), "a"), None),
    ("cluster", DescribeClusterRequest(), None),
    ("controllers", DescribeClusterRequest(endpoint_type=2), None),
    (
        "quorum",
        DescribeQuorumRequest(
            topics=[
                DescribeQuorumRequestTopicData(
                    topic_name="__cluster_metadata",
                    partitions=[DescribeQuorumRequestPartitionData(partition_index=0)],
                )
            ]
        ),
        None,
    ),
    (
        "alter",
        alter_all(
            alter(TOPIC, "a", ("retention.ms", SET, "77"), ("cleanup.policy", APPEND, "compact")),
            alter(BROKER, "1", ("log.retention.ms", SET, "70000")),
            alter(BROKER, "", ("log.segment.bytes", SET, "2000000")),
            alter(GROUP, "g", ("consumer.session.timeout.ms", SET, "46000")),
            alter(METRICS, "m", ("interval.ms", SET, "5000"), ("match", SET, "client_id=a")),
        ),
        None,
    ),
    (
        "refuse changes",
        alter_all(
            alter(TOPIC, "nope", ("retention.ms", SET, "77")),
            alter(TOPIC, "a", ("no.key", SET, "77")),
            alter(TOPIC, "old", ("retention.ms", SET, "x")),
            alter(TOPIC, "b.c", ("retention.ms", APPEND, "1")),
            alter(TOPIC, "assigned", ("retention.ms", SET, None)),
            alter(TOPIC, "x y", ("retention.ms", SET, "1")),
            alter(BROKER, "1", ("process.roles", SET, "broker")),
            alter(BROKER, "", ("log.segment.bytes", SET, "x")),
            alter(BROKER, "2", ("log.retention.ms", SET, "70000")),
            alter(BROKER, "one", ("log.retention.ms", SET, "70000")),
            alter(GROUP, "g", ("no.key", SET, "1")),
            alter(GROUP, "h", ("consumer.session.timeout.ms", SET, "1")),
            alter(METRICS, "m", ("interval.ms", SET, "1")),
            alter(METRICS, "n", ("match", SET, "shoe=a")),
            alter(7, "x"),
        ),
        None,
    ),
    (
        "minimum of a broker",
        alter_all(alter(BROKER, "1", ("min.insync.replicas", SET, "1"))),
        None,
    ),
    ("no minimum", alter_all(alter(BROKER, "", ("min.insync.replicas", DELETE, None))), None),
    ("replace", replace(TOPIC, "b.c", segment_ms="9999"), None),
    ("replace wrongly", replace(TOPIC, "a", segment_ms="x"), None),
    ("replace a logger", replace(LOGGER, "1", root="INFO"), None),
    (
        "describe",
        describe((TOPIC, "a"), (TOPIC, "b.c"), (BROKER, ""), (GROUP, "g"), (GROUP, "h")),
        None,
    ),
    ("describe the broker", describe((BROKER, "1")), None),
    ("describe some", describe((TOPIC, "a"), keys=["retention.ms", "no.key"]), None),
    ("describe metrics", describe((METRICS, "m"), (METRICS, "n")), None),
    (
        "describe nothing",
        describe((TOPIC, "nope"), (TOPIC, "x y"), (BROKER, "2"), (GROUP, ""), (METRICS, "")),
        None,
    ),
    (
        "resources",
        ListConfigResourcesRequest(resource_types=[TOPIC, BROKER, METRICS, GROUP]),
        None,
    ),
    ("metrics resources", ListConfigResourcesRequest(), 0),
    ("unknown resources", ListConfigResourcesRequest(resource_types=[7]), None),
    ("finalize the unknown", finalize("shoe.version", 1), None),
    ("finalize too much", finalize("metadata.version", 99), None),
    ("finalize less", finalize("group.version", 0), None),
    ("finalize less safely", finalize("group.version", 0, 2), None),
    ("lose records", finalize("metadata.version", 29, 2), None),
    ("finalize an old way", finalize("group.version", 9), 1),
    ("delete", delete("a", "b.c", "nope"), None),
    (
        "refuse deletions",
        delete(
            topics_messages.DeleteTopicState(topic_id=UNKNOWN_ID),
            topics_messages.DeleteTopicState(),
            topics_messages.DeleteTopicState(name="old", topic_id=UNKNOWN_ID),
            "twice",
            "twice",
        ),
        None,
    ),
    ("what is left", page(99), None),
]
RESPONSES = {
    topics_messages.CreateTopicsRequest: topics_messages.CreateTopicsResponse,
    topics_messages.CreatePartitionsRequest: topics_messages.CreatePartitionsResponse,
    paging.DescribeTopicPartitionsRequest: paging.DescribeTopicPartitionsResponse,
    DescribeClusterRequest: DescribeClusterResponse,
    DescribeQuorumRequest: DescribeQuorumResponse,
    configs_messages.IncrementalAlterConfigsRequest: (
        configs_messages.IncrementalAlterConfigsResponse
    ),
    configs_messages.AlterConfigsRequest: configs_messages.AlterConfigsResponse,
    configs_messages.DescribeConfigsRequest: configs_messages.DescribeConfigsResponse,
    ListConfigResourcesRequest: ListConfigResourcesResponse,
    features.UpdateFeaturesRequest: features.UpdateFeaturesResponse,
    topics_messages.DeleteTopicsRequest: topics_messages.DeleteTopicsResponse,
}


def comparable(value: Any, name: str = "") -> Any:
    """Return a message without fields that must differ; lists of named things are sorted."""
    if isinstance(value, list):
        kept = [
            comparable(item)
            for item in value
            if not (
                name == "configs"
                and (item.name in UNLIKE_CONFIGS or item.name.startswith(ADDED_CONFIGS))
            )
        ]
        return sorted(kept, key=str) if name in UNORDERED else kept
    if hasattr(value, "__slots__") and not isinstance(value, int | str | bytes):
        return {
            field: comparable(getattr(value, field), field)
            for field in type(value).__slots__
            if field not in UNLIKE_FIELDS
        }
    if name in ("error_message", "topic_id", "replica_directory_id"):
        return value not in (None, "", ZERO_UUID)
    return value


UNLIKE_FIELDS = {
    "host",
    "port",
    "cluster_id",
    "throttle_time_ms",
    "high_watermark",
    "log_end_offset",
    "last_fetch_timestamp",
    "last_caught_up_timestamp",
}
UNORDERED = {"topics", "responses", "results", "configs", "config_resources"}


READS = (
    paging.DescribeTopicPartitionsRequest,
    configs_messages.DescribeConfigsRequest,
    ListConfigResourcesRequest,
)
"""Kafka's brokers answer these from what they have replayed, which may be a moment behind."""
READ_ATTEMPTS_MAX = 100


def test_administration_is_answered_as_kafka_answers(servers: dict[str, str]) -> None:
    unlike = {}
    with RawClient(servers["kafka"]) as kafka, RawClient(servers["ours"]) as ours:
        for step, request, version in STEPS:
            response = RESPONSES[type(request)]
            mine = comparable(ours.call(request, response, version))
            for _ in range(READ_ATTEMPTS_MAX if isinstance(request, READS) else 1):
                theirs = comparable(kafka.call(request, response, version))
                if theirs == mine:
                    break
                time.sleep(0.02)  # between two looks at another process
            else:
                unlike[step] = (theirs, mine)
    assert unlike == {}
