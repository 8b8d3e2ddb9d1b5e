"""Where the decisions of sinks are durable: a compacted topic, one key per sink.

A sink's driver writes with a transactional id of its own. Taking it ends what an earlier driver
left open, and fences that driver should it still live: what is read afterwards is final.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas.spark.datasource.protocol import Decision, Prepared

DEFAULT_TOPIC: Final = "barnabas-sink-decisions"
TOPIC_CONFIG: Final = {
    "cleanup.policy": "compact",
    # What is superseded goes soon, so that a start reads little.
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.1",
}
CALL_TIMEOUT_SECONDS: Final = 60.0
_TRANSACTION_TIMEOUT_MS: Final = 10_000
"""A driver that dies in the middle of a decision keeps others from reading theirs for so long."""
_DECISION_SIZE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Before it is compressed; brokers limit what is left of it (message.max.bytes, 1 MiB)."""
_FORMAT: Final = 1
_PARTITION: Final = 0


class JournalError(Exception):
    """A decision holds what we do not know: a newer version of this sink has written it."""


class Journal:
    """The decisions of one sink. `config` is librdkafka's: how to reach the brokers."""

    def __init__(self, config: Mapping[str, Any], topic: str, sink: str) -> None:
        self._config = {**config, "log_level": 2}
        self._topic = topic
        self._sink = sink
        self.transactional_id: Final = f"{sink}.decisions"
        self._producer: Producer | None = None
        self.last: Decision | None = None
        """The last decision that is durable, once this is taken over."""

    @property
    def is_taken(self) -> bool:
        """Whether this process has taken over, and nothing has failed since."""
        return self._producer is not None

    def take_over(self) -> None:
        """Fence whoever wrote before and read the last decision. Raises KafkaException."""
        self.close()
        self._create_topic()
        producer = Producer(
            {
                **self._config,
                "transactional.id": self.transactional_id,
                "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
                "linger.ms": 0,
                # A decision names all tasks of a batch, and their ids differ little.
                "compression.type": "gzip",
                "message.max.bytes": _DECISION_SIZE_BYTES_MAX,
            }
        )
        producer.init_transactions(CALL_TIMEOUT_SECONDS)
        self.last = self._read(self._end())
        self._producer = producer

    def write(self, decision: Decision) -> None:
        """Make a decision durable. Raises KafkaException where it may or may not be."""
        assert self._producer is not None
        producer = self._producer
        # Should this fail, the next takes over anew and reads what has become of it.
        self._producer = None
        producer.begin_transaction()
        producer.produce(self._topic, encode(decision), self._sink, partition=_PARTITION)
        producer.commit_transaction(CALL_TIMEOUT_SECONDS)
        self._producer, self.last = producer, decision

    def close(self) -> None:
        """Give up the connections."""
        self._producer = None

    def _create_topic(self) -> None:
        admin = AdminClient(self._config)
        # Unlike `list_topics` this does not have brokers create it, with their own configuration.
        asked = admin.describe_topics(
            TopicCollection([self._topic]), request_timeout=CALL_TIMEOUT_SECONDS
        )
        try:
            asked[self._topic].result(CALL_TIMEOUT_SECONDS)
            return
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
        new = NewTopic(self._topic, num_partitions=1, config=TOPIC_CONFIG)
        try:
            admin.create_topics([new])[self._topic].result(CALL_TIMEOUT_SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise

    def _end(self) -> int:
        """Return the end of the topic, which may have been created just now.

        It is behind what others have left open: a consumer that reads only what is committed would
        be told where the first open transaction begins.
        """
        consumer = Consumer(
            {**self._config, "group.id": self._sink, "isolation.level": "read_uncommitted"}
        )
        try:
            place = TopicPartition(self._topic, _PARTITION)
            _, end = consumer.get_watermark_offsets(place, CALL_TIMEOUT_SECONDS)
            return int(end)
        finally:
            consumer.close()

    def _read(self, end: int) -> Decision | None:
        consumer = Consumer(
            {
                **self._config,
                "group.id": self._sink,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,  # the end is told by an empty answer
                "isolation.level": "read_committed",
                "allow.auto.create.topics": False,
            }
        )
        last = None
        try:
            # A client that does not know the leader yet may take a second to ask for it.
            consumer.get_watermark_offsets(
                TopicPartition(self._topic, _PARTITION), CALL_TIMEOUT_SECONDS
            )
            consumer.assign([TopicPartition(self._topic, _PARTITION, OFFSET_BEGINNING)])
            while True:
                message = consumer.poll(CALL_TIMEOUT_SECONDS)
                if message is None:
                    raise KafkaException(
                        KafkaError(KafkaError._TIMED_OUT, f"reading {self._topic}")
                    )
                error = message.error()
                if error is None:
                    if message.key() == self._sink.encode():
                        last = message.value()
                elif error.code() != KafkaError._PARTITION_EOF:
                    if error.fatal() or not error.retriable():
                        raise KafkaException(error)
                # What another driver has left open hides what comes after, until it times out.
                elif (message.offset() or 0) >= end:
                    return None if last is None else decode(last)
        finally:
            consumer.close()


def encode(decision: Decision) -> bytes:
    """Return a decision as JSON."""
    return json.dumps(
        {
            "format": _FORMAT,
            "batch": decision.batch,
            "transactions": [
                [
                    one.task,
                    one.transactional_id,
                    one.producer_id,
                    one.producer_epoch,
                    one.records,
                    one.checksum,
                ]
                for one in decision.transactions
            ],
        },
        separators=(",", ":"),
    ).encode()


def decode(data: bytes) -> Decision:
    """Return a decision from its JSON. Raises JournalError."""
    try:
        fields = json.loads(data)
        if fields["format"] != _FORMAT:
            raise JournalError(f"this decision has format {fields['format']}: use a newer version")
        return Decision(fields["batch"], tuple(Prepared(*one) for one in fields["transactions"]))
    except (ValueError, KeyError, TypeError) as error:
        raise JournalError(f"this is no decision: {data[:100]!r}") from error
