"""What it costs to write a result of a SQL query to its topic: in columns, and one by one.

    python -m bench.sql_results [records]

Microseconds of processor time a record, of the writing process and of the node, from Arrow arrays
until all is acknowledged; exactly once, until the transaction is committed. One by one they go
through librdkafka. The ways alternate; the best of the rounds counts.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Producer

from barnabas.kafka.partitioners import JAVA_PARTITIONER
from barnabas.kafka.transactions import TransactionControl
from barnabas.spark.datasource.options import options_of
from barnabas.spark.datasource.task import POOL, Transaction
from barnabas.spark.record_columns import RecordColumns
from barnabas.spark.record_writer import RecordWriter
from bench.barnabas_server import BarnabasServer
from bench.measure import cpu_seconds
from bench.wire import make_topic, produce_first

RECORDS = 50_000
ROUNDS = 10
KEYS = 1_000
PARTITIONS = 2
TOPIC = "results"

Write = Callable[[Any, Any, Any], None]


def one_by_one(servers: str) -> Write:
    """As tasks of Spark's wrote before they wrote columns."""
    settings = {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5}
    producer = Producer({**settings, **JAVA_PARTITIONER})

    def write(keys: Any, values: Any, timestamps: Any) -> None:
        columns = keys.to_pylist(), values.to_pylist(), timestamps.tolist()
        for key, value, timestamp_ms in zip(*columns, strict=True):
            producer.produce(TOPIC, value, key, timestamp=timestamp_ms)
        assert producer.flush(60) == 0

    return write


def in_columns(servers: str) -> Write:
    writer = RecordWriter(servers)

    def write(keys: Any, values: Any, timestamps: Any) -> None:
        assert writer.write_columns(TOPIC, RecordColumns.of(keys, values, timestamps))

    return write


def in_transactions(servers: str, *, has_columns: bool) -> Write:
    """A task's transaction for each write, which the driver commits."""
    options = options_of(servers, {})
    control = TransactionControl(options.access)
    numbers = itertools.count()

    def write(keys: Any, values: Any, timestamps: Any) -> None:
        batch = next(numbers)
        transaction = Transaction(options, lambda: POOL.take(f"columns-{has_columns}.", batch))
        if has_columns:
            transaction.send_columns(TOPIC, RecordColumns.of(keys, values, timestamps))
        else:
            columns = keys.to_pylist(), values.to_pylist(), timestamps.tolist()
            for key, value, timestamp_ms in zip(*columns, strict=True):
                transaction.send_record((TOPIC, value, key, -1, timestamp_ms, None))
        (prepared,) = transaction.prepare(0)
        assert control.commit(prepared)

    return write


def main() -> None:
    """Print a row for each way."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    keys = pa.array([b"k%d" % (number * 7919 % KEYS) for number in range(records)])
    values = pa.array([b'{"V":%d}' % number for number in range(records)])
    timestamps = np.full(records, time.time_ns() // 1_000_000)
    with tempfile.TemporaryDirectory() as temporary, BarnabasServer(Path(temporary, "n")) as node:
        node.format()
        node.start()
        produce_first(node.port, "bench-first")
        make_topic(node.port, TOPIC, PARTITIONS)
        servers = node.bootstrap
        ways = {
            "one by one": one_by_one(servers),
            "in columns": in_columns(servers),
            "one by one, exactly once": in_transactions(servers, has_columns=False),
            "in columns, exactly once": in_transactions(servers, has_columns=True),
        }
        best = dict.fromkeys(ways, (float("inf"), float("inf")))
        for _ in range(ROUNDS):
            for name, write in ways.items():
                own, nodes = time.process_time(), cpu_seconds(node.pid)
                write(keys, values, timestamps)
                took = time.process_time() - own, cpu_seconds(node.pid) - nodes
                best[name] = min(best[name][0], took[0]), min(best[name][1], took[1])
    for name, (own, nodes) in best.items():
        shown = f"{own / records * 1e6:.2f} us, node {nodes / records * 1e6:.2f} us"
        sys.stdout.write(f"{name}: {shown}\n")


if __name__ == "__main__":
    main()
