"""Schemas, structs and their checks."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

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
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import (
    DataError,
    SchemaBuilderError,
    SchemaProjectorError,
)
from barnabas.schemas.data.logical import (
    bytes_to_decimal,
    date_to_days,
    days_to_date,
    decimal_to_bytes,
    ms_to_time,
    ms_to_timestamp,
    time_to_ms,
    timestamp_to_ms,
)
from barnabas.schemas.data.projection import project
from barnabas.schemas.data.schema import Schema, Struct, validate_value
from barnabas.schemas.data.text import java_text

POINT = struct_of({"x": FLOAT64, "label": OPTIONAL_STRING}, name="geo.Point", version=2)


def test_a_struct_takes_and_gives_fields_by_name() -> None:
    point = Struct.of(POINT, {"x": 1.5}).put("label", "a")
    assert point.get("x") == 1.5
    assert point.values == [1.5, "a"]
    point.validate()
    with pytest.raises(DataError, match=r"^y is not a valid field name$"):
        point.get("y")


def test_a_default_stands_for_null_unless_it_is_asked_for_without() -> None:
    struct = Struct.of(struct_of({"n": with_default(INT32, 7)}))
    assert struct.get("n") == 7
    assert struct.get_without_default("n") is None
    struct.validate()


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (INT32, None, "Invalid value: null used for required value, schema type: INT32"),
        (
            INT8,
            128,
            "Invalid Java object for schema with type INT8: class java.lang.Integer for value",
        ),
        (
            INT32,
            True,
            "Invalid Java object for schema with type INT32: class java.lang.Boolean for value",
        ),
        (
            decimal(2),
            "1",
            (
                'Invalid Java object for schema "org.apache.kafka.connect.data.Decimal" '
                "with type BYTES: class java.lang.String for value"
            ),
        ),
        (
            DATE_SCHEMA,
            datetime(2020, 1, 1, tzinfo=UTC),
            (
                'Invalid Java object for schema "org.apache.kafka.connect.data.Date" '
                "with type INT32: class java.util.Date for value"
            ),
        ),
        (
            array_of(STRING),
            ["a", 1],
            (
                "Invalid Java object for schema with type STRING: "
                "class java.lang.Integer for element of array value"
            ),
        ),
        (
            map_of(STRING, INT64),
            {"a": None},
            "Invalid value: null used for required value of map value, schema type: INT64",
        ),
        (POINT, Struct.of(struct_of({})), "Struct schemas do not match."),
        (
            POINT,
            Struct.of(POINT),
            'Invalid value: null used for required field: "x", schema type: FLOAT64',
        ),
    ],
)
def test_what_a_schema_does_not_allow_is_refused_with_kafkas_text(
    schema: Schema, value: Any, text: str
) -> None:
    with pytest.raises(DataError) as refused:
        validate_value(schema, value)
    assert str(refused.value) == text


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (INT8, -128),
        (INT64, 2**63 - 1),
        (FLOAT32, 1.5),
        (BOOLEAN, False),
        (BYTES, b"x"),
        (BYTES, bytearray(b"x")),
        (decimal(1), Decimal("1.5")),
        (DATE_SCHEMA, date(2020, 1, 1)),
        (TIME_SCHEMA, time(1, 2)),
        (TIMESTAMP_SCHEMA, datetime(2020, 1, 1, tzinfo=UTC)),
        (array_of(array_of(optional(STRING))), [["a", None]]),
        (map_of(STRING, POINT), {"p": Struct.of(POINT, {"x": 1.0})}),
    ],
)
def test_what_a_schema_allows_passes(schema: Schema, value: Any) -> None:
    validate_value(schema, value)


def test_schemas_are_keys_and_travel_between_processes() -> None:
    schema = struct_of({"d": decimal(2, optional=True), "m": map_of(STRING, array_of(POINT))})
    same = pickle.loads(pickle.dumps(schema))
    assert same == schema
    assert hash(same) == hash(schema)
    assert {schema: 1}[same] == 1
    assert schema != struct_of({"d": decimal(3, optional=True)})


def test_fields_are_named_once() -> None:
    with pytest.raises(SchemaBuilderError, match=r"field name duplication a$"):
        struct_of([("a", STRING), ("a", STRING)])
    with pytest.raises(SchemaBuilderError, match=r"^Invalid default value$"):
        with_default(INT32, "x")


@pytest.mark.parametrize("number", ["0", "0.00", "-0.01", "1.27", "1.28", "-1.28", "-1.29", "1E+2"])
def test_decimals_become_bytes_and_back(number: str) -> None:
    value = Decimal(number)
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    schema = decimal(-exponent)
    assert str(bytes_to_decimal(schema, decimal_to_bytes(schema, value))) == number
    with pytest.raises(DataError, match=r"mismatching scale"):
        decimal_to_bytes(decimal(9), value)


def test_decimals_are_as_short_as_javas() -> None:
    schema = decimal(0)
    found = [decimal_to_bytes(schema, Decimal(n)).hex() for n in (0, 127, 128, -128, -129)]
    assert found == ["00", "7f", "0080", "80", "ff7f"]


def test_moments_become_numbers_and_back() -> None:
    assert days_to_date(date_to_days(date(1969, 12, 31))) == date(1969, 12, 31)
    assert ms_to_time(time_to_ms(time(23, 59, 59, 999_000))) == time(23, 59, 59, 999_000)
    moment = datetime(1969, 12, 31, 23, 59, 59, 1000, tzinfo=UTC)
    assert timestamp_to_ms(moment) == -999
    assert ms_to_timestamp(-999) == moment
    for make in (days_to_date, ms_to_time, ms_to_timestamp):
        with pytest.raises(DataError):
            make(2**62)


def test_values_print_as_in_java() -> None:
    inner = Struct.of(POINT, {"x": 1e10})
    value = Struct.of(
        struct_of({"p": POINT, "l": array_of(FLOAT32), "m": map_of(STRING, BOOLEAN), "n": INT32}),
        {"p": inner, "l": [0.1, 1.0], "m": {"a": True}, "n": 1},
    )
    assert java_text(value) == "Struct{p=Struct{x=1.0E10},l=[0.1, 1.0],m={a=true},n=1}"
    moment = datetime(2021, 3, 4, 5, 6, 7, tzinfo=UTC)
    assert java_text(moment) == "Thu Mar 04 05:06:07 UTC 2021"


def test_values_are_projected_to_wider_schemas() -> None:
    target = struct_of({"n": INT64, "new": with_default(STRING, "d"), "gone": OPTIONAL_STRING})
    source = struct_of({"n": INT32, "old": STRING})
    projected = project(source, Struct.of(source, {"n": 1, "old": "x"}), target)
    assert projected.values == [1, "d", None]
    with pytest.raises(SchemaProjectorError, match=r"^Error projecting n$"):
        project(target, Struct.of(target, {"n": 1}), source)
    with pytest.raises(SchemaProjectorError, match=r"source type: STRING and target type: INT32"):
        project(STRING, "a", INT32)


def test_numbers_keep_their_type_or_become_a_wider_one() -> None:
    assert project(INT32, 1, INT32) == 1
    assert type(project(INT32, 1, FLOAT64)) is float
    with pytest.raises(SchemaProjectorError, match=r"source type: INT64 and target type: INT32$"):
        project(INT64, 1, INT32)


def test_null_is_projected_to_the_default() -> None:
    assert project(optional(INT32), None, with_default(INT64, 5)) == 5
    assert project(optional(INT32), 1, with_default(INT64, 5)) == 1
    assert project(optional(INT32), None, optional(INT64)) is None
    with pytest.raises(SchemaProjectorError, match=r"does not provide a default value\.$"):
        project(optional(INT32), None, INT64)


def test_a_cache_forgets_the_oldest() -> None:
    made: list[int] = []
    cache: Cache[int, int] = Cache(lambda key: made.append(key) or key * 10, 2)  # type: ignore[func-returns-value]
    assert [cache(key) for key in (1, 2, 1, 3, 2)] == [10, 20, 10, 30, 20]
    assert made == [1, 2, 3]
    cache(1)
    assert made == [1, 2, 3, 1]
