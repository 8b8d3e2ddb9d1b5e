"""Writes vectors as AVRO: each field of all records as an array of pieces, which are then joined.

The schema is registered before the first rows are written. As long as that fails, and where a value
may not fit its field, the row writer writes, or says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.java.numbers import INT_MAX, INT_MIN, fit_decimal, to_byte_array, unscaled
from barnabas.schemas.data.schema import Schema
from barnabas.schemas.errors import FormatError
from barnabas.schemas.wire_format import prefix_of
from barnabas.sql.columns.vectors import WHOLE, CheckedWriter, Indexes, Mask, Numbers, Vector
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.avro import field_writer, written_schema
from barnabas.sql.formats.connect_schema import decimal_type, is_decimal
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.formats.registry_wire import SCHEMA_ID, WRITE_ERRORS
from barnabas.sql.types import BaseType, Decimal, SqlType, Value

_NUMBER_BYTES_MAX: Final = 10
_IN_INT: Final = (BaseType.INTEGER, BaseType.DATE, BaseType.TIME)
"""Types that Avro has as `int`."""

_Field = Callable[[Vector], list[Any]]
"""Arrays of a field's bytes, one behind the other."""
_Pieces = Callable[[Vector, int | None], list[Any]]
"""The same with the number of the branch for values in a union with null, as Avro writes it; None:
there is no union."""


class AvroWriter(CheckedWriter):
    """Writes rows of a part's columns."""

    def __init__(self, part: RecordPart) -> None:
        self._part = part
        self._prefix: bytes | None = None
        self._fields: list[tuple[int, _Field]] = []
        """Of each field of the schema its column, and how it is written."""

    def doubt(self, vectors: Sequence[Vector]) -> Mask | None:
        valid = vectors[0].valid
        if self._part.is_bare and valid is not None and not valid.any():
            return None
        if not self._is_ready():
            return np.ones(len(vectors[0]), np.bool_)
        doubt: Mask | None = None
        for vector in vectors:
            data = vector.data
            if vector.type.base in _IN_INT and (data.min() < INT_MIN or data.max() > INT_MAX):
                odd = (data < INT_MIN) | (data > INT_MAX)
                doubt = odd if doubt is None else doubt | odd
        for place, field in self._fields:
            odd_values = field.doubt(vectors[place]) if isinstance(field, _OneByOne) else None
            if odd_values is not None:
                doubt = odd_values if doubt is None else doubt | odd_values
        return doubt

    def _is_ready(self) -> bool:
        """Return whether the schema is registered, and all its fields can be written."""
        if self._prefix is None:
            try:
                schema_id, connect, avro = written_schema(self._part)
            except (FormatError, AnalysisError):
                return False
            fields = _fields(self._part, connect, avro)
            if fields is None:
                return False
            self._prefix, self._fields = prefix_of(schema_id), fields
        return True

    def __call__(self, vectors: Sequence[Vector]) -> Any:
        if self._prefix is None:  # there was nothing but NULLs
            return pa.nulls(len(vectors[0]), pa.binary())
        pieces: list[Any] = [pa.scalar(self._prefix, pa.binary())]
        for place, field in self._fields:
            pieces += field(vectors[place])
        whole = pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.binary()))
        if self._part.is_bare and vectors[0].valid is not None:
            return pc.if_else(pa.array(vectors[0].valid), whole, pa.scalar(None, pa.binary()))
        return whole


def avro_writer(part: RecordPart) -> AvroWriter | None:
    """Return what writes a part in AVRO; None if only the row writer can."""
    # A schema of others may lack columns, or have more fields.
    return None if SCHEMA_ID in part.properties else AvroWriter(part)


def _fields(part: RecordPart, connect: Schema, avro: Any) -> list[tuple[int, _Field]] | None:
    """None if the schema is not as expected: a field for each column, in any order."""
    if part.is_bare:
        field = _field(part.columns[0].type, connect, avro, is_bare=True)
        return None if field is None else [(0, field)]
    places = {column.name: place for place, column in enumerate(part.columns)}
    if not isinstance(avro, Mapping) or {f["name"] for f in avro["fields"]} != places.keys():
        return None
    made = []
    for given, schema in zip(avro["fields"], connect.fields, strict=True):
        place = places[given["name"]]
        field = _field(part.columns[place].type, schema.schema, given["type"], is_bare=False)
        if field is None:
            return None
        made.append((place, field))
    return made


def _field(sql_type: SqlType, connect: Schema, avro: Any, *, is_bare: bool) -> _Field | None:
    pieces = _PIECES.get(sql_type.base)
    if pieces is None:
        try:
            return _OneByOne(field_writer(sql_type, connect, avro), is_bare=is_bare)
        except (FormatError, ValueError):
            return None
    branch = None
    if isinstance(avro, list):
        if len(avro) != 2 or avro[0] != "null":
            return None
        avro, branch = avro[1], 1
    if avro != _KINDS.get(sql_type.base, avro):
        return None
    if is_decimal(connect) != (sql_type.base is BaseType.DECIMAL):
        return None
    if is_decimal(connect) and decimal_type(connect) != sql_type:
        return None
    return lambda vector: pieces(vector, branch)


_KINDS: Final = {
    BaseType.BOOLEAN: "boolean",
    BaseType.BIGINT: "long",
    BaseType.TIMESTAMP: "long",
    BaseType.DOUBLE: "double",
    BaseType.STRING: "string",
    BaseType.BYTES: "bytes",
    BaseType.DECIMAL: "bytes",
    **dict.fromkeys(_IN_INT, "int"),
}


class _OneByOne:
    """A field of values that the codec writes one by one, after `doubt` was asked of them."""

    def __init__(self, write: Callable[[Value], bytes], *, is_bare: bool) -> None:
        self._write, self._is_bare = write, is_bare
        self._made: tuple[Vector, Any] | None = None
        """What `doubt` has written, and of which vector."""

    def doubt(self, vector: Vector) -> Mask | None:
        """Return which values have no bytes; None if all have."""
        data, odd = self._written(vector)
        self._made = vector, data
        return odd

    def __call__(self, vector: Vector) -> list[Any]:
        made, self._made = self._made, None
        if made is not None and made[0] is vector:
            return [made[1]]
        data, odd = self._written(vector)
        assert odd is None, "rows that doubt left"
        return [data]

    def _written(self, vector: Vector) -> tuple[Any, Mask | None]:
        values = vector.to_list()
        made: list[bytes] = []
        odd: Mask | None = None
        for place, value in enumerate(values):
            if value is None and self._is_bare:
                made.append(b"")  # a bare NULL is nothing at all
                continue
            try:
                made.append(self._write(value))
            except (FormatError, *WRITE_ERRORS):
                made.append(b"")
                odd = np.zeros(len(values), np.bool_) if odd is None else odd
                odd[place] = True
        return pa.array(made, pa.binary()), odd


# --- pieces ----------------------------------------------------------------------------------


def _numbers(numbers: Indexes, valid: Mask | None, branch: int | None) -> Any:
    """Whole numbers: seven bits in a byte, the sign in the last bit; the branch before them."""
    coded = (numbers << 1 ^ numbers >> 63).view(np.uint64)
    size, lead = len(coded), 0 if branch is None else 1
    widths = np.full(size, 1 + lead, np.int64)
    largest = int(coded.max()) if size else 0
    for more in range(1, _NUMBER_BYTES_MAX):
        if largest >> 7 * more == 0:
            break
        widths += coded >= np.uint64(1 << 7 * more)
    if valid is not None and lead:
        widths = np.where(valid, widths, 1)
    offsets = np.zeros(size + 1, np.int64)
    np.cumsum(widths, out=offsets[1:])
    data = np.empty(int(offsets[-1]), np.uint8)
    if branch is not None:
        data[offsets[:-1]] = 2 * branch if valid is None else np.where(valid, 2 * branch, 0)
    starts, left = offsets[:-1] + lead, widths - lead
    if (valid is not None and lead) or int(widths.max(initial=0)) > lead + 1:
        there = np.flatnonzero(left)
        coded, starts, left = coded[there], starts[there], left[there]
    while len(coded):
        ends = left == 1
        byte = (coded & np.uint64(0x7F)).astype(np.uint8)
        if ends.all():
            data[starts] = byte
            break
        data[starts] = byte | np.where(ends, 0, 0x80).astype(np.uint8)
        going = ~ends
        coded, starts, left = coded[going] >> np.uint64(7), starts[going] + 1, left[going] - 1
    return _array(offsets, data)


def _array(offsets: Numbers, data: Numbers) -> Any:
    return pa.BinaryArray.from_buffers(
        pa.binary(),
        len(offsets) - 1,
        [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)],
    )


def _wholes(vector: Vector, branch: int | None) -> list[Any]:
    return [_numbers(vector.data, vector.valid, branch)]


def _fixed(rows: Numbers, valid: Mask | None, branch: int | None) -> Any:
    """Rows of as many bytes each; the branch before them."""
    size, width = rows.shape
    if branch is not None:
        lead = np.full((size, 1), 2 * branch, np.uint8)
        if valid is not None:
            lead[~valid] = 0
        rows = np.concatenate([lead, rows], axis=1)
        width += 1
        if valid is not None:
            offsets = np.zeros(size + 1, np.int64)
            np.cumsum(np.where(valid, width, 1), out=offsets[1:])
            kept = np.ones(rows.shape, np.bool_)
            kept[~valid, 1:] = False
            return _array(offsets, rows[kept])
    return _array(np.arange(size + 1, dtype=np.int64) * width, np.ascontiguousarray(rows).ravel())


def _doubles(vector: Vector, branch: int | None) -> list[Any]:
    rows = np.ascontiguousarray(vector.data, "<f8").view(np.uint8).reshape(len(vector), 8)
    return [_fixed(rows, vector.valid, branch)]


def _booleans(vector: Vector, branch: int | None) -> list[Any]:
    rows = vector.data.astype(np.uint8).reshape(len(vector), 1)
    return [_fixed(rows, vector.valid, branch)]


def _texts(vector: Vector, branch: int | None) -> list[Any]:
    return _with_lengths(vector.data.cast(pa.binary()), vector.valid, branch)


def _bytes(vector: Vector, branch: int | None) -> list[Any]:
    return _with_lengths(pa.array(vector.to_list(), pa.binary()), vector.valid, branch)


def _decimals(vector: Vector, branch: int | None) -> list[Any]:
    assert isinstance(vector.type, Decimal)
    precision, scale = vector.type.precision, vector.type.scale
    values: list[Any] = vector.to_list()
    made = [
        None if value is None else to_byte_array(unscaled(fit_decimal(value, precision, scale)))
        for value in values
    ]
    return _with_lengths(pa.array(made, pa.binary()), vector.valid, branch)


def _with_lengths(data: Any, valid: Mask | None, branch: int | None) -> list[Any]:
    lengths = pc.binary_length(data).fill_null(0).to_numpy(zero_copy_only=False)
    filled = data.fill_null(b"") if data.null_count else data
    return [_numbers(lengths.astype(np.int64), valid, branch), filled]


_PIECES: Final[dict[BaseType, _Pieces]] = {
    BaseType.BOOLEAN: _booleans,
    BaseType.DOUBLE: _doubles,
    BaseType.STRING: _texts,
    BaseType.BYTES: _bytes,
    BaseType.DECIMAL: _decimals,
    **dict.fromkeys(WHOLE, _wholes),
}
