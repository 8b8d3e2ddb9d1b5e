"""Converters of bytes, without a registry."""

from __future__ import annotations

import json
import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from barnabas.connect.converters.base import Converter, HeaderConverter
from barnabas.connect.converters.json import JsonConverter
from barnabas.connect.plugins import HEADER_CONVERTERS, PLUGINS, load
from barnabas.schemas.data.builder import (
    BOOLEAN,
    BYTES,
    DATE_SCHEMA,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    array_of,
    decimal,
    map_of,
    optional,
    struct_of,
    with_default,
)
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema, Struct
from support.connect.typed_values import typed_values
from support.effort import examples

CONVERTERS = "org.apache.kafka.connect.converters."
STORAGE = "org.apache.kafka.connect.storage."


def made(name: str, **given_settings: Any) -> Converter:
    converter: Converter = load(name)()
    converter.configure({k.replace("_", "."): v for k, v in given_settings.items()}, is_key=False)
    return converter


def json_converter(**given_settings: Any) -> Converter:
    return made("org.apache.kafka.connect.json.JsonConverter", **given_settings)


@pytest.mark.parametrize("plugin", [*PLUGINS.values(), *HEADER_CONVERTERS.values()])
def test_every_plugin_of_this_room_can_be_made(plugin: Any) -> None:
    if plugin.kind == "converter":
        assert isinstance(load(plugin.class_name)(), Converter)
    elif plugin.kind == "header_converter":
        header = load(plugin.class_name, "header_converter")()
        assert isinstance(header, HeaderConverter)
        header.configure({})


@pytest.mark.parametrize(
    ("name", "schema", "value", "data"),
    [
        (CONVERTERS + "ShortConverter", None, -2, b"\xff\xfe"),
        (CONVERTERS + "IntegerConverter", INT32, 1, b"\0\0\0\1"),
        (CONVERTERS + "LongConverter", INT64, 1, b"\0\0\0\0\0\0\0\1"),
        (CONVERTERS + "FloatConverter", FLOAT32, 1.5, struct.pack(">f", 1.5)),
        (CONVERTERS + "DoubleConverter", FLOAT64, 1.5, struct.pack(">d", 1.5)),
        (CONVERTERS + "BooleanConverter", BOOLEAN, True, b"\1"),
        (CONVERTERS + "ByteArrayConverter", BYTES, b"x", b"x"),
        (STORAGE + "StringConverter", STRING, "ä", "ä".encode()),
    ],
)
def test_plain_values_become_bytes_and_back(
    name: str, schema: Schema | None, value: Any, data: bytes
) -> None:
    converter = made(name)
    assert converter.from_connect("t", schema, value) == data
    found_schema, found = converter.to_connect("t", data)
    assert found == value
    assert found_schema is not None
    assert found_schema.optional
    assert converter.from_connect("t", schema, None) is None
    assert converter.to_connect("t", None) == (found_schema, None)


@pytest.mark.parametrize(
    ("name", "schema", "value", "text"),
    [
        (
            CONVERTERS + "IntegerConverter",
            None,
            "x",
            "Failed to serialize to integer (was class java.lang.String): ",
        ),
        (
            CONVERTERS + "ByteArrayConverter",
            STRING,
            "x",
            "Invalid schema type for ByteArrayConverter: STRING",
        ),
        (
            CONVERTERS + "ByteArrayConverter",
            None,
            "x",
            "ByteArrayConverter is not compatible with objects of type class java.lang.String",
        ),
        (
            CONVERTERS + "BooleanConverter",
            None,
            "x",
            "BooleanConverter is not compatible with objects of type class java.lang.String",
        ),
    ],
)
def test_values_of_other_types_are_refused_with_kafkas_text(
    name: str, schema: Schema | None, value: Any, text: str
) -> None:
    with pytest.raises(DataError) as refused:
        made(name).from_connect("t", schema, value)
    assert str(refused.value) == text


POINT = struct_of(
    {
        "b": INT8,
        "n": with_default(INT32, 7),
        "f": FLOAT32,
        "d": FLOAT64,
        "s": OPTIONAL_STRING,
        "x": BYTES,
        "a": array_of(optional(INT64)),
        "m": map_of(STRING, BOOLEAN),
        "p": map_of(INT32, STRING),
        "u": decimal(2),
        "day": DATE_SCHEMA,
        "at": TIME_SCHEMA,
        "ts": TIMESTAMP_SCHEMA,
    },
    name="geo.Point",
    version=3,
    doc='a "point"',
)
VALUE = Struct.of(
    POINT,
    {
        "b": -1,
        "f": 0.1,
        "d": 1e10,
        "x": b"\0\xff",
        "a": [1, None],
        "m": {"k": True},
        "p": {1: "\x1f\n"},
        "u": Decimal("12.30"),
        "day": date(2020, 2, 29),
        "at": time(0, 0, 1),
        "ts": datetime(2020, 1, 1, tzinfo=UTC),
    },
)
PAYLOAD = (
    '{"b":-1,"n":7,"f":0.1,"d":1.0E10,"s":null,"x":"AP8=","a":[1,null],"m":{"k":true},'
    '"p":[[1,"\\u001F\\n"]],"u":"BM4=","day":18321,"at":1000,"ts":1577836800000}'
)


def test_a_struct_is_written_as_jackson_writes_it() -> None:
    assert json_converter(schemas_enable=False).from_connect("t", POINT, VALUE) == PAYLOAD.encode()
    data = json_converter().from_connect("t", POINT, VALUE)
    assert data is not None
    assert data.endswith(f',"payload":{PAYLOAD}}}'.encode())
    schema = json.loads(data)["schema"]
    assert {key: schema[key] for key in ("type", "optional", "name", "version", "doc")} == {
        "type": "struct",
        "optional": False,
        "name": "geo.Point",
        "version": 3,
        "doc": 'a "point"',
    }
    assert schema["fields"][1] == {"type": "int32", "optional": False, "default": 7, "field": "n"}


INNER = struct_of({"text": OPTIONAL_STRING}, name="Inner")


@pytest.mark.parametrize(
    ("fields", "values", "expected"),
    [
        ({}, [], "{}"),
        ({"a'b\"{c}\\": INT8}, [1], '{"a\'b\\"{c}\\\\":1}'),
        ({"t": STRING}, ["\x01\x1f\n"], '{"t":"\\u0001\\u001F\\n"}'),
        ({"t": STRING, "n": INT64}, ["\\u001f", -7], '{"t":"\\\\u001f","n":-7}'),
        ({"in": INNER}, [Struct(INNER, ["\x7f\x1b"])], '{"in":{"text":"\x7f\\u001B"}}'),
        ({"in": INNER}, [Struct(INNER, [None])], '{"in":{"text":null}}'),
        ({"b": BOOLEAN, "o": optional(BOOLEAN)}, [True, None], '{"b":true,"o":null}'),
        ({"d": with_default(STRING, "x\x1b")}, [None], '{"d":"x\\u001B"}'),
        ({"f": FLOAT64, "g": FLOAT64}, [1e10, float("nan")], '{"f":1.0E10,"g":"NaN"}'),
    ],
)
def test_structs_fields_are_written_as_jackson_writes_them(
    fields: dict[str, Schema], values: list[Any], expected: str
) -> None:
    schema = struct_of(fields)
    data = json_converter(schemas_enable="false").from_connect("t", schema, Struct(schema, values))
    assert data is not None
    assert data.decode() == expected


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (INT8, 128, "Invalid type for INT8: class java.lang.Integer"),
        (INT32, True, "Invalid type for INT32: class java.lang.Boolean"),
        (STRING, b"x", "Invalid type for STRING: class [B"),
        (BOOLEAN, 1, "Invalid type for BOOLEAN: class java.lang.Integer"),
        (INNER, {"text": "x"}, "Invalid type for STRUCT: class java.util.HashMap"),
        (INNER, Struct(struct_of({}), []), "Mismatching schema."),
        (
            *(STRING, None),
            "Conversion error: null value for field that is required and has no default value",
        ),
    ],
)
def test_structs_fields_of_other_types_are_refused_with_kafkas_text(
    schema: Schema, value: Any, text: str
) -> None:
    outer = struct_of({"field": schema})
    with pytest.raises(DataError) as refused:
        json_converter().from_connect("t", outer, Struct(outer, [value]))
    assert str(refused.value) == text


def test_a_message_is_read_the_same_the_first_time_and_again() -> None:
    converter = json_converter()
    data = converter.from_connect("t", POINT, VALUE)
    first, again = converter.to_connect("t", data), converter.to_connect("t", data)
    assert first == again
    assert first[0] is again[0]
    assert first[0] == POINT
    assert first[1].get("n") == 7
    assert first[1].get("ts") == VALUE.get("ts")
    assert first[1].get("u") == Decimal("12.30")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"{", "Converting byte[] to Kafka Connect data failed due to serialization error: "),
        (b"[NaN]", "Converting byte[] to Kafka Connect data failed due to serialization error: "),
        (b'{"schema":{},"payload":1}', "Schema must contain 'type' field"),
        (b'{"schema":{"type":"x"},"payload":1}', "Unknown schema type: x"),
        (
            b'{"schema":{"type":"int32"},"payload":null}',
            "Invalid null value for required INT32 field",
        ),
        (
            b'{"schema":{"type":"struct","fields":[]},"payload":1}',
            "Structs should be encoded as JSON objects, but found NUMBER",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_kafkas_text(data: bytes, text: str) -> None:
    for converter in (json_converter(), json_converter()):
        with pytest.raises(DataError) as refused:
            converter.to_connect("t", data)
        assert str(refused.value) == text


@pytest.mark.parametrize(
    "data", [b"1", b"{}", b'{"schema":null}', b'{"schema":1,"payload":1,"x":1}']
)
def test_a_message_without_an_envelope_is_refused(data: bytes) -> None:
    with pytest.raises(DataError, match=r"^JsonConverter with schemas.enable requires"):
        json_converter().to_connect("t", data)


def test_a_second_envelope_with_the_same_beginning_is_still_checked() -> None:
    converter = json_converter()
    assert converter.to_connect("t", b'{"schema":null,"payload":1}') == (None, 1)
    assert converter.to_connect("t", b'{"schema":null,"payload":2,"payload":3}') == (None, 3)
    with pytest.raises(DataError, match=r"^JsonConverter with"):
        converter.to_connect("t", b'{"schema":null,"payload":1,"x":1}')


def test_few_beginnings_of_envelopes_are_remembered() -> None:
    converter = json_converter()
    for version in range(30):
        data = b'{"schema":{"type":"int32","version":%d},"payload":1}' % version
        schema, value = converter.to_connect("t", data)
        assert schema is not None
        assert (schema.version, value) == (version, 1)
    assert len(vars(vars(converter)["_format"])["_beginnings"]) == 8


def test_numbers_that_do_not_fit_are_cut_as_in_java() -> None:
    converter = json_converter(schemas_enable=False)
    assert converter.to_connect("t", b"18446744073709551617") == (None, 1)
    assert converter.to_connect("t", b"[9223372036854775808]") == (None, [-(2**63)])
    envelope = b'{"schema":{"type":"int8","optional":false},"payload":%s}'
    whole = json_converter()
    assert [whole.to_connect("t", envelope % n)[1] for n in (b"300", b"1.9", b'"x"')] == [44, 1, 0]


def test_nothing_and_blanks_stand_for_null_without_schemas() -> None:
    converter = json_converter(schemas_enable=False)
    for data in (None, b"", b"  ", b"null"):
        assert converter.to_connect("t", data) == (None, None)
    assert converter.from_connect("t", None, None) is None
    assert converter.from_connect("t", OPTIONAL_STRING, None) == b"null"


def json_values() -> SearchStrategy[Any]:
    plain = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"])),
    )
    return st.recursive(
        plain,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.text('ab"\\é\0', max_size=3), inner)
        ),
        max_leaves=8,
    )


@settings(max_examples=examples(15))
@given(json_values())
def test_values_without_a_schema_make_the_round_trip(value: Any) -> None:
    converter = json_converter(schemas_enable=False)
    data = converter.from_connect("t", None, value)
    if value is not None:
        assert data is not None
        assert json.loads(data) == value
    assert converter.to_connect("t", data) == (None, value)


@settings(max_examples=examples(15))
@given(typed_values(), st.sampled_from(["BASE64", "NUMERIC"]))
def test_values_with_a_schema_make_the_round_trip(typed: tuple[Schema, Any], decimals: str) -> None:
    schema, value = typed
    converter = JsonConverter()
    converter.configure({"decimal.format": decimals}, is_key=True)
    data = converter.from_connect("t", schema, value)
    assert converter.to_connect("t", data) == (schema, value)
    assert converter.to_connect("t", data) == (schema, value)


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("abc", STRING, "abc"),
        ("true", BOOLEAN, True),
        ("true}", STRING, "true}"),
        ("null", None, None),
        ("1", INT8, 1),
        ("70000", INT32, 70000),
        ("1.5", FLOAT32, 1.5),
        ("1e300", FLOAT64, 1e300),
        ("9223372036854775808", decimal(0), Decimal(2**63)),
        ("2020-01-02", DATE_SCHEMA, date(2020, 1, 2)),
        ("2020-01-02T03:04:05.006Z", TIMESTAMP_SCHEMA, datetime(2020, 1, 2, 3, 4, 5, 6000, UTC)),
        ("03:04:05.006Z", TIME_SCHEMA, time(3, 4, 5, 6000)),
        ("[1, 2.5]", array_of(FLOAT32), [1.0, 2.5]),
        ("[1,,2]", STRING, "[1,,2]"),
        ('{"a": 1, "b": [true]}', map_of(STRING, INT8), {"a": 1, "b": [True]}),
        ('{"a":"b\\"c"}', map_of(STRING, STRING), {"a": 'b\\"c'}),
        ("[" * 5000, STRING, "[" * 5000),
    ],
)
def test_headers_are_read_with_their_types(text: str, schema: Schema | None, value: Any) -> None:
    header = load("SimpleHeaderConverter")()
    found_schema, found = header.to_connect("t", "h", text.encode())
    if "[true]" not in text:  # values without a schema in common
        assert found_schema == schema
    assert found == value


def test_headers_are_written_so_that_types_can_be_told() -> None:
    header = load("SimpleHeaderConverter")()
    written = header.from_connect("t", "h", map_of(STRING, array_of(FLOAT32)), {'a"': [0.1]})
    assert written == b'{"a\\"":[0.1]}'
    day = header.from_connect("t", "h", DATE_SCHEMA, date(2020, 1, 2))
    assert day == b"2020-01-02"
    assert header.from_connect("t", "h", None, None) is None
