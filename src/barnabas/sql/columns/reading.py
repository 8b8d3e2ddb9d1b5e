"""Reads keys and values of a topic's records as vectors.

A reader returns the columns, and the records that it is not certain of: the row reader reads those.
A record is certain if the row reader would give the same values, bit by bit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from barnabas.java.numbers import INT_MAX, INT_MIN, fit_decimal, parse_decimal
from barnabas.java.time.units import DAY_MS
from barnabas.sql.columns.avro_reading import avro_reader
from barnabas.sql.columns.vectors import (
    WHOLE,
    Mask,
    Read,
    Reader,
    Vector,
    concatenated,
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

ONE_BY_ONE: Final = 1_000
"""If one of so few records is not as expected, all are left to the row reader: trying parts of them
would take as long."""
_PIECES: Final = 8
"""Where one record of many is not as expected, so many parts of them are tried on their own."""
_NESTED_MAX: Final = 500
"""Arrow's parser calls itself for each level, and Python's refuses some 1,000."""
_LENIENT: Final = "NaN|Inf|[eE][+-]?[0-9]{9}|[0-9]{300}"
"""Constants that are not JSON, and numbers that Python may not take."""
_PLAIN_NAME: Final = re.compile(r"[A-Z_][A-Z0-9_]*\Z")
_ARROW_TYPES: Final = {
    BaseType.BOOLEAN: pa.bool_(),
    BaseType.DOUBLE: pa.float64(),
    BaseType.STRING: pa.string(),
    **dict.fromkeys(WHOLE, pa.int64()),
}
_DECIMAL_DIGITS_MAX: Final = 38
_HIDDEN_LETTERS: Final = (
    "["
    + "".join(
        chr(code)
        for code in range(128, 0x10000)
        if not 0xD800 <= code < 0xE000 and any("A" <= c <= "Z" for c in chr(code).upper())
    )
    + "]"
)
"""Characters beyond ASCII whose upper case has a letter of ASCII."""


def _arrow_type(sql_type: SqlType) -> Any:
    """Return Arrow's type for values of a SQL type; None if it has no counterpart."""
    if isinstance(sql_type, Decimal):
        fits = sql_type.precision <= _DECIMAL_DIGITS_MAX
        return pa.decimal128(sql_type.precision, sql_type.scale) if fits else None
    return _ARROW_TYPES.get(sql_type.base)


def reader(format_name: str, part: RecordPart) -> Reader | None:
    """Return what reads a format's bytes as vectors; None if only the row reader can."""
    if not part.columns:
        return _read_nothing if format_name in ("KAFKA", "NONE") else None
    if format_name == "KAFKA":
        return _kafka_reader(part.columns)
    if format_name == "JSON" and not part.is_bare:
        return _json_reader(part.columns)
    if format_name == "DELIMITED":
        return _delimited_reader(part)
    if format_name == "AVRO":
        return avro_reader(part)
    return None


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
    if delimiter in '"\r\n' or not all(_arrow_type(c.type) for c in columns):
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
            doubt |= odd | _unsafe_values(vector)
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
    vector = of_arrow(sql_type, texts.cast(_ARROW_TYPES[base]))
    if base is BaseType.DATE:
        odd |= (vector.data < INT_MIN) | (vector.data > INT_MAX)
    return vector, odd


# --- JSON ------------------------------------------------------------------------------------


def _json_reader(columns: Sequence[Column]) -> Reader | None:
    if not all(_arrow_type(c.type) and _PLAIN_NAME.match(c.name) for c in columns):
        return None
    if len({column.name for column in columns}) != len(columns):
        return None
    return _JsonReader(columns).read


class _JsonReader:
    """Reads objects with Arrow's JSON parser.

    The records are joined by line ends. Each begins with `{` and ends with `}`: so what one record
    lacks can never be in the next (no value may follow another one, nor a text go over a line), and
    as many rows as records mean that each record is one row.

    Arrow knows members by one spelling, that of the first record with which the name is found.
    A column that Arrow finds is certain if no other spelling is in the record.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = tuple(columns)
        self._members = tuple(column.name for column in columns)
        """The names by which members were found last."""

    def read(self, data: Any) -> Read:
        size = len(data)
        texts, doubt = texts_of(data)
        is_row = mask_of(data.is_valid())
        framed = mask_of(
            pc.and_(
                pc.starts_with(texts, "{").fill_null(False),
                pc.ends_with(texts, "}").fill_null(False),
            )
        )
        framed &= ~_too_deep(texts, framed)
        doubt |= is_row & ~framed
        if not framed.any():
            nothing = [of_values(column.type, [None] * size) for column in self._columns]
            return Read(nothing, is_row, doubt)
        whole = bool(framed.all())
        places = None if whole else np.flatnonzero(framed)
        kept = texts if places is None else texts.take(pa.array(places))
        self._learn(kept)
        columns, uncertain = self._parse(kept)
        if places is not None:
            back = np.full(size, len(kept), np.int64)
            back[places] = np.arange(len(kept))
            columns = [_with_null(column).take(back) for column in columns]
            doubt[places[uncertain]] = True
        else:
            doubt |= uncertain
        return Read(columns, is_row, doubt)

    def _learn(self, texts: Any) -> None:
        """Take the spelling of members from the first record."""
        try:
            found = json.loads(texts[0].as_py())
        except (ValueError, RecursionError):
            return
        if type(found) is dict:
            upper = {member.upper(): member for member in found}
            self._members = tuple(
                column.name if column.name in found else upper.get(column.name, member)
                for column, member in zip(self._columns, self._members, strict=True)
            )

    def _parse(self, texts: Any) -> tuple[list[Vector], Mask]:
        """The columns, and which records are not certain."""
        size = len(texts)
        lines = _lines(texts)
        try:
            table = self._table(lines)
        except pa.ArrowInvalid:
            table = None
        if table is not None and table.num_rows == size:
            columns, doubt = self._checked(texts, table)
            return columns, doubt | _not_json(texts, lines)
        if size <= ONE_BY_ONE:
            nothing = [of_values(column.type, [None] * size) for column in self._columns]
            return nothing, np.ones(size, np.bool_)
        step = -(-size // _PIECES)
        pieces = [self._parse(texts[start : start + step]) for start in range(0, size, step)]
        columns = [
            concatenated(parts) for parts in zip(*(piece[0] for piece in pieces), strict=True)
        ]
        return columns, np.concatenate([piece[1] for piece in pieces])

    def _table(self, lines: Any) -> Any:
        schema = pa.schema(
            [
                (member, _arrow_type(column.type))
                for member, column in zip(self._members, self._columns, strict=True)
            ]
        )
        return arrow_json.read_json(
            pa.BufferReader(lines),
            arrow_json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )

    def _checked(self, texts: Any, table: Any) -> tuple[list[Vector], Mask]:
        columns = []
        doubt = np.zeros(len(texts), np.bool_)
        spellings = _Spellings(texts)
        for place, (column, member) in enumerate(zip(self._columns, self._members, strict=True)):
            vector = of_arrow(column.type, table.column(place))
            doubt |= _unsafe_values(vector)
            doubt |= spellings.doubt(column.name, member, vector)
            if column.type.base is BaseType.DECIMAL:
                # Arrow and the row reader take other texts for numbers.
                text = f'"{member}"[ \\t\\r]*:[ \\t\\r]*"'
                doubt |= mask_of(pc.match_substring_regex(texts, text))
            columns.append(vector)
        return columns, doubt


def _lines(texts: Any) -> Any:
    """A buffer with each text and a line end."""
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    # Joining within one list takes a fifth of what joining row by row does.
    return pc.binary_join_element_wise(pc.binary_join(whole, "\n"), "", "\n").buffers()[2]


def _not_json(texts: Any, lines: Any) -> Mask:
    """Records with a member, of any name, that Arrow's parser may take and the row reader not."""
    ends = pa.py_buffer(np.array([0, len(lines)], np.int32))
    whole = pa.StringArray.from_buffers(1, ends, lines)
    if not pc.any(pc.match_substring_regex(whole, _LENIENT)).as_py():
        return np.zeros(len(texts), np.bool_)
    return mask_of(pc.match_substring_regex(texts, _LENIENT))


def _too_deep(texts: Any, framed: Mask) -> Mask:
    lengths = pc.binary_length(texts).fill_null(0).to_numpy(zero_copy_only=False)
    deep: Mask = framed & (lengths > _NESTED_MAX)
    places = np.flatnonzero(deep)
    if len(places):
        long = texts.take(pa.array(places))
        levels = pc.add(pc.count_substring(long, "["), pc.count_substring(long, "{"))
        deep[places] = levels.to_numpy(zero_copy_only=False) > _NESTED_MAX
    return deep


def _unsafe_values(vector: Vector) -> Mask:
    """Where a value may be another one for the row reader: it cuts whole numbers to 32 bits, reads
    -0 as 0 and refuses times outside of the day."""
    data = vector.data
    base = vector.type.base
    unsafe: Mask = np.zeros(len(data), np.bool_)
    if base is BaseType.INTEGER:
        unsafe = (data < INT_MIN) | (data > INT_MAX)
    elif base is BaseType.TIME:
        unsafe = (data < 0) | (data > DAY_MS)
    elif base is BaseType.DOUBLE:
        unsafe = ~np.isfinite(data) | ((data == 0) & np.signbit(data))
    return unsafe


class _Spellings:
    """Tells whether records may have a member by another spelling than the one that was read."""

    def __init__(self, texts: Any) -> None:
        self._texts = texts
        self._lower: Any = None
        self._odd: Mask | None = None

    def doubt(self, name: str, member: str, vector: Vector) -> Mask:
        """Return where the row reader may take another member for the column `name`."""
        size = len(vector)
        if name == member and vector.valid is None:
            return np.zeros(size, np.bool_)  # the exact name counts, other members do not matter
        if name == member:
            places = np.flatnonzero(vector.nulls())
            found = np.zeros(size, np.bool_)
            found[places] = self._of(member, places, np.ones(len(places), np.bool_))
            return found
        places = np.arange(size, dtype=np.int64)
        return self._of(member, places, vector.nulls())

    def _of(self, member: str, places: Any, is_null: Mask) -> Mask:
        """Certain: the name is nowhere; or once, and that is the member itself."""
        if self._lower is None:
            self._lower = pc.ascii_lower(self._texts)
        texts, lower = self._texts, self._lower
        if len(places) < len(texts):
            taken = pa.array(places)
            texts, lower = texts.take(taken), lower.take(taken)
        quoted = f'"{member}"'
        count = pc.count_substring(lower, quoted.lower()).to_numpy(zero_copy_only=False)
        certain = (count == 0) | ((count == 1) & ~is_null)
        once = (count == 1) & is_null
        if once.any():
            # A null: the member itself, not a text or a member that is spelled differently.
            is_null_member = pc.match_substring(texts, quoted + ":null")
            certain |= once & mask_of(is_null_member)
        doubt: Mask = ~certain | self._odd_records()[places]
        return doubt

    def _odd_records(self) -> Mask:
        """Records whose names may be written by escapes, or with letters that hide in others."""
        if self._odd is None:
            texts = self._texts
            self._odd = mask_of(pc.match_substring(texts, "\\"))
            if not pc.all(pc.string_is_ascii(texts)).as_py():
                self._odd = self._odd | mask_of(pc.match_substring_regex(texts, _HIDDEN_LETTERS))
        return self._odd


def _with_null(vector: Vector) -> Vector:
    """The vector with a NULL behind its values."""
    null: SqlType = vector.type
    return concatenated([vector, of_values(null, [None])])
