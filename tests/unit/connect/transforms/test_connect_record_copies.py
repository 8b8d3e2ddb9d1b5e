"""Copies of records, which transforms change."""

from __future__ import annotations

from dataclasses import fields

import pytest

from barnabas.connect.record import ConnectRecord, Header, SinkRecord, SourceRecord


@pytest.mark.parametrize("kind", [ConnectRecord, SourceRecord, SinkRecord])
def test_a_copy_has_all_that_the_record_has(kind: type[ConnectRecord]) -> None:
    values = {field.name: object() for field in fields(kind)}
    record = kind(**{**values, "headers": [Header("h", None, 1)]})  # type: ignore[arg-type]
    copy = record.copied()
    for field in fields(kind):
        assert getattr(copy, field.name) == getattr(record, field.name)
    copy.headers.append(Header("g", None, 2))
    assert len(record.headers) == 1
