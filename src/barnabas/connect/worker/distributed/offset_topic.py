"""The offset topic: how far sources have been read, of all connectors or of one.

A connector may have its own topic (`offsets.storage.topic`). It is written beside the
worker's, which still holds what the connector had before; what is found in its own wins.

Source: org.apache.kafka.connect.storage.KafkaOffsetBackingStore and ConnectorOffsetBackingStore
(Kafka 4.3).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

from barnabas.connect.record import JsonMap
from barnabas.connect.worker.distributed.clients import Clients
from barnabas.connect.worker.distributed.kafka_log import WorkerLog
from barnabas.connect.worker.distributed.offset_log import OffsetLog, Offsets
from barnabas.connect.worker.distributed.topics import WorkerTopic
from barnabas.kafka.topic_log import LogRecord

_TIMEOUT_S: Final = 30.0


class OffsetTopic:
    """One topic of offsets, read whole."""

    def __init__(
        self, clients: Clients, plan: WorkerTopic, *, is_committed_only: bool = False
    ) -> None:
        self.name = plan.name
        self._log = OffsetLog()
        self._lock = threading.Lock()
        self._topic = WorkerLog(clients, plan, self._apply, is_committed_only=is_committed_only)

    def start(self) -> None:
        """Read the topic. Raises ConfigError, ConnectError."""
        self._topic.start()

    def stop(self) -> None:
        """End."""
        self._topic.stop()

    def refresh(self, timeout_s: float = _TIMEOUT_S) -> None:
        """Read to the end. Raises ReadTimeoutError."""
        self._topic.refresh(timeout_s)

    def offset(self, connector: str, partition: JsonMap) -> JsonMap | None:
        """Return the offset of a source partition, as far as it is read."""
        with self._lock:
            return self._log.offset(connector, partition)

    def all(self, connector: str) -> Offsets:
        """Return all (partition, offset) of a connector, as far as it is read."""
        with self._lock:
            return self._log.all(connector)

    def store(self, connector: str, pairs: Sequence[tuple[JsonMap, JsonMap | None]]) -> None:
        """Write offsets, and wait for that; None deletes one. Raises ConnectError, DataError."""
        with self._lock:
            records = [self._log.record(connector, *pair) for pair in pairs]
        self._topic.write(records, "Timed out while writing offsets to Kafka")

    def reader(self, connector: str) -> TopicOffsets:
        """Return the offsets of one connector."""
        return TopicOffsets(connector, [self])

    def _apply(self, record: LogRecord) -> None:
        with self._lock:
            self._log.apply(record.key, record.value)


class TopicOffsets:
    """An OffsetReader: each question first reads the topics to their end; the first one wins."""

    def __init__(self, connector: str, topics: Sequence[OffsetTopic]) -> None:
        self._connector = connector
        self._topics = topics

    def offset(self, partition: JsonMap) -> JsonMap | None:
        """Return the offset stored for a source partition; None if absent."""
        for topic in self._topics:
            topic.refresh()
            stored = topic.offset(self._connector, partition)
            if stored is not None:
                return stored
        return None

    def all(self) -> Offsets:
        """Return all (partition, offset) of the connector."""
        for topic in self._topics:
            topic.refresh()
        offsets: Offsets = []
        for topic in self._topics:
            known = [partition for partition, _ in offsets]
            offsets += [pair for pair in topic.all(self._connector) if pair[0] not in known]
        return offsets
