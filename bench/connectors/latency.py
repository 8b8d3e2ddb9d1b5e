"""From a change in a source to its record in a topic, at a steady rate."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from bench.connectors.workers import Running
from bench.measure import percentile

MS_PER_SECOND: Final = 1000
RATE: Final = 200
"""Changes per second; each has its time in itself."""
_WARM_UP_SHARE: Final = 0.2


def latencies(
    running: Running,
    servers: str,
    topic: str,
    change: Callable[[int], None],
    time_of: Callable[[bytes], float | None],
    seconds: float,
) -> tuple[float, float]:
    """Return p50 and p99 in milliseconds; the first fifth does not count.

    `change` makes a change that carries the number of microseconds that it is given, `time_of`
    finds that again in a record's value, in seconds.
    """
    count = int(RATE * seconds)
    found: list[float] = []
    with _following(servers, topic) as next_value, _changing(change, count):
        deadline = time.monotonic() + seconds + 60
        while len(found) < count:
            value = next_value()
            made_s = None if value is None else time_of(value)
            if made_s is not None:
                found.append((time.time() - made_s) * MS_PER_SECOND)
            running.check_alive()
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(found)} of {count} changes have come")
    ordered = sorted(found[int(count * _WARM_UP_SHARE) :])
    return percentile(ordered, 0.5), percentile(ordered, 0.99)


@contextmanager
def _changing(change: Callable[[int], None], count: int) -> Iterator[None]:
    ending = threading.Event()

    def run() -> None:
        began = time.monotonic()
        for number in range(count):
            if ending.wait(max(0.0, began + number / RATE - time.monotonic())):
                return
            change(time.time_ns() // 1000)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


@contextmanager
def _following(servers: str, topic: str) -> Iterator[Callable[[], bytes | None]]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "bench-latency",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
        }
    )
    place = TopicPartition(topic, 0)
    place.offset = consumer.get_watermark_offsets(place, 30)[1]
    consumer.assign([place])

    def next_value() -> bytes | None:
        message = consumer.poll(0.1)
        if message is None:
            return None
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        return message.value()

    try:
        yield next_value
    finally:
        consumer.close()
