"""The only writer of a topic: all writers use one transactional id, and the last one owns it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from barnabas.kafka.partitioners import JAVA_PARTITIONER
from barnabas.kafka.planned_topics import TopicLogError

_PARTITION: Final = 0
"""An order among all records needs one partition."""
_FENCED: Final = (
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
)
Pair = tuple[bytes | str, bytes | None]
"""Key and value of a record to write."""


class AppendError(TopicLogError):
    """Records of a transaction may be written or not; the writer can no longer be used."""


class FencedError(AppendError):
    """Another writer has taken over; the records that it read up to the end are final."""


class FencedWriter:
    """Writes records to a topic in transactions, until the first failure."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        topic: str,
        transactional_id: str,
        timeout_s: float,
    ) -> None:
        """Take the id, which ends and fences the writers before. Raises AppendError."""
        self._topic = topic
        self._producer = Producer(
            {
                "linger.ms": 0,
                **JAVA_PARTITIONER,
                **settings,
                "transactional.id": transactional_id,
            }
        )
        try:
            self._producer.init_transactions(timeout_s)
        except KafkaException as error:
            raise self._failed(error) from error

    def append(self, pairs: Sequence[Pair], timeout_s: float) -> list[int]:
        """Write records in one transaction; returns their offsets. Raises FencedError, AppendError.

        After an error the writer cannot be used.
        """
        offsets: list[int] = []
        try:
            self._producer.begin_transaction()
            for key, value in pairs:
                self._producer.produce(
                    self._topic,
                    value,
                    key,
                    partition=_PARTITION,
                    on_delivery=lambda _error, message: offsets.append(int(message.offset() or 0)),
                )
            self._producer.commit_transaction(timeout_s)
        except KafkaException as error:
            raise self._failed(error) from error
        except BufferError as error:
            raise AppendError(f"cannot write to {self._topic}: {error}") from error
        return offsets

    def poll(self) -> None:
        """Let the client log."""
        self._producer.poll(0)

    def _failed(self, error: KafkaException) -> AppendError:
        failure = error.args[0]
        kind = FencedError if failure.code() in _FENCED else AppendError
        return kind(f"cannot write to {self._topic}: {failure}", failure)
