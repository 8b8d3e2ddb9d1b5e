"""MirrorMaker's metrics."""

from __future__ import annotations

import math
import pickle

import pytest

from barnabas.connect.connectors.mirror.figures import CheckpointFigures, SourceFigures, Tally
from barnabas.connect.connectors.mirror.records import Checkpoint
from barnabas.connect.connectors.mirror.source_reader import WrittenRuns
from barnabas.connect.record import RawRecord


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def seen(figures: SourceFigures | CheckpointFigures, prefix: str) -> dict[str, float]:
    return {name.removeprefix(prefix): value for name, _, value in figures.seen()}


def tally(records: int, size_bytes: int, *latencies_ms: float) -> Tally:
    made = Tally(records=records, size_bytes=size_bytes)
    for one in latencies_ms:
        made.latency_ms.add(one)
        made.age_ms.add(one / 2)
    return made


def test_counts_stay_and_times_are_of_the_last_minute() -> None:
    clock = Clock()
    figures = SourceFigures("west", "east", clock)
    figures.add(("west.t", 1), tally(30, 3000, 10, 40))
    name, labels, _ = figures.seen()[0]
    assert name == "mirror_mirrorsourceconnector_record-count"
    assert dict(labels) == {
        "source": "west",
        "target": "east",
        "topic": "west.t",
        "partition": "1",
    }
    prefix = "mirror_mirrorsourceconnector_"
    assert seen(figures, prefix) == {
        "record-count": 30,
        "record-rate": 1,
        "byte-count": 3000,
        "byte-rate": 100,
        "record-age-ms": 20,
        "record-age-ms-max": 20,
        "record-age-ms-min": 5,
        "record-age-ms-avg": 12.5,
        "replication-latency-ms": 40,
        "replication-latency-ms-max": 40,
        "replication-latency-ms-min": 10,
        "replication-latency-ms-avg": 25,
    }
    clock.now_s += 40
    figures.add(("west.t", 1), tally(10, 1000, 5))
    found = seen(figures, prefix)
    assert found["record-rate"] == pytest.approx(1)
    assert found["replication-latency-ms"] == 5
    assert found["replication-latency-ms-max"] == 40
    clock.now_s += 30
    assert seen(figures, prefix)["replication-latency-ms-max"] == 5
    clock.now_s += 60
    found = seen(figures, prefix)
    assert (found["record-count"], found["record-rate"], found["byte-rate"]) == (40, 0, 0)
    assert found["replication-latency-ms"] == 5
    assert math.isnan(found["replication-latency-ms-max"])


def test_checkpoints_have_their_group() -> None:
    figures = CheckpointFigures("west", "east", Clock())
    figures.written(Checkpoint("shop", ("west.t", 0), 5, 5), 12)
    figures.written(Checkpoint("shop", ("west.t", 0), 7, 7), 8)
    assert ("group", "shop") in figures.seen()[0][1]
    assert seen(figures, "mirror_mirrorcheckpointconnector_checkpoint-latency-ms") == {
        "": 8,
        "-max": 12,
        "-min": 8,
        "-avg": 10,
    }


def test_a_split_counts_what_it_reads_and_writes() -> None:
    runs = WrittenRuns({"west.t": "t"})
    read = [
        RawRecord(topic="t", partition=0, value=b"four", timestamp_ms=0, offset=number)
        for number in range(2)
    ]
    for record in read:
        runs.read(record)
        record.topic = "west.t"
    runs.written(read[0], 7)
    found = pickle.loads(pickle.dumps(runs)).tallies["t", 0]
    assert (found.records, found.size_bytes) == (1, 8)
    assert found.age_ms.count == 2
    assert found.latency_ms.count == 1
    assert found.latency_ms.last >= found.age_ms.least > 1_600_000_000_000
