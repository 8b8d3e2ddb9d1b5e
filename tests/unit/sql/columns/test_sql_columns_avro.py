"""Avro as columns: the same rows as record by record, for any writer's schema."""

from __future__ import annotations

import io
import json
import struct
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.schemas.errors import RegistryError
from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.schemas.registry_client import StoredSchema
from barnabas.schemas.wire_format import prefix_of
from barnabas.sql.columns import reading, writing
from barnabas.sql.columns.avro_writing import AvroWriter
from barnabas.sql.columns.writing import RowByRowWriter
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.schema import Column, Part
from barnabas.sql.spark.hosted import HostedPlan
from barnabas.sql.types import INTEGER
from barnabas.sql.types import STRING as STRING_TYPE
from support.effort import examples
from support.sql_columns import AGGREGATES, CERTAIN, Batches, copies, outcome, queries
from support.sql_damage import broken
from support.sql_queries import plans_of

COLUMNS = (
    "i INT, b BIGINT, d DOUBLE, t STRING, o BOOLEAN, ts TIMESTAMP, a DECIMAL(8, 2), y BYTES, "
    "da DATE, ti TIME"
)
SOURCE = f"CREATE STREAM s (k STRING KEY, {COLUMNS}) WITH (kafka_topic='s', value_format='AVRO');"
ALL = "CREATE STREAM q AS SELECT * FROM s WHERE i > 0 OR d < 5 OR t IS NULL;"
MORE_QUERIES = (
    "CREATE STREAM q AS SELECT * FROM s;",
    ALL,
    "CREATE STREAM q WITH (value_format='JSON') AS SELECT k, a + 1 AS x, da, ti, ts FROM s;",
    "CREATE STREAM q AS SELECT k, a, ti, da FROM s WHERE da > '2020-01-01' AND a <> 1.5;",
    "CREATE STREAM q AS SELECT k, DATEADD(DAYS, i, da) AS x, TIMEADD(HOURS, 1, ti) AS z FROM s;",
    "CREATE STREAM q WITH (format='AVRO') AS SELECT k, i FROM s;",
    "CREATE STREAM q WITH (wrap_single_value=false) AS SELECT k, t FROM s;",
    "CREATE STREAM q WITH (wrap_single_value=false) AS SELECT k, i FROM s;",
    "CREATE STREAM q WITH (value_avro_schema_full_name='a.B') AS SELECT k, i, b FROM s;",
)

# --- schemas of writers ----------------------------------------------------------------------


class Choice(NamedTuple):
    """A field's type as the registry has it, and values as the codec takes them."""

    type: Any
    values: st.SearchStrategy[Any]


INTS = st.one_of(st.integers(-70, 70), st.sampled_from((2**31 - 1, -(2**31), 8191, -8193)))
LONGS = st.one_of(INTS, st.sampled_from((2**63 - 1, -(2**63), 2**31, 2**35)))
DOUBLES = st.one_of(st.sampled_from((0.0, -0.0, 0.5, 1e300, 1e-320)), st.floats())
TEXTS = st.one_of(
    st.sampled_from(("a", "b", "é", "", "\U0001f600", "x" * 100)), st.text(max_size=5)
)


def _decimal(precision: int, scale: int) -> Choice:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    numbers = st.one_of(st.integers(-300, 300), st.integers(-(10**9), 10**9)).map(
        lambda number: number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
    )
    return Choice(kind, st.one_of(numbers, st.sampled_from((b"", b"\0\0\1", b"\xff\xff"))))


INT, LONG = Choice("int", INTS), Choice("long", LONGS)
FLOAT, DOUBLE = Choice("float", st.floats(width=32)), Choice("double", DOUBLES)
STRING, BOOLEAN = Choice("string", TEXTS), Choice("boolean", st.booleans())
BYTES = Choice("bytes", st.binary(max_size=4))
ENUM = Choice({"type": "enum", "name": "E", "symbols": ["a", "B"]}, st.sampled_from(("a", "B")))
STAMP = Choice({"type": "long", "logicalType": "timestamp-millis"}, LONGS)
DAY = Choice({"type": "int", "logicalType": "date"}, INTS)
TIME = Choice({"type": "int", "logicalType": "time-millis"}, st.integers(0, 86_399_999))
FIXED = Choice({"type": "fixed", "name": "F", "size": 20}, st.binary(min_size=20, max_size=20))
FIXED_DECIMAL = Choice(
    {"type": "fixed", "name": "G", "size": 3, "logicalType": "decimal", "precision": 7, "scale": 2},
    st.binary(min_size=3, max_size=3),
)
RECORD = Choice(
    {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "x", "type": ["null", "int", "string"]},
            {"name": "y", "type": "float"},
        ],
    },
    st.fixed_dictionaries({"x": st.one_of(st.none(), INTS, TEXTS), "y": st.floats(width=32)}),
)
ARRAY = Choice({"type": "array", "items": "int"}, st.lists(INTS, max_size=3))
MAP = Choice({"type": "map", "values": "string"}, st.dictionaries(TEXTS, TEXTS, max_size=2))
CHOICES: dict[str, tuple[Choice, ...]] = {
    "I": (INT, INT, INT, LONG, STRING),
    "B": (LONG, LONG, INT, FLOAT),
    "D": (DOUBLE, DOUBLE, FLOAT, INT),
    "T": (STRING, STRING, STRING, INT, LONG, BOOLEAN, FLOAT, DOUBLE, ENUM, BYTES),
    "O": (BOOLEAN,),
    "TS": (STAMP, STAMP, LONG),
    "A": (_decimal(8, 2), _decimal(8, 2), _decimal(6, 1), _decimal(9, 4), FIXED_DECIMAL, BYTES),
    "Y": (BYTES, FIXED, _decimal(8, 2)),
    "DA": (DAY, INT),
    "TI": (TIME,),
}
BESIDE = (STRING, RECORD, ENUM, FLOAT, BYTES, FIXED, ARRAY, MAP, BOOLEAN)


@st.composite
def writers(draw: st.DrawFn, *, odd: bool) -> list[tuple[str, Choice, str]]:
    """The fields of a schema: a name, a type, and how null is allowed."""
    fields = []
    for name, choices in CHOICES.items():
        choice = choices[0]
        if odd and draw(st.integers(0, 5)) == 0:
            choice = draw(st.sampled_from(choices))
        spelled = name.lower() if odd and draw(st.integers(0, 9)) == 0 else name
        nulls = draw(
            st.sampled_from(("first", "first", "last", "none", "alone")[: 5 if odd else 4])
        )
        if not odd or draw(st.integers(0, 12)):
            fields.append((spelled, choice, nulls))
    if draw(st.booleans()):
        beside = draw(st.sampled_from(BESIDE if odd else BESIDE[:6]))
        fields.insert(draw(st.integers(0, len(fields))), ("other", beside, "first"))
    return draw(st.permutations(fields)) if draw(st.booleans()) else fields


def _type_of(choice: Choice, nulls: str, *, is_plain: bool) -> Any:
    kind = choice.type
    if is_plain and isinstance(kind, dict):
        kind = {name: part for name, part in kind.items() if name != "logicalType"}
    listed = {"first": ["null", kind], "last": [kind, "null"], "alone": [kind]}
    return listed.get(nulls, kind)


def _schema(fields: list[tuple[str, Choice, str]], *, is_plain: bool) -> dict[str, Any]:
    typed: dict[str, Any] = {}
    made = []
    for name, choice, nulls in fields:
        kind = choice.type
        if isinstance(kind, dict) and "name" in kind and kind["name"] in typed:
            choice = Choice(kind["name"], choice.values)
        elif isinstance(kind, dict) and "name" in kind:
            typed[kind["name"]] = kind
        made.append({"name": name, "type": _type_of(choice, nulls, is_plain=is_plain)})
    return {"type": "record", "name": "W", "fields": made}


@st.composite
def written(draw: st.DrawFn, *, odd: bool) -> tuple[MemoryRegistry, Batches]:
    """A registry, and records whose values have its schemas."""
    registry = MemoryRegistry()
    schemas = []
    for _ in range(draw(st.integers(1, 2)) if odd else 1):
        fields = draw(writers(odd=odd))
        schema_id = registry.register(
            "s-value", "AVRO", json.dumps(_schema(fields, is_plain=False))
        )
        schemas.append((schema_id, fields, fastavro.parse_schema(_schema(fields, is_plain=True))))
    now_ms, batches = 0, []
    for _ in range(draw(st.integers(1, 2))):
        batch = []
        for _ in range(draw(st.integers(1, 8))):
            now_ms = max(0, now_ms + draw(st.integers(-2_000, 9_000)))
            schema_id, fields, plain = draw(st.sampled_from(schemas))
            row = {}
            for name, choice, nulls in fields:
                is_null = nulls in ("first", "last") and draw(st.integers(0, 4)) == 0
                row[name] = None if is_null else draw(choice.values)
            value: bytes | None = prefix_of(schema_id) + encoded(plain, row)
            if odd and draw(st.integers(0, 5)) == 0:
                value = draw(broken(value or b""))
            key = draw(st.sampled_from((b"a", b"b", b"c")))
            batch.append(("s", TopicRecord(key, value, now_ms)))
        batches.append(batch)
    return registry, batches


def encoded(schema: Any, row: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, row)
    return out.getvalue()


# --- both ways -------------------------------------------------------------------------------


def check(query: str, registry: MemoryRegistry, batches: Batches) -> int:
    """Both ways give the same; how many records went as columns."""
    (plan,) = plans_of(SOURCE + query, {"s": 1})
    want, none = outcome(plan, copies(batches), 1, None, registry)
    got, by_columns = outcome(plan, copies(batches), 1, 1, registry)
    assert none == 0
    assert got == want
    return by_columns


@settings(max_examples=examples(18), deadline=None)
@given(
    query=st.one_of(st.sampled_from(MORE_QUERIES), queries()),
    given_=st.booleans().flatmap(lambda odd: written(odd=odd)),
)
def test_both_ways_read_and_write_avro_alike(
    query: str, given_: tuple[MemoryRegistry, Batches]
) -> None:
    check(query, *given_)


OWN = json.dumps(
    {
        "type": "record",
        "name": "W",
        "fields": [
            {"name": name, "type": ["null", choices[0].type]} for name, choices in CHOICES.items()
        ],
    }
)


def plain_batch(schema_id: int, count: int) -> list[tuple[str, TopicRecord]]:
    plain = _schema([(name, c[0], "first") for name, c in CHOICES.items()], is_plain=True)
    parsed = fastavro.parse_schema(plain)
    return [
        (
            "s",
            TopicRecord(
                b"k%d" % (n % 5),
                prefix_of(schema_id)
                + encoded(
                    parsed,
                    {
                        "I": n + 1,
                        "B": n * 1_000_003,
                        "D": n + 0.5,
                        "T": f"t{n % 3}",
                        "O": n % 2 == 0,
                        "TS": n,
                        "A": n.to_bytes(2, "big"),
                        "Y": b"y" * (n % 4),
                        "DA": n - 20,
                        "TI": n,
                    },
                ),
                1_000 * n,
            ),
        )
        for n in range(count)
    ]


@pytest.mark.parametrize(
    "query",
    [
        *MORE_QUERIES,
        *(f"CREATE STREAM q AS SELECT k, {selected} FROM s;" for selected in CERTAIN),
        *(f"CREATE TABLE q AS SELECT k, {made} FROM s GROUP BY k;" for made in AGGREGATES),
    ],
)
def test_plain_records_go_as_columns(query: str) -> None:
    registry = MemoryRegistry({"s-value": OWN})
    assert check(query, registry, [plain_batch(1, 40)]) == 40
    (plan,) = plans_of(SOURCE + query, {"s": 1})
    assert HostedPlan.draft(plan).column_stages == (0,)


def test_records_with_other_schemas_go_as_columns_beside_broken_ones() -> None:
    registry = MemoryRegistry({"s-value": OWN})
    fields = [("I", INT, "none"), ("other", STRING, "last"), ("t", LONG, "none")]
    text = json.dumps(_schema(fields, is_plain=False))
    other = registry.register("s-value", "AVRO", text)
    batch = plain_batch(1, 30)
    values = [{"I": n, "other": None if n % 3 else "x" * n, "t": n} for n in range(30)]
    schema = fastavro.parse_schema(json.loads(text))
    for place, row in enumerate(values):
        value = prefix_of(other) + encoded(schema, row)
        batch.insert(place * 2, ("s", TopicRecord(b"a", value, place)))
    batch.insert(7, ("s", TopicRecord(b"a", prefix_of(7) + b"\0", 0)))
    batch.insert(9, ("s", TopicRecord(b"a", prefix_of(1) + b"\2\x80", 0)))
    batch.insert(11, ("s", TopicRecord(b"a", b"\1\0\0\0\1", 0)))
    assert check(ALL, registry, [batch]) == 63  # the row reader has noted three of them


def test_a_slice_of_an_array_is_read_from_its_first_record_on() -> None:
    registry = MemoryRegistry({"s-value": OWN})
    columns = (Column("I", INTEGER, Part.VALUE), Column("T", STRING_TYPE, Part.VALUE))
    read = reading.reader("AVRO", RecordPart(columns, {}, "s-value", registry, wraps=True))
    assert read is not None
    values = [record.value for _, record in plain_batch(1, 9)]
    found = read(pa.array([*values, None], pa.binary()).slice(4, 6))
    assert [vector.to_list()[:5] for vector in found.columns] == [
        [5, 6, 7, 8, 9],
        ["t1", "t2", "t0", "t1", "t2"],
    ]
    assert found.is_row.tolist() == [True] * 5 + [False]
    assert not found.doubt.any()
    nothing = read(pa.nulls(3, pa.binary()))
    assert not nothing.is_row.any()
    assert not nothing.doubt.any()


class OwnErrors(MemoryRegistry):
    """A registry that does not answer."""

    is_down = True

    def register(self, subject: str, schema_type: str, text: str) -> int:
        if self.is_down:
            raise RegistryError("the registry is down", retriable=True)
        return super().register(subject, schema_type, text)

    def by_id(self, schema_id: int) -> StoredSchema:
        if self.is_down:
            raise RegistryError("the registry is down", retriable=True)
        return super().by_id(schema_id)


@pytest.mark.parametrize("query", MORE_QUERIES[:3])
def test_a_registry_that_does_not_answer_fails_the_batch(query: str) -> None:
    registry = OwnErrors()
    (plan,) = plans_of(SOURCE + query, {"s": 1})
    batches = [plain_batch(1, 3)]
    want, _ = outcome(plan, copies(batches), 1, None, registry)
    got, _ = outcome(plan, copies(batches), 1, 1, registry)
    assert "the registry is down" in want[0]
    assert got == want


def test_dates_beyond_avros_are_noted() -> None:
    """DATE has 32 bits in Avro; what a function gives may have more."""
    registry = MemoryRegistry({"s-value": OWN})
    batch = plain_batch(1, 4)
    query = "CREATE STREAM q AS SELECT k, DATEADD(DAYS, 2147483647, da) AS x FROM s;"
    check(query, registry, [batch])


@pytest.mark.parametrize("key", ["k STRING KEY", "k INT KEY", "k BIGINT KEY"])
def test_keys_in_avro(key: str) -> None:
    kind = {"k STRING KEY": "string", "k INT KEY": "int", "k BIGINT KEY": "long"}[key]
    registry = MemoryRegistry({"s-key": json.dumps(kind)})
    value = {"type": "record", "name": "W", "fields": [{"name": "I", "type": "int"}]}
    second = registry.register("s-value", "AVRO", json.dumps(value))
    source = f"CREATE STREAM s ({key}, i INT) WITH (kafka_topic='s', format='AVRO');"
    batch = []
    for n in range(20):
        name: Any = f"k{n % 3}" if kind == "string" else n % 3 - 1
        body = prefix_of(second) + encoded(value, {"I": n})
        batch.append(("s", TopicRecord(prefix_of(1) + encoded(kind, name), body, n)))
    batch[3][1].key = None
    batch[5][1].key = prefix_of(1) + b"\x80"
    for query in (
        "CREATE STREAM q AS SELECT * FROM s WHERE i > 1;",
        "CREATE TABLE q AS SELECT k, COUNT(*) AS n, SUM(i) AS x FROM s GROUP BY k;",
    ):
        (plan,) = plans_of(source + query, {"s": 1})
        want, _ = outcome(plan, copies([batch]), 1, None, registry)
        got, by_columns = outcome(plan, copies([batch]), 1, 1, registry)
        assert got == want
        assert by_columns == 20


def test_rows_are_written_one_by_one_by_a_schema_that_a_statement_names() -> None:
    registry = MemoryRegistry({"x-value": OWN})
    columns = (Column("I", INTEGER, Part.VALUE),)
    own = RecordPart(columns, {}, "x-value", registry, wraps=True)
    assert isinstance(writing.writer("AVRO", own), AvroWriter)
    named = own._replace(properties={"schemaId": "1"})
    assert isinstance(writing.writer("AVRO", named), RowByRowWriter)


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, -1])
def test_numbers_of_too_many_bits_are_read_row_by_row(number: int) -> None:
    registry = MemoryRegistry({"s-value": OWN})
    batch = plain_batch(1, 6)
    bits = number & (2**70 - 1)
    long = bytes(bits >> 7 * place & 0x7F | 0x80 for place in range(9)) + bytes(
        (bits >> 63 & 0x7F,)
    )
    first = batch[2][1].value
    assert first is not None
    batch[2][1].value = first[:5] + b"\2\2\2" + long + struct.pack("<d", 1.0) + b"\0" * 8
    check(ALL, registry, [batch])
