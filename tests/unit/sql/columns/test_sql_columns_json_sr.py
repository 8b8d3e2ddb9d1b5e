"""JSON_SR as columns: the same rows as record by record, for any writer's schema."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.schemas.wire_format import prefix_of
from barnabas.sql.columns import reading
from barnabas.sql.columns.vectors import Read
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.schema import Column, Part
from barnabas.sql.types import BIGINT, DOUBLE, INTEGER, STRING, Decimal, Field, SqlType, Struct
from support.effort import examples
from support.sql_columns import Batches, copies, outcome
from support.sql_damage import broken
from support.sql_queries import plans_of

COLUMNS = (
    "i INT, b BIGINT, d DOUBLE, t STRING, o BOOLEAN, ts TIMESTAMP, a DECIMAL(8, 2), y BYTES, "
    "da DATE, ti TIME, n STRUCT<x INT, u STRUCT<y STRING>>, l ARRAY<INT>, m MAP<STRING, BIGINT>"
)
SOURCE = "CREATE STREAM s (k STRING KEY, {}) WITH (kafka_topic='s', value_format='JSON_SR');"
QUERIES = (
    "CREATE STREAM q WITH (value_format='JSON') AS SELECT * FROM s;",
    "CREATE STREAM q WITH (value_format='JSON') AS SELECT * FROM s WHERE i > 0 OR t IS NULL;",
    "CREATE TABLE q AS SELECT k, COUNT(*) AS n, SUM(b) AS x, MIN(d) AS z FROM s GROUP BY k;",
)
FLAT = "i INT, b BIGINT, d DOUBLE, t STRING, n STRUCT<x INT, u STRUCT<y STRING>>, a DECIMAL(8, 2)"

# --- schemas and values of writers -----------------------------------------------------------

DECIMAL = {
    "type": "number",
    "title": "org.apache.kafka.connect.data.Decimal",
    "connect.type": "bytes",
    "connect.parameters": {"scale": "2", "connect.decimal.precision": "8"},
}


def logical(name: str, bits: int) -> dict[str, Any]:
    title = f"org.apache.kafka.connect.data.{name}"
    return {"type": "integer", "title": title, "connect.type": f"int{bits}"}


def whole(bits: int) -> dict[str, Any]:
    return {"type": "integer", "connect.type": f"int{bits}"}


def nullable(kind: dict[str, Any]) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, kind]}


TEXT = {"type": "string"}
INNER = {"type": "object", "properties": {"Y": nullable(TEXT), "z": nullable(TEXT)}}
NESTED = {"type": "object", "properties": {"X": nullable(whole(32)), "u": nullable(INNER)}}
KINDS: dict[str, tuple[dict[str, Any], ...]] = {
    "I": (whole(32), whole(32), whole(16), whole(8), {"type": "integer"}),
    "B": ({"type": "integer"}, whole(64), whole(32), whole(8), {"type": "number"}),
    "D": ({"type": "number"}, {"type": "number", "connect.type": "float32"}, whole(32)),
    "T": (TEXT, {"enum": ["a", "b"]}, {"type": "integer"}, {"type": "boolean"}, DECIMAL),
    "O": ({"type": "boolean"}, TEXT),
    "TS": (logical("Timestamp", 64), {"type": "integer"}),
    "A": (DECIMAL, {**DECIMAL, "connect.parameters": {"scale": "4"}}),
    "Y": ({"type": "string", "connect.type": "bytes"}, TEXT),
    "DA": (logical("Date", 32), whole(32)),
    "TI": (logical("Time", 32),),
    "N": (
        NESTED,
        {**NESTED, "properties": {"x": whole(32), "U": INNER, "w": TEXT}},
        {"type": "object", "properties": {"X": {"type": "integer", "default": 7}}},
        nullable({"oneOf": [NESTED, TEXT]}),
    ),
    "L": ({"type": "array", "items": nullable(whole(32))}, {"type": "array", "items": TEXT}),
    "M": (
        {"type": "object", "connect.type": "map", "additionalProperties": {"type": "integer"}},
        {
            "type": "array",
            "connect.type": "map",
            "items": {"type": "object", "properties": {"key": TEXT, "value": {"type": "integer"}}},
        },
    ),
}
WHOLES = st.one_of(
    st.integers(-3, 6),
    st.sampled_from((127, 128, 2**15, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), 2**63)),
)
TEXTS = st.sampled_from(("a", "b", "é", "\U0001f600", "12", '"', "\\u0041", "null", "", "\ud800"))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("I", "B", "TS", "DA", "TI"), WHOLES),
    "D": st.one_of(st.sampled_from((0.0, -0.0, 0.5, 1e300, 1e7)), WHOLES),
    "T": TEXTS,
    "O": st.booleans(),
    "A": st.one_of(st.sampled_from((1, 1.25, 1.234, -0.5, 10**7, 1e2)), st.integers(-99, 99)),
    "Y": st.sampled_from(("", "YQ==", "YQ", "?", "MTI=")),
    "N": st.fixed_dictionaries(
        {},
        optional={
            "X": st.none() | WHOLES,
            "x": st.none() | WHOLES,
            "u": st.none() | st.fixed_dictionaries({}, optional={"Y": st.none() | TEXTS}),
            "U": st.none() | st.fixed_dictionaries({}, optional={"Y": st.none() | TEXTS}),
            "w": st.none() | TEXTS,
        },
    ),
    "L": st.lists(st.none() | WHOLES, max_size=3),
    "M": st.one_of(
        st.dictionaries(TEXTS, WHOLES, max_size=2),
        st.lists(st.fixed_dictionaries({"key": TEXTS, "value": WHOLES}), max_size=2),
    ),
}
ODD = st.sampled_from((None, None, True, 1, 1.5, "7", "MTI=", [1], {"X": 1}, {}, 10**30))


@st.composite
def schemas(draw: st.DrawFn, *, odd: bool) -> dict[str, Any]:
    properties = {}
    for name, kinds in KINDS.items():
        if draw(st.integers(0, 14)) == 0:
            continue
        kind = draw(st.sampled_from(kinds)) if odd and draw(st.booleans()) else kinds[0]
        way = draw(st.integers(0, 3 if odd else 1))
        if way < 2 or "oneOf" in kind:
            kind = kind if "oneOf" in kind else nullable(kind)
        elif way == 2 and name in ("I", "B") and kind.get("type") == "integer":
            kind = {**kind, "default": 5}
        spelled = name.lower() if odd and draw(st.integers(0, 5)) == 0 else name
        properties[spelled] = kind
    if odd and draw(st.booleans()):
        properties["beside"] = draw(st.sampled_from((TEXT, nullable(TEXT))))
    if not properties:
        properties["I"] = nullable(whole(32))
    return {"type": "object", "properties": properties}


@st.composite
def texts_of(draw: st.DrawFn, schema: dict[str, Any], *, odd: bool) -> bytes:
    members: dict[str, Any] = {}
    for name in schema["properties"]:
        choice = draw(st.integers(0, 11))
        if choice == 0:
            continue
        value = draw(VALUES.get(name.upper(), TEXTS))
        if choice == 1:
            value = None
        elif odd and choice == 2:
            value = draw(ODD)
        spelled = name.swapcase() if odd and draw(st.integers(0, 20)) == 0 else name
        members[spelled] = value
    text = json.dumps(members, ensure_ascii=draw(st.booleans()))
    if odd and draw(st.integers(0, 9)) == 0:
        text = text.replace('"A"', '"\\u0041"').replace('"I":', '"I":3, "I":')
    return text.encode("utf-8", "surrogatepass")


@st.composite
def written(draw: st.DrawFn) -> tuple[MemoryRegistry, Batches]:
    """A registry, and records whose values have its schemas."""
    odd = draw(st.booleans())
    registry = MemoryRegistry()
    known = []
    for _ in range(draw(st.integers(1, 2)) if odd else 1):
        schema = draw(schemas(odd=odd))
        known.append((registry.register("s-value", "JSON", json.dumps(schema)), schema))
    batch = []
    for number in range(draw(st.integers(1, 10))):
        schema_id, schema = draw(st.sampled_from(known))
        value: bytes | None = prefix_of(schema_id) + draw(texts_of(schema, odd=odd))
        if odd and draw(st.integers(0, 5)) == 0:
            value = draw(broken(value or b""))
        key = draw(st.sampled_from((b"a", b"b")))
        batch.append(("s", TopicRecord(key, value, 1_000 * number)))
    return registry, [batch]


def check(query: str, columns: str, registry: MemoryRegistry, batches: Batches) -> int:
    """Both ways give the same; how many records went as columns."""
    (plan,) = plans_of(SOURCE.format(columns) + query, {"s": 1})
    want, none = outcome(plan, copies(batches), 1, None, registry)
    got, by_columns = outcome(plan, copies(batches), 1, 1, registry)
    assert none == 0
    assert got == want
    return by_columns


@settings(max_examples=examples(36), deadline=None)
@given(query=st.sampled_from(QUERIES), columns=st.sampled_from((COLUMNS, FLAT)), given_=written())
def test_both_ways_are_equal(
    query: str, columns: str, given_: tuple[MemoryRegistry, Batches]
) -> None:
    check(query, columns, *given_)


# --- what is read without the row reader -----------------------------------------------------


def read(columns: dict[str, SqlType], schema: dict[str, Any], bodies: list[bytes]) -> Read:
    registry = MemoryRegistry()
    schema_id = registry.register("s-value", "JSON", json.dumps(schema))
    made = [Column(name, sql_type, Part.VALUE) for name, sql_type in columns.items()]
    part = RecordPart(made, {}, "s-value", registry, wraps=True)
    values = [prefix_of(schema_id) + body for body in bodies]
    return reading.reader("JSON_SR", part)(pa.array(values, pa.binary()))


def one(kind: dict[str, Any], **more: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"F": kind, **more}}


@pytest.mark.parametrize(
    ("sql_type", "schema", "body", "value"),
    [
        (INTEGER, one(nullable(whole(32))), b'{"F": 5}', 5),
        (INTEGER, one(nullable(whole(8))), b'{"F": 127}', 127),
        (INTEGER, one(nullable(whole(32))), b'{"f": 5}', None),
        (INTEGER, one(whole(32)), b"{}", None),
        (INTEGER, one(whole(32)), b'{"F": 1, "x": null}', 1),
        (BIGINT, one(whole(32)), b'{"F": -2147483648}', -(2**31)),
        (DOUBLE, one({"type": "number"}), b'{"F": 1}', 1.0),
        (STRING, one(TEXT), '{"F": "é"}'.encode(), "é"),
        (STRING, one(TEXT, g=nullable(TEXT)), b'{"F": "a", "g": null}', "a"),
        (Decimal(8, 2), one(DECIMAL), b'{"F": 1.5}', 1.5),
        (
            Struct((Field("X", INTEGER),)),
            one(nullable(NESTED)),
            b'{"F": {"X": 7, "u": null}}',
            {"X": 7},
        ),
    ],
)
def test_values_that_are_certain(
    sql_type: SqlType, schema: dict[str, Any], body: bytes, value: Any
) -> None:
    found = read({"F": sql_type}, schema, [body, b"{}"])
    assert not found.doubt.any()
    assert found.columns[0].to_list() == [value, None]


@pytest.mark.parametrize(
    ("sql_type", "schema", "body"),
    [
        (INTEGER, one(whole(32)), b'{"F": null}'),  # required
        (INTEGER, one(whole(8)), b'{"F": 128}'),
        (BIGINT, one(whole(32)), b'{"F": 2147483648}'),
        (INTEGER, one(nullable(whole(32))), b'{"F": "5"}'),
        (STRING, one(nullable(TEXT)), b'{"F": 5}'),
        (STRING, one(nullable(TEXT), g=TEXT), b'{"F": "a", "g": null}'),
        (STRING, one(nullable(TEXT)), b'{"F": "a", "F": "b"}'),
        (Decimal(8, 2), one(DECIMAL), b'{"F": "12"}'),
        (Decimal(8, 2), one(DECIMAL), b'{"\\u0046": "12"}'),
        (Decimal(8, 2), one(DECIMAL), b'{"F": 1.234}'),
        (STRING, one(TEXT), b"null"),
        (STRING, one(TEXT), b"{} "),
    ],
)
def test_values_that_the_row_reader_reads(
    sql_type: SqlType, schema: dict[str, Any], body: bytes
) -> None:
    assert read({"F": sql_type}, schema, [body]).doubt.all()


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("columns", [COLUMNS, FLAT])
def test_plain_records_go_as_columns(query: str, columns: str) -> None:
    registry = MemoryRegistry()
    schema = {"type": "object", "properties": {n: nullable(k[0]) for n, k in KINDS.items()}}
    schema_id = registry.register("s-value", "JSON", json.dumps(schema))
    batch = []
    for n in range(40):
        row = {"I": n, "B": n * 2**33, "D": n / 4, "T": f"t{n}", "O": n % 2 == 0, "TS": n}
        row |= {"A": n / 100, "Y": "YQ==", "DA": n, "TI": n, "N": {"X": n, "u": {"Y": "y"}}}
        row |= {"L": [n, None], "M": {"p": n}}
        body = prefix_of(schema_id) + json.dumps(row).encode()
        batch.append(("s", TopicRecord(b"k%d" % (n % 3), body, n)))
    assert check(query, columns, registry, [batch]) == 40
