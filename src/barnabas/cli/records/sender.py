"""The producer of `barnabas produce`: records to one topic, and what became of them."""

import threading
import time
from typing import Any, Final

from barnabas.cli.connection import Connection
from barnabas.cli.errors import CliError, ExitCode, from_kafka
from barnabas.cli.output import counted
from barnabas.cli.records.records import Headers, NewRecord
from barnabas.kafka.partitioners import JAVA_PARTITIONER

FULL_QUEUE_WAIT_S = 0.1
LINGER_SECONDS: Final = 0.02
"""Time that a record with the timestamp 0 waits for more."""
SHORT: Final = {"linger.ms": 0, "max.in.flight.requests.per.connection": 1}
"""For input that has ended before it is sent: it leaves at once, and in order."""
LONG: Final = {"linger.ms": 5}
ALL_REPLICAS: Final = ("all", "-1")


class Sender:
    """Sends to one topic and remembers what came of it."""

    def __init__(
        self, connection: Connection, topic: str, acks: str, compression: str, *, is_short: bool
    ) -> None:
        from barnabas.kafka.ordered_producer import OrderedProducer

        self._topic = topic
        self._timeout_s = connection.timeout_s
        self._failure: Any = None
        self.acknowledged = 0
        self.spans: dict[int, list[int]] = {}
        """First and last offset by partition."""
        config: dict[str, Any] = {
            "acks": acks,
            "compression.type": compression,
            "message.timeout.ms": int(connection.timeout_s * 1000),
            **(SHORT if is_short else LONG),
            **JAVA_PARTITIONER,
            **connection.config,
        }
        if not is_short:
            # librdkafka refuses idempotence with acks other than all, and `-X` may set them.
            final_acks = config.get("request.required.acks", config["acks"])
            config.setdefault("enable.idempotence", final_acks in ALL_REPLICAS)
        self._producer = OrderedProducer(connection.client_config(**config))
        self._turn = threading.Lock()
        """Held by the thread that uses the producer: reports come one at a time."""
        self._waiting = threading.Event()
        """Set if records with the timestamp 0 may be queued, which `poll` sends."""
        self._finishing = threading.Event()
        self._lingering: threading.Thread | None = None
        self._is_short = is_short
        self._last = 0.0
        """When a record with the timestamp 0 was queued."""

    @property
    def summary(self) -> str:
        """The number of acknowledged records, in words."""
        return f"{counted(self.acknowledged, 'record')} sent to {self._topic}"

    def send(self, record: NewRecord) -> None:
        from confluent_kafka import KafkaException

        headers: Headers | None = record.headers or None
        while True:
            self._stop_at_failure()
            with self._turn:
                try:
                    self._producer.produce(
                        self._topic, record.value, record.key, record.partition,
                        timestamp=record.timestamp_ms, headers=headers, on_delivery=self._delivered,
                    )  # fmt: skip
                except BufferError:
                    self._producer.poll(FULL_QUEUE_WAIT_S)
                    continue
                except KafkaException as error:
                    raise from_kafka(error, self._topic) from error
                if record.timestamp_ms != 0:
                    self._producer.poll(0)
            if record.timestamp_ms == 0 and not self._is_short:
                self._send_soon()
            return

    def _send_soon(self) -> None:
        """Have what goes over our own connections sent: the next record may take its time."""
        if self._lingering is None:
            self._lingering = threading.Thread(target=self._linger, name="linger", daemon=True)
            self._lingering.start()
        self._last = time.monotonic()
        self._waiting.set()

    def _linger(self) -> None:
        """Send what is queued once no more comes for a moment.

        As long as more comes, `send` itself sends whenever the queue is full.
        """
        while True:
            self._waiting.wait()
            if self._finishing.wait(LINGER_SECONDS):
                return
            if time.monotonic() - self._last < LINGER_SECONDS:
                continue
            self._waiting.clear()
            with self._turn:
                self._producer.poll(FULL_QUEUE_WAIT_S)
                if len(self._producer):
                    self._waiting.set()  # no broker has taken them yet

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failure = self._failure or error
            return
        self.acknowledged += 1
        offset = message.offset()
        if offset is None or offset < 0:
            return  # with acks=0 no broker tells
        span = self.spans.setdefault(message.partition(), [offset, offset])
        span[1] = max(span[1], offset)

    def finish(self) -> None:
        """Wait for all acknowledgements. Raises CliError for the first record refused."""
        self._finishing.set()
        self._waiting.set()
        with self._turn:
            left = self._producer.flush(self._timeout_s + 5)
        self._stop_at_failure()
        if left:
            raise CliError(f"{self._topic}: {left} records not acknowledged", ExitCode.UNREACHABLE)

    def _stop_at_failure(self) -> None:
        if self._failure is not None:
            known = from_kafka(self._failure, self._topic)
            known.hint = f"{self.summary} before"
            raise known
