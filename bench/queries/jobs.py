"""The jobs: a filter, a windowed count, and a stream joined to a table; records and results."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from barnabas.protocol.records.records import Record, encode_batch
from bench.wire import WireClient, make_topic

PARTITIONS: Final = 2
KEYS: Final = 1_000
WINDOW_SECONDS: Final = 10
BATCH_RECORDS: Final = 1_000
SOURCE, TABLE = "query-source", "query-table"

_DECLARED = f"""
CREATE STREAM source (k STRING KEY, v INT) WITH (kafka_topic='{SOURCE}', value_format='JSON');
CREATE TABLE names (k STRING PRIMARY KEY, name STRING)
  WITH (kafka_topic='{TABLE}', value_format='JSON');
"""
_RESULTS = {
    "filter": "CREATE STREAM {name} WITH (kafka_topic='{sink}') AS "
    "SELECT * FROM source WHERE v % 2 = 0;",
    "count": "CREATE TABLE {name} WITH (kafka_topic='{sink}') AS "
    f"SELECT k, COUNT(*) AS n FROM source WINDOW TUMBLING (SIZE {WINDOW_SECONDS} SECONDS) "
    "GROUP BY k;",
    "join": "CREATE STREAM {name} WITH (kafka_topic='{sink}') AS "
    "SELECT s.k AS k, s.v AS v, t.name AS name FROM source s JOIN names t ON s.k = t.k;",
}


@dataclass(frozen=True, slots=True)
class Job:
    """`kind` is filter, count or join; `sink` the topic of its results."""

    kind: str
    sink: str
    is_exactly_once: bool = False

    @property
    def declarations(self) -> str:
        return _DECLARED

    @property
    def statement(self) -> str:
        name = self.sink.replace("-", "_")
        return _RESULTS[self.kind].format(name=name, sink=self.sink)


class Results:
    """How many records of the source the results of a job cover."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._counts: dict[bytes, int] = {}
        self.covered = 0

    def take(self, key: bytes, value: bytes) -> int:
        """Note a result; how many records it newly covers."""
        if self._kind == "filter":
            newly = 2
        elif self._kind == "join":
            newly = 1
        else:
            count = int(json.loads(value)["N"])
            newly = max(0, count - self._counts.get(key, 0))
            self._counts[key] = self._counts.get(key, 0) + newly
        self.covered += newly
        return newly


def make_sources(port: int) -> None:
    """Make the topics of the stream and the table, and give the table its rows."""
    make_topic(port, SOURCE, PARTITIONS)
    make_topic(port, TABLE, PARTITIONS)
    with WireClient(port) as client:
        for partition in range(PARTITIONS):
            rows = [
                Record(timestamp=1, key=b"k%d" % number, value=b'{"NAME":"name %d"}' % number)
                for number in range(partition, KEYS, PARTITIONS)
            ]
            client.produce_batch(TABLE, partition, bytes(encode_batch(rows)))


def batches(first: int, records: int) -> Iterator[tuple[int, bytes]]:
    """The partition and the bytes of batches with the records from number `first` on.

    Each key stays in one partition; values alternate between even and odd.
    """
    now_ms = time.time_ns() // 1_000_000
    for start in range(first, first + records, BATCH_RECORDS):
        partition = start // BATCH_RECORDS % PARTITIONS
        yield (
            partition,
            bytes(
                encode_batch(
                    [
                        Record(
                            timestamp=now_ms, key=key_of(number, partition), value=value_of(number)
                        )
                        for number in range(start, start + BATCH_RECORDS)
                    ]
                )
            ),
        )


def key_of(number: int, partition: int) -> bytes:
    return b"k%d" % (number * 7919 % (KEYS // PARTITIONS) * PARTITIONS + partition)


def value_of(number: int) -> bytes:
    return b'{"V":%d}' % number
