"""Random bytes give a row or FormatError, in every format."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas.schemas.errors import FormatError
from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.sql.formats.catalog import FORMATS, format_named
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.schema import Column
from barnabas.sql.types import (
    BIGINT,
    BYTES,
    DATE,
    DOUBLE,
    STRING,
    TIME,
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
)
from support.effort import examples

SIMPLE: dict[SqlType, Any] = {
    STRING: "ab",
    BIGINT: 7,
    DOUBLE: 1.5,
    BYTES: b"xy",
    Decimal(6, 2): None,
    DATE: 3,
    TIME: 4,
}
NESTED: dict[SqlType, Any] = {
    Array(STRING): ["a", "b"],
    Map(STRING, BIGINT): {"k": 1},
    Struct((Field("F", Array(DOUBLE)),)): {"F": [1.0]},
}


def written(name):
    """The columns of a format, what reads them, and a row's bytes."""
    values: dict[SqlType, Any] = (
        {STRING: "ab"} if name == "KAFKA" else SIMPLE if name == "DELIMITED" else SIMPLE | NESTED
    )
    columns = [Column(f"C{index}", sql_type) for index, sql_type in enumerate(values)]
    chosen = format_named(name)
    store = MemoryRegistry()
    part = RecordPart(columns, {}, "t-value", store, chosen.can_wrap)
    data = chosen.serializer(part)(list(values.values()))
    return len(columns), chosen.deserializer(part), data


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - {"NONE"}))
def test_any_bytes(name) -> None:
    count, deserialize, data = written(name)
    assert len(deserialize(data)) == count

    def read(damaged) -> None:
        try:
            row = deserialize(damaged)
        except FormatError:
            return
        assert row is None or len(row) == count

    for cut in range(len(data)):
        read(data[:cut])

    @settings(max_examples=examples(15))
    @given(st.binary(max_size=40))
    @example(b"\xff" * 12)
    @example(b"\x02" + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f")
    def after_the_prefix(tail) -> None:
        read(data[:5] + tail)
        read(data[:6] + tail)

    @settings(max_examples=examples(15))
    @given(st.integers(0, len(data) - 1), st.integers(1, 255))
    def one_byte_changed(place, change) -> None:
        damaged = bytearray(data)
        damaged[place] ^= change
        read(bytes(damaged))

    after_the_prefix()
    one_byte_changed()
