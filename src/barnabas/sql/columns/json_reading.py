"""Reads JSON objects as vectors: most columns with Arrow's parser, the others record by record.

    ARRAY, MAP, BYTES and structs of those   by the row reader's own functions, one by one
    all others                               at once; what Arrow may read otherwise is in doubt

A record is certain if the row reader would give the same values, bit by bit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from barnabas.java.numbers import INT_MAX, INT_MIN, scaled
from barnabas.java.time.units import DAY_MS
from barnabas.sql.columns.vectors import (
    Indexes,
    Mask,
    Read,
    Reader,
    ReadRow,
    Vector,
    arrow_type,
    concatenated,
    mask_of,
    of_arrow,
    of_values,
    read_one_by_one,
    texts_of,
)
from barnabas.sql.formats.json import parse
from barnabas.sql.formats.json_reading import json_scanner, needs_exact, row_reader
from barnabas.sql.formats.json_reading import reader as value_reader
from barnabas.sql.schema import Column
from barnabas.sql.types import BaseType, Decimal, Field, SqlType, Struct

ONE_BY_ONE: Final = 1_000
"""If one of so few records is not as expected, all are left to the row reader: trying parts of them
would take as long."""
_PIECES: Final = 8
"""Where one record of many is not as expected, so many parts of them are tried on their own."""
_LEARNED_FROM: Final = 10
"""The spelling of members is looked for in so many records of a batch."""
_NESTED_MAX: Final = 500
"""Arrow's parser calls itself for each level, and Python's refuses some 1,000."""
_LENIENT: Final = "NaN|Inf|[eE][+-]?[0-9]{9}|[0-9]{300}"
"""Constants that are not JSON, and numbers that Python may not take."""
_ESCAPED_NAME: Final = r'\\u[0-9A-Fa-f]{4}[^"]*"'
"""The end of a name that may be spelled in plain letters too."""
_PLAIN_NAME: Final = re.compile(r"[A-Z_][A-Z0-9_]*\Z")
_DECIMAL_DIGITS_MAX: Final = 38
_WIDE_DIGITS_MAX: Final = 76
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


def flat_type(sql_type: SqlType) -> Any:
    """Return the type as which Arrow reads values that are not nested; None if it cannot."""
    if isinstance(sql_type, Decimal):
        # Arrow appends zeros up to the scale, and does not look whether the digits still fit.
        if sql_type.precision + sql_type.scale <= _DECIMAL_DIGITS_MAX:
            return pa.decimal128(sql_type.precision, sql_type.scale)
        fits = sql_type.precision + sql_type.scale <= _WIDE_DIGITS_MAX
        return pa.decimal256(sql_type.precision, sql_type.scale) if fits else None
    return None if isinstance(sql_type, Struct) else arrow_type(sql_type)


def unsafe_values(vector: Vector) -> Mask:
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


def json_reader(columns: Sequence[Column]) -> Reader | None:
    """Return what reads objects of these columns; None if only the row reader can."""
    if len({column.name for column in columns}) != len(columns):
        return None
    at_once = [column for column in columns if Member.suits(column.name, column.type)]
    arrow = ArrowReader([Member.of(column.name, column.type) for column in at_once])
    if len(at_once) == len(columns):
        return arrow.read
    others = [column for column in columns if column not in at_once]
    whole = Struct(tuple(Field(column.name, column.type) for column in others))
    readers = [value_reader(column.type) for column in others]
    read_row = row_reader(whole, [column.name for column in others], readers)
    scan = json_scanner(exact=any(needs_exact(column.type) for column in columns))
    return MixedReader(columns, arrow, at_once, lambda value: read_row(parse(value, scan))).read


class MixedReader:
    """Reads the columns `at_once` with Arrow, and the others of each record that is certain then.

    `read_row` gives those of a record.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        arrow: ArrowReader,
        at_once: Sequence[Column],
        read_row: ReadRow,
    ) -> None:
        self._arrow = arrow
        others = [column for column in columns if column not in at_once]
        self._types = [column.type for column in others]
        self._read_row = read_row
        read = [*at_once, *others]
        self._places = [read.index(column) for column in columns]

    def read(self, data: Any) -> Read:
        """Read the columns."""
        columns, is_row, doubt = self._arrow.read(data)
        others = read_one_by_one(self._types, self._read_row, data, is_row & ~doubt, doubt)
        read = [*columns, *others]
        return Read([read[place] for place in self._places], is_row, doubt)


class Member:
    """A member of objects: a column, or a field of a struct.

    Arrow knows members by one spelling: `spelling` is the one that was found last, or the only one
    if the member `is_exact`. `bounds`: those of its whole numbers, which the row reader cuts.
    `needs_value`: the row reader refuses `null`, but not a missing member.
    """

    def __init__(
        self,
        name: str,
        sql_type: SqlType,
        members: Sequence[Member],
        *,
        spelling: str | None = None,
        bounds: tuple[int, int] | None = None,
        needs_value: bool = False,
    ) -> None:
        self.name, self.type = name, sql_type
        self.members = tuple(members)
        self.is_exact = spelling is not None
        self.spelling = spelling or name
        self.bounds, self.needs_value = bounds, needs_value
        self._is_known = self.is_exact

    @classmethod
    def of(cls, name: str, sql_type: SqlType) -> Member:
        """One that may be spelled in any case."""
        fields = sql_type.fields if isinstance(sql_type, Struct) else ()
        return cls(name, sql_type, [cls.of(field.name, field.type) for field in fields])

    @classmethod
    def suits(cls, name: str, sql_type: SqlType) -> bool:
        """Return whether Arrow reads members of that name and type."""
        if not _PLAIN_NAME.match(name):
            return False
        if not isinstance(sql_type, Struct):
            return flat_type(sql_type) is not None
        names = {field.name for field in sql_type.fields}
        if not names or len(names) < len(sql_type.fields):
            return False
        return all(cls.suits(field.name, field.type) for field in sql_type.fields)

    def field(self) -> Any:
        """The member, as Arrow's parser must take it."""
        if not self.members:
            return pa.field(self.spelling, flat_type(self.type))
        return pa.field(self.spelling, pa.struct([member.field() for member in self.members]))

    def learn(self, found: dict[str, Any]) -> int:
        """Take the spelling from an object; return how many are still unknown, it and within."""
        spelling = self.name
        if spelling not in found:
            upper = {name.upper(): name for name in found if name.isascii()}
            spelling = upper.get(self.name, "")
        if spelling:
            self.spelling, self._is_known = spelling, True
        inner = found.get(spelling) if spelling else None
        if not isinstance(inner, dict):
            inner = {}
        return (not self._is_known) + sum(member.learn(inner) for member in self.members)


class _Found:
    """A member as Arrow has read it. `there`: in which records the object around it is."""

    def __init__(self, member: Member, array: Any, there: Mask) -> None:
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        self.member, self.there = member, there
        self.is_found = there
        if array.null_count:
            self.is_found = mask_of(array.is_valid())
        self.fields = [
            _Found(inner, pc.struct_field(array, [place]), self.is_found)
            for place, inner in enumerate(member.members)
        ]
        self._array = array

    def flat(self) -> Iterator[_Found]:
        """It and all members within."""
        yield self
        for field in self.fields:
            yield from field.flat()

    def array(self) -> Any:
        """The values, with the names of fields as SQL has them."""
        if not self.fields:
            return self._array
        made = [field.array() for field in self.fields]
        names = [
            pa.field(field.member.name, values.type)
            for field, values in zip(self.fields, made, strict=True)
        ]
        mask = None if self.is_found.all() else pa.array(~self.is_found)
        return pa.StructArray.from_arrays(made, fields=names, mask=mask)

    def asked(self) -> Mask:
        """In which records the row reader may take a member that is spelled otherwise."""
        if self.member.is_exact:
            return np.zeros(len(self.there), np.bool_)
        if self.member.name == self.member.spelling:
            # The exact name counts, other members do not matter.
            return self.there & ~self.is_found
        return self.there

    def unsafe(self, texts: Any) -> Mask | None:
        """Where the value may be another one for the row reader; None for nowhere."""
        member = self.member
        sql_type = member.type
        unsafe: Mask | None = None
        if sql_type.base is BaseType.DECIMAL:
            # Arrow and the row reader take other texts for numbers, and Arrow's exponents may have
            # more digits than it holds. Escapes may hide the name.
            name = f'("{member.spelling}"|{_ESCAPED_NAME})'
            text = name + r'[ \t\r]*:[ \t\r]*("|-?[0-9.]+[eE])'
            unsafe = mask_of(pc.match_substring_regex(texts, text)) | self._too_large(sql_type)
        elif sql_type.base in (BaseType.INTEGER, BaseType.TIME, BaseType.DOUBLE):
            unsafe = unsafe_values(of_arrow(sql_type, self._array))
        if member.bounds is not None:
            low, high = member.bounds
            numbers = of_arrow(sql_type, self._array).data
            outside = (numbers < low) | (numbers > high)
            unsafe = outside if unsafe is None else unsafe | outside
        if member.needs_value:
            lacking = self.there & ~self.is_found
            if lacking.any():
                lacking &= mask_of(pc.match_substring(texts, "null"))
                unsafe = lacking if unsafe is None else unsafe | lacking
        return unsafe

    def _too_large(self, sql_type: SqlType) -> Mask:
        """Which decimals have more digits before the point than the type."""
        assert isinstance(sql_type, Decimal)
        kept = self._array.type
        wide = pa.decimal128(_DECIMAL_DIGITS_MAX, kept.scale)
        if pa.types.is_decimal256(kept):
            wide = pa.decimal256(_WIDE_DIGITS_MAX, kept.scale)
        most = scaled(10**sql_type.precision - 1, sql_type.scale)
        numbers = self._array.cast(wide)
        above = pc.greater(numbers, pa.scalar(most, wide))
        below = pc.less(numbers, pa.scalar(most.copy_negate(), wide))
        return mask_of(pc.or_(above, below).fill_null(False))


class ArrowReader:
    """Reads objects with Arrow's JSON parser.

    The records are joined by line ends. Each begins with `{` and ends with `}`: so what one record
    lacks can never be in the next (no value may follow another one, nor a text go over a line), and
    as many rows as records mean that each record is one row.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = tuple(members)

    def read(self, data: Any) -> Read:
        """Read the columns."""
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
        if not framed.any() or not self._members:
            return Read(self._nothing(size), is_row, doubt)
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

    def _nothing(self, size: int) -> list[Vector]:
        return [of_values(member.type, [None] * size) for member in self._members]

    def _learn(self, texts: Any) -> None:
        """Take the spelling of members from the first records."""
        if all(member.is_exact for member in self._members):
            return
        for text in texts[:_LEARNED_FROM]:
            try:
                found = json.loads(text.as_py())
            except (ValueError, RecursionError):
                continue
            if type(found) is dict and not sum(member.learn(found) for member in self._members):
                return

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
            return self._nothing(size), np.ones(size, np.bool_)
        step = -(-size // _PIECES)
        pieces = [self._parse(texts[start : start + step]) for start in range(0, size, step)]
        columns = [
            concatenated(parts) for parts in zip(*(piece[0] for piece in pieces), strict=True)
        ]
        return columns, np.concatenate([piece[1] for piece in pieces])

    def _table(self, lines: Any) -> Any:
        schema = pa.schema([member.field() for member in self._members])
        return arrow_json.read_json(
            pa.BufferReader(lines),
            arrow_json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )

    def _checked(self, texts: Any, table: Any) -> tuple[list[Vector], Mask]:
        everywhere = np.ones(len(texts), np.bool_)
        columns = [
            _Found(member, table.column(place), everywhere)
            for place, member in enumerate(self._members)
        ]
        doubt = np.zeros(len(texts), np.bool_)
        by_name: dict[str, list[_Found]] = {}
        for column in columns:
            for found in column.flat():
                by_name.setdefault(found.member.name, []).append(found)
                unsafe = found.unsafe(texts)
                if unsafe is not None:
                    doubt |= unsafe
        spellings = _Spellings(texts)
        for name, members in by_name.items():
            doubt |= spellings.doubt(name, members)
        return [of_arrow(column.member.type, column.array()) for column in columns], doubt


class _Spellings:
    """Tells whether records may have a member by another spelling than the one that was read."""

    def __init__(self, texts: Any) -> None:
        self._texts = texts
        self._lower: Any = None
        self._odd: Mask | None = None

    def doubt(self, name: str, members: Sequence[_Found]) -> Mask:
        """Return where the row reader may take another member for one of these, which have the same
        name: at several depths.

        A record is certain if the name is in it as often as it was found; or else only as `null`.
        """
        asked: Mask = np.logical_or.reduce([member.asked() for member in members])
        places = np.flatnonzero(asked)
        if not len(places):
            return asked
        if self._lower is None:
            self._lower = pc.ascii_lower(self._texts)
        texts, lower = self._texts, self._lower
        if len(places) < len(texts):
            taken = pa.array(places)
            texts, lower = texts.take(taken), lower.take(taken)
        known = sum((member.is_found[places].astype(np.int64) for member in members), start=0)
        left = _count(lower, f'"{name.lower()}"') - known
        spellings = {member.member.spelling for member in members}
        if left.any() and len(spellings) == 1:
            # A null: the member itself, not a text or a member that is spelled differently.
            (spelling,) = spellings
            left -= _count(texts, f'"{spelling}":null') + _count(texts, f'"{spelling}": null')
        asked[places] = (left != 0) | self._odd_records()[places]
        return asked

    def _odd_records(self) -> Mask:
        """Records whose names may be written by escapes, or with letters that hide in others."""
        if self._odd is None:
            texts = self._texts
            self._odd = mask_of(pc.match_substring(texts, "\\"))
            if not pc.all(pc.string_is_ascii(texts)).as_py():
                self._odd = self._odd | mask_of(pc.match_substring_regex(texts, _HIDDEN_LETTERS))
        return self._odd


def _count(texts: Any, text: str) -> Indexes:
    counted: Indexes = pc.count_substring(texts, text).to_numpy(zero_copy_only=False)
    return counted.astype(np.int64)


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


def _with_null(vector: Vector) -> Vector:
    """The vector with a NULL behind its values."""
    return concatenated([vector, of_values(vector.type, [None])])
