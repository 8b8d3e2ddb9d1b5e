"""Random schemas of Connect with values that fit them."""

from __future__ import annotations

from datetime import UTC
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from barnabas.schemas.data.builder import (
    BOOLEAN,
    BYTES,
    DATE_SCHEMA,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    STRING,
    TIMESTAMP_SCHEMA,
    array_of,
    decimal,
    map_of,
    optional,
    struct_of,
)
from barnabas.schemas.data.schema import Schema, Struct


def typed_values() -> SearchStrategy[tuple[Schema, Any]]:
    """Pairs of a schema and a value."""
    floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
    moments = st.datetimes(timezones=st.just(UTC)).map(
        lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    )
    cents = st.integers(-(10**30), 10**30).map(lambda n: Decimal(f"{n}E-2"))
    plain: list[tuple[Schema, SearchStrategy[Any]]] = [
        (INT8, st.integers(-128, 127)),
        (INT64, st.integers(-(2**63), 2**63 - 1)),
        (FLOAT32, floats),
        (FLOAT64, st.floats(allow_nan=False, allow_infinity=False)),
        (BOOLEAN, st.booleans()),
        (STRING, texts),
        (BYTES, st.binary(max_size=5)),
        (decimal(2), cents),
        (DATE_SCHEMA, st.dates()),
        (TIMESTAMP_SCHEMA, moments),
    ]

    def of(schema: Schema, values: SearchStrategy[Any]) -> SearchStrategy[tuple[Schema, Any]]:
        is_optional = st.booleans()
        return is_optional.flatmap(
            lambda null: (
                st.tuples(st.just(optional(schema)), st.one_of(st.none(), values))
                if null
                else st.tuples(st.just(schema), values)
            )
        )

    def structs(pairs: list[tuple[Schema, Any]]) -> tuple[Schema, Any]:
        schema = struct_of([(f"f{i}", part) for i, (part, _) in enumerate(pairs)])
        return schema, Struct(schema, [value for _, value in pairs])

    leaves = st.one_of([of(schema, values) for schema, values in plain])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4).map(structs),
            inner.map(lambda pair: (array_of(pair[0]), [pair[1], pair[1]])),
            inner.map(lambda pair: (map_of(STRING, pair[0]), {"k": pair[1]})),
            inner.map(lambda pair: (map_of(INT32, pair[0]), {5: pair[1]})),
        ),
        max_leaves=6,
    )
