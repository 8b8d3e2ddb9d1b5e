"""The command log as a topic: one partition, written in transactions, kept for ever.

A server that writes takes the topic's transactional id, which ends the transactions of any other,
and looks whether others wrote since it read the topic: then its statement is tried anew. So it is
if another server takes the id before this one has written: commands of two servers cannot cross.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from barnabas.kafka.partitioning import JAVA_PARTITIONER
from barnabas.sql.engine.cluster import Cluster, NewTopic
from barnabas.sql.engine.command_log import (
    CommandLogError,
    LogEntry,
    OvertakenError,
    topic_name,
)

TIMEOUT_S = 30.0
_CONFIG = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "unclean.leader.election.enable": "false",
}
_FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    }
)
"""Another server has taken the transactional id."""


class KafkaCommandLog:
    """The command topic of a service; it is made if it is not there."""

    step = 2
    """After each record there is the marker that its transaction is committed."""

    def __init__(
        self,
        cluster: Cluster,
        settings: Mapping[str, Any],
        service_id: str,
        replicas: int | None = None,
    ) -> None:
        self.topic = topic_name(service_id)
        cluster.create_topic(NewTopic(self.topic, 1, replicas, _CONFIG))
        self._place = TopicPartition(self.topic, 0, 0)
        self._next = 0
        self._unread: list[LogEntry] = []
        self._consumer = Consumer(
            {
                **settings,
                "group.id": f"{self.topic}-reader",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
            }
        )
        self._consumer.assign([self._place])
        self._settings = dict(settings)
        self._service_id = service_id
        self._producer: Producer | None = None

    def read_new(self) -> list[LogEntry]:
        self._read_to(self._end())
        entries, self._unread = self._unread, []
        return entries

    def _read_to(self, end: int) -> None:
        """Have all records before that offset in `_unread`: they stay there if this fails."""
        deadline = time.monotonic() + TIMEOUT_S
        while self._next < end:
            messages = self._consumer.consume(500, 0.05)
            for message in messages:
                failure, offset = message.error(), int(message.offset() or 0)
                if failure is not None and failure.code() == KafkaError._PARTITION_EOF:
                    # Markers of transactions have the last offsets, which no record has.
                    self._next = max(self._next, offset)
                    continue
                if failure is not None:
                    if failure.retriable() or failure.code() == KafkaError._TRANSPORT:
                        continue
                    raise CommandLogError(f"cannot read {self.topic}: {failure}")
                entry = LogEntry(offset, message.key() or b"", message.value() or b"")
                self._unread.append(entry)
                self._next = offset + 1
            if self._next < end and time.monotonic() > deadline:
                raise CommandLogError(f"cannot read {self.topic} to its end at {end}")

    def _end(self) -> int:
        try:
            _, end = self._consumer.get_watermark_offsets(self._place, timeout=TIMEOUT_S)
        except KafkaException as error:
            raise CommandLogError(f"cannot read {self.topic}: {error}") from error
        return int(end)

    def next_sequence(self) -> int:
        return max(self._next, self._end())

    def append(self, key: bytes, value: bytes) -> int:
        try:
            producer = self._writer()
            if self._unread:
                raise OvertakenError(f"another server has written to {self.topic}")
            written: list[int] = []
            producer.begin_transaction()
            producer.produce(
                self.topic,
                value,
                key,
                partition=0,
                on_delivery=lambda error, message: written.append(int(message.offset() or 0)),
            )
            producer.commit_transaction(TIMEOUT_S)
        except KafkaException as error:
            self._producer = None
            failure = error.args[0]
            if failure.code() in _FENCED:
                raise OvertakenError(f"another server writes to {self.topic}") from error
            raise CommandLogError(f"cannot write to {self.topic}: {failure}") from error
        (offset,) = written
        self._consumer.seek(TopicPartition(self.topic, 0, offset + 1))
        self._next = offset + 1
        return offset

    def _writer(self) -> Producer:
        """The producer. Once it is made, whoever else writes ends it: what is read then is all."""
        if self._producer is None:
            producer = Producer(
                {
                    **self._settings,
                    **JAVA_PARTITIONER,
                    "transactional.id": self._service_id,
                    "linger.ms": 0,
                }
            )
            producer.init_transactions(TIMEOUT_S)
            self._read_to(self._end())
            self._producer = producer
        return self._producer

    def close(self) -> None:
        self._consumer.close()
