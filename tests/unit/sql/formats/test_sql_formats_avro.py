"""AVRO: the schemas that ksqlDB registers, the bytes, and what is read of other writers' data."""

import io
import json
from decimal import Decimal as Number

import avro.io
import avro.schema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.schemas.errors import FormatError
from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.schemas.registry_client import StoredSchema
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

AVRO = format_named("AVRO")
SUBJECT = "topic-value"


def schema_of(types, *, wraps=True, properties=None):
    columns = [Column(f"C{index}", sql_type) for index, sql_type in enumerate(types)]
    return json.loads(AVRO.schemas.text(columns, properties or {}, wraps=wraps))


def field(sql_type):
    return schema_of([sql_type])["fields"][0]["type"][1]


def test_schema_of_a_row() -> None:
    assert AVRO.schemas.text([Column("FOO", INTEGER)], {}, wraps=True) == (
        '{"type":"record","name":"KsqlDataSourceSchema",'
        '"namespace":"io.confluent.ksql.avro_schemas",'
        '"fields":[{"name":"FOO","type":["null","int"],"default":null}],'
        '"connect.name":"io.confluent.ksql.avro_schemas.KsqlDataSourceSchema"}'
    )
    named = schema_of([INTEGER], properties={"fullSchemaName": "com.acme.Name"})
    assert (named["namespace"], named["name"]) == ("com.acme", "Name")
    assert schema_of([INTEGER], properties={"fullSchemaName": "Name"})["name"] == "Name"
    assert "namespace" not in schema_of([INTEGER], properties={"fullSchemaName": "Name"})


@pytest.mark.parametrize(
    ("sql_type", "schema"),
    [
        (BOOLEAN, "boolean"),
        (BIGINT, "long"),
        (DOUBLE, "double"),
        (STRING, "string"),
        (BYTES, "bytes"),
        (
            Decimal(4, 2),
            {
                "type": "bytes",
                "scale": 2,
                "precision": 4,
                "connect.version": 1,
                "connect.parameters": {"scale": "2", "connect.decimal.precision": "4"},
                "connect.name": "org.apache.kafka.connect.data.Decimal",
                "logicalType": "decimal",
            },
        ),
        (
            TIMESTAMP,
            {
                "type": "long",
                "connect.version": 1,
                "connect.name": "org.apache.kafka.connect.data.Timestamp",
                "logicalType": "timestamp-millis",
            },
        ),
        (Array(BIGINT), {"type": "array", "items": ["null", "long"]}),
        (
            Map(STRING, DOUBLE),
            {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "KsqlDataSourceSchema_C0",
                    "fields": [
                        {"name": "key", "type": ["null", "string"], "default": None},
                        {"name": "value", "type": ["null", "double"], "default": None},
                    ],
                    "connect.internal.type": "MapEntry",
                },
                "connect.name": "io.confluent.ksql.avro_schemas.KsqlDataSourceSchema_C0",
            },
        ),
        (
            Struct((Field("F", INTEGER),)),
            {
                "type": "record",
                "name": "KsqlDataSourceSchema_C0",
                "fields": [{"name": "F", "type": ["null", "int"], "default": None}],
                "connect.name": "io.confluent.ksql.avro_schemas.KsqlDataSourceSchema_C0",
            },
        ),
    ],
)
def test_schemas_of_types(sql_type, schema) -> None:
    assert field(sql_type) == schema


def test_names_of_nested_types_are_paths() -> None:
    struct = Struct((Field("F", Map(STRING, Struct((Field("G", INTEGER),)))),))
    schema = field(Array(struct))["items"][1]
    entry = schema["fields"][0]["type"][1]["items"]
    value = entry["fields"][1]["type"][1]
    assert schema["name"] == "KsqlDataSourceSchema_C0"
    assert entry["name"] == "KsqlDataSourceSchema_C0_F"
    assert value["name"] == "KsqlDataSourceSchema_C0_F_MapValue"


def test_bare_schemas() -> None:
    assert schema_of([INTEGER], wraps=False) == "int"
    assert schema_of([Array(BIGINT)], wraps=False) == {"type": "array", "items": ["null", "long"]}
    assert schema_of([TIME], wraps=False) == {
        "type": "int",
        "connect.name": "org.apache.kafka.connect.data.Time",
        "logicalType": "time-millis",
    }


def serde(types, store=None, *, wraps=True, names=None, properties=None):
    names = names or [f"C{index}" for index in range(len(types))]
    columns = [Column(name, sql_type) for name, sql_type in zip(names, types, strict=True)]
    part = RecordPart(columns, properties or {}, SUBJECT, store or MemoryRegistry(), wraps)
    return AVRO.serializer(part), AVRO.deserializer(part)


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
STRUCT = Struct((Field("A", INTEGER), Field("B", Array(STRING))))
ROW = [
    (BOOLEAN, st.booleans()),
    (INTEGER, st.integers(-(2**31), 2**31 - 1)),
    (BIGINT, st.integers(-(2**63), 2**63 - 1)),
    (DOUBLE, st.floats(allow_nan=False)),
    (STRING, TEXT),
    (BYTES, st.binary()),
    (Decimal(9, 3), st.decimals("-999999", "999999", places=3)),
    (DATE, st.integers(-9999, 9999)),
    (TIME, st.integers(0, 86_399_999)),
    (TIMESTAMP, st.integers(-(2**40), 2**40)),
    (Array(STRING), st.lists(st.none() | TEXT)),
    (Map(STRING, BIGINT), st.dictionaries(TEXT, st.none() | st.integers(0, 9))),
    (STRUCT, st.fixed_dictionaries({"A": st.none() | st.integers(0, 9), "B": st.lists(TEXT)})),
]


@settings(max_examples=examples(15))
@given(st.tuples(*(st.none() | values for _, values in ROW)))
def test_rows_come_back_as_they_were(row) -> None:
    serialize, deserialize = serde([sql_type for sql_type, _ in ROW])
    assert deserialize(serialize(row)) == list(row)


@pytest.mark.parametrize(("sql_type", "values"), ROW, ids=str)
def test_bare_values_come_back(sql_type, values) -> None:
    serialize, deserialize = serde([sql_type], wraps=False)

    @settings(max_examples=examples(15))
    @given(values)
    def check(value) -> None:
        assert deserialize(serialize([value])) == [value]

    check()
    assert serialize([None]) is None
    assert deserialize(None) is None


def test_bytes_are_those_of_another_library() -> None:
    store = MemoryRegistry()
    types = [INTEGER, STRING, Decimal(5, 2), Map(STRING, INTEGER), STRUCT]
    serialize, _ = serde(types, store)
    data = serialize([-3, "ü", Number("-1.50"), {"k": 1}, {"A": None, "B": ["x"]}])
    assert data[:5] == b"\x00\x00\x00\x00\x01"
    schema = avro.schema.parse(store.schemas[1].text)
    reader = avro.io.DatumReader(schema)
    read = reader.read(avro.io.BinaryDecoder(io.BytesIO(data[5:])))
    assert read == {
        "C0": -3,
        "C1": "ü",
        "C2": Number("-1.50"),
        "C3": [{"key": "k", "value": 1}],
        "C4": {"A": None, "B": ["x"]},
    }
    out = io.BytesIO()
    avro.io.DatumWriter(schema).write(read, avro.io.BinaryEncoder(out))
    assert out.getvalue() == data[5:]
    assert store.subjects == {SUBJECT: [1]}


def write(schema, value, references=()):
    """The value as another writer has it on the wire, and the registry with its schema."""
    store = MemoryRegistry()
    schema_id = store.add("other", "AVRO", json.dumps(schema), references)
    out = io.BytesIO()
    avro.io.DatumWriter(avro.schema.parse(json.dumps(schema))).write(
        value, avro.io.BinaryEncoder(out)
    )
    return store, bytes([0, 0, 0, 0, schema_id]) + out.getvalue()


def record(*fields):
    members = [{"name": name, "type": field_type} for name, field_type in fields]
    return {"type": "record", "name": "blah", "fields": members}


SUIT = {"type": "enum", "name": "Suit", "symbols": ["SPADES", "HEARTS"]}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}


@pytest.mark.parametrize(
    ("schema", "value", "sql_type", "expected"),
    [
        ("int", 5, BIGINT, 5),
        ("int", 5, STRING, "5"),
        ("boolean", True, STRING, "true"),
        ("double", 1e10, STRING, "1.0E10"),
        ("float", 0.1, STRING, "0.1"),
        ("float", 1.5, DOUBLE, 1.5),
        (SUIT, "HEARTS", STRING, "HEARTS"),
        ({"type": "fixed", "name": "f", "size": 2}, b"ab", BYTES, b"ab"),
        (DECIMAL, Number("1.50"), Decimal(4, 2), Number("1.50")),
        (DECIMAL, Number("1.50"), Decimal(6, 3), Number("1.500")),
        ({"type": "map", "values": "int"}, {"a": 1}, Map(STRING, BIGINT), {"a": 1}),
        ({"type": "array", "items": ["null", "int"]}, [1, None], Array(INTEGER), [1, None]),
        (["null", "int"], None, INTEGER, None),
        ({"type": "int", "logicalType": "date"}, 5, INTEGER, 5),
        ("int", 5, DATE, 5),
        ("long", 5, TIMESTAMP, 5),
        (
            ["null", "int", "string"],
            "x",
            Struct((Field("INT", INTEGER), Field("STRING", STRING))),
            {"INT": None, "STRING": "x"},
        ),
    ],
)
def test_other_writers_schemas(schema, value, sql_type, expected) -> None:
    if isinstance(schema, dict) and schema.get("logicalType") == "date":
        store, data = write(record(("c1", "int")), {"c1": value})
        store.schemas[1] = StoredSchema(1, "AVRO", json.dumps(record(("c1", schema))))
    else:
        store, data = write(record(("c1", schema)), {"c1": value})
    [read] = serde([sql_type], store, names=["C1"])[1](data)
    assert read == expected
    assert type(read) is type(expected)
    assert serde([sql_type], store, names=["c2"])[1](data) == [None]
    if schema != ["null", "int", "string"]:
        [column] = AVRO.schemas.columns(store.schemas[1], {}, Part.VALUE, wraps=True)
        assert column.name == "C1"


@pytest.mark.parametrize(
    ("schema", "value", "sql_type", "message"),
    [
        ("long", 5, INTEGER, "Cannot deserialize type int64 as type int32 for path: ->C1"),
        ("string", "5", INTEGER, "Cannot deserialize type string as type int32 for path: ->C1"),
        (["null", "string"], None, INTEGER, "Cannot deserialize type string as type int32"),
        ("int", 5, DOUBLE, "Cannot deserialize type int32 as type float64"),
        ("bytes", b"5", STRING, "Cannot deserialize type bytes as type string"),
        ({"type": "array", "items": "string"}, ["x"], Array(INTEGER), "for path: ->C1->ARRAY"),
        ({"type": "map", "values": "string"}, {"a": "x"}, Map(STRING, INTEGER), "->C1->MAP_VAL"),
        (DECIMAL, Number("1.55"), Decimal(4, 1), "without rounding"),
        ("bytes", b"x", Decimal(4, 1), "not marked as a decimal"),
        (DECIMAL, Number("1.55"), BYTES, "not BYTES"),
    ],
)
def test_types_that_differ_are_refused(schema, value, sql_type, message) -> None:
    store, data = write(record(("c1", schema)), {"c1": value})
    with pytest.raises(FormatError) as failure:
        serde([sql_type], store, names=["C1"])[1](data)
    assert message in str(failure.value)
    assert str(failure.value).startswith("Error deserializing message value from topic: topic")


def test_empty_containers_hide_a_difference() -> None:
    schema = record(("c1", {"type": "array", "items": "string"}))
    store, data = write(schema, {"c1": []})
    assert serde([Array(INTEGER)], store, names=["C1"])[1](data) == [[]]


@pytest.mark.parametrize("cut", [0, 1, 4, 5, 6, 7])
def test_cut_data_are_refused(cut) -> None:
    serialize, deserialize = serde([STRING, DOUBLE])
    data = serialize(["abc", 1.5])
    with pytest.raises(FormatError):
        deserialize(data[:cut])
    with pytest.raises(FormatError, match="Unknown magic byte!"):
        deserialize(b"{}" + data)


def test_errors_name_no_address_in_memory() -> None:
    serialize, deserialize = serde([DOUBLE])
    with pytest.raises(FormatError, match=r": cannot read double from the data$"):
        deserialize(serialize([1.5])[:-1])


def test_schemas_that_are_not_there_or_none() -> None:
    store = MemoryRegistry()
    _, deserialize = serde([INTEGER], store)
    with pytest.raises(FormatError, match="Schema 9 not found"):
        deserialize(b"\x00\x00\x00\x00\x09\x00")
    recursive = json.dumps(record(("a", "blah")))
    for text in ('{"type": "record"}', "{", '"nonsense"', recursive):
        schema = StoredSchema(1, "AVRO", text)
        with pytest.raises(AnalysisError):
            AVRO.schemas.columns(schema, {}, Part.VALUE, wraps=True)


def test_columns_of_schemas() -> None:
    text = json.dumps(
        record(
            ("a", "int"),
            ("B", ["null", DECIMAL]),
            ("suit", SUIT),
            ("inner", record(("f", "Suit")) | {"name": "inner"}),
            ("wide", {"type": "bytes", "logicalType": "decimal", "scale": 2, "precision": 64}),
        )
    )  # fmt: skip
    schema = StoredSchema(1, "AVRO", text)
    columns = AVRO.schemas.columns(schema, {}, Part.VALUE, wraps=True)
    assert ", ".join(map(str, columns)) == (
        "`A` INTEGER, `B` DECIMAL(4, 2), `SUIT` STRING, `INNER` STRUCT<`F` STRING>, "
        "`WIDE` DECIMAL(64, 2)"
    )
    kept = AVRO.schemas.columns(schema, {}, Part.VALUE, wraps=True, upper_case=False)
    assert [column.name for column in kept] == ["a", "B", "suit", "inner", "wide"]
    bare = StoredSchema(1, "AVRO", '"int"')
    [column] = AVRO.schemas.columns(bare, {}, Part.KEY, wraps=False)
    assert column == Column("ROWKEY", INTEGER, Part.KEY)
    with pytest.raises(AnalysisError, match="Schema returned from schema registry is anonymous"):
        AVRO.schemas.columns(bare, {}, Part.VALUE, wraps=True)


def named(name, *fields, **rest):
    return record(*fields) | {"name": name} | rest


@pytest.mark.parametrize(
    ("schema", "data", "columns", "row"),
    [
        (  # one short name in two namespaces, also in one union
            named("R", ("u", ["null", named("a.X", ("x", "int")), named("b.X", ("y", "int"))])),
            b"\4\x0a",
            "`U` STRUCT<`X` STRUCT<`X` INTEGER>, `B.X` STRUCT<`Y` INTEGER>>",
            [{"X": None, "B.X": {"Y": 5}}],
        ),
        (  # one of them is the namespace of none
            named(
                "n.R",
                ("u", named("X", ("x", "int"), namespace="")),
                ("v", named("X", ("y", "string"))),
                ("w", "X"),
            ),
            b"\2\0022\0023",
            "`U` STRUCT<`X` INTEGER>, `V` STRUCT<`Y` STRING>, `W` STRUCT<`Y` STRING>",
            [{"X": 1}, {"Y": "2"}, {"Y": "3"}],
        ),
        (  # names of primitive types are those everywhere
            named("n.R", ("u", named("n.string", ("y", "int"))), ("v", "string")),
            b"\2\0022",
            "`U` STRUCT<`Y` INTEGER>, `V` STRING",
            [{"Y": 1}, "2"],
        ),
        (
            named("R", ("u", [{"type": "null"}, "int"]), ("v", "int")),
            b"\0\4",
            "`U` INTEGER, `V` INTEGER",
            [None, 2],
        ),
    ],
    ids=["union", "no namespace", "primitive", "null"],
)
def test_names(schema, data, columns, row) -> None:
    store = MemoryRegistry({"other": json.dumps(schema)})
    made = AVRO.schemas.columns(store.schemas[1], {}, Part.VALUE, wraps=True)
    assert ", ".join(map(str, made)) == columns
    names = [column.name for column in made]
    assert (
        serde([column.type for column in made], store, names=names)[1](b"\0\0\0\0\1" + data) == row
    )


def test_logical_types_in_capitals() -> None:
    text = json.dumps(record(("d", {"type": "int", "logicalType": "DATE"})))
    [column] = AVRO.schemas.columns(StoredSchema(1, "AVRO", text), {}, Part.VALUE, wraps=True)
    assert column == Column("D", DATE)


def test_a_name_with_two_definitions() -> None:
    first, second = named("X", ("x", "int")), named("X", ("y", "int"))
    text = json.dumps(record(("u", first), ("v", second)))
    with pytest.raises(AnalysisError, match="Can't redefine: X"):
        AVRO.schemas.columns(StoredSchema(1, "AVRO", text), {}, Part.VALUE, wraps=True)
    text = json.dumps(record(("u", first), ("v", first)))
    assert len(AVRO.schemas.columns(StoredSchema(1, "AVRO", text), {}, Part.VALUE, wraps=True)) == 2


def test_references() -> None:
    inner = '{"type": "record", "name": "ns.Inner", "fields": [{"name": "f", "type": "int"}]}'
    outer = '{"type": "record", "name": "Outer", "fields": [{"name": "i", "type": "ns.Inner"}]}'
    store = MemoryRegistry()
    store.add(SUBJECT, "AVRO", outer, (("inner", inner),))
    [column] = AVRO.schemas.columns(store.schemas[1], {}, Part.VALUE, wraps=True)
    assert str(column) == "`I` STRUCT<`F` INTEGER>"
    assert serde([column.type], store, names=["I"])[1](b"\0\0\0\0\1\x06") == [{"F": 3}]


def test_writing_with_a_schema_that_was_there() -> None:
    optional = {"name": "c2", "type": ["null", "int"], "default": None}
    schema = record(("c1", "int"))
    schema["fields"] += [optional, {"name": "c3", "type": "string", "default": "foo"}]
    store = MemoryRegistry()
    store.add(SUBJECT, "AVRO", json.dumps(schema))
    serialize, _ = serde([INTEGER], store, names=["c1"], properties={"schemaId": "1"})
    assert serialize([5]) == b"\0\0\0\0\1" + b"\x0a" + b"\x00" + b"\x06foo"
    with pytest.raises(FormatError, match='null used for required field: "c1"'):
        serialize([None])
    both = serde([INTEGER, STRING], store, names=["c1", "c3"], properties={"schemaId": "1"})[0]
    assert both([5, None]) == serialize([5])
    for names, types, message in (
        (["C1"], [INTEGER], "misses field with name: C1"),
        (["c2"], [INTEGER], "Missing default value for required field"),
        (["c1"], [BIGINT], "Cannot write type int64 as type int32"),
    ):
        with pytest.raises(FormatError, match=message):
            serde(types, store, names=names, properties={"schemaId": "1"})[0]([5])


def test_names_that_avro_forbids() -> None:
    columns = [Column("1Name", INTEGER)]
    with pytest.raises(
        AnalysisError, match="Schema is not compatible with Avro: Illegal initial character: 1Name"
    ):
        check_columns(AVRO, columns, {}, Part.VALUE, wraps=True)
