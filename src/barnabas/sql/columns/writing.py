"""Writes vectors as the bytes of keys and values, as the row writers do.

Records that a writer cannot write by itself are left to the row writer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal as Number
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.java.numbers import double_text, plain_text
from barnabas.schemas.errors import FormatError
from barnabas.schemas.wire_format import prefix_of
from barnabas.sql.columns.avro_writing import avro_writer
from barnabas.sql.columns.vectors import (
    WHOLE,
    CheckedWriter,
    Mask,
    Vector,
    arrow_type,
    bytes_of,
    mask_of,
    truth_texts,
    whole_texts,
)
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.catalog import format_named
from barnabas.sql.formats.delimited import DELIMITER, parse_delimiter
from barnabas.sql.formats.format import RecordPart, Serializer
from barnabas.sql.formats.json_sr import registered_id
from barnabas.sql.formats.json_writing import decimal_json, double_json, json_string
from barnabas.sql.formats.json_writing import writer as json_text
from barnabas.sql.formats.registry_wire import SCHEMA_ID
from barnabas.sql.schema import Column
from barnabas.sql.types import BaseType, SqlType, Struct, Value

Writer = Callable[[Sequence[Vector]], Any]
"""Gives an Arrow array of bytes; a row whose only value is NULL may be NULL."""

_ESCAPED: Final = '[\\x00-\\x1f"\\\\]'
_FIXED: Final = {BaseType.INTEGER: ">i4", BaseType.BIGINT: ">i8", BaseType.DOUBLE: ">f8"}


def writer(format_name: str, part: RecordPart) -> Writer | None:
    """Return what writes rows in a format; None if there are no columns."""
    if not part.columns:
        return None
    return _made_writer(format_name, part) or RowByRowWriter(format_name, part)


def _made_writer(format_name: str, part: RecordPart) -> Writer | None:
    if format_name == "KAFKA":
        return _kafka_writer(part.columns[0])
    if format_name == "JSON":
        return JsonWriter(part)
    if format_name == "JSON_SR" and SCHEMA_ID not in part.properties:
        return JsonSchemaWriter(part)
    if format_name == "DELIMITED":
        return _delimited_writer(part)
    if format_name == "AVRO":
        return avro_writer(part)
    return None


def _kafka_writer(column: Column) -> Writer | None:
    base = column.type.base
    if base is BaseType.STRING:
        return lambda vectors: vectors[0].data.cast(pa.binary())
    kind = _FIXED.get(base)
    if kind is None:
        return None
    width = np.dtype(kind).itemsize

    def write(vectors: Sequence[Vector]) -> Any:
        (vector,) = vectors
        data = vector.data.astype(kind).tobytes()
        fixed = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(width), len(vector), [None, pa.py_buffer(data)]
        ).cast(pa.binary())
        if vector.valid is None:
            return fixed
        return pc.if_else(pa.array(vector.valid), fixed, pa.scalar(None, pa.binary()))

    return write


class JsonWriter(CheckedWriter):
    """Writes rows as objects, or the bare values of the only column."""

    def __init__(self, part: RecordPart, *, maps_as_entries: bool = False) -> None:
        columns = part.columns
        self._is_bare = part.is_bare
        self._write = _objects([column.name for column in columns])
        self._texts = [_json_texts(column.type) for column in columns]
        if self._is_bare and columns[0].type.base is BaseType.STRING:
            self._texts = [_string_texts]
        self._one_by_one = [
            (place, json_text(column.type, maps_as_entries=maps_as_entries))
            for place, column in enumerate(columns)
            if self._texts[place] is None
        ]
        self._made: dict[int, tuple[Vector, Any]] = {}
        """The texts of columns that `doubt` has made."""

    def doubt(self, vectors: Sequence[Vector]) -> Mask | None:
        doubt: Mask | None = None
        for place, text in self._one_by_one:
            values = vectors[place].to_list()
            texts, odd = _texts_one_by_one(values, text)
            self._made[place] = vectors[place], texts
            if odd is not None:
                doubt = odd if doubt is None else doubt | odd
        return doubt

    def __call__(self, vectors: Sequence[Vector]) -> Any:
        texts = list(map(self._texts_of, range(len(vectors)), vectors))
        self._made.clear()
        whole = texts[0] if self._is_bare else self._write(vectors, texts)
        return whole.cast(pa.binary())

    def _texts_of(self, place: int, vector: Vector) -> Any:
        text = self._texts[place]
        if text is not None:
            return text(vector)
        known, texts = self._made.get(place, (None, None))
        if known is vector:
            return texts
        texts, odd = _texts_one_by_one(vector.to_list(), dict(self._one_by_one)[place])
        assert odd is None, "rows that doubt left"
        return texts


class JsonSchemaWriter(JsonWriter):
    """Writes rows as JSON behind the id of their schema, which is registered before the first row.
    As long as that fails, the row writer says what is wrong."""

    def __init__(self, part: RecordPart) -> None:
        super().__init__(part, maps_as_entries=True)
        self._part = part
        self._prefix: bytes | None = None

    def doubt(self, vectors: Sequence[Vector]) -> Mask | None:
        if self._prefix is None:
            valid = vectors[0].valid
            if self._is_bare and valid is not None and not valid.any():
                return None  # there is nothing to write
            try:
                self._prefix = prefix_of(registered_id(self._part))
            except (FormatError, AnalysisError):
                return np.ones(len(vectors[0]), np.bool_)
        return super().doubt(vectors)

    def __call__(self, vectors: Sequence[Vector]) -> Any:
        texts = super().__call__(vectors)
        if self._prefix is None:  # there was nothing but NULLs
            return texts
        prefix = pa.scalar(self._prefix, pa.binary())
        return pc.binary_join_element_wise(prefix, texts, pa.scalar(b"", pa.binary()))


def _objects(names: Sequence[str]) -> Callable[[Sequence[Vector], Sequence[Any]], Any]:
    """Return what joins members' texts, NULL for NULL, to objects. A text that is not in quotes
    gets them."""
    begins = [("," if place else "{") + json_string(name) + ":" for place, name in enumerate(names)]

    def write(vectors: Sequence[Vector], texts: Sequence[Any]) -> Any:
        parts: list[Any] = []
        for begin, vector, made in zip(begins, vectors, texts, strict=True):
            if made is vector.data:
                parts += [begin + '"', made, '"']
                continue
            parts += [begin, made if vector.valid is None else made.fill_null("null")]
        return _joined([*parts, "}"])

    return write


def _json_texts(sql_type: SqlType) -> Callable[[Vector], Any] | None:
    """Return what makes texts of values; None if only the row writer's functions do. Texts without
    NULLs and escapes stay as they are, for `_objects`."""
    if sql_type.base is BaseType.STRING:
        return _plain_or_quoted
    if not isinstance(sql_type, Struct) or arrow_type(sql_type) is None:
        return _TEXTS.get(sql_type.base)
    names = [field.name for field in sql_type.fields]
    write = _objects(names)
    texts = [_json_texts(field.type) for field in sql_type.fields]

    def struct_texts(vector: Vector) -> Any:
        fields = [vector.field(name) for name in names]
        made = [text(field) for text, field in zip(texts, fields, strict=True) if text is not None]
        return _masked(write(fields, made), vector)

    return struct_texts


def _plain_or_quoted(vector: Vector) -> Any:
    if vector.valid is None and not _has_escaped(vector.data):
        return vector.data
    return _string_texts(vector)


def _texts_one_by_one(
    values: Sequence[Value], text: Callable[[Value], str]
) -> tuple[Any, Mask | None]:
    """The texts of values, NULL for NULL, and which values have no text."""
    made: list[str | None] = []
    failed: list[int] = []
    for place, value in enumerate(values):
        try:
            one = None if value is None else text(value)
            _ = one is None or one.encode()
        except (TypeError, ValueError, KeyError, AttributeError):
            one = None
            failed.append(place)
        made.append(one)
    odd = None
    if failed:
        odd = np.zeros(len(values), np.bool_)
        odd[failed] = True
    return pa.array(made, pa.string()), odd


def _joined(parts: Sequence[Any]) -> Any:
    """Arrays of texts, and texts that are the same in all rows, behind each other."""
    merged: list[Any] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return pc.binary_join_element_wise(*merged, "")


def _has_escaped(texts: Any) -> bool:
    """Return whether a text may have a character that JSON escapes."""
    data = bytes_of(texts)
    return bool(((data < 0x20) | (data == ord('"')) | (data == ord("\\"))).any())


def _delimited_writer(part: RecordPart) -> Writer | None:
    if not all(column.type.base in _TEXTS for column in part.columns):
        return None
    delimiter = parse_delimiter(part.properties.get(DELIMITER, ","))
    texts = [_PLAIN_TEXTS.get(c.type.base) or _TEXTS[c.type.base] for c in part.columns]
    quoted = f'^[\\x00-#]|[\\x00- ]$|["\\r\\n]|\\x{{{ord(delimiter):x}}}'
    first_quoted = f"{quoted}|^[^0-9A-Za-z]|^$"

    def write(vectors: Sequence[Vector]) -> Any:
        parts = []
        for place, (text, vector) in enumerate(zip(texts, vectors, strict=True)):
            parts.append(_quoted(text(vector), quoted if place else first_quoted))
        return pc.binary_join_element_wise(*parts, delimiter).cast(pa.binary())

    return write


def _quoted(texts: Any, which: str) -> Any:
    """The texts, those that `which` matches in quotes; NULL is nothing at all."""
    needed = pc.match_substring_regex(texts, which).fill_null(False)
    if pc.any(needed).as_py():
        doubled = pc.replace_substring(texts, '"', '""')
        texts = pc.if_else(needed, pc.binary_join_element_wise('"', doubled, '"', ""), texts)
    return texts.fill_null("")


def _double_texts(vector: Vector, other_text: Callable[[float], str] = double_json) -> Any:
    """Arrow's shortest digits are Java's between 0.001 and 10,000,000."""
    data = vector.data
    size = np.abs(data)
    plain: Mask = (size >= 1e-3) & (size < 1e7)
    texts = pa.array(np.where(plain, data, 0.0)).cast(pa.string())
    whole = mask_of(pc.invert(pc.match_substring(texts, ".")))
    if whole.any():
        texts = pc.if_else(pa.array(whole), pc.binary_join_element_wise(texts, ".0", ""), texts)
    other = ~plain
    if other.any():
        made = pa.array([other_text(value) for value in data[other].tolist()], pa.string())
        texts = pc.replace_with_mask(texts, pa.array(other), made)
    return _masked(texts, vector)


def _decimal_texts(vector: Vector, text: Callable[[Number], str]) -> Any:
    values: list[Any] = vector.to_list()
    return pa.array([None if value is None else text(value) for value in values], pa.string())


def _string_texts(vector: Vector) -> Any:
    texts = vector.data
    quoted = pc.binary_join_element_wise('"', texts, '"', "")
    if _has_escaped(texts):
        escaped = pc.match_substring_regex(texts, _ESCAPED)
        mask = mask_of(escaped.fill_null(False))
        odd = texts.filter(pa.array(mask)).to_pylist()
        quoted = pc.replace_with_mask(
            quoted, pa.array(mask), pa.array(list(map(json_string, odd)), pa.string())
        )
    return quoted


def _masked(texts: Any, vector: Vector) -> Any:
    if vector.valid is None:
        return texts
    return pc.if_else(pa.array(vector.valid), texts, pa.scalar(None, pa.string()))


_TEXTS: Final[dict[BaseType, Callable[[Vector], Any]]] = {
    BaseType.BOOLEAN: truth_texts,
    BaseType.DOUBLE: _double_texts,
    BaseType.STRING: _string_texts,
    BaseType.DECIMAL: lambda vector: _decimal_texts(vector, decimal_json),
    **dict.fromkeys(WHOLE, whole_texts),
}
"""Texts in JSON; NULL for NULL."""
_PLAIN_TEXTS: Final[dict[BaseType, Callable[[Vector], Any]]] = {
    BaseType.DOUBLE: lambda vector: _double_texts(vector, double_text),
    BaseType.STRING: lambda vector: vector.data,
    BaseType.DECIMAL: lambda vector: _decimal_texts(vector, plain_text),
}
"""Of these types texts without JSON's quotes and names of numbers."""


# -- writes vectors with a format's own serializer, one row after the other: for formats and
# types that no other writer of columns has. The steps before still run as columns


class RowByRowWriter(CheckedWriter):
    """Writes each row in `doubt`, and leaves those that do not fit to the row writer, which notes
    what is wrong."""

    def __init__(self, format_name: str, part: RecordPart) -> None:
        self._format_name, self._part = format_name, part
        self._serialize: Serializer | None = None
        self._has_written = False
        self._made: tuple[Sequence[Vector], Any] | None = None
        """What `doubt` has written, and of which vectors."""

    def doubt(self, vectors: Sequence[Vector]) -> Mask | None:
        written, odd = self._written(vectors)
        self._made = list(vectors), written
        return odd

    def __call__(self, vectors: Sequence[Vector]) -> Any:
        made, self._made = self._made, None
        if made is not None and all(map(_is_same, made[0], vectors)):
            return made[1]
        written, odd = self._written(vectors)
        assert odd is None, "rows that doubt left"
        return written

    def _written(self, vectors: Sequence[Vector]) -> tuple[Any, Mask | None]:
        """The rows' bytes, and which rows could not be written."""
        if self._serialize is None:
            # Not before there are rows: a plan is explained without a registry.
            self._serialize = format_named(self._format_name).serializer(self._part)
        serialize = self._serialize
        size = len(vectors[0])
        made: list[bytes | None] = [None] * size
        odd: Mask | None = None
        for place, row in enumerate(zip(*(vector.to_list() for vector in vectors), strict=True)):
            try:
                made[place] = serialize(list(row))
            except FormatError as error:
                odd = np.zeros(size, np.bool_) if odd is None else odd
                odd[place] = True
                if error.retriable or not self._has_written:
                    # The registry may have refused the schema, or not have answered: the row writer
                    # asks again.
                    odd[place:] = True
                    break
            else:
                self._has_written = self._has_written or made[place] is not None
        return pa.array(made, pa.binary()), odd


def _is_same(one: Vector, other: Vector) -> bool:
    return one is other
