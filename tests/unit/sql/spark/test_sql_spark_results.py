"""Results that tasks write at least once, to a node: their partitions, order and timestamps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from barnabas.app.testing import Kafka
from barnabas.java.hash import murmur2
from barnabas.sql.spark.parcels import Results
from barnabas.sql.spark.results import ResultRecords, write_from_task
from support.patience import PATIENCE_S

PARTITIONS = 3
TIMEOUT_S = PATIENCE_S


def lists(keys: list[bytes], values: list[bytes | None], stamps: list[int]) -> tuple[Any, ...]:
    return keys, values, stamps


def arrays(keys: list[bytes], values: list[bytes | None], stamps: list[int]) -> tuple[Any, ...]:
    return pa.array(keys, pa.binary()), pa.array(values, pa.binary()), np.array(stamps, np.int64)


@pytest.mark.parametrize("made", [lists, arrays])
@pytest.mark.parametrize("window_bytes", [0, 8, 16])
@pytest.mark.parametrize("has_headers", [False, True])
def test_results_are_where_their_key_without_its_window_belongs(
    kafka: Kafka, made: Any, window_bytes: int, has_headers: bool
) -> None:
    topic = kafka.topic(partitions=PARTITIONS)
    keys = [b"k%d" % (n % 9) + bytes([n]) * window_bytes for n in range(100)]
    values = [b"%d" % n if n % 5 else None for n in range(100)]
    stamps = list(range(100))
    headers = [(("h", b"%d" % n),) for n in range(100)] if has_headers else None
    to = ResultRecords(topic, window_bytes, PARTITIONS)
    as_keys, as_values, as_stamps = made(keys, values, stamps)
    results = Results(as_keys, as_values, as_stamps, headers)
    assert write_from_task(kafka.bootstrap_servers, to, results) == len(keys)
    assert write_from_task(kafka.bootstrap_servers, to, Results([], [], [], None)) == 0
    consumer = kafka.consumer(topic)
    found: dict[int | None, list[Any]] = {number: [] for number in range(PARTITIONS)}
    for m in consumer.consume(len(keys), TIMEOUT_S):
        row = m.key(), m.value(), m.timestamp()[1], m.headers()
        found[m.partition()].append(row)
    consumer.close()
    bare = [murmur2(key[: len(key) - window_bytes]) & 0x7FFFFFFF for key in keys]
    given = [None] * len(keys) if headers is None else [list(each) for each in headers]
    rows = list(zip(keys, values, stamps, given, strict=True))
    assert found == {
        number: [row for row, at in zip(rows, bare, strict=True) if at % PARTITIONS == number]
        for number in range(PARTITIONS)
    }
