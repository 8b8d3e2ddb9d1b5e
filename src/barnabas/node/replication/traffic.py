"""Counters of the records, bytes and requests that go in and out of topics on this node.

They are plain integers that only grow; each partition holds those of its topic. When a topic leaves
the node, its counts stay in the sums over all topics, so that those never fall.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.protocol.errors import ErrorCode

EXPECTED_OF_PRODUCE: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors that Kafka does not count as failed produce requests. Source: ReplicaManager."""
EXPECTED_OF_FETCH: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    }
)


REFUSED_BEFORE_SHARING: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Errors of partitions that no share partition is asked about: Kafka does not count these.

Source: KafkaApis, SharePartitionManager.
"""


class TopicTraffic:
    """The counts of one topic."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetches",
        "failed_produces",
        "failed_share_acknowledgements",
        "failed_share_fetches",
        "fetches",
        "invalid_crcs",
        "invalid_sequences",
        "messages_in",
        "produces",
        "share_acknowledgements",
        "share_fetches",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        """As they were sent: compressed batches are counted compressed."""
        self.bytes_out = 0
        """To consumers and members of share groups."""
        self.bytes_rejected = 0
        self.produces = 0
        """Partitions of produce requests."""
        self.fetches = 0
        """Partitions looked at for fetches of consumers, followers and members of share groups."""
        self.failed_produces = 0
        self.failed_fetches = 0
        self.share_fetches = 0
        """Share fetches that asked for records of the topic, and acknowledgements below."""
        self.failed_share_fetches = 0
        self.share_acknowledgements = 0
        self.failed_share_acknowledgements = 0
        self.invalid_crcs = 0
        self.invalid_sequences = 0

    def refused(self, error: ErrorCode, size_bytes: int) -> None:
        """Nothing of a batch was appended."""
        if error not in EXPECTED_OF_PRODUCE:
            self.failed_produces += 1
        if error == ErrorCode.MESSAGE_TOO_LARGE:
            self.bytes_rejected += size_bytes
        elif error == ErrorCode.CORRUPT_MESSAGE:
            self.invalid_crcs += 1
        elif error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self.invalid_sequences += 1

    def add(self, other: "TopicTraffic") -> None:
        """Count what another has counted."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Traffic:
    """The counts of a node."""

    __slots__ = (
        "_by_topic",
        "_gone",
        "failed_isr_updates",
        "isr_expands",
        "isr_shrinks",
        "replication_bytes_in",
        "replication_bytes_out",
    )

    def __init__(self) -> None:
        self._by_topic: dict[str, TopicTraffic] = {}
        self._gone = TopicTraffic()
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.failed_isr_updates = 0

    def of(self, topic: str) -> TopicTraffic:
        """The counts of a topic that has partitions here."""
        found = self._by_topic.get(topic)
        if found is None:
            found = self._by_topic[topic] = TopicTraffic()
        return found

    def shared(self, answers: Iterable[tuple[str, ErrorCode]], *, fetched: bool) -> None:
        """Count a share fetch, or its acknowledgements: once for each topic of its partitions.

        It failed for a topic with an error in one partition. Topics without partitions here count
        in the sums alone.
        """
        asked: dict[str, bool] = {}
        for topic, error in answers:
            if error not in REFUSED_BEFORE_SHARING:
                asked[topic] = asked.get(topic, False) or error != ErrorCode.NONE
        for topic, has_failed in asked.items():
            counts = self._by_topic.get(topic, self._gone)
            if fetched:
                counts.share_fetches += 1
                counts.failed_share_fetches += has_failed
            else:
                counts.share_acknowledgements += 1
                counts.failed_share_acknowledgements += has_failed

    def forget(self, topic: str) -> None:
        """No partition of the topic is here any more."""
        found = self._by_topic.pop(topic, None)
        if found is not None:
            self._gone.add(found)

    @property
    def by_topic(self) -> Mapping[str, TopicTraffic]:
        """The topics that have, or lately had, partitions here."""
        return self._by_topic

    def of_all(self) -> TopicTraffic:
        """The sums of all topics there ever were."""
        total = TopicTraffic()
        total.add(self._gone)
        for traffic in list(self._by_topic.values()):
            total.add(traffic)
        return total
