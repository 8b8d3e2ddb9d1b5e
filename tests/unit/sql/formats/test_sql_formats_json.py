"""The JSON format: values read and refused, messages, and the bytes written."""

import json
from decimal import Decimal as Number
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.schemas.errors import FormatError
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.json import JsonFormat, json_deserializer, json_serializer
from barnabas.sql.schema import Column
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

SUBJECT = "topic-value"
POINT = Struct((Field("X", INTEGER), Field("y", INTEGER)))


def read(sql_type, text, *, wraps=True):
    column = Column("V", sql_type)
    data = text if isinstance(text, bytes) else text.encode()
    row = json_deserializer([column], SUBJECT, wraps=wraps)(data)
    return row if row is None else row[0]


@pytest.mark.parametrize(
    ("sql_type", "text", "expected"),
    [
        (BOOLEAN, "true", True),
        (INTEGER, "5", 5),
        (INTEGER, "5.9", 5),
        (INTEGER, "-5.9", -5),
        (INTEGER, "4294967301", 5),
        (INTEGER, "2147483648", -2147483648),
        (INTEGER, "1e999999999", 0),
        (INTEGER, '"+12"', 12),
        (BIGINT, "1e3", 1000),
        (BIGINT, "18446744073709551617", 1),
        (DOUBLE, "1", 1.0),
        (DOUBLE, "1e400", float("inf")),
        (DOUBLE, '" 1.5e1f "', 15.0),
        (DOUBLE, '"Infinity"', float("inf")),
        (DOUBLE, '"0x1.8p1"', 3.0),
        (STRING, '"a"', "a"),
        (STRING, "10", "10"),
        (STRING, "10.0", "10.0"),
        (STRING, "1e3", "1E+3"),
        (STRING, "-0.0", "0.0"),
        (DOUBLE, "-1e99999999999", float("-inf")),
        (STRING, "true", "true"),
        (STRING, '{"a": [1, 2.50, null], "b": "\\u001f"}', '{"a":[1,2.50,null],"b":"\\u001F"}'),
        (STRING, '["a", 1, null, ["b"], {"c": 1}]', '[a, 1, null, [b], {"c":1}]'),
        (Decimal(4, 2), "1.5", Number("1.50")),
        (Decimal(4, 2), '"1.50"', Number("1.50")),
        (Decimal(4, 2), "1E+1", Number("10.00")),
        (Decimal(4, 2), "1.500", Number("1.50")),
        (
            Decimal(38, 0),
            "12345678901234567890123456789012345678",
            Number(12345678901234567890123456789012345678),
        ),
        (BYTES, '"AQID"', b"\x01\x02\x03"),
        (DATE, "-1", -1),
        (TIME, "86400000", 86400000),
        (TIMESTAMP, '"-5"', -5),
        (Array(INTEGER), '[1, null, "3"]', [1, None, 3]),
        (Map(STRING, DOUBLE), '{"a": 1, "b": null}', {"a": 1.0, "b": None}),
        (POINT, '{"x": 1, "Y": 2, "z": 3}', {"X": 1, "y": None}),
        (POINT, '{"x": 1, "X": null, "y": 2}', {"X": None, "y": 2}),
        (POINT, "{}", {"X": None, "y": None}),
    ],
)
def test_values_are_coerced(sql_type, text, expected) -> None:
    value = read(sql_type, '{"v": ' + text + "}")
    assert value == expected
    assert type(value) is type(expected)
    if isinstance(expected, Number):
        assert str(value) == str(expected)
    assert read(sql_type, text, wraps=False) == expected


@pytest.mark.parametrize(
    ("sql_type", "text", "message"),
    [
        (BOOLEAN, '"true"', "sourceType: TextNode, requiredType: BOOLEAN, path: $.V"),
        (INTEGER, "true", "sourceType: BooleanNode, requiredType: INTEGER, path: $.V"),
        (INTEGER, '"1.5"', "Can't coerce string to type. targetType: INTEGER, path: $.V"),
        (INTEGER, '"2147483648"', "Can't coerce string to type. targetType: INTEGER"),
        (INTEGER, '"1_0"', "Can't coerce string to type. targetType: INTEGER"),
        (BIGINT, '" 1"', "Can't coerce string to type. targetType: BIGINT"),
        (DOUBLE, '"1_0"', "Can't coerce string to type. targetType: DOUBLE"),
        (DOUBLE, "[]", "sourceType: ArrayNode, requiredType: DOUBLE"),
        (Decimal(4, 2), "100", "must round to an absolute value less than 10^2. Got 100"),
        (Decimal(4, 2), "1.234", "'1.234' into DECIMAL(4, 2) without rounding. (Requires 4,3)"),
        (Decimal(4, 2), "1e999999999", "Numeric field overflow"),
        (Decimal(4, 2), "true", "sourceType: BooleanNode, requiredType: DECIMAL(4, 2)"),
        (BYTES, '"A"', "Value is not a valid Base64 encoded string: A"),
        (BYTES, "1", "sourceType: IntNode, requiredType: BYTES"),
        (TIME, "86400001", "milliseconds greater than 0 and less than 86400000."),
        (DATE, "{}", "sourceType: ObjectNode, requiredType: DATE"),
        (Array(INTEGER), "[1, true]", "requiredType: INTEGER, path: $.V[1]"),
        (Array(INTEGER), "1.5", "sourceType: DecimalNode, requiredType: ARRAY<INT>, path: $.V"),
        (Map(STRING, INTEGER), '{"b": true}', "path: $.V.b.value"),
        (POINT, "3000000000", "sourceType: LongNode, requiredType: STRUCT<X INT, y INT>"),
        (Array(POINT), '[{"X": true}]', "path: $.V[0].X"),
        (INTEGER, "NaN", "not JSON"),
        (INTEGER, "01", "not JSON"),
        (INTEGER, "1e9999999999999999999", "not JSON"),
        (STRING, '"\x01"', "not JSON"),
    ],
)  # fmt: skip
def test_misfits_are_told_with_their_path(sql_type, text, message) -> None:
    with pytest.raises(FormatError) as failure:
        read(sql_type, '{"v": ' + text + "}")
    assert str(failure.value).startswith("Failed to deserialize value from topic: topic. ")
    assert message in str(failure.value)


@pytest.mark.parametrize("data", [b"", b" ", b"{", b"[1", b"\xff", b"1abc", b"'a'", b"[" * 100_000])
def test_what_is_not_json_is_refused(data) -> None:
    with pytest.raises(FormatError):
        read(Array(INTEGER), data, wraps=False)


def test_null_is_no_row_or_a_bare_null() -> None:
    columns = [Column("A", INTEGER)]
    assert json_deserializer(columns, SUBJECT, wraps=True)(None) is None
    assert json_deserializer(columns, SUBJECT, wraps=True)(b"null") is None
    assert json_deserializer(columns, SUBJECT, wraps=False)(None) is None
    assert json_deserializer(columns, SUBJECT, wraps=False)(b" null") == [None]


def test_what_follows_the_value_is_ignored() -> None:
    assert read(INTEGER, '\ufeff {"v": 1} 2') == 1
    assert read(INTEGER, "1 2", wraps=False) == 1


@pytest.mark.parametrize(
    ("sql_type", "value", "text"),
    [
        (BOOLEAN, True, "true"),
        (INTEGER, -5, "-5"),
        (DOUBLE, 1.0, "1.0"),
        (DOUBLE, 1e7, "1.0E7"),
        (DOUBLE, 1.25e-5, "1.25E-5"),
        (DOUBLE, 123456.789, "123456.789"),
        (DOUBLE, float("nan"), '"NaN"'),
        (DOUBLE, float("-inf"), '"-Infinity"'),
        (Decimal(4, 2), Number("10.00"), "10.00"),
        (Decimal(10, 8), Number("1E-8"), "1E-8"),
        (STRING, 'a"\\/ü\n\x1f\x7f', '"a\\"\\\\/ü\\n\\u001F\x7f"'),
        (STRING, "\\u001f", '"\\\\u001f"'),
        (BYTES, b"\x00\xff", '"AP8="'),
        (DATE, 10, "10"),
        (TIME, 10, "10"),
        (TIMESTAMP, 10, "10"),
        (Array(INTEGER), [1, None], "[1,null]"),
        (Map(STRING, INTEGER), {"a": 1, None: None}, '{"a":1,"null":null}'),
        (POINT, {"X": 1, "y": None}, '{"X":1,"y":null}'),
    ],
)
def test_values_are_written_as_java_does(sql_type, value, text) -> None:
    columns = [Column("V%", sql_type)]
    assert json_serializer(columns, SUBJECT, wraps=False)([value]) == text.encode()
    wrapped = json_serializer(columns, SUBJECT, wraps=True)([value])
    assert wrapped == ('{"V%":' + text + "}").encode()


def test_nulls_are_written() -> None:
    columns = [Column("A", INTEGER), Column("b", STRING)]
    serialize = json_serializer(columns, SUBJECT, wraps=True)
    assert serialize([None, "x"]) == b'{"A":null,"b":"x"}'
    assert serialize(None) is None
    assert json_serializer(columns[:1], SUBJECT, wraps=False)([None]) is None
    assert json_serializer([], SUBJECT, wraps=True)([]) == b"{}"
    with pytest.raises(FormatError, match="Column count mismatch on serialization"):
        serialize([1])
    with pytest.raises(FormatError, match="Error serializing message to topic: topic"):
        serialize([1, "\ud800"])


ROW_TYPES: list[tuple[SqlType, st.SearchStrategy[Any]]] = [
    (BOOLEAN, st.booleans()),
    (INTEGER, st.integers(-(2**31), 2**31 - 1)),
    (BIGINT, st.integers(-(2**63), 2**63 - 1)),
    (DOUBLE, st.floats(allow_nan=False)),
    (STRING, st.text(st.characters(exclude_categories=["Cs"]))),
    (BYTES, st.binary()),
    (Decimal(9, 3), st.decimals("-999999", "999999", places=3)),
    (TIME, st.integers(0, 86_400_000)),
    (Array(STRING), st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"])))),
    (Map(STRING, BIGINT), st.dictionaries(st.text('ab%"\\'), st.none() | st.integers(0, 9))),
]


@settings(max_examples=examples(15))
@given(st.tuples(*(st.none() | values for _, values in ROW_TYPES)))
def test_rows_come_back_as_they_were(row) -> None:
    columns = [Column(f"C{index}", sql_type) for index, (sql_type, _) in enumerate(ROW_TYPES)]
    data = json_serializer(columns, SUBJECT, wraps=True)(row)
    assert data is not None
    assert json.loads(data).keys() == {column.name for column in columns}
    assert json_deserializer(columns, SUBJECT, wraps=True)(data) == list(row)


@settings(max_examples=examples(15))
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_are_json(value) -> None:
    data = json_serializer([Column("V", DOUBLE)], SUBJECT, wraps=False)([value])
    assert data is not None
    assert json.loads(data) == value


def test_format() -> None:
    with pytest.raises(AnalysisError, match="JSON only supports MAP types with STRING keys"):
        JsonFormat().check([Column("A", Array(Map(INTEGER, STRING)))], {})
    with pytest.raises(
        AnalysisError, match=r"JSON does not support the following configs: \[delim"
    ):
        JsonFormat().check([], {"delimiter": ","})
