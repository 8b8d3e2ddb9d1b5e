"""Spark's rows and Connect's structs, and the schemas of both.

Spark's SQL writes schemas as `id bigint NOT NULL, price decimal(5,2), tags array<string>`. PySpark
parses them in Java only, and tasks of the local engine have none: so they are parsed here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

from pyspark.sql import Row
from pyspark.sql import types as spark

from barnabas.schemas.data.errors import ConfigError, DataError
from barnabas.schemas.data.recursive import refuse_recursion
from barnabas.schemas.data.schema import (
    DATE,
    DECIMAL,
    SCALE,
    TIMESTAMP,
    Field,
    Schema,
    Struct,
    Type,
)

_PLAIN: Final[Mapping[type[spark.DataType], Type]] = {
    spark.BooleanType: Type.BOOLEAN,
    spark.ByteType: Type.INT8,
    spark.ShortType: Type.INT16,
    spark.IntegerType: Type.INT32,
    spark.LongType: Type.INT64,
    spark.FloatType: Type.FLOAT32,
    spark.DoubleType: Type.FLOAT64,
    spark.StringType: Type.STRING,
    spark.BinaryType: Type.BYTES,
}
_SPARK: Final[Mapping[Type, type[spark.DataType]]] = {kind: one for one, kind in _PLAIN.items()}
_TYPE_OF_WORD: Final[Mapping[str, Callable[[], spark.DataType]]] = {
    "boolean": spark.BooleanType,
    "tinyint": spark.ByteType,
    "byte": spark.ByteType,
    "smallint": spark.ShortType,
    "short": spark.ShortType,
    "int": spark.IntegerType,
    "integer": spark.IntegerType,
    "bigint": spark.LongType,
    "long": spark.LongType,
    "float": spark.FloatType,
    "real": spark.FloatType,
    "double": spark.DoubleType,
    "string": spark.StringType,
    "binary": spark.BinaryType,
    "date": spark.DateType,
    "timestamp": spark.TimestampType,
    "timestamp_ltz": spark.TimestampType,
    "timestamp_ntz": spark.TimestampNTZType,
}
_DECIMALS: Final = ("decimal", "dec", "numeric")
_TEXTS: Final = ("varchar", "char", "character")
_PRECISION: Final = 10
"""Of decimals that do not say theirs."""
_PRECISION_MAX: Final = 38
_TOKEN: Final = re.compile(
    r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<word>\w+)|(?P<text>'[^']*'|\"[^\"]*\")|(?P<sign>[<>(),:]))"
)


def struct_type(given: spark.StructType | str) -> spark.StructType:
    """Return a schema; texts are read as Spark's SQL does (`id int, name string`).

    Raises ConfigError.
    """
    return given if isinstance(given, spark.StructType) else parse_schema(given)


def connect_schema(kind: spark.DataType, *, is_optional: bool = False) -> Schema:
    """Return Connect's schema of a Spark type. Raises ConfigError."""
    match kind:
        case spark.StructType():
            fields = tuple(
                Field(one.name, at, connect_schema(one.dataType, is_optional=one.nullable))
                for at, one in enumerate(kind.fields)
            )
            return Schema(Type.STRUCT, is_optional, fields=fields)
        case spark.ArrayType():
            items = connect_schema(kind.elementType, is_optional=kind.containsNull)
            return Schema(Type.ARRAY, is_optional, value_schema=items)
        case spark.MapType():
            return Schema(
                Type.MAP,
                is_optional,
                key_schema=connect_schema(kind.keyType),
                value_schema=connect_schema(kind.valueType, is_optional=kind.valueContainsNull),
            )
        case spark.DecimalType():
            scale = {SCALE: str(kind.scale)}
            return Schema(Type.BYTES, is_optional, name=DECIMAL, version=1, parameters=scale)
        case spark.DateType():
            return Schema(Type.INT32, is_optional, name=DATE, version=1)
        case spark.TimestampType() | spark.TimestampNTZType():
            return Schema(Type.INT64, is_optional, name=TIMESTAMP, version=1)
    plain = _PLAIN.get(type(kind))
    if plain is None:
        raise ConfigError(f"there is no counterpart of Spark's type {kind.simpleString()}")
    return Schema(plain, is_optional)


def struct_of_row(schema: Schema, row: Any, zone: tzinfo | None = None) -> Struct:
    """Return a row as a struct; `zone` is that of naive times, None this machine's.

    Raises DataError.
    """
    if isinstance(row, Mapping):
        row = [row.get(field.name) for field in schema.fields]
    if not isinstance(row, Sequence) or len(row) != len(schema.fields):
        raise DataError(f"a row has not the {len(schema.fields)} columns of its schema: {row!r}")
    return Struct(
        schema,
        [
            _to_connect(field.schema, one, zone)
            for field, one in zip(schema.fields, row, strict=True)
        ],
    )


def _to_connect(schema: Schema, value: Any, zone: tzinfo | None) -> Any:
    if value is None:
        return None
    match schema.type:
        case Type.STRUCT:
            return struct_of_row(schema, value, zone)
        case Type.ARRAY:
            assert schema.value_schema is not None
            return [_to_connect(schema.value_schema, one, zone) for one in value]
        case Type.MAP:
            assert schema.value_schema is not None
            return {key: _to_connect(schema.value_schema, one, zone) for key, one in value.items()}
        case Type.BYTES if isinstance(value, bytearray | memoryview):
            return bytes(value)
        case Type.INT64 if isinstance(value, datetime):
            if value.tzinfo is None and zone is not None:
                value = value.replace(tzinfo=zone)
            return value.astimezone(UTC)
    return value


def spark_type(schema: Schema) -> spark.DataType:
    """Return Spark's type of a Connect schema. Raises DataError."""
    refuse_recursion(schema, "a table of Spark")
    match schema.name:
        case "org.apache.kafka.connect.data.Decimal":
            return spark.DecimalType(38, int(schema.parameters[SCALE]))
        case "org.apache.kafka.connect.data.Date":
            return spark.DateType()
        case "org.apache.kafka.connect.data.Timestamp":
            return spark.TimestampType()
    match schema.type:
        case Type.STRUCT:
            return spark.StructType(
                [spark.StructField(one.name, spark_type(one.schema)) for one in schema.fields]
            )
        case Type.ARRAY:
            assert schema.value_schema is not None
            return spark.ArrayType(spark_type(schema.value_schema))
        case Type.MAP:
            assert schema.key_schema is not None
            assert schema.value_schema is not None
            return spark.MapType(spark_type(schema.key_schema), spark_type(schema.value_schema))
    return _SPARK[schema.type]()


def row_of(value: Any, names: Sequence[str]) -> Row:
    """Return a record's value as a row of named columns. Raises DataError."""
    fields = _named(value)
    make = Row(*names)
    return make(*(_from_connect(fields.get(name)) for name in names))


def _named(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Struct):
        pairs: Iterable[tuple[Field, Any]] = zip(value.schema.fields, value.values, strict=True)
        return {field.name: one for field, one in pairs}
    if isinstance(value, Mapping):
        return value
    raise DataError(f"rows are made of structs and maps, not of {type(value).__name__}")


def _from_connect(value: Any) -> Any:
    if isinstance(value, Struct):
        return row_of(value, [field.name for field in value.schema.fields])
    if isinstance(value, list):
        return [_from_connect(one) for one in value]
    if isinstance(value, dict):
        return {key: _from_connect(one) for key, one in value.items()}
    return value


def parse_schema(text: str) -> spark.StructType:
    """Return the schema that a text describes. Raises ConfigError."""
    return _Parser(text).schema()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while text[at:].strip():
            token = _TOKEN.match(text, at)
            if token is None:
                raise self._error(text[at:].strip())
            kind = str(token.lastgroup)
            self._tokens.append((kind, token[kind]))
            at = token.end()
        self._at = 0

    def schema(self) -> spark.StructType:
        fields = self._fields()
        if self._at < len(self._tokens):
            raise self._error(self._tokens[self._at][1])
        return spark.StructType(fields)

    def _fields(self) -> list[spark.StructField]:
        fields = [self._field()]
        while self._takes(","):
            fields.append(self._field())
        return fields

    def _field(self) -> spark.StructField:
        kind, name = self._next("a column")
        if kind not in ("word", "quoted"):
            raise self._error(name)
        self._takes(":")
        type_ = self._type()
        is_nullable = not self._takes("not", "null")
        if self._takes("comment") and self._next("a comment")[0] != "text":
            raise self._error("comment")
        return spark.StructField(name.replace("``", "`"), type_, is_nullable)

    def _type(self) -> spark.DataType:
        _, given = self._next("a type")
        name = given.lower()
        if name in _TYPE_OF_WORD:
            return _TYPE_OF_WORD[name]()
        if name in _DECIMALS:
            given_ = self._numbers(2) if self._sees("(") else [_PRECISION]
            precision, scale = [*given_, 0][:2]
            if not 0 <= scale <= precision <= _PRECISION_MAX:
                raise self._error(given)
            return spark.DecimalType(precision, scale)
        if name in _TEXTS:
            self._numbers(1)
            return spark.StringType()
        if name == "array":
            return spark.ArrayType(self._inner(1)[0])
        if name == "map":
            key, value = self._inner(2)
            return spark.MapType(key, value)
        if name == "struct":
            self._must("<")
            fields = [] if self._sees(">") else self._fields()
            self._must(">")
            return spark.StructType(fields)
        raise self._error(given)

    def _inner(self, count: int) -> list[spark.DataType]:
        self._must("<")
        types = [self._type()]
        for _ in range(count - 1):
            self._must(",")
            types.append(self._type())
        self._must(">")
        return types

    def _numbers(self, count: int) -> list[int]:
        self._must("(")
        numbers = [self._number()]
        while len(numbers) < count and self._takes(","):
            numbers.append(self._number())
        self._must(")")
        return numbers

    def _number(self) -> int:
        _, given = self._next("a number")
        if not given.isascii() or not given.isdigit():
            raise self._error(given)
        return int(given)

    def _sees(self, *wanted: str) -> bool:
        tokens = self._tokens[self._at : self._at + len(wanted)]
        return [(kind in ("word", "sign"), one.lower()) for kind, one in tokens] == [
            (True, one) for one in wanted
        ]

    def _takes(self, *wanted: str) -> bool:
        if not self._sees(*wanted):
            return False
        self._at += len(wanted)
        return True

    def _must(self, sign: str) -> None:
        if not self._takes(sign):
            raise self._error(self._next(sign)[1])

    def _next(self, what: str) -> tuple[str, str]:
        if self._at == len(self._tokens):
            raise ConfigError(f"the schema {self._text!r} ends where {what} is due")
        self._at += 1
        return self._tokens[self._at - 1]

    def _error(self, at: str) -> ConfigError:
        return ConfigError(
            f"the schema {self._text!r} cannot be read at {at!r}: give it as a StructType"
        )
