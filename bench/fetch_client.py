"""A consumer that fetches and counts, and does nothing with the records.

`python -m bench.fetch_client PORT TOPIC PARTITIONS RECORDS [CERTIFICATE]` reads from offset 0 until
it has seen RECORDS, with the fetch settings of Kafka's consumer, and prints its rate from the first
byte to the last as JSON. With a certificate to trust it speaks TLS.
"""

import json
import ssl
import sys
import time
from typing import cast

from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.records.batch import iterate_headers
from bench.wire import ERRORS, WireClient

FETCH_VERSION = 12
MAX_WAIT_MS = 500
FETCH_BYTES_MAX = 50 * 1024 * 1024
PARTITION_BYTES_MAX = 1024 * 1024


def main(port: int, topic: str, partitions: int, records: int, certificate: str = "") -> None:
    tls = ssl.create_default_context(cafile=certificate) if certificate else None
    offsets = dict.fromkeys(range(partitions), 0)
    started = 0.0
    total_bytes = 0
    with WireClient(port, tls=tls) as client:
        while sum(offsets.values()) < records:
            response = cast("FetchResponse", client.request(1, FETCH_VERSION, _ask(topic, offsets)))
            for partition in response.responses[0].partitions:
                if partition.error_code:
                    raise RuntimeError(ERRORS[partition.error_code].name)
                if partition.records:
                    started = started or time.monotonic()
                    total_bytes += len(partition.records)
                    for _, header in iterate_headers(partition.records, allow_partial_tail=True):
                        offsets[partition.partition_index] = header.next_offset
    seconds = time.monotonic() - started
    json.dump({"mb_s": total_bytes / seconds / 1e6, "bytes": total_bytes}, sys.stdout)


def _ask(topic: str, offsets: dict[int, int]) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=MAX_WAIT_MS,
        min_bytes=1,
        max_bytes=FETCH_BYTES_MAX,
        session_epoch=-1,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=partition,
                        fetch_offset=offset,
                        partition_max_bytes=PARTITION_BYTES_MAX,
                    )
                    for partition, offset in offsets.items()
                ],
            )
        ],
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), *sys.argv[5:])
