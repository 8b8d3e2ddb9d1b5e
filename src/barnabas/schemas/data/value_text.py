"""Writes values as texts that show their types, and reads such texts; for headers.

`[1, 2]` is read as an array of INT8, `{"a":1.5}` as a map, `2020-01-01` as a Date; any other text
is a STRING. Source: org.apache.kafka.connect.data.Values (Kafka 4.3).
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

from barnabas.java.numbers import JAVA_SPACE, parse_decimal
from barnabas.java.time.calendar import days_of
from barnabas.schemas.data.builder import (
    BOOLEAN,
    DATE_SCHEMA,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    array_of,
    decimal,
    map_of,
)
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.logical import (
    DAY_MS,
    days_to_date,
    ms_to_time,
    ms_to_timestamp,
    scale_of,
    time_to_ms,
    timestamp_to_ms,
)
from barnabas.schemas.data.schema import Schema, Struct, Type, java_class
from barnabas.schemas.data.text import java_text

SchemaAndValue = tuple[Schema | None, Any]
_NULL: Final[SchemaAndValue] = (None, None)
_TOKEN: Final = re.compile(r'[:,{}\[\]"]|(?:\\.|\\\Z|[^:,{}\[\]"\\])+', re.DOTALL)
_DATE: Final = re.compile(r"(\d+)-(\d+)-(\d+)")
_TIME: Final = re.compile(r"(\d+):(\d+):(\d+)\.(\d+)Z")
_DEPTH_MAX: Final = 100
_FLOAT32_MAX: Final = Decimal("3.4028235677973366e38")
_FLOAT64_MAX: Final = Decimal("1.7976931348623158e308")
_NUMBER_RANK: Final = (
    Type.INT8,
    Type.INT16,
    Type.INT32,
    Type.INT64,
    Type.FLOAT32,
    Type.FLOAT64,
)


def value_to_text(value: Any, schema: Schema | None = None) -> str:
    """The text of a value that is not null. Raises DataError."""
    return _text(value, schema, is_embedded=False)


def _text(value: Any, schema: Schema | None, *, is_embedded: bool) -> str:
    if isinstance(value, str):
        if not is_embedded:
            return value
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if value is None or isinstance(value, (bool, int, float, Decimal)):
        return java_text(value, schema)
    if isinstance(value, (bytes, bytearray, memoryview)):
        text = b64encode(value).decode()
        return f'"{text}"' if is_embedded else text
    if isinstance(value, (list, tuple)):
        items = schema.value_schema if schema else None
        return f"[{','.join(_text(item, items, is_embedded=True) for item in value)}]"
    if isinstance(value, Struct):
        fields = value.schema.fields
        texts = (
            f'"{f.name}":{_text(value.get(f.name), f.schema, is_embedded=True)}' for f in fields
        )
        return f"{{{','.join(texts)}}}"
    if isinstance(value, Mapping):
        keys, values = (schema.key_schema, schema.value_schema) if schema else (None, None)
        texts = (
            f"{_text(k, keys, is_embedded=True)}:{_text(v, values, is_embedded=True)}"
            for k, v in value.items()
        )
        return f"{{{','.join(texts)}}}"
    if isinstance(value, (date, time)):
        return _moment_text(value)
    name = java_class(value).removeprefix("class ")
    raise DataError(f"Failed to serialize unexpected value type {name}: {value}")


def _moment_text(value: date | time) -> str:
    """A moment of the first day of 1970 is taken for a time, midnight for a date."""
    if isinstance(value, time):
        ms = time_to_ms(value)
    elif isinstance(value, datetime):
        ms = timestamp_to_ms(value)
    else:
        ms = (value - date(1970, 1, 1)).days * DAY_MS
    moment = ms_to_timestamp(ms)
    time_text = f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03}Z"
    if ms < DAY_MS:
        return time_text
    day = f"{moment.year:04}-{moment:%m-%d}"
    return day if ms % DAY_MS == 0 else f"{day}T{time_text}"


def text_to_value(text: str) -> SchemaAndValue:
    """The value that a text stands for, with its schema."""
    if not text:
        return STRING, text
    return _ValueReader(text).read(is_embedded=False, depth=0)


class _ValueReader:
    """Reads tokens: delimiters, and the texts between them."""

    def __init__(self, text: str) -> None:
        self._original = text
        self._tokens = _TOKEN.findall(text)
        self._at = 0
        self._previous: str | None = None

    def read(self, *, is_embedded: bool, depth: int) -> SchemaAndValue:
        """Raises DataError."""
        if not self._has_next():
            return _NULL
        if is_embedded and self._take('"'):
            return self._quoted()
        for literal, value in (("null", _NULL), ("true", (BOOLEAN, True)), ("false", (BOOLEAN, 0))):
            if self._is_literal(literal, is_embedded=is_embedded):
                return value if literal != "false" else (BOOLEAN, False)
        start = self._at
        if depth < _DEPTH_MAX:
            try:
                if self._take("["):
                    return self._array(depth + 1)
                if self._take("{"):
                    return self._map(depth + 1)
            except DataError:
                self._at = start
        # A delimiter or blanks that were looked over stay looked over, as in Kafka.
        token = self._next()
        if not token.strip():
            return STRING, token
        return self._token(token.strip(JAVA_SPACE) or token, is_embedded=is_embedded)

    def _has_next(self) -> bool:
        return self._at < len(self._tokens)

    def _next(self) -> str:
        self._previous = self._tokens[self._at]
        self._at += 1
        return self._previous

    def _take(self, expected: str) -> bool:
        """Blanks before the token do not matter, and are gone once they were looked at."""
        while self._at + 1 < len(self._tokens) and not self._tokens[self._at].strip():
            self._at += 1
        if self._has_next() and self._tokens[self._at].strip(JAVA_SPACE) == expected:
            self._previous = expected
            self._at += 1
            return True
        return False

    def _is_literal(self, literal: str, *, is_embedded: bool) -> bool:
        start = self._at
        if self._take(literal) and (is_embedded or not self._has_next()):
            return True
        self._at = start
        return False

    def _quoted(self) -> SchemaAndValue:
        parts = []
        while self._has_next() and not self._take_exactly('"'):
            parts.append(self._next())
        text = "".join(parts)
        return _temporal(text) or (STRING, text)

    def _take_exactly(self, expected: str) -> bool:
        if self._tokens[self._at].strip(JAVA_SPACE) == expected:
            self._at += 1
            return True
        return False

    def _token(self, token: str, *, is_embedded: bool) -> SchemaAndValue:
        first = token[0]
        if first.isdigit():
            temporal = self._temporal_of_tokens(token)
            if temporal is not None:
                return temporal
        if first.isdigit() or first in "+-":
            number = _number(token)
            if number is not None:
                return number
        if is_embedded:
            raise DataError("Failed to parse embedded value")
        return STRING, self._original

    def _temporal_of_tokens(self, token: str) -> SchemaAndValue | None:
        """The colons of a time are delimiters."""
        if self._at + 4 <= len(self._tokens):
            temporal = _temporal(token + "".join(self._tokens[self._at : self._at + 4]))
            if temporal is not None:
                self._at += 4
                return temporal
        return _temporal(token)

    def _array(self, depth: int) -> SchemaAndValue:
        result: list[Any] = []
        schemas = _Merged()
        while self._has_next():
            if self._take("]"):
                if schemas.common is None:
                    return Schema(Type.ARRAY), result
                return array_of(schemas.common), [_align(schemas.common, v) for v in result]
            if self._take(","):
                raise DataError(f"Unable to parse an empty array element: {self._original}")
            schema, value = self.read(is_embedded=True, depth=depth)
            schemas.add(schema)
            result.append(value)
            start = self._at
            if self._take("]"):
                self._at = start
            elif not self._take(","):
                raise DataError("Array elements missing ',' delimiter")
        if self._previous == ",":
            raise DataError(f"Array is missing element after ',': {self._original}")
        raise DataError(f"Array is missing terminating ']': {self._original}")

    def _map(self, depth: int) -> SchemaAndValue:
        result: dict[Any, Any] = {}
        keys, values = _Merged(), _Merged()
        while self._has_next():
            if self._take("}"):
                return _map_of(keys.common, values.common, result)
            if self._take(","):
                raise DataError(
                    f"Unable to parse a map entry with no key or value: {self._original}"
                )
            key_schema, key = self.read(is_embedded=True, depth=depth)
            if key is None:
                raise DataError(f"Map entry may not have a null key: {self._original}")
            if not self._take(":"):
                raise DataError(f"Map entry is missing ':' in {self._original}")
            value_schema, value = self.read(is_embedded=True, depth=depth)
            try:
                result[key] = value
            except TypeError:
                raise DataError("Keys of maps cannot be arrays or maps") from None
            self._take(",")
            keys.add(key_schema)
            values.add(value_schema)
        if self._previous == ",":
            raise DataError(f"Map is missing element after ',': {self._original}")
        raise DataError(f"Map is missing terminating '}}': {self._original}")


def _map_of(keys: Schema | None, values: Schema | None, entries: dict[Any, Any]) -> SchemaAndValue:
    if keys is None:
        return Schema(Type.MAP), entries
    if values is None:
        return Schema(Type.MAP, key_schema=keys), {_align(keys, k): v for k, v in entries.items()}
    aligned = {_align(keys, k): _align(values, v) for k, v in entries.items()}
    return map_of(keys, values), aligned


class _Merged:
    """The schema that all items of an array have in common; None if absent."""

    def __init__(self) -> None:
        self.common: Schema | None = None
        self._is_compatible = True

    def add(self, schema: Schema | None) -> None:
        """See one more item."""
        if schema is None or not self._is_compatible:
            return
        self.common = schema if self.common is None else _common(self.common, schema)
        self._is_compatible = self.common is not None


def _common(one: Schema, other: Schema) -> Schema | None:
    if one.type is other.type:
        return other
    if one.type in _NUMBER_RANK and other.type in _NUMBER_RANK:
        return max(one, other, key=lambda schema: _NUMBER_RANK.index(schema.type))
    return None


def _align(schema: Schema, value: Any) -> Any:
    if value is None:
        raise DataError("Unable to convert a null value to a schema that requires a value")
    is_float = schema.type in (Type.FLOAT32, Type.FLOAT64)
    return float(value) if is_float and type(value) is int else value


def _number(token: str) -> SchemaAndValue | None:
    try:
        number = parse_decimal(token)
    except ValueError:
        return None
    if number == 0 or (number.adjusted() < 19 and number == int(number)):
        whole = int(number)
        for schema, bits in ((INT8, 7), (INT16, 15), (INT32, 31), (INT64, 63)):
            if -1 << bits <= whole < 1 << bits:
                return schema, whole
    scale = scale_of(number)
    if scale != 0 and abs(number) < _FLOAT32_MAX:
        return FLOAT32, float(number)
    if scale != 0 and abs(number) < _FLOAT64_MAX:
        return FLOAT64, float(number)
    return decimal(scale), number


def _temporal(text: str) -> SchemaAndValue | None:
    text = text.replace("\\:", ":")
    try:
        match len(text):
            case 10:
                days = _days(text)
                return None if days is None else (DATE_SCHEMA, days_to_date(days))
            case 13:
                ms = _ms(text)
                return None if ms is None else (TIME_SCHEMA, ms_to_time(ms))
            case 24:
                day, _, clock = text.partition("T")
                days, ms = _days(day), _ms(clock)
                if days is None or ms is None:
                    return None
                return TIMESTAMP_SCHEMA, ms_to_timestamp(days * DAY_MS + ms)
    except DataError:  # a moment that Python's dates cannot tell
        pass
    return None


def _days(text: str) -> int | None:
    """Months and days beyond their end go on in the next."""
    match = _DATE.match(text)
    if match is None:
        return None
    year, month, day = (int(part) for part in match.groups())
    return days_of(year + (month - 1) // 12, (month - 1) % 12 + 1, 1) + day - 1


def _ms(text: str) -> int | None:
    match = _TIME.match(text)
    if match is None:
        return None
    hours, minutes, seconds, ms = (int(part) for part in match.groups())
    return (hours * 3600 + minutes * 60 + seconds) * 1000 + ms
