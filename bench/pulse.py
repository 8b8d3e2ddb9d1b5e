"""A producer with its client's default settings that sends one record every few milliseconds.

It tells how long a partition could not be written to, as an application sees it: from the moment
that something happened to the first acknowledgement of a record that was handed over after it.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Self

from confluent_kafka import KafkaError, Message, Producer

INTERVAL_SECONDS = 0.005
QUEUE_MAX = 50_000


class Pulse:
    """librdkafka, idempotent, acks=all, in a thread. A context manager."""

    def __init__(self, bootstrap: str, topic: str, partition: int) -> None:
        self._topic = topic
        self._partition = partition
        logger = logging.getLogger("bench.pulse")
        logger.setLevel(logging.CRITICAL)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 0,
                "logger": logger,
            }
        )
        self._acknowledged: list[tuple[float, float]] = []
        """(handed over, acknowledged), in monotonic seconds."""
        self._failure: KafkaError | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._producer.purge()
        self._producer.flush(5)

    def await_steady(self, timeout_seconds: float) -> None:
        """Wait until records are acknowledged one after the other."""
        self.seconds_until_acknowledged(time.monotonic(), timeout_seconds)
        self.seconds_until_acknowledged(time.monotonic(), timeout_seconds)

    def seconds_until_acknowledged(self, since: float, timeout_seconds: float) -> float:
        """From `since` to the first acknowledgement of a record that was handed over later.

        Raises TimeoutError, and RuntimeError where a record failed.
        """
        position = 0
        while time.monotonic() < since + timeout_seconds:
            if self._failure is not None:
                raise RuntimeError(f"a record failed: {self._failure.str()}")
            known = self._acknowledged
            while position < len(known):
                handed, acknowledged = known[position]
                if handed > since:
                    return acknowledged - since
                position += 1
            time.sleep(0.001)
        raise TimeoutError(f"nothing was acknowledged within {timeout_seconds:g} s")

    def _run(self) -> None:
        while not self._stopped.is_set():
            if len(self._producer) < QUEUE_MAX:
                self._producer.produce(
                    self._topic,
                    b"pulse",
                    partition=self._partition,
                    on_delivery=self._delivered(time.monotonic()),
                )
            self._producer.poll(INTERVAL_SECONDS)

    def _delivered(self, handed: float) -> Callable[[KafkaError | None, Message], None]:
        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is None:
                self._acknowledged.append((handed, time.monotonic()))
            elif not self._stopped.is_set():
                self._failure = error

        return delivered
