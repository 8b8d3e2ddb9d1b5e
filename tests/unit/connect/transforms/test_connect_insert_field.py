"""Fields that InsertField adds."""

from __future__ import annotations

from datetime import UTC, datetime

from barnabas.connect.plugins import load
from barnabas.connect.record import ConnectRecord
from barnabas.schemas.data.builder import STRING, struct_of
from barnabas.schemas.data.schema import Struct

ROW = struct_of({"a": STRING})


def test_the_first_moment_of_1970_is_a_moment() -> None:
    insert = load("org.apache.kafka.connect.transforms.InsertField$Value")()
    insert.configure({"timestamp.field": "at"})
    record = ConnectRecord(
        topic="t", value_schema=ROW, value=Struct.of(ROW, {"a": "x"}), timestamp_ms=0
    )
    assert insert.apply(record).value.values == ["x", datetime(1970, 1, 1, tzinfo=UTC)]
