"""The format DELIMITED: the columns' values in a line, with a delimiter between them."""

from __future__ import annotations

import re
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
from barnabas.sql.formats.format import (
    Deserializer,
    Format,
    RecordPart,
    Serializer,
    check_count,
    check_properties,
    topic_of,
)
from barnabas.sql.formats.json_reading import time_message
from barnabas.sql.java_text import decode_bytes, encode_bytes
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


# -- one line of delimited values, as Apache Commons CSV 1.4 reads and writes its default
# format
#
# A value that begins with `"` runs to the next single `"`; within it `""` is one. Values are quoted
# in writing where that version thinks reading might go wrong: also a first value that begins with
# anything but a letter or digit, and any that begins with a sign up to `#` or ends with a space.


_LINE_ENDS = "\r\n"
_FIRST_PLAIN = re.compile(r"[0-9A-Za-z]")
_LAST_STARTING_QUOTED = "#"
_SPACE = " "


class CsvError(ValueError):
    """The text is no delimited values."""


def split_line(text: str, delimiter: str) -> list[str]:
    """The values of the first line that is not empty; the rest is read, but not given.

    Returns [] without one. Raises CsvError for quotes that do not end well.
    """
    if '"' not in text and "\n" not in text and "\r" not in text:
        return text.split(delimiter) if text else []
    first: list[str] = []
    place = 0
    while place < len(text):
        if text[place] in _LINE_ENDS:
            place += 1
            continue
        values, place = _line(text, place, delimiter)
        first = first or values
    return first


def _line(text: str, place: int, delimiter: str) -> tuple[list[str], int]:
    values = []
    while True:
        value, place = _value(text, place, delimiter)
        values.append(value)
        if place >= len(text):
            return values, place
        ended = text[place]
        place += 1
        if ended != delimiter:
            if ended == "\r" and text[place : place + 1] == "\n":
                place += 1
            return values, place


def _value(text: str, place: int, delimiter: str) -> tuple[str, int]:
    """A value and the place of what ends it: a delimiter, a line's end, or the text's."""
    if text[place : place + 1] == '"' and delimiter != '"':
        return _unquote_run(text, place + 1, delimiter)
    end = place
    while end < len(text) and text[end] != delimiter and text[end] not in _LINE_ENDS:
        end += 1
    return text[place:end], end


def _unquote_run(text: str, place: int, delimiter: str) -> tuple[str, int]:
    parts = []
    while True:
        end = text.find('"', place)
        if end < 0:
            raise CsvError("the text ends within quotes")
        parts.append(text[place:end])
        place = end + 1
        if text[place : place + 1] != '"':
            break
        parts.append('"')
        place += 1
    while place < len(text) and text[place] != delimiter and text[place] not in _LINE_ENDS:
        if not text[place].isspace():
            raise CsvError("a character between quotes and delimiter")
        place += 1
    return "".join(parts), place


def join_line(values: Sequence[str | None], delimiter: str) -> str:
    """The values as one line without its end; None is nothing at all."""
    return delimiter.join(
        [
            "" if value is None else quoted_if_needed(value, delimiter, first=not position)
            for position, value in enumerate(values)
        ]
    )


def quoted_if_needed(value: str, delimiter: str, *, first: bool) -> str:
    """The value, in quotes where it might be read as something else."""
    if not value:
        return '""' if first else ""
    start = value[0]
    needed = (
        (first and not _FIRST_PLAIN.match(start))
        or start <= _LAST_STARTING_QUOTED
        or delimiter in value
        or '"' in value
        or "\n" in value
        or "\r" in value
        or value[-1] <= _SPACE
    )
    return '"' + value.replace('"', '""') + '"' if needed else value
