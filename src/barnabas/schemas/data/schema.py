"""Schemas of Connect's data, and structs, the values that have fields.

How each type's values look in Python:

    INT8 … INT64     int          BOOLEAN  bool     ARRAY    list
    FLOAT32, FLOAT64 float        STRING   str      MAP      dict
    BYTES            bytes        STRUCT   Struct

and of the logical types, which are a name on another type:

    Decimal (BYTES)  decimal.Decimal      Date (INT32)       datetime.date
    Time (INT32)     datetime.time        Timestamp (INT64)  datetime.datetime, aware, UTC

Decimal's scale is the parameter `scale`. Data without a schema (schema None) is made of None, bool,
int, float, str, bytes, list and dict.

Source: org.apache.kafka.connect.data (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

from barnabas.schemas.data.errors import DataError


class Type(StrEnum):
    """The types of schemas; the values are the names that JsonConverter writes."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float"
    FLOAT64 = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


WHOLE_BITS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
"""The types of whole numbers, and their widths."""
DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
DATE: Final = "org.apache.kafka.connect.data.Date"
TIME: Final = "org.apache.kafka.connect.data.Time"
TIMESTAMP: Final = "org.apache.kafka.connect.data.Timestamp"
SCALE: Final = "scale"


@dataclass(slots=True, frozen=True)
class Field:
    """One field of a struct's schema; `index` is its position."""

    name: str
    index: int
    schema: Schema


@dataclass(slots=True, frozen=True, eq=True)
class Schema:
    """The schema of a value. Equal schemas may be cached by identity.

    `key_schema` is of maps, `value_schema` of maps and arrays, `fields` of structs. `data.builder`
    makes schemas with fewer words.
    """

    type: Type
    optional: bool = False
    default: Any = None
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[Field, ...] = ()
    key_schema: Schema | None = None
    value_schema: Schema | None = None
    # Found when first asked for: schemas are keys of caches, and fields are looked up by name.
    _hash: int | None = field(default=None, init=False, repr=False, compare=False)
    _by_name: dict[str, Field] | None = field(default=None, init=False, repr=False, compare=False)

    def field(self, name: str) -> Field | None:
        """The field of that name, of a struct's schema; None if absent."""
        by_name = self._by_name
        if by_name is None:
            by_name = {field.name: field for field in self.fields}
            object.__setattr__(self, "_by_name", by_name)
        return by_name.get(name)

    def __hash__(self) -> int:
        value = self._hash
        if value is None:
            # Parameters and defaults may be of types without a hash.
            parts = (self.type, self.optional, self.name, self.version, self.doc)
            value = hash((parts, self.fields, self.key_schema, self.value_schema))
            object.__setattr__(self, "_hash", value)
        return value

    def __str__(self) -> str:
        prefix = "" if self.name is None else f"{self.name}:"
        return f"Schema{{{prefix}{self.type.name}}}"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # Hashes of texts differ from process to process.
        return Schema, tuple(getattr(self, name) for name in _SCHEMA_PARTS)


_SCHEMA_PARTS: Final = tuple(part.name for part in fields(Schema) if part.init)


@dataclass(slots=True)
class Struct:
    """A value with fields. `values` are in the order of the schema's fields.

    `get` and `put` take the field's name; `values` is for those who have compiled the schema.
    """

    schema: Schema
    values: list[Any]

    @classmethod
    def of(cls, schema: Schema, values: Mapping[str, Any] | None = None) -> Struct:
        """A struct with these fields set and the others null. Raises DataError."""
        if schema.type is not Type.STRUCT:
            raise DataError(f"Not a struct schema: {schema}")
        struct = cls(schema, [None] * len(schema.fields))
        for name, value in (values or {}).items():
            struct.put(name, value)
        return struct

    def get(self, name: str) -> Any:
        """The value of a field, or its default where it is null. Raises DataError."""
        field = self._field(name)
        value = self.values[field.index]
        return field.schema.default if value is None else value

    def get_without_default(self, name: str) -> Any:
        """The value of a field as it was put. Raises DataError."""
        return self.values[self._field(name).index]

    def put(self, name: str, value: Any) -> Struct:
        """Set a field. Raises DataError for a value that its schema does not allow."""
        field = self._field(name)
        validate_value(field.schema, value, field.name)
        self.values[field.index] = value
        return self

    def validate(self) -> None:
        """Check all fields. Raises DataError for the first that is wrong."""
        for part, value in zip(self.schema.fields, self.values, strict=True):
            schema = part.schema
            if value is None and (schema.optional or schema.default is not None):
                continue
            validate_value(schema, value, part.name)

    def _field(self, name: str) -> Field:
        field = self.schema.field(name)
        if field is None:
            raise DataError(f"{name} is not a valid field name")
        return field


def validate_value(schema: Schema, value: Any, field_name: str | None = None) -> None:
    """Check that a schema allows a value. Raises DataError with Kafka's text."""
    _validate(schema, value, "value" if field_name is None else f'field: "{field_name}"')


def java_class(value: Any, schema: Schema | None = None) -> str:
    """Java's text for the class that would hold the value: `class java.lang.String`.

    A schema tells the widths of numbers.
    """
    if schema is not None and type(value) in (int, float):
        name = _NUMBER_CLASSES.get(schema.type)
        if name is not None:
            return f"class java.lang.{name}"
    if type(value) is int:
        bits = value.bit_length()
        return "class java.lang." + ("Integer" if bits < 32 else "Long")
    for kind, name in _JAVA_CLASSES.items():
        if isinstance(value, kind):
            return name
    return f"class {type(value).__qualname__}"


def _validate(schema: Schema, value: Any, location: str) -> None:
    if value is None:
        if not schema.optional:
            raise DataError(
                f"Invalid value: null used for required {location}, schema type: {schema.type.name}"
            )
        return
    if not _fits(schema, value):
        name = "" if schema.name is None else f' "{schema.name}"'
        raise DataError(
            f"Invalid Java object for schema{name} with type {schema.type.name}: "
            f"{java_class(value)} for {location}"
        )
    match schema.type:
        case Type.STRUCT:
            if value.schema is not schema and value.schema != schema:
                raise DataError("Struct schemas do not match.")
            value.validate()
        case Type.ARRAY:
            inner = f"element of array {location}"
            item_schema = _given(schema.value_schema, inner)
            for item in value:
                _validate(item_schema, item, inner)
        case Type.MAP:
            key_location, value_location = f"key of map {location}", f"value of map {location}"
            key_schema = _given(schema.key_schema, key_location)
            value_schema = _given(schema.value_schema, value_location)
            for key, item in value.items():
                _validate(key_schema, key, key_location)
                _validate(value_schema, item, value_location)


def _fits(schema: Schema, value: Any) -> bool:
    logical = _LOGICAL_CLASSES.get(schema.name) if schema.name is not None else None
    if logical is not None:
        # A datetime is a date to Python.
        return isinstance(value, logical) and (logical is not date or type(value) is date)
    bits = _INTEGER_BITS.get(schema.type)
    if bits is not None:
        return type(value) is int and -1 << bits <= value < 1 << bits
    return isinstance(value, _CLASSES[schema.type])


def _given(schema: Schema | None, location: str) -> Schema:
    if schema is None:
        raise DataError(f"No schema defined for {location}")
    return schema


_INTEGER_BITS: Final = {Type.INT8: 7, Type.INT16: 15, Type.INT32: 31, Type.INT64: 63}
_CLASSES: Final[dict[Type, type | tuple[type, ...]]] = {
    Type.FLOAT32: float,
    Type.FLOAT64: float,
    Type.BOOLEAN: bool,
    Type.STRING: str,
    Type.BYTES: (bytes, bytearray, memoryview),
    Type.ARRAY: (list, tuple),
    Type.MAP: Mapping,
    Type.STRUCT: Struct,
}
_LOGICAL_CLASSES: Final[dict[str, type]] = {
    DECIMAL: Decimal,
    DATE: date,
    TIME: time,
    TIMESTAMP: datetime,
}
_NUMBER_CLASSES: Final = {
    Type.INT8: "Byte",
    Type.INT16: "Short",
    Type.INT32: "Integer",
    Type.INT64: "Long",
    Type.FLOAT32: "Float",
    Type.FLOAT64: "Double",
}
_JAVA_CLASSES: Final[dict[type, str]] = {
    bool: "class java.lang.Boolean",
    int: "class java.lang.Long",
    float: "class java.lang.Double",
    str: "class java.lang.String",
    bytes: "class [B",
    bytearray: "class [B",
    memoryview: "class java.nio.HeapByteBuffer",
    list: "class java.util.ArrayList",
    tuple: "class java.util.ArrayList",
    Decimal: "class java.math.BigDecimal",
    date: "class java.util.Date",
    time: "class java.util.Date",
    Struct: "class org.apache.kafka.connect.data.Struct",
    Mapping: "class java.util.HashMap",
}
