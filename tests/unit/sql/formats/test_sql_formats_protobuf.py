"""PROTOBUF and PROTOBUF_NOSR: schemas, bytes, nulls, and data of other writers."""

from contextlib import suppress
from decimal import Decimal as Number

import pytest
from confluent_kafka.schema_registry.protobuf import _create_index_array
from google.protobuf import wrappers_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.schemas.errors import FormatError
from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.schemas.protobuf.messages import load, message_class
from barnabas.schemas.registry_client import StoredSchema
from barnabas.schemas.schema import SchemaFault
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.catalog import check_columns, format_named
from barnabas.sql.formats.format import RecordPart
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
    Struct,
)
from support.effort import examples

SUBJECT = "topic-value"
PROTOBUF = format_named("PROTOBUF")
PROTO3 = 'syntax = "proto3"; '


def columns_of(types, names=None):
    names = names or [f"C{index}" for index in range(len(types))]
    return [Column(name, sql_type) for name, sql_type in zip(names, types, strict=True)]


def serde(name, types, store=None, *, wraps=True, names=None, properties=None):
    columns = columns_of(types, names)
    part = RecordPart(columns, properties or {}, SUBJECT, store or MemoryRegistry(), wraps)
    return format_named(name).serializer(part), format_named(name).deserializer(part)


PRIMITIVES = columns_of([INTEGER, BIGINT, DOUBLE, BOOLEAN, STRING], "ILDBS")


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        (
            {},
            (
                'syntax = "proto3";\n\nmessage ConnectDefault1 {\n  int32 I = 1;\n  int64 L = 2;\n'
                "  double D = 3;\n  bool B = 4;\n  string S = 5;\n}\n"
            ),
        ),
        (
            {"nullableRepresentation": "optional", "fullSchemaName": "ConnectDefault7"},
            (
                'syntax = "proto3";\n\nmessage ConnectDefault1 {\n  optional int32 I = 1;\n'
                "  optional int64 L = 2;\n  optional double D = 3;\n  optional bool B = 4;\n"
                "  optional string S = 5;\n}\n"
            ),
        ),
        (
            {"nullableRepresentation": "wrapper", "fullSchemaName": "com.acme.Row"},
            (
                'syntax = "proto3";\npackage com.acme;\n\n'
                'import "google/protobuf/wrappers.proto";\n\nmessage Row {\n'
                "  google.protobuf.Int32Value I = 1;\n  google.protobuf.Int64Value L = 2;\n"
                "  google.protobuf.DoubleValue D = 3;\n  google.protobuf.BoolValue B = 4;\n"
                "  google.protobuf.StringValue S = 5;\n}\n"
            ),
        ),
    ],
    ids=["plain", "optional", "wrapper"],
)
def test_schemas(properties, text) -> None:
    assert PROTOBUF.schemas.text(PRIMITIVES, properties, wraps=True) == text
    read = PROTOBUF.schemas.columns(
        StoredSchema(1, "PROTOBUF", text),
        {"unwrapPrimitives": "true"},
        Part.VALUE,
        wraps=True,
    )
    assert list(read) == PRIMITIVES


def test_schema_of_nested_types() -> None:
    inner = Struct((Field("F", INTEGER), Field("G", Struct((Field("H", STRING),)))))
    columns = columns_of([inner, Map(STRING, INTEGER), Array(inner), Decimal(4, 2), TIME])
    text = PROTOBUF.schemas.text(columns, {}, wraps=True)
    for part in (
        "  ConnectDefault2 C0 = 1;\n",
        "    ConnectDefault3 G = 2;\n",
        "  repeated ConnectDefault4Entry C1 = 2;\n",
        "  message ConnectDefault4Entry {\n    string key = 1;\n    int32 value = 2;\n  }\n",
        "  repeated ConnectDefault5 C2 = 3;\n",
        (
            "  confluent.type.Decimal C3 = 4 [(confluent.field_meta) = {\n    params: [\n      {\n"
            '        key: "precision",\n        value: "4"\n      },\n'
        ),
        '\nimport "confluent/meta.proto";\nimport "confluent/type/decimal.proto";\n',
    ):
        assert part in text
    stored = StoredSchema(1, "PROTOBUF", text)
    assert list(PROTOBUF.schemas.columns(stored, {}, Part.VALUE, wraps=True)) == columns


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
STRUCT = Struct((Field("A", INTEGER), Field("B", Array(STRING))))
STRUCTS = st.fixed_dictionaries({"A": st.integers(0, 9), "B": st.lists(TEXT)})
ROW = [
    (BOOLEAN, st.booleans()),
    (INTEGER, st.integers(-(2**31), 2**31 - 1)),
    (BIGINT, st.integers(-(2**63), 2**63 - 1)),
    (DOUBLE, st.floats(allow_nan=False)),
    (STRING, TEXT),
    (BYTES, st.binary()),
    (Decimal(9, 3), st.decimals("-999999", "999999", places=3)),
    (DATE, st.integers(-99999, 99999)),
    (TIME, st.integers(0, 86_399_999)),
    (TIMESTAMP, st.integers(-(2**40), 2**40)),
    (Array(STRING), st.lists(TEXT)),
    (Map(STRING, BIGINT), st.dictionaries(TEXT, st.integers(0, 9))),
    (Array(STRUCT), st.lists(STRUCTS)),
    (STRUCT, STRUCTS),
]


@pytest.mark.parametrize("name", ["PROTOBUF", "PROTOBUF_NOSR"])
@pytest.mark.parametrize("nullable", [None, "optional", "wrapper"])
def test_rows_come_back_as_they_were(name, nullable) -> None:
    properties = {"nullableRepresentation": nullable} if nullable else {}
    serialize, deserialize = serde(name, [sql_type for sql_type, _ in ROW], properties=properties)

    @settings(max_examples=examples(15))
    @given(st.tuples(*(values for _, values in ROW)))
    def check(row) -> None:
        assert deserialize(serialize(row)) == list(row)

    check()


@pytest.mark.parametrize("name", ["PROTOBUF", "PROTOBUF_NOSR"])
@pytest.mark.parametrize(
    ("nullable", "read"),
    [
        (None, [0, "", [], {}, None, None]),
        ("optional", [None, None, [], {}, None, None]),
        ("wrapper", [None, None, [], {}, None, None]),
    ],
)
def test_nulls(name, nullable, read) -> None:
    properties = {"nullableRepresentation": nullable} if nullable else {}
    types = [INTEGER, STRING, Array(INTEGER), Map(STRING, INTEGER), STRUCT, TIME]
    serialize, deserialize = serde(name, types, properties=properties)
    assert deserialize(serialize([None] * 6)) == read
    empty = serialize([0, "", [], {}, {"A": None, "B": None}, 0])
    zero = 0 if nullable is None else None
    assert deserialize(empty) == [0, "", [], {}, {"A": zero, "B": []}, 0]
    assert serialize(None) is None
    assert deserialize(None) is None
    with pytest.raises(FormatError):
        serialize([None, None, [None], None, None, None])


@pytest.mark.parametrize(
    ("sql_type", "value", "data"),
    [
        (INTEGER, 5, wrappers_pb2.Int32Value(value=5)),
        (STRING, "ü", wrappers_pb2.StringValue(value="ü")),
        (BYTES, b"\0", wrappers_pb2.BytesValue(value=b"\0")),
    ],
)
def test_bare_values(sql_type, value, data) -> None:
    serialize, deserialize = serde("PROTOBUF_NOSR", [sql_type], wraps=False)
    assert serialize([value]) == data.SerializeToString()
    assert deserialize(data.SerializeToString()) == [value]
    assert serialize([None]) is None
    struct = serde("PROTOBUF_NOSR", [STRUCT], wraps=False)
    assert struct[1](struct[0]([{"A": 1, "B": ["x"]}])) == [{"A": 1, "B": ["x"]}]


def test_bytes() -> None:
    store = MemoryRegistry()
    serialize, _ = serde("PROTOBUF", [INTEGER, Decimal(4, 2)], store)
    data = serialize([5, Number("-10.01")])
    assert data[:6] == b"\0\0\0\0\1\0"
    message = message_class(load(store.schemas[1].text, {}).message(None)).FromString(data[6:])
    assert (message.C0, message.C1.precision, message.C1.scale) == (5, 4, 2)
    assert int.from_bytes(message.C1.value, "big", signed=True) == -1001
    assert store.subjects == {SUBJECT: [1]}
    for name, value in (("PROTOBUF", b"{}"), ("PROTOBUF", data[:5]), ("PROTOBUF", data[:-1])):
        with pytest.raises(FormatError):
            serde(name, [INTEGER, Decimal(4, 2)], store)[1](value)
    with pytest.raises(FormatError):
        serde("PROTOBUF_NOSR", [INTEGER])[1](b"\xff")


OTHER = """
syntax = "proto3";
package ns; // a comment
import 'google/protobuf/wrappers.proto';
import "google/protobuf/timestamp.proto";
import "event.proto";
option java_package = "x";
message First { string a = 1; }
/* another */
message Second {
  reserved 100 to 200, 300;
  reserved "old";
  option deprecated = true;
  enum Suit { option allow_alias = true; SPADES = 0; HEARTS = 1 [deprecated = true]; COPY = 1; }
  message Inner { sint32 f1 = 1; }
  Suit c1 = 1;
  repeated Inner c2 = 2;
  map<string, Inner> c3 = 3 [deprecated = true];
  uint32 c4 = 4;
  fixed64 c5 = 5;
  float c6 = 6;
  google.protobuf.BoolValue c7 = 7;
  oneof choice { option x = 1; string c8 = 8; int32 c9 = 9; }
  .ns.Event c10 = 10;
  google.protobuf.Timestamp c11 = 11;
  optional int32 c12 = 12 [json_name = "x"];
}
service Nothing { rpc Ask (First) returns (Second) { option (x) = { a: "}" }; } }
"""
EVENT = PROTO3 + "package ns; message Event { int64 timestamp = 1; }"


def other_store():
    store = MemoryRegistry()
    store.add(SUBJECT, "PROTOBUF", OTHER, (("event.proto", EVENT),))
    return store


def test_columns_of_other_writers_schemas() -> None:
    schema = other_store().schemas[1]

    def columns(properties, **options):
        read = PROTOBUF.schemas.columns(schema, properties, Part.VALUE, wraps=True, **options)
        return ", ".join(map(str, read))

    second = {"fullSchemaName": "ns.Second"}
    assert columns({}) == "`A` STRING"
    assert columns(second | {"unwrapPrimitives": "true"}) == (
        "`CHOICE_0` STRUCT<`C8` STRING, `C9` INTEGER>, `C1` STRING, "
        "`C2` ARRAY<STRUCT<`F1` INTEGER>>, `C3` MAP<STRING, STRUCT<`F1` INTEGER>>, "
        "`C4` BIGINT, `C5` BIGINT, `C6` DOUBLE, `C7` BOOLEAN, "
        "`C10` STRUCT<`TIMESTAMP` BIGINT>, `C11` TIMESTAMP, `C12` INTEGER"
    )
    assert "`C7` STRUCT<`VALUE` BOOLEAN>" in columns(second)
    assert columns({}, upper_case=False) == "`a` STRING"
    with pytest.raises(AnalysisError, match="no message Third"):
        columns({"fullSchemaName": "Third"})


def test_data_of_other_writers() -> None:
    store = other_store()
    loaded = load(OTHER, {"event.proto": EVENT})
    message = message_class(loaded.message("ns.Second"))(
        c1="HEARTS",
        c2=[{"f1": -1}],
        c3={"k": {"f1": 2}},
        c4=2**32 - 1,
        c5=2**64 - 1,
        c6=1.5,
        c7={"value": True},
        c9=9,
        c10={"timestamp": 3},
        c11={"seconds": -1, "nanos": 5_000_000},
    )
    data = b"\0\0\0\0\1" + b"\x02\x02" + message.SerializeToString()
    assert _create_index_array(loaded.message("ns.Second")) == [1]
    inner = Struct((Field("F1", INTEGER),))
    wanted = {
        "C1": (STRING, "HEARTS"),
        "C2": (Array(inner), [{"F1": -1}]),
        "C3": (Map(STRING, inner), {"k": {"F1": 2}}),
        "C4": (BIGINT, 2**32 - 1),
        "C5": (BIGINT, -1),
        "C6": (DOUBLE, 1.5),
        "C7": (BOOLEAN, True),
        "CHOICE_0": (
            Struct((Field("C8", STRING), Field("C9", INTEGER))),
            {"C8": None, "C9": 9},
        ),
        "C10": (Struct((Field("TIMESTAMP", BIGINT),)), {"TIMESTAMP": 3}),
        "C11": (TIMESTAMP, -995),
        "C12": (INTEGER, None),
        "none": (INTEGER, None),
    }
    types = [sql_type for sql_type, _ in wanted.values()]
    properties = {"unwrapPrimitives": "true"}
    read = serde("PROTOBUF", types, store, names=list(wanted), properties=properties)[1](data)
    assert read == [value for _, value in wanted.values()]
    with pytest.raises(FormatError, match="Cannot deserialize type int64 as type int32"):
        serde("PROTOBUF", [INTEGER], store, names=["C4"])[1](data)
    with pytest.raises(FormatError, match="no message at the data's index"):
        serde("PROTOBUF", [INTEGER], store)[1](b"\0\0\0\0\1\x02\x08")


def test_writing_with_a_schema_that_was_there() -> None:
    properties = {"schemaId": "1", "fullSchemaName": "ns.Second", "unwrapPrimitives": "true"}
    names = ["c1", "c3", "c7", "choice_0", "c11", "c2"]
    inner = Struct((Field("f1", INTEGER),))
    choice = Struct((Field("c8", STRING), Field("c9", INTEGER)))
    types = [STRING, Map(STRING, inner), BOOLEAN, choice, TIMESTAMP, Array(inner)]
    store = other_store()
    serialize, deserialize = serde("PROTOBUF", types, store, names=names, properties=properties)
    row = ["HEARTS", {"k": {"f1": 1}}, False, {"c8": None, "c9": 0}, -5, [{"f1": 7}]]
    data = serialize(row)
    assert data[:7] == b"\0\0\0\0\1\x02\x02"
    assert deserialize(data) == row
    with pytest.raises(FormatError, match='unknown enum label "NONE"'):
        serialize(["NONE", *row[1:]])
    with pytest.raises(FormatError, match="misses field with name: X"):
        serde("PROTOBUF", [STRING], store, names=["X"], properties=properties)[0](["x"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "message {",
        PROTO3,
        PROTO3 + "message A { B b = 1; }",
        PROTO3 + "message A { A a = 1; }",
        PROTO3 + "message A { int32 a = x; }",
        PROTO3 + 'import "gone.proto"; message A { int32 a = 1; }',
        PROTO3 + 'import "google/gone.proto"; message A { int32 a = 1; }',
        PROTO3 + "message A { int32 a = 1; int32 b = 1; }",
        PROTO3 + "message A { }",
        'syntax = "proto4"; message A { int32 a = 1; }',
        PROTO3 + "message A {" * 100,
        "\x00",
    ],
)
def test_what_is_no_schema(text) -> None:
    with pytest.raises(AnalysisError):
        PROTOBUF.schemas.columns(StoredSchema(1, "PROTOBUF", text), {}, Part.VALUE, wraps=True)


@pytest.mark.parametrize(
    ("text", "sql_type"),
    [
        ('edition = "2023"; message A { int32 a = 1; }', INTEGER),
        (
            "message A { optional group B = 1 { optional int32 c = 2; } }",
            Struct((Field("C", INTEGER),)),
        ),
    ],
    ids=["edition", "group"],
)
def test_what_few_schemas_have(text, sql_type) -> None:
    stored = StoredSchema(1, "PROTOBUF", text)
    (column,) = PROTOBUF.schemas.columns(stored, {}, Part.VALUE, wraps=True)
    assert column.type == sql_type


@settings(max_examples=examples(15))
@given(st.text('message{}=;" []<>,1aA', max_size=40))
def test_any_text_is_a_schema_or_refused(text) -> None:
    with suppress(SchemaFault):
        load(text, {})


@pytest.mark.parametrize(
    ("sql_type", "message"),
    [
        (Map(INTEGER, STRING), "PROTOBUF format only supports MAP types with STRING keys"),
        (Array(Array(STRING)), "Array cannot be nested"),
    ],
)
def test_columns_that_protobuf_cannot_have(sql_type, message) -> None:
    with pytest.raises(AnalysisError, match=message):
        check_columns(PROTOBUF, columns_of([sql_type]), {}, Part.VALUE, wraps=True)
