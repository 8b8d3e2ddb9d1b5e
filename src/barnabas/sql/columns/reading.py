"""Reads keys and values of a topic's records as vectors.

A reader returns the columns, and the records that it is not certain of: the row reader reads those.
A record is certain if the row reader would give the same values, bit by bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.java.numbers import INT_MAX, INT_MIN, fit_decimal, parse_decimal
from barnabas.sql.columns.avro_reading import avro_reader
from barnabas.sql.columns.json_reading import flat_type, json_reader, unsafe_values
from barnabas.sql.columns.json_sr_reading import json_sr_reader
from barnabas.sql.columns.protobuf.reading import protobuf_nosr_reader, protobuf_reader
from barnabas.sql.columns.vectors import (
    Mask,
    Read,
    Reader,
    Vector,
    arrow_type,
    mask_of,
    of_arrow,
    of_values,
    text_vector,
    texts_of,
)
from barnabas.sql.formats.delimited import DELIMITER, parse_delimiter
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.schema import Column
from barnabas.sql.types import BaseType, Decimal, SqlType


def reader(format_name: str, part: RecordPart) -> Reader:
    """Return what reads a format's bytes as vectors: all records are in doubt if only the row
    reader reads the format, or columns of these types."""
    made = _made_reader(format_name, part)
    return made or partial(_read_by_rows, [column.type for column in part.columns])


def _made_reader(format_name: str, part: RecordPart) -> Reader | None:
    if not part.columns:
        return _read_nothing if format_name in ("KAFKA", "NONE") else None
    if format_name == "KAFKA":
        return _kafka_reader(part.columns)
    if format_name == "JSON" and not part.is_bare:
        return json_reader(part.columns)
    if format_name == "DELIMITED":
        return _delimited_reader(part)
    if format_name == "AVRO":
        return avro_reader(part)
    if format_name == "JSON_SR":
        return json_sr_reader(part)
    if format_name == "PROTOBUF":
        return protobuf_reader(part)
    if format_name == "PROTOBUF_NOSR":
        return protobuf_nosr_reader(part)
    return None


def _read_by_rows(types: Sequence[SqlType], data: Any) -> Read:
    """Leave all records to the row reader."""
    size = len(data)
    is_row = mask_of(data.is_valid())
    return Read([of_values(one, [None] * size) for one in types], is_row, np.ones(size, np.bool_))


def _read_nothing(data: Any) -> Read:
    return Read([], np.zeros(len(data), np.bool_), np.zeros(len(data), np.bool_))


# --- KAFKA -----------------------------------------------------------------------------------

_FIXED: Final = {BaseType.INTEGER: ">i4", BaseType.BIGINT: ">i8", BaseType.DOUBLE: ">f8"}


def _kafka_reader(columns: Sequence[Column]) -> Reader | None:
    (column,) = columns
    base = column.type.base
    if base is BaseType.STRING:

        def read_text(data: Any) -> Read:
            texts, bad = texts_of(data)
            is_row = mask_of(data.is_valid())
            return Read([text_vector(column.type, texts)], is_row, bad)

        return read_text
    kind = _FIXED.get(base)
    if kind is None:
        return None
    width = np.dtype(kind).itemsize

    def read_number(data: Any) -> Read:
        is_row = mask_of(data.is_valid())
        lengths = pc.binary_length(data).fill_null(width).to_numpy(zero_copy_only=False)
        doubt = lengths != width
        filled = pc.if_else(pa.array(is_row & ~doubt), data, pa.scalar(bytes(width), pa.binary()))
        numbers = np.frombuffer(b"".join(filled.to_pylist()), kind)
        native = numbers.astype(np.float64 if base is BaseType.DOUBLE else np.int64)
        return Read([Vector(column.type, native, None if is_row.all() else is_row)], is_row, doubt)

    return read_number


# --- DELIMITED -------------------------------------------------------------------------------

_QUOTES: Final = '["\\r\\n]'
_WHOLE_TEXT: Final = "^-?[0-9]{1,18}$"
_DOUBLE_TEXT: Final = "^-?[0-9]{1,300}([.][0-9]{1,300})?$"


def _delimited_reader(part: RecordPart) -> Reader | None:
    """Reads lines without quotes, with as many values as columns."""
    delimiter = parse_delimiter(part.properties.get(DELIMITER, ","))
    columns, width = part.columns, len(part.columns)
    if delimiter in '"\r\n' or not all(
        isinstance(c.type, Decimal) or flat_type(c.type) for c in columns
    ):
        return None

    def read(data: Any) -> Read:
        size = len(data)
        texts, doubt = texts_of(data)
        is_row = mask_of(data.is_valid())
        lengths = pc.binary_length(texts).fill_null(0).to_numpy(zero_copy_only=False)
        quotes = pc.match_substring_regex(texts, _QUOTES).fill_null(False)
        values = pc.split_pattern(texts, delimiter)
        counts = pc.list_value_length(values).fill_null(0).to_numpy(zero_copy_only=False)
        certain = (lengths > 0) & (counts == width) & ~mask_of(quotes)
        places = np.flatnonzero(certain)
        if len(places) < size:
            values = values.take(pa.array(places))
        # One value more, NULL, for the records that are not certain.
        flat = pa.concat_arrays([values.flatten(), pa.nulls(1, pa.string())])
        at = np.full(size, -1, np.int64)
        at[places] = np.arange(len(places), dtype=np.int64) * width
        doubt |= is_row & ~certain
        made = []
        for number, column in enumerate(columns):
            taken = np.where(certain, at + number, len(flat) - 1)
            vector, odd = _parsed(column.type, flat.take(pa.array(taken)))
            doubt |= odd | unsafe_values(vector)
            made.append(vector)
        return Read(made, is_row, doubt)

    return read


def _decimals(sql_type: Decimal, texts: Any) -> tuple[Vector, Mask]:
    """Those of texts, and which of them have none that fits."""
    values: list[Any] = texts.to_pylist()
    odd = np.zeros(len(values), np.bool_)
    for at, text in enumerate(values):
        if text is not None:
            try:
                values[at] = fit_decimal(parse_decimal(text), sql_type.precision, sql_type.scale)
            except ValueError:
                values[at] = None
                odd[at] = True
    return of_values(sql_type, values), odd


def _parsed(sql_type: SqlType, texts: Any) -> tuple[Vector, Mask]:
    """The values of texts, where an empty one is NULL, and which of them have another form."""
    base = sql_type.base
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    odd = np.zeros(len(texts), np.bool_)
    if base is BaseType.STRING:
        return text_vector(sql_type, texts), odd
    if isinstance(sql_type, Decimal):
        return _decimals(sql_type, texts)
    if base is BaseType.BOOLEAN:
        return of_arrow(sql_type, pc.equal(pc.ascii_lower(texts), "true")), odd
    form = _DOUBLE_TEXT if base is BaseType.DOUBLE else _WHOLE_TEXT
    odd = ~mask_of(pc.match_substring_regex(texts, form).fill_null(True))
    if odd.any():
        texts = pc.if_else(pa.array(odd), pa.scalar("0"), texts)
    vector = of_arrow(sql_type, texts.cast(arrow_type(sql_type)))
    if base is BaseType.DATE:
        odd |= (vector.data < INT_MIN) | (vector.data > INT_MAX)
    return vector, odd
