"""Requests of administration to one of the two clusters."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

from barnabas.base.backoff import Doubling
from barnabas.connect.connectors.base import TopicPartition as Place
from barnabas.connect.connectors.mirror.flow import Flow, Side
from barnabas.connect.tasks.kafka_errors import as_connect_error, is_passing
from barnabas.kafka.admin import Admin, answer_of, told_offset
from barnabas.schemas.data.errors import ConnectError, RetriableError

# Time limits of requests to brokers that may be dead.

PATIENCE_SECONDS: Final = 5.0
"""The limit of the first try."""


def patience(longest_s: float) -> Doubling:
    """The limits of successive tries; reset it once one is answered."""
    return Doubling(PATIENCE_SECONDS, longest_s)


_log = logging.getLogger(__name__)
_CHUNK: Final = 1000
"""Partitions in one request for committed offsets: librdkafka's time grows with their square."""
_MARGIN_SECONDS: Final = 5.0
_NOT_ALLOWED: Final = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)


class Cluster:
    """One cluster, under its alias.

    librdkafka's admin client asks who leads once: it then waits for that broker, dead or not, until
    the request's time is over, or goes on asking with a leader epoch that is refused, and its
    metadata is refreshed every few minutes only. Kafka's asks again after each failure; here
    the next request has a new client.
    """

    def __init__(self, alias: str, settings: Mapping[str, Any], timeout_s: float) -> None:
        self.alias = alias
        self.timeout_s = timeout_s
        self._requests = Admin(settings)
        self._is_closed = False
        self._offsets_patience = patience(timeout_s)
        self._groups_patience = patience(timeout_s)

    @property
    def _admin(self) -> AdminClient:
        if self._is_closed:
            raise ConnectError(f"the connection to {self.alias} is closed")
        return self._requests.client

    def close(self) -> None:
        """Close the connections, which would last until the garbage collector comes by."""
        self._is_closed = True
        self._requests.close()

    def partitions(self) -> dict[str, int]:
        """Return all topics with how many partitions they have. Raises ConnectError."""
        try:
            metadata = self._admin.list_topics(timeout=self.timeout_s)
        except KafkaException as error:
            raise self._failed("list topics", error) from error
        return {
            name: len(topic.partitions)
            for name, topic in metadata.topics.items()
            if topic.error is None and topic.partitions
        }

    def create_compacted(self, topic: str, replicas: int) -> None:
        """Create an internal topic of one partition, unless it is there. Raises ConnectError."""
        new = NewTopic(
            topic,
            num_partitions=1,
            replication_factor=replicas,
            config={"cleanup.policy": "compact"},
        )
        try:
            self._one(self._admin.create_topics([new], request_timeout=self.timeout_s))
        except KafkaException as error:
            code = error.args[0].code()
            if code in _NOT_ALLOWED:
                _log.info(
                    "not allowed to create %s on %s: assuming that it exists", topic, self.alias
                )
            elif code != KafkaError.TOPIC_ALREADY_EXISTS:
                raise self._failed(f"create topic {topic}", error) from error

    def create(self, topics: Sequence[NewTopic]) -> None:
        """Create topics; what cannot be created is logged."""
        self._each(
            self._admin.create_topics(list(topics), request_timeout=self.timeout_s),
            "create topic",
            KafkaError.TOPIC_ALREADY_EXISTS,
        )

    def grow(self, partitions: Mapping[str, int]) -> None:
        """Give topics more partitions; what cannot be done is logged."""
        new = [NewPartitions(topic, count) for topic, count in partitions.items()]
        done = self._admin.create_partitions(new, request_timeout=self.timeout_s)
        self._each(done, "create partitions of", KafkaError.INVALID_PARTITIONS)

    def configs(self, topics: Iterable[str]) -> dict[str, list[ConfigEntry]]:
        """Return the settings of topics. Raises ConnectError."""
        asked = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
        if not asked:
            return {}
        futures = self._admin.describe_configs(asked, request_timeout=self.timeout_s)
        try:
            return {
                resource.name: list(self._result(future).values())
                for resource, future in futures.items()
            }
        except KafkaException as error:
            raise self._failed("describe configs", error) from error

    def alter_configs(self, configs: Mapping[str, Sequence[ConfigEntry]]) -> None:
        """Change settings of topics; what cannot be changed is logged."""
        asked = [
            ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=list(entries))
            for topic, entries in configs.items()
            if entries
        ]
        if asked:
            done = self._admin.incremental_alter_configs(asked, request_timeout=self.timeout_s)
            self._each(done, "alter configs of")

    def topic_acls(self) -> list[AclBinding] | None:
        """Return the rights on topics; None of a cluster without any. Raises ConnectError."""
        every = AclBindingFilter(
            ResourceType.TOPIC,
            None,  # type: ignore[arg-type]  # any
            ResourcePatternType.ANY,
            None,  # type: ignore[arg-type]  # any
            None,  # type: ignore[arg-type]  # any
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        try:
            future = self._admin.describe_acls(every, request_timeout=self.timeout_s)
            return list(self._result(future))
        except KafkaException as error:
            if error.args[0].code() == KafkaError.SECURITY_DISABLED:
                return None
            raise self._failed("describe ACLs", error) from error

    def create_acls(self, bindings: Sequence[AclBinding]) -> None:
        """Give rights; what cannot be given is logged."""
        if bindings:
            done = self._admin.create_acls(list(bindings), request_timeout=self.timeout_s)
            self._each(done, "create ACL", KafkaError.SECURITY_DISABLED)

    def groups(self) -> set[str]:
        """Return the groups of consumers. Raises RetriableError, ConnectError.

        A try is short, as a broker may be dead: try again. Groups of a broker that never answers
        are passed over in the end, as by Kafka's.
        """
        patience_s = self._groups_patience.next()
        try:
            future = self._admin.list_consumer_groups(request_timeout=patience_s)
            answer = self._result(future, patience_s)
        except KafkaException as error:
            raise self._failed("list consumer groups", error) from error
        for missing in answer.errors:
            failure = self._failed("list a broker's consumer groups", KafkaException(missing))
            if isinstance(failure, RetriableError) and patience_s < self.timeout_s:
                raise failure
            _log.warning("%s", failure)
        self._groups_patience.reset()
        return {one.group_id for one in answer.valid if one.group_id.strip()}

    def offsets(
        self, places: Sequence[Place], *, is_latest: bool, is_committed: bool = False
    ) -> dict[Place, int]:
        """Return the ends, or the beginnings, of partitions that are there.

        Raises RetriableError, ConnectError. A try is short, as its leader may be dead: try again.
        """
        spec = OffsetSpec.latest() if is_latest else OffsetSpec.earliest()
        level = IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED
        asked = {TopicPartition(*place): spec for place in places}
        if not asked:
            return {}
        patience_s = self._offsets_patience.next()
        futures = self._admin.list_offsets(asked, isolation_level=level, request_timeout=patience_s)
        offsets: dict[Place, int] = {}
        for place, future in futures.items():
            try:
                offset = told_offset(self._result(future, patience_s))
            except KafkaException as error:
                if error.args[0].code() in (
                    KafkaError.UNKNOWN_TOPIC_OR_PART,
                    KafkaError._UNKNOWN_TOPIC,
                    KafkaError._UNKNOWN_PARTITION,
                ):
                    continue
                raise self._failed("list offsets", error) from error
            offsets[place.topic, place.partition] = offset
        self._offsets_patience.reset()
        return offsets

    def _result(self, future: Future[Any], timeout_s: float | None = None) -> Any:
        """Wait for an answer. Raises RetriableError, KafkaException."""
        if timeout_s is None:
            timeout_s = self.timeout_s
        try:
            return answer_of(future, timeout_s + _MARGIN_SECONDS)
        except TimeoutError as error:
            self._requests.renew()
            raise RetriableError(f"{self.alias} does not answer") from error

    def _one(self, futures: Mapping[Any, Future[Any]]) -> Any:
        (future,) = futures.values()
        return self._result(future)

    def _each(self, futures: Mapping[Any, Future[Any]], what: str, *passed_over: int) -> None:
        for name, future in futures.items():
            try:
                self._result(future)
            except KafkaException as error:
                if error.args[0].code() not in passed_over:
                    self._renew_after(error.args[0])
                    text = error.args[0].str()
                    _log.warning("cannot %s %s on %s: %s", what, name, self.alias, text)
            except RetriableError as error:
                _log.warning("cannot %s %s: %s", what, name, error)

    def _renew_after(self, error: KafkaError) -> None:
        if is_passing(error):
            self._requests.renew()

    def _failed(self, what: str, error: KafkaException) -> ConnectError:
        self._renew_after(error.args[0])
        return as_connect_error(f"cannot {what} on {self.alias}", error)


def cluster_of(flow: Flow, side: Side, role: str) -> Cluster:
    """Return one of a flow's clusters, for a client of this role. Raises ConfigError."""
    alias = flow.source if side == "source" else flow.target
    return Cluster(alias, flow.client(side, "admin", role), flow.timeout_s)


class GroupOffsets:
    """A group's committed offsets, asked and set without joining it.

    A consumer asks: librdkafka's admin client ends the process while a coordinator moves.
    """

    def __init__(self, alias: str, settings: Mapping[str, Any], timeout_s: float) -> None:
        self._alias = alias
        self._settings = settings
        self._timeout_s = timeout_s

    def read(self, group: str, places: Sequence[Place]) -> dict[Place, tuple[int, str]]:
        """Return the offsets with their texts. Raises ConnectError."""

        def ask(consumer: Consumer) -> dict[Place, tuple[int, str]]:
            offsets: dict[Place, tuple[int, str]] = {}
            for start in range(0, len(places), _CHUNK):
                asked = [TopicPartition(*place) for place in places[start : start + _CHUNK]]
                for one in consumer.committed(asked, timeout=self._timeout_s):
                    if one.error is None and one.offset >= 0:
                        offsets[one.topic, one.partition] = one.offset, one.metadata or ""
            return offsets

        found: dict[Place, tuple[int, str]] = self._with(group, "list offsets", ask)
        return found

    def write(self, group: str, offsets: Mapping[Place, tuple[int, str]]) -> None:
        """Commit offsets; the coordinator refuses them while the group has members.

        Raises ConnectError.
        """

        def tell(consumer: Consumer) -> None:
            # With an empty text librdkafka would commit one of a zero byte.
            given = [
                _committed(topic, number, offset, text)
                for (topic, number), (offset, text) in offsets.items()
            ]
            for one in consumer.commit(offsets=given, asynchronous=False) or ():
                if one.error is not None:
                    raise KafkaException(one.error)

        self._with(group, "alter offsets", tell)

    def _with(self, group: str, what: str, work: Callable[[Consumer], Any]) -> Any:
        consumer = Consumer({**self._settings, "group.id": group})
        try:
            return work(consumer)
        except KafkaException as error:
            raise as_connect_error(
                f"cannot {what} of group {group} on {self._alias}", error
            ) from error
        finally:
            consumer.close()


def is_static(entry: ConfigEntry) -> bool:
    """Return whether a topic's setting comes from the broker's file."""
    return bool(ConfigSource(entry.source) is ConfigSource.STATIC_BROKER_CONFIG)


def _committed(topic: str, number: int, offset: int, text: str) -> TopicPartition:
    if text:
        return TopicPartition(topic, number, offset, text)
    return TopicPartition(topic, number, offset)
