"""A producer that keeps a timestamp of 0: librdkafka's, and our own for such records.

librdkafka treats 0 as no timestamp. A record with the timestamp 0 waits until all records before it
are stored, and is sent over our own connections. So are the records after it, until all of those
are stored: the records of a partition stay in order.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Producer

from barnabas.kafka.partitioners import JAVA_PARTITIONER

if TYPE_CHECKING:
    from barnabas.kafka.wire_batches import OnDelivery
    from barnabas.kafka.wire_producer import WireProducer

LINGER_SECONDS: Final = 0.005
"""Time that `poll(0)` lets records wait for more, to send them together."""


class OrderedProducer:
    """Confluent-kafka's Producer for writers without transactions; threads may share it.

    Keys go to the partitions that a Java producer sends them to, unless `settings` say otherwise.

    `timestamp` is None for a record that gets the time of writing.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = {**JAVA_PARTITIONER, **settings}
        self._producer = Producer(self._settings)
        self._lock = threading.Lock()
        self._wire: WireProducer | None = None
        self._waits_since = 0.0

    def __len__(self) -> int:
        return len(self._producer) + self._queued

    def unordered(self) -> Producer | None:
        """Return librdkafka's producer, None while what is written with it would come too early.

        The caller writes no record with the timestamp 0 until it has written its own.
        """
        return None if self._queued else self._producer

    @property
    def _queued(self) -> int:
        return 0 if self._wire is None else len(self._wire)

    def produce(
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        partition: int = -1,
        on_delivery: OnDelivery | None = None,
        timestamp: int | None = None,
        headers: Any = None,
    ) -> None:
        """Queue a record. Raises BufferError where there is no room: `poll` makes some.

        Raises KafkaException as confluent-kafka's Producer does, and for the timestamp 0 with a
        login that our own connections do not have.
        """
        more: dict[str, Any] = {} if on_delivery is None else {"on_delivery": on_delivery}
        if headers:
            more["headers"] = headers
        if timestamp != 0 and not self._queued:
            if timestamp is not None:
                more["timestamp"] = timestamp
            self._producer.produce(topic, value, key, partition, **more)
            return
        if len(self._producer):
            raise BufferError("records before this one are not acknowledged yet")
        with self._lock:
            if self._wire is None:
                # Here: few writers need it, and a command starts faster without its modules.
                from barnabas.kafka.wire_producer import WireProducer

                self._wire = WireProducer(self._settings)
            if not len(self._wire):
                self._waits_since = time.monotonic()
            self._wire.produce(topic, value, key, partition, timestamp=timestamp, **more)

    def poll(self, seconds: float = 0.0) -> int:
        """Serve reports, and send what waits for our own connections."""
        served = self._producer.poll(0.0 if self._queued else seconds)
        if self._queued and (seconds or time.monotonic() - self._waits_since > LINGER_SECONDS):
            with self._lock:
                assert self._wire is not None
                self._wire.poll(seconds)
        return served

    def flush(self, seconds: float = -1) -> int:
        """Wait until all is acknowledged. Returns how many records are not."""
        until = time.monotonic() + seconds
        left = self._producer.flush(seconds)
        if not self._queued:
            return left
        with self._lock:
            assert self._wire is not None
            rest = seconds if seconds < 0 else max(until - time.monotonic(), 0.0)
            return left + self._wire.flush(rest)

    def purge(self) -> None:
        """Give up what is queued."""
        self._producer.purge()
        with self._lock:
            if self._wire is not None:
                self._wire.purge()
