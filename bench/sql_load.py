"""Records at a constant rate for bench/sql_spark.py, and how late each is in the results.

A process of its own: `python -m bench.sql_load SERVERS RATE KEYS SECONDS SOURCE SINK…`. It prints a
line of JSON: for each moment at which results came, seconds from the start and their latencies.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import defaultdict

from barnabas.app.testing import Kafka

WINDOW_MS = 10_000
_POLL_SECONDS = 0.02

Place = tuple[str, int]
"""A key and the start of a window."""


class Load:
    """A producer; `sent`: by key and window, when each record was sent."""

    def __init__(self, kafka: Kafka, topic: str, rate: int, keys: int) -> None:
        self.sent: dict[Place, list[float]] = defaultdict(list)
        self._stop = threading.Event()
        self._arguments = kafka, topic, rate, keys
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        kafka, topic, rate, keys = self._arguments
        producer, count, began = kafka.producer(linger_ms=5), 0, time.time()
        while not self._stop.wait(0.01):
            while count < (time.time() - began) * rate:
                now = time.time()
                at_ms = int(now * 1000)
                number = count * 7919 % keys
                key = f"k{number}"
                self.sent[key, at_ms - at_ms % WINDOW_MS].append(now)
                value = f'{{"V": {count % 13}}}'
                producer.produce(topic, value, key, partition=number % 2, timestamp=at_ms)
                count += 1
            producer.poll(0)
        producer.flush()


def results(
    kafka: Kafka, topics: list[str], load: Load, seconds: int
) -> list[tuple[float, list[float]]]:
    """Read counts for so long: a record is in a result if the count of its key has reached it."""
    found: list[tuple[float, list[float]]] = []
    counted: dict[tuple[str, Place], int] = {}
    consumer = kafka.consumer(*topics, isolation_level="read_committed", fetch_wait_max_ms=50)
    began = time.time()
    while (now := time.time()) - began < seconds:
        latencies: list[float] = []
        messages = consumer.consume(5_000, _POLL_SECONDS)
        now = time.time()
        for message in messages:
            key, value = message.key() or b"", message.value() or b"{}"
            place = key[:-8].decode(), int.from_bytes(key[-8:], "big")
            at = message.topic() or "", place
            before, count = counted.get(at, 0), json.loads(value)["N"]
            latencies += [now - sent for sent in load.sent[place][before:count]]
            counted[at] = max(before, count)
        if latencies:
            found.append((now - began, latencies))
    consumer.close()
    return found


def main() -> None:
    servers, rate, keys, seconds, source, *sinks = sys.argv[1:]
    kafka = Kafka(servers)
    load = Load(kafka, source, int(rate), int(keys))
    found = results(kafka, sinks, load, int(seconds))
    load.stop()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
