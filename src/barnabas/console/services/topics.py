"""Topics: lists by search and page, settings with their source, and changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from barnabas.console.services.asking import AwayError, RefusedError, check, until_known
from barnabas.console.services.cluster import EARLIEST, ClusterService, Node, Topic
from barnabas.protocol.apis import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    DESCRIBE_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    METADATA,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
)

PAGE_MAX: Final = 500
CHANGE_MS: Final = 15_000
TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
_SET, _DELETE = 0, 1
SOURCES: Final = {
    1: "topic",
    2: "broker, dynamic",
    3: "cluster, dynamic",
    4: "broker, static",
    5: "default",
    6: "logger",
    7: "client metrics",
    8: "group",
}
"""Words for where a setting comes from, by Kafka's numbers."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Slice(Generic[T]):
    """A page of a list, and how long the list is."""

    rows: Sequence[T]
    total: int
    page: int


class Asked:
    """What is asked of a list: the rows with all words of `search`, and one page of them."""

    def __init__(self, search: str = "", page: int = 0, size: int = 50) -> None:
        """`page` counts from 0."""
        self.words = search.lower().split()
        self._page, self._size = page, max(1, min(size, PAGE_MAX))

    def fits(self, text: str) -> bool:
        """Return whether a text contains all the words; case does not matter."""
        lower = text.lower() if self.words else ""
        return all(word in lower for word in self.words)

    def of(self, rows: Sequence[T]) -> Slice[T]:
        """The page of a list, of at most `PAGE_MAX` rows."""
        size = self._size
        page = max(0, min(self._page, max(0, len(rows) - 1) // size))
        return Slice(rows[page * size : (page + 1) * size], len(rows), page)


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic in a list; None where something is not known (yet)."""

    name: str
    is_internal: bool
    partitions: int
    replication: int
    under_replicated: int
    offline: int
    size_bytes: int | None
    per_second: float | None


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition with its offsets and size; None where its leader or node did not answer."""

    number: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    first_offset: int | None
    next_offset: int | None
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting with its source; `value` is None where it is secret."""

    name: str
    value: str | None
    source: str
    is_default: bool
    is_read_only: bool
    is_secret: bool
    documentation: str | None
    inherited: str | None
    """The value that would apply without the topic's own."""


SORTED_BY: Final[Mapping[str, Callable[[TopicRow], Any]]] = {
    "name": lambda row: row.name,
    "partitions": lambda row: row.partitions,
    "size": lambda row: row.size_bytes or 0,
    "rate": lambda row: row.per_second or 0.0,
}


class TopicService:
    """Topics of one cluster. Methods block, and raise AwayError and RefusedError."""

    def __init__(self, cluster: ClusterService) -> None:
        self._cluster = cluster

    def find(
        self,
        asked: Asked,
        *,
        state: str = "",
        internal: bool = False,
        sort: str = "name",
        descending: bool = False,
        allowed: Callable[[str], bool] = lambda _: True,
    ) -> Slice[TopicRow]:
        """Topics by their names, of those that `allowed` says."""
        view = self._cluster.view()
        found = [
            topic
            for topic in view.topics.values()
            if (internal or not topic.is_internal or asked.words)
            and asked.fits(topic.name)
            and _has_state(topic, state)
            and allowed(topic.name)
        ]
        needs_all = sort != "name"
        if not needs_all:
            found.sort(key=lambda topic: topic.name, reverse=descending)
            part = asked.of(found)
            return Slice(self._rows(part.rows), part.total, part.page)
        rows = self._rows(found)
        key = SORTED_BY.get(sort, SORTED_BY["name"])
        rows.sort(key=key, reverse=descending)
        return asked.of(rows)

    def _rows(self, topics: Sequence[Topic]) -> list[TopicRow]:
        sizes: Mapping[str, int] = {}
        if topics:
            try:
                sizes = self._cluster.sizes().topics
            except (AwayError, RefusedError):
                sizes = {}
        rates = self._cluster.rates().topics
        return [
            TopicRow(
                topic.name,
                topic.is_internal,
                len(topic.partitions),
                topic.replication,
                topic.under_replicated,
                topic.offline,
                sizes.get(topic.name),
                rates.get(topic.name),
            )
            for topic in topics
        ]

    def one(self, name: str) -> TopicRow:
        """A topic. Raises AbsentError."""
        (row,) = self._rows([self._cluster.topic(name)])
        return row

    def partitions(self, name: str, asked: Asked) -> Slice[PartitionRow]:
        """The partitions of a topic with their offsets."""
        topic = self._cluster.topic(name)
        part = asked.of(topic.partitions)
        begins = self._cluster.offsets([name], EARLIEST)
        ends = self._cluster.offsets([name])
        try:
            sizes = self._cluster.sizes().partitions
        except (AwayError, RefusedError):
            sizes = {}
        rows = [
            PartitionRow(
                one.number,
                one.leader,
                one.replicas,
                one.isr,
                one.offline,
                begins.get((name, one.number)),
                ends.get((name, one.number)),
                sizes.get((name, one.number)),
            )
            for one in part.rows
        ]
        return Slice(rows, part.total, part.page)

    def settings(self, name: str) -> list[Setting]:
        """A topic's settings; those that were set for it come first."""
        found = self._settings(TOPIC_RESOURCE, name)
        return sorted(found, key=lambda one: (one.source != "topic", one.name))

    def node_settings(self, node: int) -> list[Setting]:
        """A node's settings; those that are not defaults come first."""
        known = self._cluster.view().nodes.get(node)
        if known is None or not known.is_up:
            raise AwayError(f"node {node} is down")
        found = self._settings(BROKER_RESOURCE, str(node), known)
        return sorted(found, key=lambda one: (one.is_default, one.name))

    def _settings(self, kind: int, name: str, node: Node | None = None) -> list[Setting]:
        """Settings as a node has them, or any."""
        resource = DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=None
        )
        request = DescribeConfigsRequest(
            resources=[resource], include_synonyms=True, include_documentation=True
        )
        access = self._cluster.access
        answer: Any
        if node is None:
            answer = access.any(DESCRIBE_CONFIGS, request)
        else:
            answer = access.at((node.host, node.port), DESCRIBE_CONFIGS, request)
        (result,) = answer.results
        check(result.error_code, result.error_message, name)
        return [_setting(one) for one in result.configs]

    def create(
        self, name: str, partitions: int, replication: int, settings: Mapping[str, str]
    ) -> None:
        """Create a topic; -1 means the cluster's default."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication,
            assignments=[],
            configs=[
                CreatableTopicConfig(name=key, value=value) for key, value in settings.items()
            ],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=CHANGE_MS)
        answer: Any = self._cluster.access.any(CREATE_TOPICS, request)
        self._cluster.forget()
        check(answer.topics[0].error_code, answer.topics[0].error_message, name)
        self._until_known(lambda node: self._exists_at(node, name))

    def delete(self, name: str) -> None:
        """Delete a topic with all its records."""
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name)], topic_names=[name], timeout_ms=CHANGE_MS
        )
        answer: Any = self._cluster.access.any(DELETE_TOPICS, request)
        self._cluster.forget()
        check(answer.responses[0].error_code, answer.responses[0].error_message, name)
        self._until_known(lambda node: not self._exists_at(node, name))

    def empty(self, name: str) -> int:
        """Delete all records that a topic has now; returns how many offsets that are."""
        self._cluster.topic(name)
        view = self._cluster.view()
        begins = self._cluster.offsets([name], EARLIEST)
        ends = self._cluster.offsets([name])
        for node, places in view.leaders([name]).items():
            parts = [
                DeleteRecordsPartition(partition_index=place[1], offset=ends[place])
                for place in places
                if place in ends
            ]
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=name, partitions=parts)], timeout_ms=CHANGE_MS
            )
            at = view.nodes[node]
            answer: Any = self._cluster.access.at((at.host, at.port), DELETE_RECORDS, request)
            for part in answer.topics[0].partitions:
                check(part.error_code, what=f"{name}-{part.partition_index}")
        self._cluster.forget()
        return sum(end - begins.get(place, end) for place, end in ends.items())

    def add_partitions(self, name: str, count: int) -> None:
        """Give a topic more partitions; `count` is how many it then has."""
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=CHANGE_MS)
        answer: Any = self._cluster.access.any(CREATE_PARTITIONS, request)
        self._cluster.forget()
        check(answer.results[0].error_code, answer.results[0].error_message, name)
        self._until_known(lambda node: len(self._at(node, name).partitions) >= count)

    def change(self, name: str, settings: Mapping[str, str | None]) -> None:
        """Set settings of a topic; None removes one, so that the cluster's applies."""
        resource = AlterConfigsResource(
            resource_type=TOPIC_RESOURCE,
            resource_name=name,
            configs=[
                AlterableConfig(
                    name=key, config_operation=_DELETE if value is None else _SET, value=value
                )
                for key, value in settings.items()
            ],
        )
        request = IncrementalAlterConfigsRequest(resources=[resource])
        answer: Any = self._cluster.access.any(INCREMENTAL_ALTER_CONFIGS, request)
        check(answer.responses[0].error_code, answer.responses[0].error_message, name)

        def knows(node: Node) -> bool:
            found = {one.name: one for one in self._settings(TOPIC_RESOURCE, name, node)}
            return all(_is_set(found.get(key), value) for key, value in settings.items())

        self._until_known(knows)

    def _until_known(self, knows: Callable[[Node], bool]) -> None:
        """Wait until every live node knows a change: the next page may ask any of them.

        A node that does not answer, or refuses the question, is not waited for.
        """
        behind: list[Node] | None = None

        def is_known() -> bool:
            nonlocal behind
            if behind is None:
                view = self._cluster.view()
                behind = [view.nodes[node] for node in view.up]
            answers = self._cluster.access.each(knows, behind)
            behind = [node for node, answer in answers.items() if answer is False]
            return not behind

        until_known(is_known)
        self._cluster.forget()

    def _exists_at(self, node: Node, name: str) -> bool:
        return bool(self._at(node, name).error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _at(self, node: Node, name: str) -> Any:
        """A topic as one node knows it."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
        )
        answer: Any = self._cluster.access.at((node.host, node.port), METADATA, request)
        return answer.topics[0]


def _is_set(found: Setting | None, value: str | None) -> bool:
    """Whether a topic itself sets this value; for None, whether it sets none."""
    if found is None or found.source != "topic":
        return value is None
    return value is not None and (found.is_secret or found.value == value.strip())


def _setting(found: Any) -> Setting:
    others = [one for one in found.synonyms if one.source != 1]
    source = SOURCES.get(found.config_source, "unknown")
    return Setting(
        found.name,
        None if found.is_sensitive else found.value,
        source,
        found.config_source == 5,
        found.read_only,
        found.is_sensitive,
        found.documentation,
        others[0].value if source == "topic" and others and not found.is_sensitive else None,
    )


def _has_state(topic: Topic, state: str) -> bool:
    if state == "offline":
        return topic.offline > 0
    if state == "under-replicated":
        return topic.under_replicated > 0
    return True
