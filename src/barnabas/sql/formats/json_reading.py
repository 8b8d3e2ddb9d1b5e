"""Decoded JSON to values of columns, with the coercions that ksqlDB makes and those it refuses.

    BOOLEAN    only true and false
    INTEGER, BIGINT   numbers, cut to whole ones of 32 or 64 bits; text of a whole number
    DOUBLE     numbers; text of a number
    DECIMAL    numbers and their text, if no digit is lost
    STRING     text; numbers and booleans as they print; objects as JSON; arrays as `[a, b]`
    BYTES      text in base64
    DATE, TIME, TIMESTAMP   as whole numbers; a TIME within a day
    MAP, STRUCT   objects, and ARRAY arrays only
    null       null, everywhere

A field is the member of just that name, else the last one whose name in upper case it is: unquoted
names in SQL are upper case, so they find members of any case.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal as Number
from typing import Any, NoReturn

from barnabas.java.numbers import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    fit_decimal,
    low_bits,
    parse_decimal,
    parse_double,
    parse_whole,
)
from barnabas.java.time.units import DAY_MS
from barnabas.sql.formats.json_writing import double_json, json_string
from barnabas.sql.java_text import decode_bytes
from barnabas.sql.types import Array, BaseType, Decimal, Map, Primitive, SqlType, Struct, Value


class MismatchError(Exception):
    """A value that does not fit its column, and the path to it within the record.

    Raised by converters; each container on the way out puts its step before the path.
    """

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def within(self, step: str) -> MismatchError:
        """The same below `step`."""
        return MismatchError(self.message, step + self.path)


Reader = Callable[[Any], Value]
"""A value of decoded JSON that is not None to one of SQL. Raises MismatchError."""

_SHAPES_MAX = 64
"""So many sets of members' names each reader of objects remembers."""


def json_scanner(*, exact: bool) -> Callable[[str, int], tuple[Any, int]]:
    """A parser of the JSON value at a place in a text, as `json` has it.

    `exact`: numbers with a point or exponent become Decimals. Raises ValueError, StopIteration, and
    ArithmeticError for an exponent that Decimal cannot have.
    """
    decoder = json.JSONDecoder(parse_float=Number if exact else None, parse_constant=_no_constant)
    # The C scanner behind `decode`; typeshed does not know it.
    scan: Callable[[str, int], tuple[Any, int]] = vars(decoder)["scan_once"]
    return scan


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def needs_exact(sql_type: SqlType) -> bool:
    """Return whether a float would lose what a value of the type may keep of a number's text."""
    if isinstance(sql_type, Primitive):
        return sql_type.base not in (BaseType.DOUBLE, BaseType.BOOLEAN, BaseType.BYTES)
    if isinstance(sql_type, Array):
        return needs_exact(sql_type.item)
    if isinstance(sql_type, Map):
        return needs_exact(sql_type.value)
    if isinstance(sql_type, Struct):
        return any(needs_exact(field.type) for field in sql_type.fields)
    return True


def reader(sql_type: SqlType) -> Reader:
    """Return how values of a type are read."""
    if isinstance(sql_type, Primitive):
        return _PRIMITIVES[sql_type.base]
    if isinstance(sql_type, Decimal):
        return _decimal(sql_type)
    if isinstance(sql_type, Array):
        return _array(sql_type, reader(sql_type.item))
    if isinstance(sql_type, Map):
        return _map(sql_type, reader(sql_type.value))
    names = [field.name for field in sql_type.fields]
    row = row_reader(sql_type, names, [reader(field.type) for field in sql_type.fields])
    return lambda value: dict(zip(names, row(value), strict=True))


def row_reader(
    sql_type: Struct, names: Sequence[str], readers: Sequence[Reader]
) -> Callable[[Any], list[Value]]:
    """The values of an object's members, in the order of `names`."""
    columns = list(zip(names, readers, map(_kept_kind, readers), strict=True))
    shapes: dict[tuple[str, ...], list[tuple[str | None, Reader, type | None]]] = {}

    def members(value: dict[str, Any]) -> list[tuple[str | None, Reader, type | None]]:
        """Of each name, the member that is meant, and how it is read."""
        shape = tuple(value)
        known = shapes.get(shape)
        if known is None:
            upper = {member.upper(): member for member in shape}
            known = [
                (name if name in value else upper.get(name), read, kept)
                for name, read, kept in columns
            ]
            if len(shapes) < _SHAPES_MAX:
                shapes[shape] = known
        return known

    def failed(value: dict[str, Any]) -> MismatchError:
        for name, (member, read, _) in zip(names, members(value), strict=True):
            item = None if member is None else value[member]
            try:
                _ = None if item is None else read(item)
            except MismatchError as error:
                return error.within("." + name)
        raise AssertionError("a value failed once and not twice")

    def read_row(value: Any) -> list[Value]:
        if type(value) is not dict:
            raise cannot_convert(value, connect_text(sql_type))
        try:
            return [
                None
                if member is None or (item := value[member]) is None
                else item
                if type(item) is kept
                else read(item)
                for member, read, kept in members(value)
            ]
        except MismatchError:
            raise failed(value) from None

    return read_row


def _kept_kind(read: Reader) -> type | None:
    """The kind of JSON that a reader gives as it is; asking here saves most values a call."""
    kinds: dict[Reader, type] = {_string: str, _boolean: bool, _double: float}
    return kinds.get(read)


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise cannot_convert(value, "BOOLEAN")


def _whole(name: str, low: int, high: int, bits: int) -> Reader:
    def read(value: Any) -> int:
        if type(value) is int:
            return value if low <= value <= high else low_bits(value, bits)
        if type(value) is str:
            try:
                return parse_whole(value, low, high)
            except ValueError:
                raise MismatchError(f"Can't coerce string to type. targetType: {name}") from None
        if isinstance(value, Number | float):
            return low_bits(value, bits)
        raise cannot_convert(value, name)

    return read


def _double(value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is str:
        try:
            return parse_double(value)
        except ValueError:
            raise MismatchError("Can't coerce string to type. targetType: DOUBLE") from None
    if isinstance(value, int | Number) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    raise cannot_convert(value, "DOUBLE")


def _time(value: Any) -> int:
    time_ms: int = _time_of_long(value)
    if 0 <= time_ms <= DAY_MS:
        return time_ms
    raise MismatchError(time_message())


def time_message() -> str:
    """The error for a TIME outside the day."""
    return f"Time values must use number of milliseconds greater than 0 and less than {DAY_MS}."


_time_of_long = _whole("TIME", LONG_MIN, LONG_MAX, 64)


def _bytes(value: Any) -> bytes:
    if type(value) is not str:
        raise cannot_convert(value, "BYTES")
    try:
        return decode_bytes(value, spaces=True)
    except ValueError:
        raise MismatchError(f"Value is not a valid Base64 encoded string: {value}") from None


def _string(value: Any) -> str:
    if type(value) is str:
        return value
    if type(value) is dict:
        return compact_json(value)
    if type(value) is list:
        return "[" + ", ".join("null" if v is None else _string(v) for v in value) + "]"
    return compact_json(value)


def compact_json(value: Any) -> str:
    """Decoded JSON as text again, numbers as Java prints them."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return json_string(value)
        case list():
            return "[" + ",".join(map(compact_json, value)) + "]"
        case dict():
            members = [f"{json_string(name)}:{compact_json(v)}" for name, v in value.items()]
            return "{" + ",".join(members) + "}"
        case Number() if not value:
            return str(value.copy_abs())
        case float():
            return double_json(value)
    return str(value)


def _decimal(sql_type: Decimal) -> Reader:
    precision, scale = sql_type.precision, sql_type.scale

    def read(value: Any) -> Number:
        try:
            if type(value) is str:
                return fit_decimal(parse_decimal(value), precision, scale)
            if isinstance(value, int | Number) and not isinstance(value, bool):
                return fit_decimal(Number(value), precision, scale)
        except ValueError as error:
            raise MismatchError(str(error)) from None
        raise cannot_convert(value, connect_text(sql_type))

    return read


def _array(sql_type: Array, item: Reader) -> Reader:
    def read(value: Any) -> list[Value]:
        if type(value) is not list:
            raise cannot_convert(value, connect_text(sql_type))
        try:
            return [None if v is None else item(v) for v in value]
        except MismatchError:
            for position, v in enumerate(value):
                try:
                    _ = None if v is None else item(v)
                except MismatchError as error:
                    raise error.within(f"[{position}]") from None
            raise

    return read


def _map(sql_type: Map, item: Reader) -> Reader:
    def read(value: Any) -> dict[str, Value]:
        if type(value) is not dict:
            raise cannot_convert(value, connect_text(sql_type))
        result: dict[str, Value] = {}
        for key, v in value.items():
            try:
                result[key] = None if v is None else item(v)
            except MismatchError as error:
                raise error.within(f".{key}.value") from None
        return result

    return read


_PRIMITIVES: dict[BaseType, Reader] = {
    BaseType.BOOLEAN: _boolean,
    BaseType.INTEGER: _whole("INTEGER", INT_MIN, INT_MAX, 32),
    BaseType.BIGINT: _whole("BIGINT", LONG_MIN, LONG_MAX, 64),
    BaseType.DOUBLE: _double,
    BaseType.STRING: _string,
    BaseType.BYTES: _bytes,
    BaseType.DATE: _whole("DATE", LONG_MIN, LONG_MAX, 64),
    BaseType.TIME: _time,
    BaseType.TIMESTAMP: _whole("TIMESTAMP", LONG_MIN, LONG_MAX, 64),
}


def cannot_convert(value: Any, required: str) -> MismatchError:
    """The error for a value whose type the column cannot have; never the value itself."""
    return MismatchError(
        f"Can't convert type. sourceType: {_node(value)}, requiredType: {required}"
    )


def _node(value: Any) -> str:
    """The kind of a JSON value, by the names in ksqlDB's messages."""
    if isinstance(value, bool):
        return "BooleanNode"
    if isinstance(value, int):
        if INT_MIN <= value <= INT_MAX:
            return "IntNode"
        return "LongNode" if LONG_MIN <= value <= LONG_MAX else "BigIntegerNode"
    kinds: dict[type[object], str] = {str: "TextNode", list: "ArrayNode", dict: "ObjectNode"}
    return next((name for kind, name in kinds.items() if type(value) is kind), "DecimalNode")


_CONNECT_NAMES = {
    BaseType.INTEGER: "INT",
    BaseType.STRING: "VARCHAR",
    BaseType.DATE: "INT",
    BaseType.TIME: "INT",
    BaseType.TIMESTAMP: "BIGINT",
}


def connect_text(sql_type: SqlType) -> str:
    """A type as messages about records name it: by what carries it, names without quotes."""
    if isinstance(sql_type, Array):
        return f"ARRAY<{connect_text(sql_type.item)}>"
    if isinstance(sql_type, Map):
        return f"MAP<{connect_text(sql_type.key)}, {connect_text(sql_type.value)}>"
    if isinstance(sql_type, Struct):
        fields = ", ".join(f"{f.name} {connect_text(f.type)}" for f in sql_type.fields)
        return f"STRUCT<{fields or ' '}>"
    return _CONNECT_NAMES.get(sql_type.base, str(sql_type))
