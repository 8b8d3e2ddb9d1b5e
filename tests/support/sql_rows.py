"""Rows of many types, as records of a topic in any format."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st

from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.sql.formats.catalog import format_named
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.schema import Column
from barnabas.sql.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
)
from support.sql_columns import Batches

TYPES: dict[str, SqlType] = {
    "I": INTEGER,
    "D": DOUBLE,
    "T": STRING,
    "O": BOOLEAN,
    "TS": TIMESTAMP,
    "N": Decimal(6, 2),
    "A": Struct((Field("X", INTEGER), Field("Y", STRING))),
    "L": Array(STRING),
    "M": Map(STRING, BIGINT),
}

SOURCE = (
    "CREATE STREAM s (k STRING KEY, i INT, d DOUBLE, t STRING, o BOOLEAN, ts TIMESTAMP,"
    " n DECIMAL(6, 2), a STRUCT<x INT, y STRING>, l ARRAY<STRING>, m MAP<STRING, BIGINT>)"
    " WITH (kafka_topic='s', value_format='{format}');"
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "I": st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 5),
    "D": st.sampled_from((0.0, -0.0, 1.5, 1e7, 3.0)) | st.floats(allow_nan=False),
    "T": st.sampled_from(("a", "b", "", "\u00e9")),
    "O": st.booleans(),
    "TS": st.integers(0, 2 * 10**12),
    "N": st.decimals(-100, 100, places=2),
    "A": st.fixed_dictionaries(
        {"X": st.none() | st.integers(-5, 5), "Y": st.none() | st.sampled_from(("a", "b"))}
    ),
    "L": st.lists(st.sampled_from(("a", "b")), max_size=2),
    "M": st.dictionaries(st.sampled_from(("p", "q")), st.integers(-3, 3), max_size=2),
}
Rows = list[list[list[Any]]]


def written(format_name: str, rows: Rows) -> tuple[Batches, MemoryRegistry]:
    """The rows of batches as records of the format, and the registry with their schema."""
    registry = MemoryRegistry()
    columns = tuple(Column(name, sql_type) for name, sql_type in TYPES.items())
    part = RecordPart(columns, {}, "s-value", registry, wraps=True)
    write = format_named(format_name).serializer(part)
    made: Batches = []
    number = 0
    for batch in rows:
        made.append([])
        for row in batch:
            number += 1
            key = b"k%d" % (number % 3)
            made[-1].append(("s", TopicRecord(key, write(row), number * 400, ())))
    return made, registry


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    """Rows of a few batches; some values are NULL."""
    row = st.tuples(*(st.none() | values | values for values in VALUES.values())).map(list)
    batches: Rows = draw(st.lists(st.lists(row, min_size=1, max_size=6), min_size=1, max_size=2))
    return batches


def without_chance(found: tuple[Any, ...]) -> tuple[Any, ...]:
    """The outcome without what errors of codecs say by chance: Avro's name addresses of Python
    objects, and Protobuf's the module that was the first to make a class."""
    if len(found) == 1:  # both ways failed
        return found
    results, count, notes, *others = found
    text = re.sub(" at 0x[0-9a-f]+", "", str(notes))
    return results, count, re.sub(r"(<class \\*')[\w.]*\.", r"\1", text), *others
