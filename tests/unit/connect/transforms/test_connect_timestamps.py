"""Moments that TimestampConverter cannot count."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from barnabas.connect.plugins import load
from barnabas.connect.record import ConnectRecord
from barnabas.schemas.data.builder import TIMESTAMP_SCHEMA


@pytest.mark.parametrize(
    ("year", "precision", "number"),
    [
        (9999, "nanoseconds", 2**63 - 1),
        (1, "nanoseconds", -(2**63)),
        (1600, "seconds", -11_676_096_000),
    ],
)
def test_numbers_beyond_64_bits_are_the_last(year: int, precision: str, number: int) -> None:
    convert = load("org.apache.kafka.connect.transforms.TimestampConverter$Value")()
    convert.configure({"target.type": "unix", "unix.precision": precision})
    moment = datetime(year, 1, 1, tzinfo=UTC)
    record = ConnectRecord(topic="t", value_schema=TIMESTAMP_SCHEMA, value=moment)
    assert convert.apply(record).value == number
