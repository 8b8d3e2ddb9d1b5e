"""The two ends of the latency workload.

`python -m bench.latency_client produce|consume BOOTSTRAP TOPIC RATE SECONDS WARM_UP_SECONDS`.
A record carries the monotonic time at which it was handed to the producer, before any queue;
on one machine that clock is the same for both. A record that is late delays no other: the
producer sends on schedule, and time that it lost itself counts as latency.
"""

import gc
import json
import sys
import time
from struct import Struct

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from bench.measure import percentile

STAMP = Struct("<q")
RECORD_SIZE_BYTES = 100
PADDING = bytes(RECORD_SIZE_BYTES - STAMP.size)
START_DELAY_SECONDS = 2.0
"""The consumer is there before the first record."""


def produce(bootstrap: str, topic: str, rate: int, seconds: int) -> None:
    client = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    client.list_topics(topic, timeout=30)
    gc.disable()
    start = time.monotonic_ns() + int(START_DELAY_SECONDS * 1e9)
    interval = 1_000_000_000 // rate
    for number in range(rate * seconds):
        due = start + number * interval
        while (wait := due - time.monotonic_ns()) > 0:
            client.poll(0)
            if wait > 100_000:
                time.sleep((wait - 50_000) / 1e9)
        client.produce(topic, STAMP.pack(due) + PADDING, partition=0)
    if client.flush(30):
        raise RuntimeError("records were not delivered")


def consume(bootstrap: str, topic: str, rate: int, seconds: int, warm_up_seconds: int) -> None:
    client = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "bench-latency", "enable.auto.commit": False}
    )
    client.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    gc.disable()
    latencies = []
    for number in range(rate * seconds):
        message = client.poll(30)
        now = time.monotonic_ns()
        if message is None or message.error():
            raise RuntimeError(f"record {number}: {message and message.error()}")
        if number >= rate * warm_up_seconds:
            due: int = STAMP.unpack_from(message.value() or b"")[0]
            latencies.append((now - due) / 1e6)
    client.close()
    latencies.sort()
    shares = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
    json.dump({name: percentile(latencies, share) for name, share in shares.items()}, sys.stdout)


if __name__ == "__main__":
    role, bootstrap, topic, rate, seconds, warm_up_seconds = sys.argv[1:]
    if role == "produce":
        produce(bootstrap, topic, int(rate), int(seconds))
    else:
        consume(bootstrap, topic, int(rate), int(seconds), int(warm_up_seconds))
