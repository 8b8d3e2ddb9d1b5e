"""The administration APIs over a connection to a node."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.app.cluster import Cluster
from barnabas.base.ids import ZERO_UUID
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import metadata as paging
from barnabas.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.protocol.messages.configs import AlterConfigsAlterableConfig as LegacyConfig
from barnabas.protocol.messages.configs import AlterConfigsAlterConfigsResource as LegacyResource
from barnabas.protocol.messages.metadata import DescribeClusterRequest, DescribeClusterResponse
from barnabas.protocol.messages.nodes import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.protocol.messages.voters import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from support.raw_client import RawClient

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND = range(3)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(config={"ssl.keystore.password": "s3cret"}) as running:
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[RawClient]:
    with RawClient(cluster.bootstrap_servers) as connected:
        yield connected


def create(client: RawClient, *names: str, partitions: int = 1, **configs: str) -> Any:
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=1,
                configs=[
                    CreatableTopicConfig(name=key.replace("_", "."), value=value)
                    for key, value in configs.items()
                ],
            )
            for name in names
        ]
    )
    return client.call(request, CreateTopicsResponse).topics


def describe(
    client: RawClient, kind: int, name: str, keys: list[str] | None = None, **options: bool
) -> Any:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        ],
        **options,
    )
    [result] = client.call(request, DescribeConfigsResponse).results
    return result


def alter(client: RawClient, kind: int, name: str, *changes: tuple[str, int, str | None]) -> Any:
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in changes
                ],
            )
        ]
    )
    [result] = client.call(request, IncrementalAlterConfigsResponse).responses
    return result


def entries(result: Any) -> dict[str, Any]:
    assert result.error_code == 0, result
    return {entry.name: entry for entry in result.configs}


def test_topics_come_grow_and_go(client: RawClient) -> None:
    [created] = create(client, "life", partitions=2, retention_ms="5000")
    assert (created.error_code, created.num_partitions) == (0, 2)
    grown = client.call(
        CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="life", count=3, assignments=None)]
        ),
        CreatePartitionsResponse,
    )
    assert [result.error_code for result in grown.results] == [0]
    [again] = create(client, "life")
    assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    deleted = client.call(
        DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=created.topic_id)]),
        DeleteTopicsResponse,
    )
    assert [(r.name, r.error_code) for r in deleted.responses] == [("life", 0)]


# -- DescribeConfigs


def test_a_topics_configs_say_where_they_come_from(client: RawClient) -> None:
    create(client, "described", retention_ms="5000", cleanup_policy="compact,delete")
    found = entries(
        describe(client, TOPIC, "described", include_synonyms=True, include_documentation=True)
    )
    assert len(found) == 37
    retention = found["retention.ms"]
    assert (retention.value, retention.config_source, retention.config_type) == ("5000", 1, 5)
    assert retention.documentation
    assert [(s.name, s.value, s.source) for s in found["cleanup.policy"].synonyms] == [
        ("cleanup.policy", "compact,delete", 1),
        ("log.cleanup.policy", "delete", 5),
    ]
    assert not any(entry.read_only or entry.is_sensitive for entry in found.values())


def test_only_what_is_asked_for(client: RawClient) -> None:
    create(client, "filtered")
    found = entries(describe(client, TOPIC, "filtered", ["retention.ms", "no.such.key"]))
    assert set(found) == {"retention.ms"}
    assert found["retention.ms"].synonyms == []
    assert found["retention.ms"].documentation is None
    assert len(entries(describe(client, TOPIC, "filtered", []))) == 37


def test_a_brokers_configs(client: RawClient) -> None:
    found = entries(describe(client, BROKER, "1", include_synonyms=True))
    assert len(found) > 300
    assert (found["node.id"].value, found["node.id"].config_source) == ("1", 4)
    assert found["node.id"].read_only
    assert not found["log.retention.ms"].read_only
    secret = found["ssl.keystore.password"]
    assert (secret.value, secret.is_sensitive) == (None, True)
    assert {synonym.value for synonym in secret.synonyms} == {None}


def test_dynamic_values_of_brokers(client: RawClient) -> None:
    create(client, "follows")
    assert alter(client, BROKER, "", ("log.retention.ms", SET, "70000")).error_code == 0
    assert alter(client, BROKER, "1", ("log.retention.ms", SET, "80000")).error_code == 0
    found = entries(describe(client, BROKER, "1", ["log.retention.ms"], include_synonyms=True))
    assert [(s.name, s.value, s.source) for s in found["log.retention.ms"].synonyms] == [
        ("log.retention.ms", "80000", 2),
        ("log.retention.ms", "70000", 3),
        ("log.retention.hours", "168", 5),
    ]
    topic = entries(describe(client, TOPIC, "follows", ["retention.ms"]))["retention.ms"]
    assert (topic.value, topic.config_source) == ("80000", 2)
    default = entries(describe(client, BROKER, ""))
    assert (default["log.retention.ms"].value, default["log.retention.ms"].config_source) == (
        "70000",
        3,
    )
    alter(client, BROKER, "", ("log.retention.ms", DELETE, None))
    alter(client, BROKER, "1", ("log.retention.ms", DELETE, None))
    topic = entries(describe(client, TOPIC, "follows", ["retention.ms"]))["retention.ms"]
    assert (topic.value, topic.config_source) == ("604800000", 5)


def test_the_number_of_fetchers_is_doubled_or_halved_at_most(client: RawClient) -> None:
    key = "num.replica.fetchers"
    assert alter(client, BROKER, "", (key, SET, "2")).error_code == 0
    for name in ("", "1"):
        refused = alter(client, BROKER, name, (key, SET, "5"))
        assert refused.error_code == ErrorCode.INVALID_REQUEST
        assert "double the current value 2" in refused.error_message
    replacing = AlterConfigsRequest(
        resources=[
            LegacyResource(
                resource_type=BROKER,
                resource_name="",
                configs=[LegacyConfig(name=key, value="9")],
            )
        ]
    )
    [refused] = client.call(replacing, AlterConfigsResponse).responses
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert entries(describe(client, BROKER, "1", [key]))[key].value == "2"
    assert alter(client, BROKER, "", (key, DELETE, None)).error_code == 0


NOT_DESCRIBED = {
    "unknown topic": (TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "bad topic name": (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
    "another broker": (BROKER, "2", ErrorCode.INVALID_REQUEST),
    "no number": (BROKER, "one", ErrorCode.INVALID_REQUEST),
    "loggers of all": (LOGGER, "", ErrorCode.INVALID_REQUEST),
    "nameless group": (GROUP, "", ErrorCode.INVALID_REQUEST),
    "nameless metrics": (METRICS, "", ErrorCode.INVALID_REQUEST),
    "unknown type": (3, "x", ErrorCode.INVALID_REQUEST),
}


@pytest.mark.parametrize("case", NOT_DESCRIBED)
def test_what_cannot_be_described(client: RawClient, case: str) -> None:
    kind, name, code = NOT_DESCRIBED[case]
    result = describe(client, kind, name)
    assert ErrorCode(result.error_code) is code
    assert (result.resource_type, result.resource_name, result.configs) == (kind, name, [])


# -- loggers


def test_loggers_are_set_and_let_go(client: RawClient) -> None:
    name = "barnabas.testing.loggers"
    logging.getLogger(name)
    before = entries(describe(client, LOGGER, "1"))[name].value
    assert alter(client, LOGGER, "1", (name, SET, "DEBUG")).error_code == 0
    found = entries(describe(client, LOGGER, "1"))[name]
    assert (found.value, found.config_source) == ("DEBUG", 6)
    assert logging.getLogger(name).level == logging.DEBUG
    assert alter(client, LOGGER, "1", (name, DELETE, None)).error_code == 0
    assert entries(describe(client, LOGGER, "1"))[name].value == before


REFUSED_LOGGERS = {
    "another node": ("2", ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST),
    "unknown logger": ("1", ("no.such.logger", SET, "INFO"), ErrorCode.INVALID_CONFIG),
    "unknown level": ("1", ("root", SET, "LOUD"), ErrorCode.INVALID_CONFIG),
    "no root": ("1", ("root", DELETE, None), ErrorCode.INVALID_REQUEST),
    "append": ("1", ("root", APPEND, "INFO"), ErrorCode.INVALID_REQUEST),
}


@pytest.mark.parametrize("case", REFUSED_LOGGERS)
def test_loggers_that_stay(client: RawClient, case: str) -> None:
    name, change, code = REFUSED_LOGGERS[case]
    level = logging.getLogger().level
    assert ErrorCode(alter(client, LOGGER, name, change).error_code) is code
    assert logging.getLogger().level == level


# -- altering


def test_answers_are_in_the_order_of_the_request(client: RawClient) -> None:
    create(client, "ordered")
    resources = [
        AlterConfigsResource(resource_type=kind, resource_name=name)
        for kind, name in ((BROKER, "9"), (TOPIC, "ordered"), (LOGGER, "1"), (TOPIC, "nope"))
    ]
    response = client.call(
        IncrementalAlterConfigsRequest(resources=resources), IncrementalAlterConfigsResponse
    )
    assert [result.error_code for result in response.responses] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_the_legacy_request_replaces(client: RawClient) -> None:
    create(client, "replaced", retention_ms="5000")

    def replace(kind: int, name: str, key: str, value: str) -> int:
        resource = LegacyResource(
            resource_type=kind,
            resource_name=name,
            configs=[LegacyConfig(name=key, value=value)],
        )
        request = AlterConfigsRequest(resources=[resource])
        code: int = client.call(request, AlterConfigsResponse).responses[0].error_code
        return code

    assert replace(TOPIC, "replaced", "segment.ms", "6000") == 0
    found = entries(describe(client, TOPIC, "replaced"))
    assert (found["segment.ms"].value, found["retention.ms"].config_source) == ("6000", 5)
    assert replace(LOGGER, "1", "root", "INFO") == ErrorCode.INVALID_REQUEST
    assert replace(BROKER, "7", "log.retention.ms", "9") == ErrorCode.INVALID_REQUEST


# -- cluster, quorum, features, resources


def test_the_cluster_describes_itself(client: RawClient, cluster: Cluster) -> None:
    response = client.call(DescribeClusterRequest(), DescribeClusterResponse)
    assert (response.error_code, response.controller_id) == (0, 1)
    [broker] = response.brokers
    assert f"{broker.host}:{broker.port}" == cluster.bootstrap_servers
    for endpoint_type, code in (
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ):
        refused = client.call(
            DescribeClusterRequest(endpoint_type=endpoint_type), DescribeClusterResponse
        )
        assert ErrorCode(refused.error_code) is code


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_controller_does_not_speak_for_brokers(cluster: Cluster, version: int) -> None:
    listeners = cluster.nodes[1].properties["listeners"]
    with RawClient(listeners.partition("CONTROLLER://")[2].partition(",")[0]) as controller:
        response = controller.call(DescribeClusterRequest(), DescribeClusterResponse, version)
    assert ErrorCode(response.error_code) is ErrorCode.MISMATCHED_ENDPOINT_TYPE


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_quorum_in_every_version(client: RawClient, version: int) -> None:
    request = DescribeQuorumRequest(
        topics=[
            DescribeQuorumRequestTopicData(
                topic_name="__cluster_metadata",
                partitions=[DescribeQuorumRequestPartitionData(partition_index=0)],
            )
        ]
    )
    response = client.call(request, DescribeQuorumResponse, version)
    [partition] = response.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (0, 1)
    assert [replica.replica_id for replica in partition.current_voters] == [1]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_features_can_be_checked_in_every_version(client: RawClient, version: int) -> None:
    request = UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(feature="group.version", max_version_level=1)],
        validate_only=version > 0,
    )
    response = client.call(request, UpdateFeaturesResponse, version)
    assert response.error_code == 0
    assert len(response.results) == (version < 2)


def test_resources_are_listed(client: RawClient) -> None:
    create(client, "listed")
    alter(client, METRICS, "pushed", ("interval.ms", SET, "5000"))
    alter(client, GROUP, "configured", ("consumer.session.timeout.ms", SET, "50000"))

    def listed(version: int, *kinds: int) -> Any:
        request = ListConfigResourcesRequest(resource_types=list(kinds))
        return client.call(request, ListConfigResourcesResponse, version)

    everything = {(r.resource_type, r.resource_name) for r in listed(1).config_resources}
    assert {
        (TOPIC, "listed"),
        (BROKER, "1"),
        (LOGGER, "1"),
        (METRICS, "pushed"),
        (GROUP, "configured"),
    } <= everything
    assert [r.resource_name for r in listed(0).config_resources] == ["pushed"]
    assert [r.resource_name for r in listed(1, GROUP).config_resources] == ["configured"]
    assert listed(1, 3).error_code == ErrorCode.UNSUPPORTED_VERSION


# -- DescribeTopicPartitions


def page(
    client: RawClient, limit: int, cursor: tuple[str, int] | None, *names: str
) -> paging.DescribeTopicPartitionsResponse:
    return client.call(
        paging.DescribeTopicPartitionsRequest(
            topics=[paging.TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=None
            if cursor is None
            else paging.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        ),
        paging.DescribeTopicPartitionsResponse,
    )


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 100])
def test_pages_cover_every_partition_once(client: RawClient, limit: int) -> None:
    names = ["page.a", "page.b", "page.c"]
    for name, partitions in zip(names, (3, 1, 4), strict=True):
        create(client, name, partitions=partitions)
    cursor: tuple[str, int] | None = None
    seen: list[tuple[str | None, int]] = []
    while True:
        response = page(client, limit, cursor, *reversed(names))
        seen += [
            (topic.name, partition.partition_index)
            for topic in response.topics
            for partition in topic.partitions
        ]
        assert sum(len(topic.partitions) for topic in response.topics) <= limit
        if response.next_cursor is None:
            break
        cursor = (response.next_cursor.topic_name, response.next_cursor.partition_index)
    expected = [("page.a", n) for n in range(3)] + [("page.b", 0)]
    assert seen == expected + [("page.c", n) for n in range(4)]


def test_pages_name_unknown_topics_and_refuse_bad_cursors(client: RawClient) -> None:
    create(client, "known")
    known, unknown = page(client, 9, None, "unknown", "known").topics
    assert (known.name, known.error_code, known.partitions[0].leader_id) == ("known", 0, 1)
    assert (unknown.error_code, unknown.topic_id) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ZERO_UUID,
    )
    for cursor in (("known", -1), ("elsewhere", 0)):
        [refused] = page(client, 9, cursor, "known").topics
        assert refused.error_code == ErrorCode.INVALID_REQUEST
    beyond = page(client, 9, ("known", 40), "known")
    assert [topic.partitions for topic in beyond.topics] == [[]]
    assert beyond.next_cursor is None
