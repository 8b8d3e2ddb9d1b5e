"""The format DELIMITED: the columns' values in a line, with a delimiter between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal as Number

from barnabas.java.numbers import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    double_text,
    fit_decimal,
    parse_decimal,
    parse_double,
    parse_whole,
    plain_text,
)
from barnabas.java.time.units import DAY_MS
from barnabas.schemas.errors import FormatError
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.base64_text import decode_bytes, encode_bytes
from barnabas.sql.formats.checks import check_properties
from barnabas.sql.formats.csv_text import join_line, split_line
from barnabas.sql.formats.format import (
    Deserializer,
    Format,
    RecordPart,
    Serializer,
    check_count,
    topic_of,
)
from barnabas.sql.formats.json_reading import time_message
from barnabas.sql.runtime.records import Row
from barnabas.sql.schema import Column
from barnabas.sql.types import BaseType, Decimal, Primitive, Value

DELIMITER = "delimiter"
_NAMED = {"TAB": "\t", "SPACE": " "}


def parse_delimiter(text: str) -> str:
    """The one character that a property asks for. Raises AnalysisError."""
    if not text.strip():
        raise AnalysisError(
            "Delimiter cannot be empty, if you meant to have a tab or space for delimiter, please "
            "use the special values 'TAB' or 'SPACE'\nExample valid value: ';'"
        )
    if len(text) == 1:
        return text
    if text not in _NAMED:
        raise AnalysisError(
            f"Invalid delimiter value: '{text}'. Delimiter must be a single character or "
            "TAB,SPACE\nExample valid value: ';'"
        )
    return _NAMED[text]


class DelimitedFormat(Format):
    """Columns of simple types; an empty value is NULL."""

    name = "DELIMITED"
    can_wrap = False
    can_unwrap = True
    properties = frozenset({DELIMITER})
    inherited_properties = frozenset({DELIMITER})

    def check(self, columns: Sequence[Column], properties: Mapping[str, str]) -> None:
        check_properties(self.name, properties, self.properties)
        for column in columns:
            if not isinstance(column.type, Primitive | Decimal):
                raise AnalysisError(
                    f"The 'DELIMITED' format does not support type '{column.type.base.value}', "
                    f"column: `{column.name}`"
                )
        parse_delimiter(properties.get(DELIMITER, ","))

    def serializer(self, part: RecordPart) -> Serializer:
        delimiter = parse_delimiter(part.properties.get(DELIMITER, ","))
        texts = [_text_of(column) for column in part.columns]
        subject = part.subject

        def serialize(row: Row | None) -> bytes | None:
            if row is None:
                return None
            check_count(len(texts), row, subject)
            try:
                values = [
                    None if value is None else text(value)
                    for text, value in zip(texts, row, strict=True)
                ]
                return join_line(values, delimiter).encode()
            except (TypeError, ValueError, AttributeError) as error:
                raise FormatError(f"Error serializing CSV message: {error}") from error

        return serialize

    def deserializer(self, part: RecordPart) -> Deserializer:
        delimiter = parse_delimiter(part.properties.get(DELIMITER, ","))
        parsers = [_parser_of(column) for column in part.columns]

        def deserialize(data: bytes | None) -> Row | None:
            if data is None:
                return None
            try:
                values = split_line(data.decode("utf-8", "replace"), delimiter)
                if not values:
                    raise ValueError("No fields in record")
                if len(values) != len(parsers):
                    raise ValueError(
                        f"Column count mismatch on deserialization. "
                        f"topic: {topic_of(part.subject)}, "
                        f"expected: {len(parsers)}, got: {len(values)}"
                    )
                return [
                    parse(text) if text else None
                    for parse, text in zip(parsers, values, strict=True)
                ]
            except ValueError as error:
                raise FormatError(f"Error deserializing delimited: {error}") from error

        return deserialize


_TEXTS: dict[BaseType, Callable[[Value], str]] = {
    BaseType.BOOLEAN: lambda value: "true" if value else "false",
    BaseType.DOUBLE: double_text,
    BaseType.STRING: lambda value: value,
    BaseType.BYTES: encode_bytes,
    BaseType.DECIMAL: plain_text,
}


def _text_of(column: Column) -> Callable[[Value], str]:
    return _TEXTS.get(column.type.base, int.__repr__)


def _time(text: str) -> int:
    time_ms = parse_whole(text, LONG_MIN, LONG_MAX)
    if not 0 <= time_ms <= DAY_MS:
        raise ValueError(time_message())
    return time_ms


def _bytes(text: str) -> bytes:
    try:
        return decode_bytes(text)
    except ValueError:
        raise ValueError(f"Value is not a valid Base64 encoded string: {text}") from None


_PARSERS: dict[BaseType, Callable[[str], Value]] = {
    BaseType.BOOLEAN: lambda text: text.lower() == "true",
    BaseType.INTEGER: lambda text: parse_whole(text, INT_MIN, INT_MAX),
    BaseType.BIGINT: lambda text: parse_whole(text, LONG_MIN, LONG_MAX),
    BaseType.DOUBLE: parse_double,
    BaseType.STRING: lambda text: text,
    BaseType.BYTES: _bytes,
    BaseType.DATE: lambda text: parse_whole(text, INT_MIN, INT_MAX),
    BaseType.TIME: _time,
    BaseType.TIMESTAMP: lambda text: parse_whole(text, LONG_MIN, LONG_MAX),
}


def _parser_of(column: Column) -> Callable[[str], Value]:
    if not isinstance(column.type, Decimal):
        return _PARSERS[column.type.base]
    precision, scale = column.type.precision, column.type.scale

    def parse(text: str) -> Number:
        return fit_decimal(parse_decimal(text), precision, scale)

    return parse
