"""DELIMITED, KAFKA, NONE, keys with windows, and the catalog of formats."""

import csv
import io
import struct
from decimal import Decimal as Number

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.schemas.errors import FormatError
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.catalog import (
    check_columns,
    format_named,
    format_properties,
    is_wrapped,
    key_wrapping,
    value_wrapping,
)
from barnabas.sql.formats.delimited import CsvError, join_line, split_line
from barnabas.sql.formats.format import RecordPart, check_properties
from barnabas.sql.runtime.records import WindowBounds
from barnabas.sql.runtime.topics import windowed_deserializer, windowed_serializer
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
    Struct,
)
from support.effort import examples


def serde(name, types, properties=None):
    columns = [Column(f"C{index}", sql_type) for index, sql_type in enumerate(types)]
    part = RecordPart(columns, properties or {}, "topic-value", None, wraps=False)
    return format_named(name).serializer(part), format_named(name).deserializer(part)


ALL = [BIGINT, INTEGER, STRING, DOUBLE, TIME, DATE, TIMESTAMP, BYTES, Decimal(5, 0), BOOLEAN]


@pytest.mark.parametrize(
    ("types", "row", "text"),
    [
        (
            ALL,
            [1511897796092, 1, "item_1", 10.0, 100, 10, 100, b"{", Number(10), True],
            "1511897796092,1,item_1,10.0,100,10,100,ew==,10,true",
        ),
        (ALL, [5] + [None] * 9, "5,,,,,,,,,"),
        ([STRING], [None], ""),
        ([STRING, STRING], ["a b", "c,d"], 'a b,"c,d"'),
        ([STRING, STRING], ['a"b', "c\nd"], '"a""b","c\nd"'),
        ([STRING, STRING], ["-a", "-a"], '"-a",-a'),
        ([STRING, STRING], ["é", "é"], '"é",é'),
        ([STRING, STRING], ["a", "#b"], 'a,"#b"'),
        ([STRING, STRING], ["a ", "b "], '"a ","b "'),
        ([Decimal(4, 2)], [Number("-0.50")], '"-0.50"'),
        ([STRING, Decimal(10, 9)], ["a", Number("1E-9")], "a,0.000000001"),
        ([DOUBLE], [1e10], "1.0E10"),
    ],
)
def test_delimited(types, row, text) -> None:
    serialize, deserialize = serde("DELIMITED", types)
    assert serialize(row) == text.encode()
    assert serialize(None) is None
    assert deserialize(None) is None
    if text:
        assert deserialize(text.encode()) == row


def test_empty_text_becomes_null() -> None:
    serialize, deserialize = serde("DELIMITED", [STRING, STRING])
    assert serialize(["", ""]) == b'"",'
    assert deserialize(b'"",') == [None, None]


@pytest.mark.parametrize(("asked", "delimiter"), [("TAB", "\t"), ("SPACE", " "), ("|", "|")])
def test_delimiters(asked, delimiter) -> None:
    serialize, deserialize = serde("DELIMITED", [STRING, INTEGER], {"delimiter": asked})
    assert serialize(["a,b", 1]) == f"a,b{delimiter}1".encode()
    assert deserialize(f"a,b{delimiter}1\r\n".encode()) == ["a,b", 1]
    assert deserialize(serialize([f"a{delimiter}b", 1])) == [f"a{delimiter}b", 1]


@pytest.mark.parametrize(
    ("types", "text", "message"),
    [
        ([INTEGER], "", "No fields in record"),
        ([INTEGER], "\n", "No fields in record"),
        ([INTEGER, INTEGER], "1", "Column count mismatch on deserialization. topic: topic, exp"),
        ([INTEGER], "a", "not a whole number"),
        ([INTEGER], " 1", "not a whole number"),
        ([Decimal(3, 1)], "1.25", "without rounding"),
        ([TIME], "-1", "Time values"),
        ([BYTES], "a", "Value is not a valid Base64 encoded string: a"),
        ([STRING], '"a', "within quotes"),
        ([STRING], '"a"b', "between quotes and delimiter"),
    ],
)  # fmt: skip
def test_delimited_refuses(types, text, message) -> None:
    with pytest.raises(FormatError, match="Error deserializing delimited: ") as failure:
        serde("DELIMITED", types)[1](text.encode())
    assert message in str(failure.value)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a,,b", ["a", "", "b"]),
        ("a,", ["a", ""]),
        (",", ["", ""]),
        ('"a,b" ,c', ["a,b", "c"]),
        (' "a"', [' "a"']),
        ('"a""b"', ['a"b']),
        ("\n\na\nb", ["a"]),
        ('""', [""]),
        ("a\r\nb", ["a"]),
        ('a,"b\r\nc"', ["a", "b\r\nc"]),
    ],
)
def test_lines_are_split(text, values) -> None:
    assert split_line(text, ",") == values


CELLS = st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1)


@settings(max_examples=examples(15))
@given(CELLS)
def test_lines_come_back(values) -> None:
    assert split_line(join_line(values, ","), ",") == values


@settings(max_examples=examples(15))
@given(CELLS.filter(lambda cells: cells[0]))
def test_lines_are_read_alike_by_the_standard_library(values) -> None:
    # Its reader ends records at a null character and at lone carriage returns, so leave them out.
    cells = [cell.replace("\0", "").replace("\r", "") or "x" for cell in values]
    line = join_line(cells, ",")
    assert next(csv.reader(io.StringIO(line, newline=""), strict=True)) == cells


@settings(max_examples=examples(15))
@given(st.text('a,"\n\r ', max_size=12))
def test_any_text_is_split_or_refused(text) -> None:
    try:
        split_line(text, ",")
    except CsvError:
        assert '"' in text


@pytest.mark.parametrize(
    ("sql_type", "value", "data"),
    [
        (INTEGER, -2, struct.pack(">i", -2)),
        (BIGINT, 3, struct.pack(">q", 3)),
        (DOUBLE, 1.5, struct.pack(">d", 1.5)),
        (STRING, "ü", "ü".encode()),
        (BYTES, b"\x00", b"\x00"),
    ],
)
def test_kafka(sql_type, value, data) -> None:
    serialize, deserialize = serde("KAFKA", [sql_type])
    assert serialize([value]) == data
    assert deserialize(data) == [value]
    assert serialize([None]) is None
    assert serialize(None) is None
    assert deserialize(None) is None


def test_kafka_refuses() -> None:
    with pytest.raises(FormatError, match="Error deserializing KAFKA message from topic: topic"):
        serde("KAFKA", [INTEGER])[1](b"123")
    with pytest.raises(FormatError):
        serde("KAFKA", [INTEGER])[0]([2**31])


@pytest.mark.parametrize("name", ["NONE", "KAFKA"])
def test_without_columns_nothing_is_written_or_read(name) -> None:
    serialize, deserialize = serde(name, [])
    assert serialize([]) is None
    assert deserialize(b"x") is None


def test_windows_in_keys() -> None:
    serialize, deserialize = serde("KAFKA", [STRING])
    window = WindowBounds(1000, 3000)
    time = windowed_serializer(serialize, session=False)(["k"], window)
    session = windowed_serializer(serialize, session=True)(["k"], window)
    assert time == b"k" + struct.pack(">q", 1000)
    assert session == b"k" + struct.pack(">qq", 3000, 1000)
    assert windowed_deserializer(deserialize, size_ms=2000, session=False)(time) == (["k"], window)
    assert windowed_deserializer(deserialize, size_ms=None, session=True)(session) == (
        ["k"],
        window,
    )
    unbounded = windowed_deserializer(deserialize, size_ms=None, session=False)(time)
    assert unbounded == (["k"], WindowBounds(1000, 2**63 - 1))
    with pytest.raises(FormatError, match="too few"):
        windowed_deserializer(deserialize, size_ms=None, session=True)(time[:9])


KEY = Part.KEY


@pytest.mark.parametrize(
    ("name", "columns", "wraps", "message"),
    [
        (
            "DELIMITED",
            [Column("K", Struct((Field("F", DOUBLE),)), KEY)],
            None,
            (
                "Key format does not support schema.\nformat: DELIMITED\n"
                "schema: Persistence{columns=[`K` STRUCT<`F` DOUBLE> KEY], features=[]}\n"
                "reason: The 'DELIMITED' format does not support type 'STRUCT', column: `K`"
            ),
        ),
        (
            "KAFKA",
            [Column("A", INTEGER, KEY), Column("B", INTEGER, KEY)],
            None,
            (
                "Key format does not support schema.\nformat: KAFKA\n"
                "schema: Persistence{columns=[`A` INTEGER KEY, `B` INTEGER KEY], features=[]}\n"
                "reason: The 'KAFKA' format only supports a single field. "
                "Got: [`A` INTEGER KEY, `B` INTEGER KEY]"
            ),
        ),
        (
            "KAFKA",
            [Column("A", Array(INTEGER))],
            None,
            (
                "Value format does not support schema.\nformat: KAFKA\n"
                "schema: Persistence{columns=[`A` ARRAY<INTEGER>], features=[]}\n"
                "reason: The 'KAFKA' format does not support type 'ARRAY'"
            ),
        ),
        (
            "NONE",
            [Column("A", INTEGER)],
            None,
            (
                "Value format does not support schema.\nformat: NONE\n"
                "schema: Persistence{columns=[`A` INTEGER], features=[]}\n"
                "reason: The 'NONE' format can only be used when no columns are defined. "
                "Got: [`A` INTEGER]"
            ),
        ),
    ],
)
def test_columns_that_a_format_cannot_have(name, columns, wraps, message) -> None:
    with pytest.raises(AnalysisError) as failure:
        check_columns(format_named(name), columns, {}, columns[0].part, wraps)
    assert failure.value.message == message


def test_wrapping() -> None:
    one, two = [Column("A", INTEGER)], [Column("A", INTEGER), Column("B", INTEGER)]
    json, delimited = format_named("json"), format_named("DELIMITED")
    assert key_wrapping(json, one) is False
    assert key_wrapping(json, two) is None
    assert key_wrapping(delimited, one) is None
    assert value_wrapping(json, one, None) is True
    assert value_wrapping(json, one, None, default=False) is False
    assert value_wrapping(json, one, asked=False) is False
    assert value_wrapping(json, two, None) is None
    assert value_wrapping(delimited, one, None) is None
    assert value_wrapping(delimited, one, asked=False) is False
    assert is_wrapped(json, None)
    assert not is_wrapped(delimited, None)
    with pytest.raises(AnalysisError, match="support 'WRAP_SINGLE_VALUE' set to 'true'"):
        value_wrapping(delimited, one, asked=True)
    with pytest.raises(AnalysisError, match="is only valid for single-field value schemas"):
        value_wrapping(json, two, asked=False)


def test_properties_of_formats() -> None:
    assert format_properties("DELIMITED", Part.VALUE, {"VALUE_DELIMITER": ";"}) == {
        "delimiter": ";"
    }
    assert format_properties("AVRO", Part.KEY, {}, "MY_SINK") == {
        "fullSchemaName": "io.confluent.ksql.avro_schemas.MySinkKey"
    }
    assert format_properties(
        "PROTOBUF", Part.VALUE, {"VALUE_PROTOBUF_NULLABLE_REPRESENTATION": "WRAPPER"}
    ) == {"nullableRepresentation": "wrapper", "unwrapPrimitives": "true"}
    assert format_properties("JSON_SR", Part.KEY, {"KEY_SCHEMA_ID": "3"}) == {"schemaId": "3"}
    with pytest.raises(AnalysisError, match="can only be enabled with protobuf format"):
        format_properties(
            "JSON", Part.VALUE, {"VALUE_PROTOBUF_NULLABLE_REPRESENTATION": "OPTIONAL"}
        )
    with pytest.raises(AnalysisError, match="Unknown format: FOO"):
        format_named("FOO")
    with pytest.raises(AnalysisError, match=r"configuration: \{fullSchemaName=\}"):
        check_properties("AVRO", {"fullSchemaName": ""}, ["fullSchemaName"])
