"""The log end offsets of topics, asked again and again while nodes may go away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from barnabas.kafka.listed_offsets import Listed, OffsetLister, answer_of

_REQUEST_SECONDS = 10.0


class TopicEnds:
    """Asks with clients of librdkafka's `settings`, made at first use."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = dict(settings)
        self._offsets = OffsetLister(lambda: AdminClient(self._settings))

    def of(self, topics: Sequence[str]) -> Listed:
        """Return the log end offset of each partition of those topics that exist.

        Raises KafkaException where brokers do not answer.
        """
        futures = self._admin.describe_topics(
            TopicCollection(list(topics)), request_timeout=_REQUEST_SECONDS
        )
        wanted: dict[TopicPartition, OffsetSpec] = {}
        latest: OffsetSpec = OffsetSpec.latest()
        for name, future in futures.items():
            try:
                description = answer_of(future)
            except KafkaException as error:
                if error.args[0].name() != "UNKNOWN_TOPIC_OR_PART":
                    raise
                continue
            for partition in description.partitions:
                wanted[TopicPartition(name, partition.id)] = latest
        return self._offsets.list(wanted, _REQUEST_SECONDS) if wanted else {}

    @cached_property
    def _admin(self) -> AdminClient:
        """One for good.

        The traceback of a failed answer keeps a client until the garbage collector comes by, and
        librdkafka aborts where that is in one of the client's own threads.
        """
        return AdminClient(self._settings)
