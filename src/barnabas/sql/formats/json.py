"""The format JSON: a row is an object of its columns, or the bare value of its only column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from barnabas.schemas.errors import FormatError
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.format import (
    Deserializer,
    Format,
    RecordPart,
    Serializer,
    check_count,
    check_properties,
    has_other_than_string_keys,
    part_name,
    topic_of,
)
from barnabas.sql.formats.json_reading import (
    MismatchError,
    json_scanner,
    needs_exact,
    reader,
    row_reader,
)
from barnabas.sql.formats.json_writing import row_writer, writer
from barnabas.sql.runtime.records import Row
from barnabas.sql.schema import Column
from barnabas.sql.types import Field, Struct, Value

_SPACE = " \t\n\r"


class JsonFormat(Format):
    """JSON without schemas."""

    name = "JSON"
    can_wrap = True
    can_unwrap = True

    def check(self, columns: Sequence[Column], properties: Mapping[str, str]) -> None:
        check_properties(self.name, properties, self.properties)
        if has_other_than_string_keys(columns):
            raise AnalysisError("JSON only supports MAP types with STRING keys")

    def serializer(self, part: RecordPart) -> Serializer:
        return json_serializer(part.columns, part.subject, wraps=part.wraps)

    def deserializer(self, part: RecordPart) -> Deserializer:
        return json_deserializer(part.columns, part.subject, wraps=part.wraps)


def json_serializer(columns: Sequence[Column], subject: str, *, wraps: bool) -> Serializer:
    """Rows to JSON in UTF-8. A bare value that is null is no bytes."""
    writers = [writer(column.type) for column in columns]
    write_row = row_writer([column.name for column in columns], writers)
    bare = len(columns) == 1 and not wraps

    def serialize(row: Row | None) -> bytes | None:
        if row is None:
            return None
        check_count(len(writers), row, subject)
        if bare and row[0] is None:
            return None
        try:
            return (writers[0](row[0]) if bare else write_row(row)).encode()
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise FormatError(
                f"Error serializing message to topic: {topic_of(subject)}. {error}"
            ) from error

    return serialize


def json_deserializer(columns: Sequence[Column], subject: str, *, wraps: bool) -> Deserializer:
    """JSON in UTF-8 to rows. JSON's null is not a row, or as a bare value a row of NULL."""
    readers = [reader(column.type) for column in columns]
    names = [column.name for column in columns]
    whole = Struct(tuple(Field(column.name, column.type) for column in columns))
    read_row = row_reader(whole, names, readers)
    scan = json_scanner(exact=any(needs_exact(column.type) for column in columns))
    bare = len(columns) == 1 and not wraps
    read_bare: Callable[[Any], Value] = readers[0] if bare else lambda value: value

    def deserialize(data: bytes | None) -> Row | None:
        if data is None:
            return None
        try:
            value = parse(data, scan)
            if bare:
                return [None if value is None else read_bare(value)]
            return None if value is None else read_row(value)
        except MismatchError as error:
            reason = f"{error.message}, path: ${error.path}"
        except RecursionError:
            reason = "Nested too deep"
        except (ValueError, ArithmeticError):
            # The text itself stays out of messages: it may be confidential.
            reason = "The data is not JSON"
        raise FormatError(
            f"Failed to deserialize {part_name(subject)} from topic: {topic_of(subject)}. {reason}"
        )

    return deserialize


def parse(data: bytes, scan: Callable[[str, int], tuple[Any, int]]) -> Any:
    """The first JSON value in the bytes; what follows it is ignored. Raises ValueError."""
    text = data.decode("utf-8")
    start = 0
    if text[:1] in "\ufeff \t\n\r":
        start = len(text) - len(text.lstrip("\ufeff" + _SPACE))
    if start == len(text):
        raise MismatchError(
            "Can't convert type. sourceType: MissingNode, requiredType: a JSON value"
        )
    try:
        value, end = scan(text, start)
    except StopIteration:
        raise ValueError("not a JSON value") from None
    if end < len(text) and text[end] not in _SPACE and text[end - 1] not in '}]"':
        raise ValueError("not a JSON value")
    return value
