"""Protobuf as columns: the same rows as record by record, for any writer's schema and bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.schemas.errors import FormatError
from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.schemas.protobuf.messages import load, message_class
from barnabas.schemas.registry_client import StoredSchema
from barnabas.schemas.wire_format import prefix_of
from barnabas.sql.columns import reading
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.catalog import format_named
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.schema import Column, Part
from barnabas.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
)
from support.effort import examples
from support.sql_columns import Batches, copies, outcome
from support.sql_damage import broken
from support.sql_queries import plans_of

PROTOBUF = format_named("PROTOBUF")
IMPORTS = """
import "google/protobuf/wrappers.proto";
import "google/protobuf/timestamp.proto";
import "google/type/date.proto";
import "google/type/timeofday.proto";
import "confluent/type/decimal.proto";
"""
TYPES = """
enum Suit { %s HEARTS = 0; SPADES = 1; COPY = 1; CLUBS = -7; }
message Inner { %s int32 x = 1; %s string y = 2; repeated sint64 z = 3; Deep deep = 20; }
message Deep { %s bool truth = 1; oneof c { string one = 4; fixed32 two = 3; } }
message PairEntry { %s string key = 1; %s int64 value = 2; }
message DeepEntry { %s string key = 1; %s Deep value = 2; }
"""
# --- schemas of writers ----------------------------------------------------------------------


class Kind(NamedTuple):
    """A field's type, the labels that it may have, and its values as the codec takes them."""

    type: str
    values: st.SearchStrategy[Any]
    labels: tuple[str, ...] = ("", "", "", "optional", "repeated", "unpacked")


SMALL = st.integers(-3, 300)
INTS = st.one_of(SMALL, st.sampled_from((2**31 - 1, -(2**31))))
LONGS = st.one_of(INTS, st.sampled_from((2**63 - 1, -(2**63), 2**31, 2**56)))
UINTS = st.one_of(st.integers(0, 300), st.sampled_from((2**32 - 1, 2**31)))
ULONGS = st.one_of(UINTS, st.sampled_from((2**64 - 1, 2**63)))
FLOATS = st.sampled_from((0.0, -0.0, 1.5, float("inf"), float("nan"), 1e30))
TEXTS = st.one_of(st.sampled_from(("", "a", "é", "\U0001f600", "x" * 200)), st.text(max_size=3))
NAMES = ("", "optional", "repeated", "")
DEEP = st.one_of(
    st.fixed_dictionaries({"truth": st.booleans()}),
    st.fixed_dictionaries({"one": TEXTS}),
    st.fixed_dictionaries({"two": UINTS}),
)
INNER = st.fixed_dictionaries(
    {}, optional={"x": INTS, "y": TEXTS, "z": st.lists(LONGS, max_size=3), "deep": DEEP}
)
KINDS = (
    Kind("int32", INTS),
    Kind("sint32", INTS),
    Kind("sfixed32", INTS),
    Kind("int64", LONGS),
    Kind("sint64", LONGS),
    Kind("sfixed64", LONGS),
    Kind("uint32", UINTS),
    Kind("fixed32", UINTS),
    Kind("uint64", ULONGS),
    Kind("fixed64", ULONGS),
    Kind("float", FLOATS),
    Kind("double", st.floats()),
    Kind("bool", st.booleans()),
    Kind("string", TEXTS, NAMES),
    Kind("bytes", st.binary(max_size=4), NAMES),
    Kind("Suit", st.sampled_from((0, 1, -7))),
    Kind("Inner", INNER, NAMES),
    Kind("Deep", DEEP, NAMES),
    Kind("PairEntry", st.fixed_dictionaries({"key": TEXTS, "value": LONGS}), ("repeated",)),
    Kind(
        "DeepEntry", st.fixed_dictionaries({"key": TEXTS}, optional={"value": DEEP}), ("repeated",)
    ),
    Kind("map<string, int32>", st.dictionaries(TEXTS, INTS, max_size=3), ("map",)),
    *(
        Kind(f"google.protobuf.{name}Value", st.fixed_dictionaries({}, optional={"value": values}))
        for name, values in (
            ("Int32", INTS),
            ("UInt64", ULONGS),
            ("Double", FLOATS),
            ("Bool", st.booleans()),
            ("String", TEXTS),
            ("Bytes", st.binary(max_size=3)),
        )
    ),
    Kind(
        "google.protobuf.Timestamp",
        st.fixed_dictionaries({"seconds": LONGS, "nanos": INTS}),
        NAMES,
    ),
    Kind(
        "google.type.Date",
        st.fixed_dictionaries(
            {"year": st.integers(-10_000, 10_000), "month": st.integers(1, 12)},
            optional={"day": st.integers(-1, 28)},
        ),
        NAMES,
    ),
    Kind(
        "google.type.TimeOfDay",
        st.fixed_dictionaries({"hours": INTS, "minutes": INTS, "seconds": INTS, "nanos": INTS}),
        NAMES,
    ),
    Kind(
        "confluent.type.Decimal",
        st.fixed_dictionaries(
            {}, optional={"value": st.binary(max_size=3), "scale": st.integers(-2, 4)}
        ),
        NAMES,
    ),
)
NUMBERS = (1, 2, 3, 4, 5, 9, 15, 16, 17, 200, 2_100, 70_000)


class Written(NamedTuple):
    """A schema's text, and how values of its message's fields are drawn."""

    text: str
    fields: dict[str, st.SearchStrategy[Any]]
    oneof: tuple[str, ...]
    always: tuple[str, ...]


@st.composite
def schemas(draw: st.DrawFn) -> Written:
    is_old = draw(st.integers(0, 3)) == 0
    syntax, word = ("proto2", "optional") if is_old else ("proto3", "")
    lines, strategies, members, always = [], {}, [], []
    chosen: list[str] = []
    numbers = draw(st.permutations(NUMBERS))
    for place, kind in enumerate(draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=6))):
        name, number = f"f{place}", numbers[place]
        label = draw(st.sampled_from(kind.labels))
        values = kind.values
        option = ""
        if label in ("repeated", "unpacked"):
            values = st.lists(values, max_size=4)
            is_number = "." not in kind.type and kind.type not in ("Inner", "Deep")
            if is_number and kind.type not in ("string", "bytes") and "Entry" not in kind.type:
                option = f" [packed={str(label == 'repeated').lower()}]"
        declared = {"unpacked": "repeated", "map": "", "": word}.get(label, label)
        if label == "" and is_old and draw(st.integers(0, 3)) == 0:
            declared = "required"
            always.append(name)
        elif label == "" and draw(st.integers(0, 4)) == 0:
            members.append(f"{kind.type} {name} = {number};")
            chosen.append(name)
            strategies[name] = values
            continue
        strategies[name] = values
        lines.append(f"{declared} {kind.type} {name} = {number}{option};")
    if members:
        lines.append("oneof choice { " + " ".join(members) + " }")
    if is_old and draw(st.booleans()):
        lines.append("extensions 80000 to max;")
    types = TYPES % ("option allow_alias = true;", *((word,) * 7))
    if is_old:
        types = types.replace(" Deep deep", f" {word} Deep deep")
    text = f'syntax = "{syntax}";\n{IMPORTS}message M {{ {" ".join(lines)} }}\n{types}'
    if draw(st.integers(0, 3)) == 0:
        text = text.replace("message M", "message Before { int32 a = 1; }\nmessage M")
    return Written(text, strategies, tuple(chosen), tuple(always))


# --- their bytes -----------------------------------------------------------------------------


def varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*made, number))


def parts_of(data: bytes) -> list[bytes]:
    """The fields of a message that is whole."""
    parts, place = [], 0

    def number() -> int:
        nonlocal place
        found = shift = 0
        while True:
            byte = data[place]
            place += 1
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
            shift += 7

    while place < len(data):
        begin = place
        kind = number() & 7
        if kind == 0:
            number()
        else:
            length = {1: 8, 5: 4}.get(kind) or number()
            place += length
        parts.append(data[begin:place])
    return parts


UNKNOWN = st.sampled_from(
    (
        varint(999 << 3) + b"\x96\x01",
        varint(999 << 3 | 1) + b"12345678",
        varint(999 << 3 | 5) + b"1234",
        varint(999 << 3 | 2) + b"\2\xff\xff",
        varint(999 << 3 | 3) + varint(999 << 3 | 4),
        varint(80_001 << 3 | 2) + b"\1a",
        varint(999 << 3) + b"\xff" * 9 + b"\1",
        varint(999 << 3) + b"\xff" * 10,
        b"\2\0",
        b"\6",
    )
)


@st.composite
def messages(draw: st.DrawFn, written: Written, build: Any, *, odd: bool) -> bytes:
    values = {}
    chosen = draw(st.sampled_from((None, *written.oneof)))
    for name, strategy in written.fields.items():
        if name in written.oneof:
            if name != chosen:
                continue
        elif name not in written.always and draw(st.integers(0, 3)) == 0:
            continue
        values[name] = draw(strategy)
    data: bytes = build(**values).SerializePartialToString()
    if odd and draw(st.integers(0, 2)) == 0:
        parts = parts_of(data)
        if parts:
            parts += draw(st.lists(st.sampled_from(parts), max_size=1))
        parts += draw(st.lists(UNKNOWN, max_size=1))
        data = b"".join(draw(st.permutations(parts)))
    return data


OTHER_TYPES: tuple[SqlType, ...] = (
    INTEGER,
    BIGINT,
    STRING,
    DOUBLE,
    BYTES,
    TIMESTAMP,
    DATE,
    TIME,
    Decimal(3, 1),
)


@st.composite
def columns_of(draw: st.DrawFn, text: str, properties: dict[str, str]) -> list[Column]:
    stored = StoredSchema(1, "PROTOBUF", text)
    found = PROTOBUF.schemas.columns(stored, properties, Part.VALUE, wraps=True)
    made = []
    for column in found:
        sql_type = column.type
        choice = draw(st.integers(0, 9))
        if choice == 0 and len(found) > 1:
            continue
        if choice == 1:
            sql_type = draw(st.sampled_from(OTHER_TYPES))
        if choice == 2 and isinstance(sql_type, Array):
            sql_type = Array(draw(st.sampled_from(OTHER_TYPES)))
        if choice == 3 and isinstance(sql_type, Struct):
            sql_type = Struct((*sql_type.fields[1:], Field("NONE", INTEGER)))
        made.append(Column(column.name, sql_type, Part.VALUE))
    if draw(st.integers(0, 5)) == 0 or not made:
        made.append(Column("NONE", STRING, Part.VALUE))
    return made


def same(part: RecordPart, format_name: str, values: Sequence[bytes | None]) -> int:
    """Check that certain values are those of the row reader; return how many there are."""
    found = reading.reader(format_name, part)(pa.array(values, pa.binary()))
    deserialize = format_named(format_name).deserializer(part)
    columns = [vector.to_list() for vector in found.columns]
    for place, value in enumerate(values):
        if value is None:
            assert not found.is_row[place]
            assert not found.doubt[place]
        elif not found.doubt[place]:
            row = deserialize(value)
            assert found.is_row[place]
            assert repr([column[place] for column in columns]) == repr(row)
    return len(values) - int(found.doubt.sum())


@settings(max_examples=examples(150), deadline=None)
@given(data=st.data(), written=schemas(), odd=st.booleans())
def test_values_that_are_certain_are_those_of_the_row_reader(
    data: st.DataObject, written: Written, odd: bool
) -> None:
    registry = MemoryRegistry()
    schema_id = registry.register("s-value", "PROTOBUF", written.text)
    loaded = load(written.text, {})
    descriptor = loaded.message("M")
    build = message_class(descriptor)
    properties = {"fullSchemaName": "M"}
    nullable = data.draw(st.sampled_from((None, "optional", "wrapper")))
    if nullable is not None:
        properties["nullableRepresentation"] = nullable
    if data.draw(st.booleans()):
        properties["unwrapPrimitives"] = "true"
    try:
        columns = data.draw(columns_of(written.text, properties))
    except AnalysisError:
        return  # the schema has no column
    part = RecordPart(columns, properties, "s-value", registry, wraps=True)
    path = b"\2\2" if "Before" in written.text else b"\0"
    values: list[bytes | None] = []
    for body in data.draw(st.lists(messages(written, build, odd=odd), min_size=1, max_size=8)):
        value: bytes | None = prefix_of(schema_id) + path + body
        if odd and data.draw(st.integers(0, 3)) == 0:
            value = data.draw(broken(value or b""))
        values.append(value)
    same(part, "PROTOBUF", values)


# --- what is read without the row reader -----------------------------------------------------

PROTO3 = f'syntax = "proto3";\n{IMPORTS}{TYPES % (("option allow_alias = true;",) + ("",) * 7)}'
PROTO2 = PROTO3.replace("proto3", "proto2").replace("string key", "optional string key")


def certain(
    declared: str, sql_type: SqlType, bodies: list[bytes], head: str = PROTO3, **properties: str
) -> list[Any]:
    """The values of a message with one field; "doubt" for those that the row reader reads."""
    registry = MemoryRegistry()
    schema_id = registry.register("s-value", "PROTOBUF", "")
    text = head.replace("enum Suit", f"message M {{ {declared} }}\nenum Suit", 1)
    registry.schemas[schema_id] = StoredSchema(schema_id, "PROTOBUF", text)
    part = RecordPart(
        [Column("F", sql_type, Part.VALUE)],
        {"unwrapPrimitives": "true"} | properties,
        "s-value",
        registry,
        wraps=True,
    )
    values = [prefix_of(schema_id) + b"\0" + body for body in bodies]
    same(part, "PROTOBUF", values)
    found = reading.reader("PROTOBUF", part)(pa.array(values, pa.binary()))
    pairs = zip(found.columns[0].to_list(), found.doubt.tolist(), strict=True)
    return ["doubt" if doubt else value for value, doubt in pairs]


INNER_TYPE = Struct((Field("X", INTEGER), Field("Y", STRING)))


@pytest.mark.parametrize(
    ("declared", "sql_type", "body", "value", "missing"),
    [
        ("int32 f = 1;", INTEGER, b"\x08\x05", 5, 0),
        ("int32 f = 1;", INTEGER, b"\x08" + b"\xff" * 9 + b"\1", -1, 0),
        ("int32 f = 1;", INTEGER, b"\x08\x05\x08\x06", 6, 0),
        ("int32 f = 1;", STRING, b"\x08\x05", "5", "0"),
        ("sint64 f = 2000;", BIGINT, varint(2000 << 3) + b"\3", -2, 0),
        ("uint64 f = 1;", BIGINT, b"\x08" + b"\xff" * 9 + b"\1", -1, 0),
        ("float f = 1;", DOUBLE, b"\x0d\0\0\x80\x3f", 1.0, 0.0),
        ("optional bool f = 1;", BOOLEAN, b"\x08\1", True, None),
        ("string f = 1;", STRING, b"\x0a\2\xc3\xa9", "é", ""),
        ("bytes f = 1;", BYTES, b"\x0a\1\xff", b"\xff", b""),
        ("Suit f = 1;", STRING, b"\x08\1", "SPADES", "HEARTS"),
        ("Suit f = 1;", STRING, b"\x08\x05", "UNKNOWN_ENUM_VALUE_Suit_5", "HEARTS"),
        ("repeated int32 f = 1;", Array(INTEGER), b"\x0a\3\1\x80\1\x08\x07", [1, 128, 7], []),
        ("repeated fixed32 f = 1;", Array(BIGINT), b"\x0a\4\1\0\0\0", [1], []),
        ("repeated string f = 1;", Array(STRING), b"\x0a\1a\x0a\0", ["a", ""], []),
        ("Inner f = 1;", INNER_TYPE, b"\x0a\2\x08\7", {"X": 7, "Y": ""}, None),
        ("repeated PairEntry f = 1;", Map(STRING, BIGINT), b"\x0a\3\x0a\1p", {"p": 0}, {}),
        ("google.protobuf.Int64Value f = 1;", BIGINT, b"\x0a\0", 0, None),
        ("google.protobuf.Timestamp f = 1;", TIMESTAMP, b"\x0a\2\x08\1", 1000, None),
        ("google.type.Date f = 1;", DATE, b"\x0a\7\x08\xb2\x0f\x10\1\x18\2", 1, None),
        ("google.type.TimeOfDay f = 1;", TIME, b"\x0a\2\x10\1", 60_000, None),
        ("int32 f = 1;", INTEGER, varint(999 << 3 | 2) + b"\1a\x08\x05", 5, 0),
    ],
)
def test_values_that_are_certain(
    declared: str, sql_type: SqlType, body: bytes, value: Any, missing: Any
) -> None:
    assert certain(declared, sql_type, [body, b""]) == [value, missing]
    assert certain(declared, sql_type, [body] * 3) == [value] * 3


def test_a_choice_is_a_struct() -> None:
    choice = Struct((Field("A", INTEGER), Field("B", STRING)))
    registry = MemoryRegistry()
    text = 'syntax = "proto3"; message M { oneof f { int32 a = 1; string b = 2; } }'
    schema_id = registry.register("s-value", "PROTOBUF", text)
    columns = [Column("F_0", choice, Part.VALUE)]
    part = RecordPart(columns, {}, "s-value", registry, wraps=True)
    bodies = (b"\x08\0", b"\x12\1x", b"", b"\x08\1\x12\1x")
    values = [prefix_of(schema_id) + b"\0" + body for body in bodies]
    found = reading.reader("PROTOBUF", part)(pa.array(values, pa.binary()))
    assert found.columns[0].to_list()[:3] == [{"A": 0, "B": None}, {"A": None, "B": "x"}, None]
    assert found.doubt.tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    ("declared", "sql_type", "body"),
    [
        ("int32 f = 1;", INTEGER, b"\x08"),
        ("int32 f = 1;", INTEGER, b"\x08\x80"),
        ("int32 f = 1;", INTEGER, b"\x08\xff\xff\xff\xff\x1f"),
        ("int32 f = 1;", INTEGER, b"\x08" + b"\xff" * 9 + b"\2"),
        ("int32 f = 1;", INTEGER, b"\x88\0\5"),
        ("int32 f = 1;", INTEGER, b"\x0a\1a"),
        ("int32 f = 1;", INTEGER, b"\x13\x14"),
        ("int32 f = 1;", INTEGER, b"\0\0"),
        ("bool f = 1;", BOOLEAN, b"\x08\2"),
        ("string f = 1;", STRING, b"\x0a\1\xff"),
        ("string f = 1;", STRING, b"\x0a\2a"),
        ("string f = 1;", STRING, b"\x0a\x81\x80\x80\x80\x80\0a"),
        ("string f = 1; string g = 2;", STRING, b"\x12\1\xff"),
        ("string f = 1; Inner g = 2;", STRING, b"\x12\2\x08\x80"),
        ("Inner f = 1;", INNER_TYPE, b"\x0a\2\x08\1\x0a\2\x08\2"),
        ("repeated fixed32 f = 1;", Array(BIGINT), b"\x0a\3\1\0\0"),
        ("repeated int32 f = 1;", Array(INTEGER), b"\x0a\1\x80"),
        ("google.type.Date f = 1;", DATE, b"\x0a\0"),
        ("google.protobuf.UInt64Value f = 1;", BIGINT, b"\x0a\x0b\x08" + b"\xff" * 9 + b"\1"),
        ("repeated DeepEntry f = 1;", Map(STRING, Struct((Field("TRUTH", BOOLEAN),))), b"\x0a\0"),
    ],
)
def test_values_that_the_row_reader_reads(declared: str, sql_type: SqlType, body: bytes) -> None:
    assert certain(declared, sql_type, [body]) == ["doubt"]


def test_maps_are_read_by_the_codec_beside_other_columns() -> None:
    text = 'syntax = "proto3"; message M { map<string, int32> m = 1; int32 i = 2; }'
    registry = MemoryRegistry()
    schema_id = registry.register("s-value", "PROTOBUF", text)
    columns = [
        Column("M", Map(STRING, INTEGER), Part.VALUE),
        Column("I", INTEGER, Part.VALUE),
    ]
    part = RecordPart(columns, {}, "s-value", registry, wraps=True)
    build = message_class(load(text, {}).message(None))
    bodies = [build(m={"a": n, "b": 1}, i=n).SerializeToString() for n in range(4)]
    values: list[bytes | None] = [prefix_of(schema_id) + b"\0" + body for body in bodies]
    assert same(part, "PROTOBUF", [*values, None, prefix_of(schema_id) + b"\0\x0a\1"]) == 5


@pytest.mark.parametrize("sql_type", [INTEGER, STRING, BYTES])
def test_bare_values_without_a_registry(sql_type: SqlType) -> None:
    columns = [Column("V", sql_type, Part.VALUE)]
    part = RecordPart(columns, {}, "s-value", None, wraps=False)
    bodies = [b"", b"\x08\5", b"\x0a\1a", b"\x08", None]
    assert same(part, "PROTOBUF_NOSR", bodies) >= 3


@settings(max_examples=examples(24), deadline=None)
@given(st.lists(st.none() | st.binary(max_size=12), min_size=1, max_size=6))
def test_any_bytes_without_a_registry(values: list[bytes | None]) -> None:
    types: tuple[SqlType, ...] = (
        INTEGER,
        STRING,
        DOUBLE,
        Array(INTEGER),
        INNER_TYPE,
        Decimal(4, 2),
        TIMESTAMP,
    )
    columns = [Column(f"C{place}", one, Part.VALUE) for place, one in enumerate(types)]
    part = RecordPart(columns, {}, "s-value", None, wraps=True)
    same(part, "PROTOBUF_NOSR", values)


# --- whole queries ---------------------------------------------------------------------------

TEXT = """syntax = "proto3";
message M { int32 i = 1; double d = 3; string t = 4; Inner n = 5; repeated string l = 6;
  map<string, int64> m = 7; message Inner { int32 x = 1; } }
"""
SOURCE = (
    "CREATE STREAM s (k STRING KEY, i INT, d DOUBLE, t STRING, n STRUCT<x INT>, l ARRAY<STRING>,"
    " m MAP<STRING, BIGINT>) WITH (kafka_topic='s', value_format='PROTOBUF');"
)
QUERIES = (
    "CREATE STREAM q WITH (value_format='JSON') AS SELECT * FROM s WHERE i > 1;",
    "CREATE STREAM q AS SELECT k, n->x AS x, l[1] AS y, t FROM s;",
    "CREATE TABLE q AS SELECT k, COUNT(*) AS n, SUM(d) AS x, MAX(n->x) AS y FROM s GROUP BY k;",
)


@settings(max_examples=examples(15), deadline=None)
@given(data=st.data(), query=st.sampled_from(QUERIES))
def test_both_ways_are_equal(data: st.DataObject, query: str) -> None:
    registry = MemoryRegistry()
    schema_id = registry.register("s-value", "PROTOBUF", TEXT)
    build = message_class(load(TEXT, {}).message(None))
    batch = []
    for number in range(data.draw(st.integers(1, 8))):
        body = build(
            i=data.draw(INTS),
            d=data.draw(FLOATS),
            t=data.draw(TEXTS),
            n=data.draw(st.none() | st.builds(dict, x=INTS)),
            l=data.draw(st.lists(TEXTS, max_size=2)),
            m=data.draw(st.dictionaries(TEXTS, LONGS, max_size=1)),
        ).SerializeToString()
        value: bytes | None = prefix_of(schema_id) + b"\0" + body
        if data.draw(st.integers(0, 2)) == 0:
            value = data.draw(broken(value or b""))
        batch.append(("s", TopicRecord(b"k%d" % (number % 2), value, 1_000 * number)))
    batches: Batches = [batch]
    (plan,) = plans_of(SOURCE + query, {"s": 1})
    want, none = outcome(plan, copies(batches), 1, None, registry)
    got, _ = outcome(plan, copies(batches), 1, 1, registry)
    assert none == 0
    assert got == want


def test_a_registry_without_the_schema_is_asked_by_the_row_reader() -> None:
    columns = [Column("F", INTEGER, Part.VALUE)]
    part = RecordPart(columns, {}, "s-value", MemoryRegistry(), wraps=True)
    found = reading.reader("PROTOBUF", part)(pa.array([prefix_of(7) + b"\0"], pa.binary()))
    assert found.doubt.all()
    with pytest.raises(FormatError):
        PROTOBUF.deserializer(part)(prefix_of(7) + b"\0")
