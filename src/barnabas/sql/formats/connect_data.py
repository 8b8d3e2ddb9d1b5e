"""Rows from and to values that fit a schema of Connect, as ksqlDB translates them.

Reading takes a schema as its writer had it: narrower numbers widen, numbers and booleans become
STRING, fields are found by their name or that in upper case, and missing ones are NULL. Any other
difference of types fails, even where the value is null. Writing to a schema that the registry had
first needs every field of the row in it, and fills its other fields with defaults.

How bytes carry a value is the format's: hooks turn what its codec reads into what connect_schema
says values are, and back. A hook of None changes nothing. A hook may read a map as a list of pairs,
and takes pairs to write one: keys may be what no dict can have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal as Number
from typing import Any, NoReturn

from barnabas.java.numbers import double_text, fit_decimal, float_text
from barnabas.schemas.data.schema import Schema, Type
from barnabas.schemas.errors import FormatError
from barnabas.sql.formats.connect_schema import (
    decimal_type,
    is_decimal,
    item_of,
    key_of,
    name_of,
    plain_default,
    sql_type_of,
)
from barnabas.sql.runtime.records import Row
from barnabas.sql.schema import Column
from barnabas.sql.types import Array, BaseType, Decimal, Map, SqlType, Struct, Value

Convert = Callable[[Any], Any]
Hook = Callable[[Schema], Convert | None]
OMITTED: Any = object()
"""The value of a field that the data leave out."""

_INTEGERS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)
_FLOATS = (Type.FLOAT32, Type.FLOAT64)
_CARRIERS = {
    BaseType.BOOLEAN: Type.BOOLEAN,
    BaseType.INTEGER: Type.INT32,
    BaseType.BIGINT: Type.INT64,
    BaseType.DOUBLE: Type.FLOAT64,
    BaseType.DECIMAL: Type.BYTES,
    BaseType.STRING: Type.STRING,
    BaseType.BYTES: Type.BYTES,
    BaseType.DATE: Type.INT32,
    BaseType.TIME: Type.INT32,
    BaseType.TIMESTAMP: Type.INT64,
    BaseType.ARRAY: Type.ARRAY,
    BaseType.MAP: Type.MAP,
    BaseType.STRUCT: Type.STRUCT,
}
_ACCEPTED = {
    Type.INT32: _INTEGERS[:3],
    Type.INT64: _INTEGERS,
    Type.FLOAT64: _FLOATS,
    Type.STRING: (*_INTEGERS, *_FLOATS, Type.BOOLEAN, Type.STRING),
}


@dataclass(frozen=True, slots=True)
class Writing:
    """A format's way of writing values by a schema that it has read."""

    hook: Hook
    decimal: Callable[[Schema, Any], Any] = lambda _, value: value
    """Makes what the codec has of a default that is a decimal number."""
    omits_required: bool = False
    """True if a row may lack a required field without default; its value is OMITTED."""


def _name(carrier: Type) -> str:
    return name_of(Schema(carrier))


class UnreadableError(Exception):
    """Values with the schema cannot be read as the type; raised while a reader is made."""


def reader(target: SqlType, schema: Schema, hook: Hook, path: str = "") -> Convert | None:
    """Return how values (not None) are read as `target`; None where they are already.

    Raises UnreadableError.
    """
    carrier = _CARRIERS[target.base]
    if schema.type not in _ACCEPTED.get(carrier, (carrier,)):
        raise UnreadableError(
            f"Cannot deserialize type {name_of(schema)} as type {_name(carrier)} for path: {path}"
        )
    raw = hook(schema)
    if isinstance(target, Array):
        return _then(raw, _array(target, schema, hook, path))
    if isinstance(target, Map):
        return _then(raw, _map(target, schema, hook, path))
    if isinstance(target, Struct):
        return _then(raw, _struct(target, schema, hook, path))
    return _then(raw, _simple(target, schema))


def _then(first: Convert | None, second: Convert | None) -> Convert | None:
    if first is None or second is None:
        return first or second
    one, two = first, second
    return lambda value: two(one(value))


def _simple(target: SqlType, schema: Schema) -> Convert | None:
    if isinstance(target, Decimal):
        return _decimal(target)
    match target.base:
        case BaseType.STRING if schema.type is not Type.STRING:
            return _text_of(schema.type)
        case BaseType.DOUBLE:
            return float
        case BaseType.BYTES if is_decimal(schema):
            return _refuse("a decimal number is not BYTES")
    return None


def _refuse(message: str) -> Convert:
    def convert(value: Any) -> NoReturn:
        raise FormatError(message)

    return convert


def _text_of(kind: Type) -> Convert:
    if kind is Type.FLOAT32:
        return float_text
    if kind is Type.FLOAT64:
        return double_text
    return (lambda value: "true" if value else "false") if kind is Type.BOOLEAN else str


def _decimal(target: Decimal) -> Convert:
    precision, scale = target.precision, target.scale

    def convert(value: Any) -> Number:
        if not isinstance(value, Number):
            raise FormatError("The data holds bytes that are not marked as a decimal number")
        return fit_decimal(value, precision, scale)

    return convert


def _items(convert: Convert | None) -> Convert:
    if convert is None:
        return list
    return lambda values: [None if value is None else convert(value) for value in values]


def _array(target: Array, schema: Schema, hook: Hook, path: str) -> Convert:
    try:
        return _items(reader(target.item, item_of(schema), hook, path + "->ARRAY"))
    except UnreadableError as error:
        message = str(error)
        return lambda values: [] if not values else _refuse(message)(values)


def _map(target: Map, schema: Schema, hook: Hook, path: str) -> Convert:
    try:
        key = reader(target.key, key_of(schema), hook, path + "->MAP_KEY")
        item = reader(target.value, item_of(schema), hook, path + "->MAP_VAL")
    except UnreadableError as error:
        message = str(error)
        return lambda values: {} if not values else _refuse(message)(values)
    convert = _pairs(key, item)
    return lambda values: dict(convert(values if type(values) is list else values.items()))


def _struct(target: Struct, schema: Schema, hook: Hook, path: str) -> Convert:
    readers = struct_readers(target, schema, hook, path)
    names = [field.name for field in target.fields]

    def convert(values: Any) -> dict[str, Value]:
        return dict(zip(names, read_struct(readers, values), strict=True))

    return convert


def struct_readers(
    target: Struct, schema: Schema, hook: Hook, path: str = ""
) -> list[tuple[str | None, Convert | None]]:
    """Of each field of the target, the name in the data (None: absent) and how it is read."""
    readers: dict[str, tuple[str, Convert | None]] = {}
    types = {field.name: field.type for field in target.fields}
    for field in schema.fields:
        name = field.name if field.name in types else field.name.upper()
        if name in types:
            read = reader(types[name], field.schema, hook, f"{path}->{name}")
            readers[name] = field.name, read
    return [readers.get(name, (None, None)) for name in types]


def read_struct(readers: list[tuple[str | None, Convert | None]], values: Any) -> list[Value]:
    """The fields' values, in the order of the readers."""
    return [
        None
        if name is None or (value := values[name]) is None
        else value
        if convert is None
        else convert(value)
        for name, convert in readers
    ]


def writer(source: SqlType, schema: Schema, writing: Writing) -> Convert | None:
    """How values (not None) of `source` are written with a schema; None where they are already.

    Raises FormatError where the schema cannot take them.
    """
    carrier = _CARRIERS[source.base]
    if schema.type is not carrier:
        raise FormatError(f"Cannot write type {_name(carrier)} as type {name_of(schema)}")
    raw = writing.hook(schema)
    if isinstance(source, Array):
        return _then(_items(writer(source.item, item_of(schema), writing)), raw)
    if isinstance(source, Map):
        key = writer(source.key, key_of(schema), writing)
        pairs = _pairs(key, writer(source.value, item_of(schema), writing))
        finish: Convert = raw or dict
        return lambda values: finish(pairs(values.items()))
    if isinstance(source, Struct):
        return _then(_written_struct(source, schema, writing), raw)
    if isinstance(source, Decimal):
        return _then(_decimal(decimal_type(schema)), raw)
    return raw


def _pairs(key: Convert | None, item: Convert | None) -> Callable[[Any], list[tuple[Any, Any]]]:
    def convert(pairs: Any) -> list[tuple[Any, Any]]:
        return [
            (
                k if key is None or k is None else key(k),
                v if item is None or v is None else item(v),
            )
            for k, v in pairs
        ]

    return convert


def _written_struct(source: Struct, schema: Schema, writing: Writing) -> Convert:
    names = [field.name for field in source.fields]
    write = struct_writer(source, schema, writing)
    return lambda values: write([values[name] for name in names])


def struct_writer(
    source: Struct, schema: Schema, writing: Writing
) -> Callable[[Any], dict[str, Any]]:
    """Return how a row (the values of the source's fields) becomes a struct of the schema."""
    positions = {field.name: index for index, field in enumerate(source.fields)}
    known = {field.name for field in schema.fields}
    for name in positions:
        if name not in known:
            raise FormatError(f"Schema from Schema Registry misses field with name: {name}")
    plan: list[tuple[str, int, Convert | None, bool]] = []
    template: dict[str, Any] = {}
    for field in schema.fields:
        default = plain_default(field.schema, writing.decimal)
        may_be_null = field.schema.optional or default is not None
        template[field.name] = default
        if field.name in positions:
            position = positions[field.name]
            convert = writer(source.fields[position].type, field.schema, writing)
            plan.append((field.name, position, convert, may_be_null))
        elif not may_be_null:
            if not writing.omits_required:
                raise FormatError(
                    f"Missing default value for required field: [{field.name}]. "
                    "This field appears in the schema in Schema Registry"
                )
            template[field.name] = OMITTED

    def write(row: Any) -> dict[str, Any]:
        result = dict(template)
        for name, position, convert, optional in plan:
            value = row[position]
            if value is None:
                if not optional:
                    raise FormatError(f'Invalid value: null used for required field: "{name}"')
            else:
                result[name] = value if convert is None else convert(value)
        return result

    return write


def row_reader(
    columns: Sequence[Column], schema: Schema, hook: Hook, *, wraps: bool
) -> Callable[[Any], Row | None]:
    """Return how a value with the schema becomes a row. Raises FormatError where it cannot."""
    target = sql_type_of(columns, wraps=wraps)
    try:
        if isinstance(target, Struct) and (wraps or len(columns) != 1):
            if schema.type is not Type.STRUCT:
                raise UnreadableError(
                    f"Cannot deserialize type {name_of(schema)} as type struct for path: "
                )
            return _wrapped(target, schema, hook)
        convert = reader(target, schema, hook)
    except UnreadableError as error:
        raise FormatError(str(error)) from error

    def read_bare(value: Any) -> Row:
        return [value if value is None or convert is None else convert(value)]

    return read_bare


def _wrapped(target: Struct, schema: Schema, hook: Hook) -> Callable[[Any], Row | None]:
    readers = struct_readers(target, schema, hook)
    raw = hook(schema)

    def read_wrapped(value: Any) -> Row | None:
        if value is None:
            return None
        return read_struct(readers, value if raw is None else raw(value))

    return read_wrapped


def row_writer(
    columns: Sequence[Column], schema: Schema, writing: Writing, *, wraps: bool
) -> Callable[[Row], Any]:
    """Return how a row becomes a value with the schema. Raises FormatError where it cannot."""
    source = sql_type_of(columns, wraps=wraps)
    if isinstance(source, Struct) and (wraps or len(columns) != 1):
        if schema.type is not Type.STRUCT:
            raise FormatError(f"Cannot write columns as type {name_of(schema)}")
        write = struct_writer(source, schema, writing)
        raw = writing.hook(schema)
        return write if raw is None else lambda row: raw(write(row))
    convert = writer(source, schema, writing)
    return lambda row: row[0] if convert is None else convert(row[0])
