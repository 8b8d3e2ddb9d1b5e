"""Columns' types: their schemas in records, and values from PostgreSQL's text.

Source: Debezium's documentation of its PostgreSQL connector, "Data type mappings", and its events.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import time
from decimal import Context, Decimal
from typing import Any, Final

from barnabas.connect.cdc.tables import PARSE_ERRORS, Column, ColumnType, TypeName
from barnabas.connect.connectors.postgres import texts
from barnabas.java import object_stream as java_objects
from barnabas.java.numbers import to_byte_array
from barnabas.schemas.data.builder import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT16,
    INT32,
    INT64,
    STRING,
    array_of,
    decimal,
    map_of,
    optional,
    struct_of,
)
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import DATE, TIME, TIMESTAMP, Schema, Struct

Parse = Callable[[str], Any]
_WIDE: Final = Context(prec=20_000)
"""PostgreSQL's numerics have up to 131072 digits before the point; these are what records hold."""


@dataclass(slots=True, frozen=True)
class Modes:
    """The representation of types, by the settings of the same names."""

    decimals: str = "precise"
    times: str = "adaptive"
    intervals: str = "numeric"
    hstore: str = "json"
    binary: str = "bytes"
    money_digits: int = 2
    includes_unknown: bool = False


def _named(schema: Schema, name: str, **rest: Any) -> Schema:
    return replace(schema, name=name, version=1, **rest)


def _debezium(schema: Schema, name: str, **rest: Any) -> Schema:
    return _named(schema, f"io.debezium.{name}", **rest)


VARIABLE_DECIMAL: Final = struct_of(
    {"scale": INT32, "value": BYTES},
    name="io.debezium.data.VariableScaleDecimal",
    version=1,
    doc="Variable scaled decimal",
)
_OPTIONAL_BYTES: Final = optional(BYTES)
_OPTIONAL_INT32: Final = optional(INT32)
POINT: Final = struct_of(
    {"x": FLOAT64, "y": FLOAT64, "wkb": _OPTIONAL_BYTES, "srid": _OPTIONAL_INT32},
    name="io.debezium.data.geometry.Point",
    version=1,
    doc="Geometry (POINT)",
)
_SHAPE: Final = struct_of({"wkb": BYTES, "srid": _OPTIONAL_INT32}, version=1)


def column_type(kind: TypeName, modes: Modes) -> ColumnType | None:
    """Return how a type's values are represented; None for one that records leave out."""
    if kind.element is not None:
        return _array(kind.element, modes)
    if kind.labels:
        allowed = {"allowed": ",".join(kind.labels)}
        return ColumnType(_debezium(STRING, "data.Enum", parameters=allowed), str, "")
    if (simple := _SIMPLE.get(kind.name)) is not None:
        return simple
    if (made := _MADE.get(kind.name)) is not None:
        return made(kind.modifier, modes)
    return ColumnType(BYTES, str.encode, b"") if modes.includes_unknown else None


def _bool(text: str) -> bool:
    return text == "t"


_TEXT: Final = ColumnType(STRING, str, "")
_VECTOR: Final = _debezium(array_of(FLOAT64), "data.DoubleVector")
_SIMPLE: Final[dict[str, ColumnType]] = {
    "bool": ColumnType(BOOLEAN, _bool, False),
    "int2": ColumnType(INT16, int, 0),
    "int4": ColumnType(INT32, int, 0),
    "int8": ColumnType(INT64, int, 0),
    "oid": ColumnType(INT64, int, 0),
    "float4": ColumnType(FLOAT32, float, 0.0),
    "float8": ColumnType(FLOAT64, float, 0.0),
    **dict.fromkeys(
        (
            *("text", "varchar", "bpchar", "char", "name", "citext", "inet", "cidr", "macaddr"),
            *("macaddr8", "int4range", "int8range", "numrange", "tsrange", "tstzrange"),
            "daterange",
        ),
        _TEXT,
    ),
    "json": ColumnType(_debezium(STRING, "data.Json"), str, "{}"),
    "jsonb": ColumnType(_debezium(STRING, "data.Json"), str, "{}"),
    "xml": ColumnType(_debezium(STRING, "data.Xml"), str, ""),
    "uuid": ColumnType(_debezium(STRING, "data.Uuid"), str, ""),
    "ltree": ColumnType(_debezium(STRING, "data.Ltree"), str, ""),
    "tsvector": ColumnType(_debezium(STRING, "data.Tsvector"), str, ""),
    "timetz": ColumnType(_debezium(STRING, "time.ZonedTime"), texts.zoned_time, "00:00:00Z"),
    "vector": ColumnType(_VECTOR, lambda text: [float(x) for x in text[1:-1].split(",")], []),
}


def _decimal(text: str) -> Decimal:
    """Raises DataError for what is not a number: NaN and infinity."""
    value = Decimal(text)
    if not value.is_finite():
        raise DataError(
            f"numeric {text} has no counterpart with decimal.handling.mode=precise; use string"
        )
    return value


def _variable_decimal(text: str) -> Struct:
    value = _decimal(text)
    scale = -int(value.as_tuple().exponent)
    unscaled = int(value.scaleb(scale, _WIDE))
    return Struct(VARIABLE_DECIMAL, [scale, to_byte_array(unscaled)])


def _numeric(modifier: int, modes: Modes) -> ColumnType:
    if modes.decimals == "string":
        return _TEXT
    if modes.decimals == "double":
        return ColumnType(FLOAT64, float, 0.0)
    if modifier < 0:
        return ColumnType(VARIABLE_DECIMAL, _variable_decimal, Struct(VARIABLE_DECIMAL, [0, b"\0"]))
    precision = (modifier - 4 >> 16) & 0xFFFF
    scale = ((modifier - 4 & 0x7FF) ^ 1024) - 1024
    schema = decimal(scale, parameters={"connect.decimal.precision": str(precision)})
    zero = Decimal(0).scaleb(-scale)
    if scale >= 0:
        return ColumnType(schema, _decimal, zero)
    return ColumnType(schema, lambda text: _decimal(text).quantize(zero, context=_WIDE), zero)


def _money(_modifier: int, modes: Modes) -> ColumnType:
    if modes.decimals == "string":
        return ColumnType(STRING, texts.money, "")
    if modes.decimals == "double":
        return ColumnType(FLOAT64, lambda text: float(texts.money(text)), 0.0)
    zero = Decimal(0).scaleb(-modes.money_digits)

    def parse(text: str) -> Decimal:
        return Decimal(texts.money(text)).quantize(zero)

    return ColumnType(decimal(modes.money_digits), parse, zero)


def _date(_modifier: int, modes: Modes) -> ColumnType:
    if modes.times == "connect":
        return ColumnType(
            _named(INT32, DATE),
            lambda text: texts.datetime_of(texts.days(text) * texts.US_PER_DAY).date(),
            texts.datetime_of(0).date(),
        )
    if modes.times == "isostring":
        return ColumnType(_debezium(STRING, "time.IsoDate"), lambda text: f"{text}Z", "")
    return ColumnType(_debezium(INT32, "time.Date"), texts.days, 0)


def _time(modifier: int, modes: Modes) -> ColumnType:
    if modes.times == "connect":
        return ColumnType(_named(INT32, TIME), _connect_time, time())
    if modes.times == "isostring":
        return ColumnType(_debezium(STRING, "time.IsoTime"), lambda text: f"{text}Z", "")
    us = texts.time_us
    if modes.times == "microseconds":
        return ColumnType(_debezium(INT64, "time.MicroTime"), us, 0)
    if modes.times == "nanoseconds":
        return ColumnType(_debezium(INT64, "time.NanoTime"), lambda text: us(text) * 1000, 0)
    if 0 <= modifier <= 3 and modes.times == "adaptive":
        return ColumnType(_debezium(INT32, "time.Time"), lambda text: us(text) // 1000, 0)
    return ColumnType(_debezium(INT64, "time.MicroTime"), us, 0)


def _connect_time(text: str) -> time:
    us = min(texts.time_us(text) // 1000 * 1000, texts.US_PER_DAY - 1000)
    return texts.datetime_of(us).time()


def _timestamp(modifier: int, modes: Modes) -> ColumnType:
    us = texts.timestamp_us
    if modes.times == "connect":
        return ColumnType(
            _named(INT64, TIMESTAMP),
            lambda text: texts.datetime_of(us(text) // 1000 * 1000),
            texts.datetime_of(0),
        )
    if modes.times == "isostring":
        schema = _debezium(STRING, "time.IsoTimestamp")
        return ColumnType(schema, lambda text: texts.zoned_timestamp(text, 0), "")
    if modes.times == "nanoseconds":
        schema = _debezium(INT64, "time.NanoTimestamp")
        return ColumnType(schema, lambda text: us(text) * 1000, 0)
    if 0 <= modifier <= 3 and modes.times != "microseconds":
        return ColumnType(_debezium(INT64, "time.Timestamp"), lambda text: us(text) // 1000, 0)
    return ColumnType(_debezium(INT64, "time.MicroTimestamp"), us, 0)


def _timestamptz(modifier: int, _modes: Modes) -> ColumnType:
    digits = 6 if modifier < 0 else modifier
    zero = f"1970-01-01T00:00:00{'.' + '0' * digits if digits else ''}Z"
    schema = _debezium(STRING, "time.ZonedTimestamp")
    return ColumnType(schema, lambda text: texts.zoned_timestamp(text, digits), zero)


def _interval(_modifier: int, modes: Modes) -> ColumnType:
    if modes.intervals == "string":
        return ColumnType(_debezium(STRING, "time.Interval"), texts.interval_iso, "P0Y")
    return ColumnType(_debezium(INT64, "time.MicroDuration"), texts.interval_us, 0)


def _bytea(_modifier: int, modes: Modes) -> ColumnType:
    def raw(text: str) -> bytes:
        return bytes.fromhex(text[2:])

    if modes.binary == "bytes":
        return ColumnType(BYTES, raw, b"")
    if modes.binary == "hex":
        return ColumnType(STRING, lambda text: text[2:], "")
    encode = base64.urlsafe_b64encode if modes.binary == "base64-url-safe" else base64.b64encode
    return ColumnType(STRING, lambda text: encode(raw(text)).decode(), "")


def _bits(text: str) -> bytes:
    """The least significant byte first."""
    return int(text or "0", 2).to_bytes((len(text) + 7) // 8, "little")


def _bit(modifier: int, _modes: Modes) -> ColumnType:
    if modifier == 1:
        return ColumnType(BOOLEAN, lambda text: text == "1", False)
    return _varbit(modifier, _modes)


def _varbit(modifier: int, _modes: Modes) -> ColumnType:
    length = str(modifier if modifier > 0 else 2**31 - 1)
    return ColumnType(_debezium(BYTES, "data.Bits", parameters={"length": length}), _bits, b"")


def _hstore(_modifier: int, modes: Modes) -> ColumnType:
    if modes.hstore == "map":
        return ColumnType(map_of(STRING, optional(STRING)), texts.hstore, {})
    schema = _debezium(STRING, "data.Json")
    return ColumnType(
        schema,
        lambda text: json.dumps(texts.hstore(text), ensure_ascii=False, separators=(",", ":")),
        "{}",
    )


def _point(text: str) -> Struct:
    x, _, y = text[1:-1].partition(",")
    coordinates = float(x), float(y)
    well_known = struct.pack("<BIdd", 1, 1, *coordinates)
    return Struct(POINT, [*coordinates, well_known, None])


def _postgis(name: str) -> Callable[[int, Modes], ColumnType]:
    """PostGIS writes its extended well-known binary form as hex: the SRID moves to its field."""
    schema = replace(_SHAPE, name=f"io.debezium.data.geometry.{name}")

    def parse(text: str) -> Struct:
        data = bytes.fromhex(text)
        order = "<" if data[0] else ">"
        (kind,) = struct.unpack_from(f"{order}I", data, 1)
        if not kind & 0x20000000:
            return Struct(schema, [data, None])
        (srid,) = struct.unpack_from(f"{order}i", data, 5)
        return Struct(schema, [data, srid])

    return lambda _modifier, _modes: ColumnType(schema, parse, Struct(schema, [b"", None]))


def _array(element: TypeName, modes: Modes) -> ColumnType | None:
    inner = column_type(element, modes)
    if inner is None:
        return None
    schema = inner.schema if element.labels else optional(inner.schema)
    parse = inner.under(schema)

    def items(text: str) -> list[Any]:
        return [read(item) for item in texts.array(text)]

    def read(item: Any) -> Any:
        """Arrays of arrays have no schema of their own: their items follow each other."""
        if isinstance(item, list):
            raise DataError("arrays of more than one dimension have no counterpart")
        return None if item is None else parse(item)

    return ColumnType(array_of(schema), items, [])


_MADE: Final[dict[str, Callable[[int, Modes], ColumnType]]] = {
    "numeric": _numeric,
    "money": _money,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
    "interval": _interval,
    "bytea": _bytea,
    "bit": _bit,
    "varbit": _varbit,
    "hstore": _hstore,
    "point": lambda _modifier, _modes: ColumnType(
        POINT, _point, Struct(POINT, [0.0, 0.0, None, None])
    ),
    "geometry": _postgis("Geometry"),
    "geography": _postgis("Geography"),
}


_QUOTED: Final = re.compile(
    r"^'((?:[^']|'')*)'(?:::[^()]+(?:\(\d+(?:,\s*\d+)?\))?[\w \[\]]*)?$", re.DOTALL
)
_NUMBER: Final = re.compile(r"^\(?(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\)?(?:::[\w \"(),]+)?$")
_NULL: Final = re.compile(r"^NULL(?:::.*)?$")
_WORDS: Final = {"true": "t", "false": "f"}


def _default_of(expression: str | None, kind: ColumnType, *, is_optional: bool) -> Any:
    """Return a default that the schema can have, None where it has none: constants alone.

    An expression that only the server can evaluate stands as zero in a column that is never null,
    as Debezium has it.
    """
    if expression is None:
        return None
    text = _constant(expression)
    if text is not None:
        try:
            value = kind.parse(text)
            return value.quantize(kind.zero) if isinstance(value, Decimal) else value
        except PARSE_ERRORS:
            pass
    return None if is_optional or _NULL.match(expression) else kind.zero


def _constant(expression: str) -> str | None:
    if match := _QUOTED.match(expression):
        return match[1].replace("''", "'")
    if match := _NUMBER.match(expression):
        return match[1]
    return _WORDS.get(expression)


class PostgresTypes:
    """The representation of columns with these modes."""

    def __init__(self, modes: Modes) -> None:
        self._modes = modes

    def column_type(self, column: Column) -> ColumnType | None:
        """Return a column's representation; None for one that records leave out."""
        return column_type(column.type, self._modes)

    def default(self, column: Column, kind: ColumnType) -> Any:
        """Return the default that the column's schema has; None for none."""
        return _default_of(column.default, kind, is_optional=column.is_optional)

    def key_class(self, column: Column) -> str:
        """Return the Java class of a key's value in stored offsets."""
        return _KEY_CLASSES.get(column.type.name, java_objects.TEXT)


_KEY_CLASSES: Final = dict.fromkeys(("int2", "int4"), java_objects.INTEGER) | {
    "int8": java_objects.LONG,
    "bool": java_objects.BOOLEAN,
    "uuid": java_objects.UUID_CLASS,
}
