"""Schemas as Spark's SQL writes them: `id bigint NOT NULL, price decimal(5,2), tags array<string>`.

PySpark parses them in Java only; tasks of the local engine have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import types as spark

from barnabas.schemas.data.errors import ConfigError

_PLAIN: Final[Mapping[str, Callable[[], spark.DataType]]] = {
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
        if name in _PLAIN:
            return _PLAIN[name]()
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
