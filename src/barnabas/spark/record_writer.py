"""Writes results of micro-batches at least once, with one idempotent producer per query.

A micro-batch whose outcome is not known is run again by Spark, and its records are written again:
the same keys with the same values. `exactly_once` writes them once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from barnabas.kafka.ordered_producer import OrderedProducer
from barnabas.kafka.partitioners import JAVA_PARTITIONER
from barnabas.kafka.wire_batches import Columns
from barnabas.kafka.wire_producer import WireProducer, serves

FLUSH_TIMEOUT_SECONDS: Final = 30.0
_QUEUE_POLL_SECONDS: Final = 0.1
OutgoingRecord = tuple[str, str, str]
"""Topic, key and value."""
Header = tuple[str, str | bytes | None]


@dataclass(slots=True)
class KafkaRecord:
    """A record with all the parts that a topic stores.

    `partition` is None where the key decides, `timestamp_ms` for the time of writing.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp_ms: int | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int | None = None


AnyRecord = OutgoingRecord | KafkaRecord


def has_zero_timestamp(records: Sequence[AnyRecord]) -> bool:
    """Return whether librdkafka cannot write them: it takes a timestamp of 0 for none."""
    return any(isinstance(record, KafkaRecord) and record.timestamp_ms == 0 for record in records)


AnyProducer = Producer | OrderedProducer | WireProducer


def produce(producer: AnyProducer, record: AnyRecord, headers: list[Header]) -> None:
    """Give a record to a producer, with headers behind its own, waiting while its queue is full."""
    arguments: dict[str, Any]
    if isinstance(record, KafkaRecord):
        arguments = {} if record.timestamp_ms is None else {"timestamp": record.timestamp_ms}
        if record.headers or headers:
            arguments["headers"] = [*record.headers, *headers]
        if record.partition is not None:
            arguments["partition"] = record.partition
        topic, key, value = record.topic, record.key, record.value
    else:
        topic, key, value = record  # type: ignore[assignment]  # not the types above
        arguments = {"headers": headers}
    while True:
        try:
            producer.produce(topic, value, key, **arguments)
            return
        except BufferError:
            producer.poll(_QUEUE_POLL_SECONDS)


class RecordWriter:
    """Writes the records of one query's micro-batches, acknowledged by all in-sync replicas."""

    def __init__(
        self, bootstrap_servers: str, settings: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        self._config = {
            "bootstrap.servers": bootstrap_servers,
            "client.id": "barnabas-pipeline",
            "enable.idempotence": True,
            "delivery.timeout.ms": int(FLUSH_TIMEOUT_SECONDS * 1000),
            **JAVA_PARTITIONER,
            "linger.ms": 5,
            "log_level": 2,
            "on_delivery": self._on_delivery,
            "delivery.report.only.error": True,
            **settings,
        }
        self._producer: OrderedProducer | None = None
        self._wire: WireProducer | None = None
        self._has_wire = serves(self._config)
        self._error: KafkaError | None = None

    def write(self, batch_id: int, records: Sequence[AnyRecord]) -> None:
        """Write a micro-batch. Raises KafkaException where a record may not have arrived."""
        if self._producer is None:
            self._producer = OrderedProducer(self._config)
        with self._writing(self._producer, batch_id):
            for record in records:
                produce(self._producer, record, [])

    def write_columns(self, topic: str, columns: Columns) -> bool:
        """Write records whose keys decide on the partition, over a connection of our own.

        False, and nothing is written, where settings need librdkafka. Raises as `write` does.
        """
        if not self._has_wire:
            return False
        if self._wire is None:
            self._wire = WireProducer(self._config)
        with self._writing(self._wire, -1):
            self._wire.produce_columns(topic, columns)
        return True

    @contextmanager
    def _writing(self, producer: OrderedProducer | WireProducer, batch_id: int) -> Iterator[None]:
        """Flush the producer at the end of the block; raise KafkaException if a record failed."""
        try:
            yield
            if producer.flush(FLUSH_TIMEOUT_SECONDS):
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"writing batch {batch_id}"))
            if self._error is not None:
                raise KafkaException(self._error)
        except KafkaException:
            self.close()
            raise

    def close(self) -> None:
        """Give up the connections, and what has not arrived."""
        self._error = None
        if self._producer is not None:
            self._producer.purge()
            self._producer = None
        if self._wire is not None:
            self._wire.purge()
            self._wire = None

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and self._error is None:
            self._error = error
