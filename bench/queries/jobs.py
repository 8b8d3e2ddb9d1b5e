"""The jobs of SQL queries and Kafka Streams applications; their records and results.

Records have the time of a clock of their own, which goes on by a minute with each append: so the
records of one append are in the windows of no other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from barnabas.protocol.records.records import Record, encode_batch
from bench.wire import WireClient, make_topic

PARTITIONS: Final = 2
KEYS: Final = 1_000
WINDOW_SECONDS: Final = 10
BATCH_RECORDS: Final = 1_000
SOURCE, TABLE = "query-source", "query-table"
OTHER: Final = "query-other"
"""A stream that has each key once in each append."""
AVRO_SOURCE: Final = "query-avro"
AVRO: Final = "avro"
END: Final = "end"
"""The line that ends a job of a program that takes lines."""
ENDED: Final = "ended"
"""Its answer, when the job no longer runs."""
KINDS: Final = ("filter", "count", "join", "streams", "sessions", AVRO)
SCHEMA: Final = (
    '{"type":"record","name":"KsqlDataSourceSchema","namespace":"io.confluent.ksql.avro_schemas",'
    '"fields":[{"name":"V","type":["null","int"],"default":null}]}'
)
"""Of the values of `AVRO_SOURCE`."""

_DECLARED = f"""
CREATE STREAM source (k STRING KEY, v INT) WITH (kafka_topic='{SOURCE}', value_format='JSON');
CREATE STREAM other (k STRING KEY, v INT) WITH (kafka_topic='{OTHER}', value_format='JSON');
CREATE TABLE names (k STRING PRIMARY KEY, name STRING)
  WITH (kafka_topic='{TABLE}', value_format='JSON');
CREATE STREAM readings (k STRING KEY, v INT)
  WITH (kafka_topic='{AVRO_SOURCE}', value_format='AVRO');
"""
_RESULTS = {
    "filter": "CREATE STREAM {name} WITH (kafka_topic='{sink}') AS "
    "SELECT * FROM source WHERE v % 2 = 0;",
    "count": "CREATE TABLE {name} WITH (kafka_topic='{sink}') AS "
    f"SELECT k, COUNT(*) AS n FROM source WINDOW TUMBLING (SIZE {WINDOW_SECONDS} SECONDS) "
    "GROUP BY k;",
    "join": "CREATE STREAM {name} WITH (kafka_topic='{sink}') AS "
    "SELECT s.k AS k, s.v AS v, t.name AS name FROM source s JOIN names t ON s.k = t.k;",
    "streams": "CREATE STREAM {name} WITH (kafka_topic='{sink}') AS "
    f"SELECT s.k AS k, s.v AS v, o.v AS w FROM source s JOIN other o WITHIN {WINDOW_SECONDS} "
    "SECONDS GRACE PERIOD 24 HOURS ON s.k = o.k;",
    "sessions": "CREATE TABLE {name} WITH (kafka_topic='{sink}') AS "
    f"SELECT k, COUNT(*) AS n FROM source WINDOW SESSION ({WINDOW_SECONDS} SECONDS) GROUP BY k;",
    AVRO: "CREATE STREAM {name} WITH (kafka_topic='{sink}') AS "
    "SELECT * FROM readings WHERE v % 2 = 0;",
}


@dataclass(frozen=True, slots=True)
class Job:
    """`kind` is one of `KINDS`; `sink` the topic of its results."""

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
        if self._kind in ("filter", AVRO):
            newly = 2
        elif self._kind in ("join", "streams"):
            newly = 1
        else:
            count = int(json.loads(value)["N"])
            newly = max(0, count - self._counts.get(key, 0))
            self._counts[key] = self._counts.get(key, 0) + newly
        self.covered += newly
        return newly

    def check(self, total: int, counts: Mapping[bytes, int]) -> None:
        """Check that the results cover so many records, no more, and each window's last count.

        `counts` are those to expect, by the results' keys; other windows are not looked at. Raises
        RuntimeError.
        """
        if self.covered != total:
            raise RuntimeError(f"the results cover {self.covered} records, not {total}")
        if self._kind == "count":
            for key, count in counts.items():
                if self._counts.get(key) != count:
                    raise RuntimeError(
                        f"{key!r} has the count {self._counts.get(key)}, not {count}"
                    )


def plain_key(key: bytes) -> bytes:
    """A result's key as Kafka's serialisers write it: of a window, with its start in eight bytes.

    Flink writes a key of two columns as JSON: the key and that start.
    """
    if not key.startswith(b"{"):
        return key
    found = json.loads(key)
    return str(found["k"]).encode() + int(found["w"]).to_bytes(8, "big")


def make_sources(port: int) -> None:
    """Make the topics of the streams and the table, and give the table its rows."""
    for topic in (SOURCE, OTHER, TABLE, AVRO_SOURCE):
        make_topic(port, topic, PARTITIONS)
    with WireClient(port) as client:
        for partition in range(PARTITIONS):
            rows = [
                Record(timestamp=1, key=b"k%d" % number, value=b'{"NAME":"name %d"}' % number)
                for number in range(partition, KEYS, PARTITIONS)
            ]
            client.produce_batch(TABLE, partition, bytes(encode_batch(rows)))


def batches(
    first: int, records: int, at_ms: int, value: Callable[[int], bytes]
) -> Iterator[tuple[int, bytes]]:
    """The partition and the bytes of batches with the records from number `first` on.

    Each key stays in one partition; values alternate between even and odd. `value` gives a record's
    by its number.
    """
    for start, partition in _batch_places(first, records):
        yield (
            partition,
            bytes(
                encode_batch(
                    [
                        Record(timestamp=at_ms, key=key_of(number, partition), value=value(number))
                        for number in range(start, start + BATCH_RECORDS)
                    ]
                )
            ),
        )


def window_keys(first: int, records: int, at_ms: int) -> Iterator[bytes]:
    """The keys of the windowed count's results for these records: key and start of the window."""
    window_ms = WINDOW_SECONDS * 1_000
    start = (at_ms - at_ms % window_ms).to_bytes(8, "big")
    for first_of_batch, partition in _batch_places(first, records):
        for number in range(first_of_batch, first_of_batch + BATCH_RECORDS):
            yield key_of(number, partition) + start


def _batch_places(first: int, records: int) -> Iterator[tuple[int, int]]:
    """The number of each batch's first record, and the batch's partition."""
    for start in range(first, first + records, BATCH_RECORDS):
        yield start, start // BATCH_RECORDS % PARTITIONS


def once_each(at_ms: int) -> Iterator[tuple[int, bytes]]:
    """The same of `OTHER`'s records: each key once."""
    for partition in range(PARTITIONS):
        records = [
            Record(timestamp=at_ms, key=b"k%d" % number, value=value_of(number))
            for number in range(partition, KEYS, PARTITIONS)
        ]
        yield partition, bytes(encode_batch(records))


def key_of(number: int, partition: int) -> bytes:
    return b"k%d" % (number * 7919 % (KEYS // PARTITIONS) * PARTITIONS + partition)


def value_of(number: int) -> bytes:
    return b'{"V":%d}' % number


def avro_value_of(number: int, schema_id: int) -> bytes:
    """`value_of` in Confluent's format: zero, the schema's id, the union's branch, the number."""
    left = number << 1
    digits = bytearray()
    while left > 0x7F:
        digits.append(left & 0x7F | 0x80)
        left >>= 7
    digits.append(left)
    return b"\x00" + schema_id.to_bytes(4, "big") + b"\x02" + bytes(digits)
