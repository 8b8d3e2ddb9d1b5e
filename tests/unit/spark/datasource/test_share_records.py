"""Tasks of the share-group source, with brokers that fail."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.base.ids import Uuid
from barnabas.kafka.wire import Access, Brokers, Connection, WireError
from barnabas.protocol.records.records import Record, encode_batch
from barnabas.spark.datasource import share_records
from barnabas.spark.datasource.share_ranges import Delivery, Partition
from barnabas.spark.datasource.share_records import LogReader

PARTITION = Partition(Uuid(bytes(16)), 0)


def test_a_broker_that_is_away_is_asked_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_brokers: Brokers) -> Connection:
        raise WireError("nobody listens")

    now_s, pauses = 0.0, []

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds
        pauses.append(seconds)

    monkeypatch.setattr(Brokers, "any", refuse)
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    reader = LogReader(Access("a:1"))
    with pytest.raises(WireError, match="t-0 at 5: nobody listens"):
        list(reader.read("t", [Delivery(PARTITION, 5, 6, 1)], fails_on_loss=True))
    assert pauses[0] < 0.1
    assert now_s > share_records.GIVE_UP_S
    assert len(pauses) < 60


def test_deliveries_of_one_batch_are_fetched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [
        encode_batch([Record(at, 0, None, b"%d" % at) for at in range(at, at + 10)], base_offset=at)
        for at in (0, 10, 20)
    ]
    asked: list[int] = []

    def fetch(_reader: LogReader, _topic: str, _partition: Partition, offset: int) -> Any:
        asked.append(offset)
        return SimpleNamespace(error_code=0, records=b"".join(batches[offset // 10 :][:2]))

    monkeypatch.setattr(LogReader, "_fetch", fetch)
    deliveries = [Delivery(PARTITION, at, at + 1, 1 + at % 2) for at in (3, 6, 9, 14, 19, 25, 28)]
    (rows,) = LogReader(Access("a:1")).read("t", deliveries, fails_on_loss=True)
    want = [at for delivery in deliveries for at in (delivery.first, delivery.last)]
    assert [record.offset for record in rows.records] == want
    assert [record.value for record in rows.records] == [b"%d" % at for at in want]
    assert rows.counts == [one.attempt for one in deliveries for _ in range(2)]
    assert rows.timestamp_types == [0] * len(want)
    assert asked == [3, 20]
