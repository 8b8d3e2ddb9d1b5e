"""Administration of a cluster, through librdkafka's admin client.

`Admin` has the requests of our servers and tools. Its errors are KafkaException, which each product
translates into its own. `OffsetLister` lists offsets even if the leader of a partition is dead: for
partitions whose leader did not answer, librdkafka returns the offset -1001 and no error. It starts
with that value and merges the leaders' answers into it, and a failed request has nothing to merge
(rd_kafka_ListOffsets_response_merge in librdkafka 2.16). It also keeps asking the dead leader for
minutes after a new one was elected, since nothing makes it refresh its metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from confluent_kafka import (
    OFFSET_INVALID,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    ClusterMetadata,
    ConfigResource,
    ListOffsetsResultInfo,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

REQUEST_S: Final = 10.0
_IS_THERE: Final = KafkaError.TOPIC_ALREADY_EXISTS
_IS_GONE: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)

T = TypeVar("T")
Listed = dict[tuple[str, int], int]
"""Offsets by topic and partition."""


def told_offset(answer: ListOffsetsResultInfo) -> int:
    """Return the offset of a partition; -1 where no record is of the time that was asked for.

    Raises KafkaException, as of a request that timed out.
    """
    offset = int(answer.offset)
    if offset == OFFSET_INVALID:
        reason = "the partition's leader did not answer"
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, reason))
    return offset


class OffsetLister:
    """Lists offsets. After a failure it uses a new client, which fetches new metadata."""

    def __init__(self, make_client: Callable[[], AdminClient]) -> None:
        self._make_client = make_client
        self._client: AdminClient | None = None

    def list(
        self,
        asked: Mapping[TopicPartition, OffsetSpec],
        timeout_s: float,
        isolation: IsolationLevel | None = None,
    ) -> Listed:
        """Return the offset of each partition. Raises KafkaException."""
        more: dict[str, Any] = {} if isolation is None else {"isolation_level": isolation}
        client = self._opened()
        try:
            return _told(client.list_offsets(dict(asked), request_timeout=timeout_s, **more))
        except KafkaException:
            self._client = None
            del client  # the traceback must not keep it
            raise

    def list_known(
        self,
        asked: Mapping[TopicPartition, OffsetSpec],
        timeout_s: float,
        isolation: IsolationLevel,
    ) -> tuple[Listed, dict[tuple[str, int], KafkaError]]:
        """Return the offset of each partition whose leader answers, and the errors of the others.

        Raises KafkaException if the request cannot be made.
        """
        found: Listed = {}
        errors: dict[tuple[str, int], KafkaError] = {}
        answers = self._opened().list_offsets(
            dict(asked), request_timeout=timeout_s, isolation_level=isolation
        )
        for place, future in answers.items():
            key = str(place.topic), int(place.partition)
            try:
                found[key] = told_offset(answer_of(future))
            except KafkaException as error:
                errors[key] = error.args[0]
        if errors:
            self._client = None
        return found, errors

    def _opened(self) -> AdminClient:
        if self._client is None:
            self._client = self._make_client()
        return self._client

    def close(self) -> None:
        """Let go of the client."""
        self._client = None


def answer_of(future: Future[T], timeout_s: float | None = None) -> T:
    """Return an admin client's answer. Raises KafkaException; with a time-out also TimeoutError.

    `result` raises the error that the future has, whose traceback then has the future. Such a cycle
    keeps what all callers have, clients among them, until the garbage collector comes by; where
    that is in one of a client's own threads, librdkafka aborts.
    """
    failure = future.exception(timeout_s)
    if isinstance(failure, KafkaException):
        raise KafkaException(*failure.args)
    return future.result()


def _told(futures: Mapping[TopicPartition, Future[ListOffsetsResultInfo]]) -> Listed:
    return {
        (str(place.topic), int(place.partition)): told_offset(answer_of(future))
        for place, future in futures.items()
    }


class Admin:
    """One cluster. Its methods raise KafkaException if brokers refuse or do not answer.

    `settings` are librdkafka's. Admin clients are never polled, so a `logger` would get nothing:
    the client logs to standard error, by default only the most severe lines.
    """

    def __init__(self, settings: Mapping[str, Any], timeout_s: float = REQUEST_S) -> None:
        self._settings = {"log_level": 2, **settings}
        if self._settings.pop("logger", None) is not None:
            self._settings["log_level"] = 2
        self._timeout_s = timeout_s
        self._client: AdminClient | None = None
        self._is_stale = False
        self._lister = OffsetLister(lambda: AdminClient(self._settings))

    @property
    def client(self) -> AdminClient:
        """The client for further requests, made at first use and kept.

        `answer_of` takes the answers: another traceback would keep the client until the garbage
        collector comes by, and librdkafka aborts where that is in one of the client's own threads.
        """
        if self._client is None or self._is_stale:
            self._is_stale = False
            self._client = AdminClient(self._settings)
        return self._client

    def renew(self) -> None:
        """Use a new client from the next request on: an old one may ask a dead leader for long."""
        self._is_stale = True

    def metadata(self) -> ClusterMetadata:
        """The cluster's id, its brokers and topics."""
        return self.client.list_topics(timeout=self._timeout_s)

    def partition_counts(self) -> dict[str, int]:
        """The number of partitions of each topic."""
        return {name: len(topic.partitions) for name, topic in self.metadata().topics.items()}

    def describe(self, topics: Iterable[str]) -> dict[str, TopicDescription]:
        """Those of the topics that are there; brokers do not create one for being asked."""
        asked = self.client.describe_topics(
            TopicCollection(list(topics)), request_timeout=self._timeout_s
        )
        descriptions = {}
        for name, future in asked.items():
            try:
                descriptions[name] = answer_of(future)
            except KafkaException as error:
                if error.args[0].code() not in _IS_GONE:
                    raise
        return descriptions

    def description(self, topic: str, timeout_s: float | None = None) -> TopicDescription:
        """A topic's description; brokers do not create it for being asked."""
        asked = self.client.describe_topics(
            TopicCollection([topic]), request_timeout=timeout_s or self._timeout_s
        )
        answer: Future[TopicDescription] = asked[topic]
        return answer_of(answer)

    def configuration(self, topic: str) -> dict[str, str]:
        """A topic's configuration, defaults included."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        asked = self.client.describe_configs([resource], request_timeout=self._timeout_s)
        return {name: str(entry.value) for name, entry in answer_of(asked[resource]).items()}

    def create(self, topics: Iterable[NewTopic]) -> list[str]:
        """Create topics, and return the names of those that were not there."""
        wanted = list(topics)
        if not wanted:
            return []
        created = []
        asked = self.client.create_topics(wanted, request_timeout=self._timeout_s)
        for name, future in asked.items():
            try:
                answer_of(future)
                created.append(name)
            except KafkaException as error:
                if error.args[0].code() != _IS_THERE:
                    raise
        return created

    def delete(self, topic: str) -> None:
        """Delete a topic, if it is there."""
        asked = self.client.delete_topics([topic], request_timeout=self._timeout_s)
        try:
            answer_of(asked[topic])
        except KafkaException as error:
            if error.args[0].code() not in _IS_GONE:
                raise

    def offsets(
        self,
        asked: Mapping[TopicPartition, OffsetSpec],
        timeout_s: float | None = None,
        isolation: IsolationLevel | None = None,
    ) -> Listed:
        """The offset of each partition; a request after one that failed has a new client."""
        return self._lister.list(asked, timeout_s or self._timeout_s, isolation)

    def known_offsets(
        self,
        asked: Mapping[TopicPartition, OffsetSpec],
        timeout_s: float,
        isolation: IsolationLevel,
    ) -> tuple[Listed, dict[tuple[str, int], KafkaError]]:
        """As `offsets`, with the errors of partitions whose leaders do not answer."""
        return self._lister.list_known(asked, timeout_s, isolation)

    def delete_group(self, group: str) -> None:
        """Delete a consumer group."""
        asked = self.client.delete_consumer_groups([group], request_timeout=self._timeout_s)
        answer_of(asked[group])

    def close(self) -> None:
        """Forget the clients: they end with the last reference to them."""
        self._client = None
        self._lister.close()
