"""Fills a topic for the compactor.

`python -m bench.keyed_client BOOTSTRAP TOPIC RECORDS KEYS SIZE`. Each of the keys comes again and
again, in an order that looks like chance; values do not compress.
"""

import os
import sys

from confluent_kafka import Producer

STRIDE = 7_919
"""A prime: the keys come in another order in each turn."""


def main(bootstrap: str, topic: str, records: int, keys: int, size: int) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 20,
            "batch.size": 200_000,
            "queue.buffering.max.messages": 500_000,
        }
    )
    noise = os.urandom(size + 4096)
    for number in range(records):
        start = number % 4096
        key = b"key-%010d" % (number * STRIDE % keys)
        while True:
            try:
                producer.produce(topic, noise[start : start + size], key, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise RuntimeError("records were not delivered")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
