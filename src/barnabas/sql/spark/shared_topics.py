"""The topics of a shared stream: which ones the cluster has, and how long they are."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec, TopicDescription

from barnabas.base.backoff import Pauses
from barnabas.kafka.admin import Admin, Listed
from barnabas.spark.time_slices import OffsetsAfter, TopicTimes
from barnabas.sql.spark.shared_ledger import Offsets

_log = logging.getLogger(__name__)
_REFUSALS: Final = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError._UNKNOWN_TOPIC,
)
"""Errors of one topic: its queries fail."""
_ENDS_SECONDS: Final = 3.0
"""For the ends of all partitions."""
_SILENT_SECONDS: Final = 1.0
_SILENT_SECONDS_MAX: Final = 30.0
"""A partition whose leader did not answer is asked again so much later: longer each time."""


class SharedTopics:
    """The topics of one cluster. `name`: of the stream, for its log."""

    def __init__(self, name: str, servers: str, clients: Mapping[str, Any]) -> None:
        self._name = name
        self.admin = Admin({**clients, "bootstrap.servers": servers})
        self.silent: Pauses[tuple[str, int]] = Pauses(_SILENT_SECONDS, _SILENT_SECONDS_MAX)
        """Partitions whose leaders did not answer."""

    def close(self) -> None:
        """Close the connections."""
        self.admin.close()

    def first_offsets(
        self, counts: Mapping[str, int], *, from_start: bool, is_exactly_once: bool
    ) -> Offsets:
        """The offsets at which a new query begins. Raises KafkaException."""
        spec = OffsetSpec.earliest() if from_start else OffsetSpec.latest()
        found: Offsets = {topic: {} for topic in counts}
        isolation = _isolation(is_exactly_once)
        listed = self.admin.offsets(_places(counts, spec), isolation=isolation)
        for (topic, partition), offset in listed.items():
            found[topic][partition] = offset
        return found

    def ids(self, topics: Iterable[str]) -> dict[str, str]:
        """The ids of topics that exist; brokers before 2.8 give none. Raises KafkaException."""
        return ids_of(self.admin.describe(topics))

    def described(self, topics: Iterable[str]) -> dict[str, TopicDescription | None]:
        """Topics that exist; None for those that cannot be asked for."""
        try:
            return dict(self.admin.describe(topics))
        except KafkaException as error:
            _log.warning("%s: topics cannot be described: %s", self._name, error)
        return dict.fromkeys(topics)

    def ends(
        self, counts: Mapping[str, int], *, is_exactly_once: bool
    ) -> tuple[Listed, dict[str, KafkaException]]:
        """The ends of partitions whose leaders answer, for queries of one guarantee, and the topics
        that are gone or refused.

        The others are asked again later. Raises KafkaException.
        """
        now_s = time.monotonic()
        asked = {
            place: spec
            for place, spec in _places(counts, OffsetSpec.latest()).items()
            if self.silent.is_over((place.topic, place.partition), now_s)
        }
        if not asked:
            return {}, {}
        isolation = _isolation(is_exactly_once)
        found, errors = self.admin.known_offsets(asked, _ENDS_SECONDS, isolation)
        for place in found:
            self.silent.succeeded(place)
        refused: dict[str, KafkaException] = {}
        for place, error in errors.items():
            if error.code() in _REFUSALS:
                refused.setdefault(place[0], KafkaException(error))
                continue
            self.silent.failed(place, time.monotonic())
            _log.warning("%s: the end of %s-%d is not known: %s", self._name, *place, error.str())
        return found, refused

    def offsets_after(self, *, is_exactly_once: bool) -> OffsetsAfter:
        """Return what looks up records by their timestamps, for queries of one guarantee."""
        times = TopicTimes(self.admin, _ENDS_SECONDS, is_committed_only=is_exactly_once)
        return times.offsets_after


def ids_of(described: Mapping[str, TopicDescription]) -> dict[str, str]:
    """The ids of topics, where they have any."""
    return {topic: str(of.topic_id) for topic, of in described.items() if of.topic_id}


def _isolation(is_exactly_once: bool) -> IsolationLevel:
    """Exactly once, records of transactions that are open or aborted are not read."""
    return IsolationLevel.READ_COMMITTED if is_exactly_once else IsolationLevel.READ_UNCOMMITTED


def _places(counts: Mapping[str, int], spec: OffsetSpec) -> dict[TopicPartition, OffsetSpec]:
    return {
        TopicPartition(topic, partition): spec
        for topic, count in counts.items()
        for partition in range(count)
    }
