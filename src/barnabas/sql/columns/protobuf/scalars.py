"""Numbers, texts and bytes of Protobuf's fields, as vectors of the columns that take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor

from barnabas.java.numbers import INT_MAX, INT_MIN, LONG_MAX, double_text, float_text
from barnabas.schemas.converters.protobuf_writing import KIND
from barnabas.schemas.data.schema import Schema
from barnabas.sql.columns.cursors import Cursors
from barnabas.sql.columns.protobuf.messages import (
    FIXED32,
    FIXED64,
    LENGTH,
    VARINT,
    Take,
    length_of,
    within,
)
from barnabas.sql.columns.schema_groups import NoFormError
from barnabas.sql.columns.vectors import (
    Indexes,
    Numbers,
    Vector,
    nulls_of,
    of_values,
    text_vector,
    texts_of,
    texts_of_doubles,
    texts_of_truths,
    texts_of_wholes,
)
from barnabas.sql.formats.connect_schema import is_decimal
from barnabas.sql.formats.protobuf_data import from_message
from barnabas.sql.types import BIGINT, BOOLEAN, BYTES, DOUBLE, STRING, BaseType, SqlType

_F: Final = FieldDescriptor
_UNSIGNED_MAX: Final = 2**32 - 1
Target = tuple[SqlType, Schema]
"""What takes a field's values: a column or a STRUCT's field, with Connect's schema."""

_Numbers = Callable[[Cursors], Numbers]


def scalar(field: FieldDescriptor, target: Target | None) -> tuple[int, Take, SqlType]:
    """The wire type of a field, what reads it, and the type that it has if no column takes it.

    Raises NoFormError.
    """
    if field.enum_type is not None:
        return VARINT, _symbols(field, target), STRING
    if field.type == _F.TYPE_BOOL:
        to_text = target is not None and target[0].base is BaseType.STRING
        return VARINT, _texts_of_truths if to_text else _truths, BOOLEAN
    if field.type == _F.TYPE_STRING:
        return LENGTH, _texts, STRING
    if field.type == _F.TYPE_BYTES:
        if target is None:
            return LENGTH, _skip_bytes, BOOLEAN
        if is_decimal(target[1]) or target[0].base is not BaseType.BYTES:
            raise NoFormError
        return LENGTH, _bytes, BYTES
    if field.type in (_F.TYPE_FLOAT, _F.TYPE_DOUBLE):
        is_float = field.type == _F.TYPE_FLOAT
        numbers = _fixed("<f4" if is_float else "<f8")
        sql_type = DOUBLE if target is None else target[0]
        return FIXED32 if is_float else FIXED64, _doubles(numbers, sql_type, is_float), DOUBLE
    kind, numbers = _WHOLES[field.type]
    if field.type == _F.TYPE_UINT64 and target is not None and KIND not in target[1].parameters:
        numbers = _varint(0, LONG_MAX)  # of a wrapper: the row reader leaves them as they are
    return kind, _wholes(numbers, BIGINT if target is None else target[0]), BIGINT


def _varint(low: int | None = None, high: int | None = None) -> _Numbers:
    """Numbers of 64 bits, in doubt beyond the bounds."""

    def numbers(cursors: Cursors) -> Numbers:
        found: Numbers = cursors.varint(None).view(np.int64)
        if low is not None and high is not None:
            cursors.odd |= (found < low) | (found > high)
        return found

    return numbers


def _zigzag(high: int | None = None) -> _Numbers:
    def numbers(cursors: Cursors) -> Numbers:
        found = cursors.number(None)
        if high is not None:
            cursors.odd |= (found < -high - 1) | (found > high)
        return found

    return numbers


def _fixed(dtype: str) -> _Numbers:
    """Numbers of a width, as those of 64 bits."""
    wide = np.float64 if dtype[1] == "f" else np.int64

    def numbers(cursors: Cursors) -> Numbers:
        rows = np.ascontiguousarray(cursors.fixed(int(dtype[2]), None))
        with np.errstate(invalid="ignore"):
            found: Numbers = rows.view(dtype).reshape(len(cursors)).astype(wide)
        return found

    return numbers


_WHOLES: Final[dict[int, tuple[int, _Numbers]]] = {
    _F.TYPE_INT32: (VARINT, _varint(INT_MIN, INT_MAX)),
    _F.TYPE_INT64: (VARINT, _varint()),
    _F.TYPE_UINT32: (VARINT, _varint(0, _UNSIGNED_MAX)),
    _F.TYPE_UINT64: (VARINT, _varint()),
    _F.TYPE_SINT32: (VARINT, _zigzag(INT_MAX)),
    _F.TYPE_SINT64: (VARINT, _zigzag()),
    _F.TYPE_FIXED32: (FIXED32, _fixed("<u4")),
    _F.TYPE_SFIXED32: (FIXED32, _fixed("<i4")),
    _F.TYPE_FIXED64: (FIXED64, _fixed("<u8")),
    _F.TYPE_SFIXED64: (FIXED64, _fixed("<i8")),
}


def _wholes(numbers: _Numbers, sql_type: SqlType) -> Take:
    return lambda cursors: whole_vector(sql_type, numbers(cursors))


def whole_vector(sql_type: SqlType, numbers: Indexes) -> Vector:
    """Whole numbers as a column's type takes them."""
    if sql_type.base is BaseType.STRING:
        return texts_of_wholes(numbers, None)
    return Vector(sql_type, numbers)


def _doubles(numbers: _Numbers, sql_type: SqlType, is_float: bool) -> Take:
    if sql_type.base is BaseType.STRING:
        text = float_text if is_float else double_text
        return lambda cursors: texts_of_doubles(numbers(cursors), None, text)
    return lambda cursors: Vector(sql_type, numbers(cursors))


_BIT: Final = _varint(0, 1)


def _truths(cursors: Cursors) -> Vector:
    return Vector(BOOLEAN, _BIT(cursors) == 1)


def _texts_of_truths(cursors: Cursors) -> Vector:
    return texts_of_truths(_BIT(cursors) == 1, None)


def _texts(cursors: Cursors) -> Vector:
    texts, bad = texts_of(cursors.pieces(length_of(cursors), None))
    cursors.odd |= bad
    return text_vector(STRING, texts)


def _bytes(cursors: Cursors) -> Vector:
    return of_values(BYTES, cursors.pieces(length_of(cursors), None).to_pylist())


def _skip_bytes(cursors: Cursors) -> Vector:
    cursors.forward(length_of(cursors), None)
    return Vector(BOOLEAN, np.zeros(len(cursors), np.bool_))


def _symbols(field: FieldDescriptor, target: Target | None) -> Take:
    """Numbers of an enum; those that a closed one has not are unknown fields to the codec."""
    enum = field.enum_type
    assert enum is not None
    known = np.array([value.number for value in enum.values], np.int64) if enum.is_closed else None
    numbers_of = _varint(INT_MIN, INT_MAX)
    name = None if target is None else from_message(target[1])

    def take(cursors: Cursors) -> Vector:
        numbers = numbers_of(cursors)
        if known is not None:
            cursors.odd |= ~np.isin(numbers, known)
        if name is None:
            return Vector(BOOLEAN, np.zeros(len(numbers), np.bool_))
        distinct, places = np.unique(numbers, return_inverse=True)
        names = pa.array([name(number) for number in distinct.tolist()], pa.string())
        return text_vector(STRING, names.take(pa.array(places)))

    return take


def packed(kind: int, take: Take) -> Callable[[Cursors], tuple[Indexes, Vector]]:
    """Return what reads lists without tags, and the place of the message of each value."""
    width = {FIXED32: 4, FIXED64: 8}.get(kind)

    def read(cursors: Cursors) -> tuple[Indexes, Vector]:
        lengths = length_of(cursors)
        inner = within(cursors, lengths)
        if width is not None:
            odd = lengths % width != 0
            cursors.odd |= odd
            counts = np.where(odd, 0, lengths // width)
            rows = np.repeat(np.arange(len(cursors), dtype=np.int64), counts)
            begins = inner.at[rows] + width * _ordinals(counts)
            ends = begins + width
        else:
            last = inner.payloads[np.maximum(inner.ends - 1, 0)]
            odd = (lengths > 0) & (last > 0x7F)
            cursors.odd |= odd
            lengths = np.where(odd, 0, lengths)
            rows = np.repeat(np.arange(len(cursors), dtype=np.int64), lengths)
            places = inner.at[rows] + _ordinals(lengths)
            is_end = inner.payloads[places] < 0x80
            is_begin = np.ones(len(places), np.bool_)
            is_begin[1:] = is_end[:-1]
            rows = rows[is_end]
            begins, ends = places[is_begin], places[is_end] + 1
        each = Cursors(cursors.payloads, begins, ends)
        values = take(each)
        cursors.odd[rows[each.odd]] = True
        return rows, values

    return read


def _ordinals(counts: Indexes) -> Indexes:
    """0, 1, … for each of so many."""
    befores = np.cumsum(counts) - counts
    return np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(befores, counts)


def default_of(field: FieldDescriptor, target: Target | None, natural: SqlType) -> Vector:
    """The value of a field that is missing."""
    value = field.default_value
    sql_type = natural if target is None else target[0]
    if target is None:
        return nulls_of(sql_type, 1)
    if field.enum_type is not None:
        name = from_message(target[1])
        assert name is not None
        value = name(value)
    elif sql_type.base is BaseType.STRING and not isinstance(value, str):
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, float):
            value = float_text(value) if field.type == _F.TYPE_FLOAT else double_text(value)
        else:
            value = str(value)
    return of_values(sql_type, [value])
