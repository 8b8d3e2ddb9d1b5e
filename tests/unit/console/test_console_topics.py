"""Changes of topics in a cluster whose nodes hear of them at different times."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import pytest

from barnabas.console.services import topics
from barnabas.console.services.asking import AwayError, RefusedError
from barnabas.console.services.cluster import ClusterService, Node, View
from barnabas.console.services.topics import TopicService
from barnabas.protocol.apis import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    INCREMENTAL_ALTER_CONFIGS,
    METADATA,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.configs import (
    AlterConfigsResourceResponse,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.messages.topics import (
    CreatableTopicResult,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsResponse,
)

NAME = "orders"
ANSWERS = {
    CREATE_TOPICS: CreateTopicsResponse(topics=[CreatableTopicResult(name=NAME)]),
    DELETE_TOPICS: DeleteTopicsResponse(responses=[DeletableTopicResult(name=NAME)]),
    CREATE_PARTITIONS: CreatePartitionsResponse(results=[CreatePartitionsTopicResult(name=NAME)]),
    INCREMENTAL_ALTER_CONFIGS: IncrementalAlterConfigsResponse(
        responses=[AlterConfigsResourceResponse(resource_name=NAME)]
    ),
}
TOPIC, DEFAULT = 1, 5
"""Sources of a setting."""


def metadata(partitions: int) -> MetadataResponse:
    """An answer about the topic; without partitions it does not exist."""
    code = ErrorCode.NONE if partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    parts = [MetadataResponsePartition(partition_index=number) for number in range(partitions)]
    return MetadataResponse(
        topics=[MetadataResponseTopic(error_code=code, name=NAME, partitions=parts)]
    )


def retention(value: str, source: int = TOPIC) -> DescribeConfigsResponse:
    """An answer about the topic's settings."""
    setting = DescribeConfigsResourceResult(
        name="retention.ms", value=value, config_source=source, synonyms=[]
    )
    return DescribeConfigsResponse(
        results=[DescribeConfigsResult(resource_name=NAME, configs=[setting])]
    )


class LaggingCluster:
    """Nodes that give the old answer for a while. It is the service and the access in one."""

    def __init__(self, old: Any, new: Any, behind: dict[int, int]) -> None:
        """`behind`: how many more times each node answers as before the change."""
        self.old, self.new, self.behind = old, new, behind
        self.access = self
        self.away: Exception | None = None

    def view(self) -> View:
        nodes = {number: Node(number, "host", number, None) for number in self.behind}
        nodes[9] = Node(9, "", -1, None, is_up=False)
        return View("cluster", 1, nodes, {})

    def forget(self) -> None:
        pass

    def any(self, api: Any, _: object) -> Any:
        return ANSWERS[api]

    def at(self, address: tuple[str, int], api: Any, _: object) -> Any:
        number = address[1]
        assert number in self.behind
        if self.away is not None:
            raise self.away
        if self.behind[number] > 0:
            self.behind[number] -= 1
            return self.old
        return self.new

    def each(self, ask: Callable[[Node], bool], about: Iterable[Node]) -> dict[Node, Any]:
        found: dict[Node, Any] = {}
        for node in about:
            try:
                found[node] = ask(node)
            except (AwayError, RefusedError) as error:
                found[node] = error
        return found


def service(cluster: LaggingCluster) -> TopicService:
    return TopicService(cast("ClusterService", cluster))


@pytest.mark.parametrize(
    ("change", "old", "new"),
    [
        (lambda of: of.create(NAME, 2, -1, {}), metadata(0), metadata(2)),
        (lambda of: of.delete(NAME), metadata(2), metadata(0)),
        (lambda of: of.add_partitions(NAME, 3), metadata(2), metadata(3)),
        (lambda of: of.change(NAME, {"retention.ms": "7"}), retention("5"), retention("7")),
        (
            lambda of: of.change(NAME, {"retention.ms": "5"}),
            retention("5", DEFAULT),
            retention("5"),
        ),
        (
            lambda of: of.change(NAME, {"retention.ms": None}),
            retention("5"),
            retention("5", DEFAULT),
        ),
    ],
    ids=["create", "delete", "add partitions", "change", "set to the default", "remove"],
)
def test_a_change_ends_once_every_node_knows_it(
    change: Callable[[TopicService], None], old: Any, new: Any
) -> None:
    cluster = LaggingCluster(old, new, {1: 0, 2: 3, 3: 1})
    change(service(cluster))
    assert cluster.behind == {1: 0, 2: 0, 3: 0}


@pytest.mark.parametrize("failure", [AwayError("it is down"), RefusedError("not for you")])
def test_a_node_that_does_not_say_is_not_waited_for(failure: Exception) -> None:
    cluster = LaggingCluster(metadata(0), metadata(2), {1: 5, 2: 5})
    cluster.away = failure
    service(cluster).create(NAME, 2, -1, {})
    assert cluster.behind == {1: 5, 2: 5}


def test_a_change_that_a_node_does_not_hear_of_is_waited_for_only_so_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topics, "KNOWN_S", 0.1)
    never = 10**9
    cluster = LaggingCluster(metadata(0), metadata(2), {1: never})
    service(cluster).create(NAME, 2, -1, {})
    assert 0 < cluster.behind[1] < never


def test_metadata_is_asked_without_creating_a_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = LaggingCluster(metadata(2), metadata(0), {1: 0})
    asked: list[Any] = []
    at = cluster.at

    def noted(address: tuple[str, int], api: Any, request: Any) -> Any:
        asked.append((api, request.allow_auto_topic_creation))
        return at(address, api, request)

    monkeypatch.setattr(cluster, "at", noted)
    service(cluster).delete(NAME)
    assert asked == [(METADATA, False)]
