"""The log end offsets of topics, asked again and again while nodes may go away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from barnabas.kafka.admin import Admin, Listed


class TopicEnds:
    """Asks with clients of librdkafka's `settings`, made at first use."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._admin = Admin(settings)

    def of(self, topics: Sequence[str]) -> Listed:
        """Return the log end offset of each partition of those topics that exist.

        Raises KafkaException where brokers do not answer.
        """
        latest: OffsetSpec = OffsetSpec.latest()
        wanted = {
            TopicPartition(name, partition.id): latest
            for name, topic in self._admin.describe(topics).items()
            for partition in topic.partitions
        }
        return self._admin.offsets(wanted) if wanted else {}
