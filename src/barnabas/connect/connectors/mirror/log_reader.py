"""Reads a topic of one partition from its beginning, again and again up to its end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from barnabas.connect.connectors.mirror.patience import Patience
from barnabas.connect.engine.kafka_errors import as_connect_error, is_passing
from barnabas.connect.engine.taking import take
from barnabas.schemas.data.errors import RetriableError

_CHUNK: Final = 1000
_POLL_SECONDS: Final = 0.2


class LogReader:
    """Goes on where it was."""

    def __init__(self, settings: Mapping[str, Any], topic: str) -> None:
        self._topic = topic
        self._next = 0
        self._patience = Patience()
        more = {
            "fetch.wait.max.ms": 100,
            **settings,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
        self._consumer = Consumer(more)
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def read_to_end(self, timeout_s: float) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield keys and values up to the end as it is now. Raises RetriableError, ConnectError.

        A try is short, as the leader may be dead: try again. It goes on as long as records come.
        """
        patience_s = self._patience.begin(timeout_s)
        try:
            _, end = self._consumer.get_watermark_offsets(
                TopicPartition(self._topic, 0), patience_s, cached=False
            )
        except KafkaException as error:
            raise as_connect_error(f"cannot read {self._topic}", error) from error
        deadline = time.monotonic() + timeout_s
        came_s = time.monotonic()
        while self._next < end:
            begun = self._next
            for message in take(self._consumer, _CHUNK, _POLL_SECONDS):
                failure = message.error()
                offset = message.offset() or 0
                if failure is None:
                    self._next = offset + 1
                    yield message.key() or b"", message.value()
                elif failure.code() == KafkaError._PARTITION_EOF:
                    self._next = max(self._next, offset)
                elif not is_passing(failure):
                    raise as_connect_error(f"cannot read {self._topic}", KafkaException(failure))
            now_s = time.monotonic()
            if self._next > begun:
                came_s = now_s
            if now_s > min(deadline, came_s + patience_s):
                raise RetriableError(f"{self._topic} does not answer")
        self._patience.answered()

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()
