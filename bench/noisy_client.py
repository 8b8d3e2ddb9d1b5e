"""A tenant who sends ten times what its quota allows, until it is killed.

`python -m bench.noisy_client BOOTSTRAP TOPIC CLIENT_ID BYTES_PER_SECOND`. What does not fit in
the producer's queue any more, since the broker holds it up, is dropped.
"""

import contextlib
import sys
import time

from confluent_kafka import Producer

RECORD = bytes(1000)
PERIOD_SECONDS = 0.01


def main(bootstrap: str, topic: str, client_id: str, bytes_per_second: int) -> None:
    client = Producer({"bootstrap.servers": bootstrap, "client.id": client_id, "linger.ms": 5})
    records = max(1, int(bytes_per_second * PERIOD_SECONDS) // len(RECORD))
    due = time.monotonic()
    while True:
        for _ in range(records):
            with contextlib.suppress(BufferError):
                client.produce(topic, RECORD)
        client.poll(0)
        due += PERIOD_SECONDS
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
