"""What it costs a worker of SQL to read a topic as columns: fetch, decode, Arrow arrays.

    python -m bench.sql_reading [records] [records of a batch]

Microseconds of the reading process's time for a record of 100 bytes of JSON with a key, the best of
seven rounds, from a node of this machine. Beside it the decoding alone, and that of single records.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.kafka.wire_producer import WireProducer
from barnabas.protocol.records.batch import Codec
from barnabas.protocol.records.records import Record, decode_records, encode_batch
from barnabas.spark.batch_columns import columns_of_batches
from barnabas.spark.record_columns import RecordColumns
from barnabas.sql.spark.hosting import RangeReading
from barnabas.sql.spark.reading import read_ranges
from bench.barnabas_server import BarnabasServer

ROUNDS = 7
TOPIC = "read"


def row(number: int) -> tuple[bytes, bytes, int]:
    value = {"user": number % 1_000, "page": f"page_{number % 37}", "ms": number * 7, "s": "x" * 40}
    return b"user_%d" % (number % 1_000), json.dumps(value).encode(), 1_700_000_000_000 + number


def best(run: Callable[[], int], records: int) -> float:
    """Microseconds of this process for a record."""
    found = []
    for _ in range(ROUNDS):
        before = time.process_time()
        assert run() == records
        found.append(time.process_time() - before)
    return min(found) / records * 1e6


def report(name: str, figure: float) -> None:
    print(f"{name:<40}{figure:8.2f} µs")


def decoding(records: int, per_batch: int) -> None:
    for codec in Codec:
        batches = []
        for base in range(0, records, per_batch):
            rows = [row(base + number) for number in range(per_batch)]
            made = [Record(base + n, at, key, value) for n, (key, value, at) in enumerate(rows)]
            batches.append(bytes(encode_batch(made, base_offset=base, codec=codec)))
        joined = b"".join(batches)
        name = codec.name.lower()
        report(f"decode, {name}, as columns", best(partial(as_columns, joined), records))
        report(f"decode, {name}, one by one", best(partial(one_by_one, batches), records))


def as_columns(joined: bytes) -> int:
    return sum(map(len, columns_of_batches(joined, 0, 2**62)))


def one_by_one(batches: list[bytes]) -> int:
    return sum(len(decode_records(one)) for one in batches)


def read(servers: str, ranges: pa.RecordBatch) -> int:
    return sum(map(len, read_ranges(RangeReading(servers), ranges)))


def reading(records: int, per_batch: int) -> None:
    with tempfile.TemporaryDirectory() as directory, BarnabasServer(Path(directory)) as broker:
        broker.format()
        broker.start()
        servers = f"127.0.0.1:{broker.port}"
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result()
        producer = WireProducer({"bootstrap.servers": servers})
        for base in range(0, records, per_batch):
            keys, values, times = zip(*(row(base + n) for n in range(per_batch)), strict=True)
            producer.produce_columns(TOPIC, RecordColumns.of(list(keys), list(values), times))
            producer.flush()
        for piece in (records, 10 * per_batch, per_batch):
            starts = list(range(0, records, piece))
            ranges = pa.RecordBatch.from_pydict(
                {
                    "topic": [TOPIC] * len(starts),
                    "partition": [0] * len(starts),
                    "first": starts,
                    "until": [min(start + piece, records) for start in starts],
                }
            )
            report(f"read in ranges of {piece}", best(partial(read, servers, ranges), records))


def main() -> None:
    records, per_batch = (*map(int, sys.argv[1:]), *(200_000, 500)[len(sys.argv) - 1 :])
    decoding(records, per_batch)
    reading(records, per_batch)


if __name__ == "__main__":
    main()
