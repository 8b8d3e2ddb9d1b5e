"""The journal of sinks' decisions: a compacted topic with one key per sink.

A sink's driver writes with its own transactional id. Initialising it ends a transaction that an
earlier driver left open, and fences that driver if it still runs: decisions read afterwards are
final.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import KafkaException

from barnabas.kafka.planned_topics import TopicLogError, TopicPlan
from barnabas.kafka.topic_log import LogRecord, TopicLog
from barnabas.spark.datasource.protocol import Decision, Prepared

DEFAULT_TOPIC: Final = "barnabas-sink-decisions"
TOPIC_CONFIG: Final = {
    "cleanup.policy": "compact",
    # Superseded records are compacted soon, so that a start reads little.
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.1",
}
CALL_TIMEOUT_SECONDS: Final = 60.0
_TRANSACTION_TIMEOUT_MS: Final = 10_000
"""A driver that dies in the middle of a decision keeps others from reading theirs for so long."""
_DECISION_SIZE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Before it is compressed; brokers limit what is left of it (message.max.bytes, 1 MiB)."""
_FORMAT: Final = 1


class JournalError(Exception):
    """A decision has an unknown format: a newer version of this sink wrote it."""


class Journal:
    """The decisions of one sink. `config` has librdkafka's settings to reach the brokers.

    `key`: the key of decisions if it is not the sink's name: batches are numbered within a
    checkpoint, and a sink may outlive its checkpoint.
    """

    def __init__(
        self, config: Mapping[str, Any], topic: str, sink: str, key: str | None = None
    ) -> None:
        self._config = {**config, "log_level": 2}
        self._topic = topic
        self._sink = sink
        self._key = key or sink
        self.transactional_id: Final = f"{sink}.decisions"
        self._log: TopicLog | None = None
        self._found: bytes | None = None
        self.last: Decision | None = None
        """The last decision that is durable, once this is taken over."""

    @property
    def is_taken(self) -> bool:
        """True if this process has taken over, and nothing has failed since."""
        return self._log is not None and self._log.leads

    def take_over(self) -> None:
        """Fence earlier writers and read the last decision. Raises KafkaException."""
        self.close()
        self._found = None
        log = TopicLog(
            self._config,
            self._topic,
            self._take,
            is_committed_only=True,
            producer={
                "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
                # A decision names all tasks of a batch, and their ids differ little.
                "compression.type": "gzip",
                "message.max.bytes": _DECISION_SIZE_BYTES_MAX,
            },
        )
        try:
            log.open(TopicPlan(self._topic, config=TOPIC_CONFIG), CALL_TIMEOUT_SECONDS)
            log.lead(self.transactional_id, CALL_TIMEOUT_SECONDS)
            self.last = None if self._found is None else decode(self._found)
        except BaseException as error:
            log.close()
            if isinstance(error, TopicLogError):
                raise KafkaException(error.error) from error
            raise
        log.end_reading()
        self._log = log

    def write(self, decision: Decision) -> None:
        """Make a decision durable. Raises KafkaException where it may or may not be."""
        self._append(encode(decision))
        self.last = decision

    def forget(self) -> None:
        """Keep no decision, where there will be no further batch. Raises as `write` does."""
        if self.last is not None:
            self._append(None)
            self.last = None

    def close(self) -> None:
        """Give up the connections."""
        if self._log is not None:
            self._log.close()
        self._log = None

    def _append(self, data: bytes | None) -> None:
        assert self._log is not None
        try:
            # Should this fail, the next one takes over and reads the outcome.
            self._log.append([(self._key, data)], CALL_TIMEOUT_SECONDS)
        except TopicLogError as error:
            raise KafkaException(error.error) from error

    def _take(self, record: LogRecord) -> None:
        if record.key == self._key.encode():
            self._found = record.value


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
