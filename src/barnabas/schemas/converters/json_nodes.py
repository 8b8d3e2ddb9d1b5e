"""Connect's values from parsed JSON: one function is made per schema.

Jackson's nodes convert as in Java if they are asked for another type than they have: a text
read as a number is 0, a number read as a text is null.
"""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from barnabas.java.numbers import low_bits, short_float
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.logical import (
    bytes_to_decimal,
    days_to_date,
    ms_to_time,
    ms_to_timestamp,
)
from barnabas.schemas.data.schema import (
    DATE,
    DECIMAL,
    TIME,
    TIMESTAMP,
    WHOLE_BITS,
    Schema,
    Struct,
    Type,
    validate_value,
)

Read = Callable[[Any], Any]


def node_type(node: Any) -> str:
    """Jackson's name of a node's type."""
    if node is None:
        return "NULL"
    return _NODE_TYPES[type(node)]


def reader(schema: Schema | None, *, replaces_null: bool) -> Read:
    """Return what reads nodes of a schema, null too; it raises DataError."""
    if schema is None:
        return read_without_schema
    read = _logical(schema) or _reader(schema, replaces_null=replaces_null)
    if schema.default is not None and replaces_null:
        return lambda node: schema.default if node is None else read(node)
    if schema.optional:
        return lambda node: None if node is None else read(node)

    def refuse_null(node: Any) -> Any:
        if node is None:
            raise DataError(f"Invalid null value for required {schema.type.name} field")
        return read(node)

    return refuse_null


def read_without_schema(node: Any) -> Any:
    """The value of a node without a schema."""
    kind = type(node)
    if kind is int:
        return node if -(2**63) <= node < 2**63 else low_bits(node, 64)
    if kind is dict:
        return {key: read_without_schema(item) for key, item in node.items()}
    if kind is list:
        return [read_without_schema(item) for item in node]
    return float(node) if kind is Decimal else node


def _reader(schema: Schema, *, replaces_null: bool) -> Read:
    match schema.type:
        case Type.STRUCT:
            return _struct(schema, replaces_null=replaces_null)
        case Type.ARRAY:
            read = reader(schema.value_schema, replaces_null=replaces_null)

            def read_array(node: Any) -> list[Any]:
                if type(node) is dict:
                    return [read(item) for item in node.values()]
                return [read(item) for item in node] if type(node) is list else []

            return read_array
        case Type.MAP:
            return _map(schema, replaces_null=replaces_null)
    bits = WHOLE_BITS.get(schema.type)
    return _PLAIN[schema.type] if bits is None else _whole(bits)


def _struct(schema: Schema, *, replaces_null: bool) -> Read:
    parts = [
        (f.name, _as_it_is(f.schema), reader(f.schema, replaces_null=replaces_null))
        for f in schema.fields
    ]
    # These give null for what is of another type; the struct then refuses it.
    checked = [
        (f.index, f)
        for f in schema.fields
        if not f.schema.optional and f.schema.type in (Type.STRING, Type.BYTES)
    ]

    def read(node: Any) -> Struct:
        if type(node) is not dict:
            raise DataError(
                f"Structs should be encoded as JSON objects, but found {node_type(node)}"
            )
        get = node.get
        values = [
            node if type(node := get(name)) is kind else part(node) for name, kind, part in parts
        ]
        for index, field in checked:
            if values[index] is None:
                validate_value(field.schema, None, field.name)
        return Struct(schema, values)

    return read


def _as_it_is(schema: Schema) -> type | None:
    """The class of nodes that are values already: most fields' nodes, which need no call."""
    return None if schema.name in _LOGICAL else _SAME.get(schema.type)


def object_reader(values: Read) -> Read:
    """Reads an object as a map with string keys."""

    def read(node: Any) -> dict[Any, Any]:
        if type(node) is not dict:
            raise DataError(
                "Maps with string fields should be encoded as JSON objects, "
                f"but found {node_type(node)}"
            )
        return {key: values(item) for key, item in node.items()}

    return read


def _map(schema: Schema, *, replaces_null: bool) -> Read:
    keys = reader(schema.key_schema, replaces_null=replaces_null)
    values = reader(schema.value_schema, replaces_null=replaces_null)
    if schema.key_schema is None or schema.key_schema.type is Type.STRING:
        return object_reader(values)

    def read_pairs(node: Any) -> dict[Any, Any]:
        if type(node) is not list:
            raise DataError(
                "Maps with non-string fields should be encoded as JSON array of tuples, "
                f"but found {node_type(node)}"
            )
        result = {}
        for entry in node:
            if type(entry) is not list:
                raise DataError(
                    f"Found invalid map entry instead of array tuple: {node_type(entry)}"
                )
            if len(entry) != 2:
                raise DataError(
                    f"Found invalid map entry, expected length 2 but found :{len(entry)}"
                )
            try:
                result[keys(entry[0])] = values(entry[1])
            except TypeError:
                raise DataError("Keys of maps cannot be structs, arrays or maps") from None
        return result

    return read_pairs


def _whole(bits: int) -> Read:
    low, high = -1 << (bits - 1), (1 << (bits - 1)) - 1
    # Bytes and shorts are cut from an int.
    first = max(bits, 32)

    def read(node: Any) -> int:
        if type(node) is int and low <= node <= high:
            return node
        if type(node) in (str, bool, list, dict) or (
            type(node) is float and not math.isfinite(node)
        ):
            return 0
        return low_bits(low_bits(node, first), bits)

    return read


def _double(node: Any) -> float:
    kind = type(node)
    if kind is float:
        return float(node)
    if kind is int or kind is Decimal:
        try:
            return float(node)
        except OverflowError:
            return math.inf if node > 0 else -math.inf
    return 0.0


def _float(node: Any) -> float:
    return short_float(_double(node))


def _text(node: Any) -> str | None:
    return node if type(node) is str else None


def _bytes(node: Any) -> bytes | None:
    if type(node) is not str:
        return None
    try:
        return b64decode("".join(node.split()), validate=True)
    except ValueError as error:
        raise DataError("Invalid bytes field") from error


def _boolean(node: Any) -> bool:
    return node is True


def _logical(schema: Schema) -> Read | None:
    match schema.name:
        case str(name) if name == DECIMAL:
            return lambda node: _decimal(schema, node)
        case str(name) if name == DATE:
            return lambda node: days_to_date(_checked(node, "Date", "integer", 32))
        case str(name) if name == TIME:
            return lambda node: ms_to_time(_checked(node, "Time", "integer", 32))
        case str(name) if name == TIMESTAMP:
            return lambda node: ms_to_timestamp(
                low_bits(_checked(node, "Timestamp", "integral", None), 64)
            )
    return None


def _checked(node: Any, title: str, wanted: str, bits: int | None) -> int:
    if type(node) is not int or (bits is not None and node.bit_length() >= bits):
        raise DataError(
            f"Invalid type for {title}, underlying representation should be {wanted} "
            f"but was {node_type(node)}"
        )
    return node


def _decimal(schema: Schema, node: Any) -> Decimal:
    if type(node) is int:
        return Decimal(node)
    if type(node) is Decimal:
        return node
    if type(node) is float:
        return Decimal(repr(node))
    if type(node) is not str:
        raise DataError(
            "Invalid type for Decimal, underlying representation should be numeric or bytes "
            f"but was {node_type(node)}"
        )
    try:
        return bytes_to_decimal(schema, _bytes(node) or b"")
    except DataError as error:
        raise DataError("Invalid bytes for Decimal field") from error


_NODE_TYPES: Final = {
    bool: "BOOLEAN",
    int: "NUMBER",
    float: "NUMBER",
    Decimal: "NUMBER",
    str: "STRING",
    list: "ARRAY",
    dict: "OBJECT",
}
_LOGICAL: Final = (DECIMAL, DATE, TIME, TIMESTAMP)
_SAME: Final[dict[Type, type]] = {Type.FLOAT64: float, Type.BOOLEAN: bool, Type.STRING: str}
_PLAIN: Final[dict[Type, Read]] = {
    Type.FLOAT32: _float,
    Type.FLOAT64: _double,
    Type.BOOLEAN: _boolean,
    Type.STRING: _text,
    Type.BYTES: _bytes,
}
