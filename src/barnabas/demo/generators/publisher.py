"""Publishing through confluent-kafka, and knowing what has been acknowledged.

Records are published in numbered steps. A step is acknowledged once its records and those of all
steps before it are in the log: progress is derived from that alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, Message, Producer

from barnabas.demo.access import client_config
from barnabas.demo.contract import START_TIME_MS
from barnabas.demo.generators.delivery import Delivery
from barnabas.demo.topics import STATIONS, Station
from barnabas.kafka.partitioners import JAVA_PARTITIONER

_POLL_SECONDS: Final = 0.05


Encode = Callable[[str, dict[str, Any]], bytes]
"""Makes of a topic and a value what is published."""


class PublishError(Exception):
    """The cluster refused a record for good."""


class Publisher:
    """An idempotent producer (acks=all) that counts what is still unacknowledged, step by step."""

    def __init__(self, bootstrap_servers: str, encode: Encode) -> None:
        self._encode = encode
        self._producer = Producer(
            {
                **client_config(bootstrap_servers),
                "client.id": "barnabas-demo-generators",
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 20,
                "compression.type": "lz4",
                **JAVA_PARTITIONER,
                # Never give up on a record: a broker that is away for long only stalls the run.
                "message.timeout.ms": 0,
                "error_cb": self._on_client_error,
                "log_level": 2,
            }
        )
        self._unacknowledged: dict[int, int] = {}
        """Records in flight, by step; steps ascend."""
        self._last_step = -1
        self._failure: KafkaError | None = None
        self.records_acknowledged = 0

    def is_acknowledged(self, step: int) -> bool:
        """Return whether nothing of `step`, or of a step before it, is in flight."""
        oldest = next((s for s, in_flight in self._unacknowledged.items() if in_flight), None)
        return oldest is None or oldest > step

    def publish_stations(self, stations: Sequence[Station]) -> None:
        """Publish the station table and return once it is acknowledged.

        The table is complete before any event exists, and older than all of them, so an event never
        misses its station, in any order of the two topics are read. Raises PublishError.
        """
        self.begin_step(0)
        self.change_stations(stations)
        self.wait_through(0, lambda: False)

    def change_stations(self, stations: Sequence[Station]) -> None:
        """Publish rows of the station table in the open step. Raises PublishError."""
        step = self._last_step
        for station in stations:
            self._send(step, STATIONS, station["station_id"], dict(station), START_TIME_MS - 1)

    def begin_step(self, step: int) -> None:
        """Open a step: the records published from here on belong to it. Steps never descend."""
        assert step >= self._last_step
        self._last_step = step
        self._unacknowledged.setdefault(step, 0)

    def publish(self, step: int, delivery: Delivery) -> None:
        """Hand one record of the open step to the producer. Raises PublishError."""
        self._send(step, delivery.topic, delivery.key, delivery.value)

    def wait_through(self, step: int, stop: Callable[[], bool]) -> bool:
        """Wait until `step` is acknowledged or `stop` says so; returns whether it is.

        Raises PublishError.
        """
        while True:
            if self.is_acknowledged(step):
                for finished in [s for s in self._unacknowledged if s < step]:
                    del self._unacknowledged[finished]
                return True
            if stop():
                return False
            self.poll(_POLL_SECONDS)

    def poll(self, seconds: float) -> None:
        """Serve acknowledgements for up to `seconds`. Raises PublishError."""
        self._producer.poll(seconds)
        if self._failure is not None:
            raise PublishError(self._failure.str())

    def _send(
        self,
        step: int,
        topic: str,
        key: str,
        value: dict[str, Any],
        timestamp_ms: int = 0,
    ) -> None:
        """`timestamp_ms` 0 is the client's word for now."""

        def acknowledged(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                self._failure = error
                return
            self.records_acknowledged += 1
            self._unacknowledged[step] -= 1

        self._unacknowledged[step] += 1
        payload = self._encode(topic, value)
        while True:
            try:
                self._producer.produce(
                    topic, payload, key, on_delivery=acknowledged, timestamp=timestamp_ms
                )
                return
            except BufferError:
                self.poll(_POLL_SECONDS)

    def _on_client_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._failure = error
