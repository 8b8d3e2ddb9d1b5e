"""Vectors: the values of one column for all records of a batch.

    BOOLEAN                               NumPy bool
    INTEGER, BIGINT, DATE, TIME, TIMESTAMP   NumPy int64
    DOUBLE                                NumPy float64
    STRING                                Arrow string
    STRUCT of such types                  Arrow struct, whose fields are as channels have them
    every other type                      NumPy objects: the values as `sql.types` describes them

The content of a NULL's place has no meaning.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.schemas.errors import FormatError
from barnabas.sql.formats.json_reading import MismatchError
from barnabas.sql.formats.registry_wire import READ_ERRORS
from barnabas.sql.runtime.rows_encoding import encode_key
from barnabas.sql.types import BIGINT, BOOLEAN, STRING, BaseType, SqlType, Struct, Value

Mask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
Numbers: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Indexes: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

WHOLE: Final = (
    BaseType.INTEGER,
    BaseType.BIGINT,
    BaseType.DATE,
    BaseType.TIME,
    BaseType.TIMESTAMP,
)
"""Types whose values are whole numbers of at most 64 bits."""
DICT_KEYS: Final = (BaseType.STRING, BaseType.BOOLEAN, *WHOLE)
"""Types of keys that are equal in Python exactly where stores have them equal."""
_DTYPES: Final[dict[BaseType, type]] = {
    BaseType.BOOLEAN: np.bool_,
    BaseType.DOUBLE: np.float64,
    **dict.fromkeys(WHOLE, np.int64),
}
_ARROW_TYPES: Final[dict[BaseType, Any]] = {
    BaseType.BOOLEAN: pa.bool_(),
    BaseType.DOUBLE: pa.float64(),
    BaseType.STRING: pa.string(),
    **dict.fromkeys(WHOLE, pa.int64()),
}

FLAT: Final = tuple(_ARROW_TYPES)
"""Types other than structs whose values arrays hold exactly."""


@lru_cache(maxsize=1024)
def arrow_type(sql_type: SqlType) -> Any:
    """Return Arrow's type that holds the values of a SQL type exactly; None if it has none."""
    if not isinstance(sql_type, Struct):
        return _ARROW_TYPES.get(sql_type.base)
    fields = {field.name: arrow_type(field.type) for field in sql_type.fields}
    if not fields or len(fields) < len(sql_type.fields) or None in fields.values():
        return None
    return pa.struct(list(fields.items()))


class NotExactError(Exception):
    """Values that a vector cannot hold as they are, such as half a character in a text."""


@dataclass(slots=True, frozen=True)
class Vector:
    """`valid`: which values are not NULL; None if none is NULL."""

    type: SqlType
    data: Any
    valid: Mask | None = None

    def __len__(self) -> int:
        return len(self.data)

    @property
    def is_text(self) -> bool:
        return self.type.base is BaseType.STRING

    @property
    def is_arrow(self) -> bool:
        """Return whether the values are in an array of Arrow, which has the NULLs too."""
        return not isinstance(self.data, np.ndarray)

    def take(self, places: Indexes) -> Vector:
        """The values at these places."""
        data = self.data.take(pa.array(places)) if self.is_arrow else self.data[places]
        return Vector(self.type, data, None if self.valid is None else self.valid[places])

    def to_list(self) -> list[Value]:
        """The values as Python has them."""
        values: list[Value] = self.data.to_pylist() if self.is_arrow else self.data.tolist()
        if self.valid is None or self.is_arrow:
            return values
        pairs = zip(values, self.valid.tolist(), strict=True)
        return [value if is_valid else None for value, is_valid in pairs]

    def to_arrow(self, kind: Any = None) -> Any:
        """The values as an array of Arrow, of that type if it is not theirs already."""
        if self.is_arrow:
            return self.data
        return pa.array(self.data, kind, mask=None if self.valid is None else ~self.valid)

    def nulls(self) -> Mask:
        """Return which values are NULL."""
        return np.zeros(len(self), np.bool_) if self.valid is None else ~self.valid

    def field(self, name: str) -> Vector:
        """The values of a field of structs in Arrow; NULL where the struct is."""
        assert isinstance(self.type, Struct)
        place, field = next((n, f) for n, f in enumerate(self.type.fields) if f.name == name)
        return of_arrow(field.type, pc.struct_field(self.data, [place]))


def text_vector(sql_type: SqlType, data: Any) -> Vector:
    """A vector of an Arrow array of strings."""
    return _array_vector(sql_type, data)


def _array_vector(sql_type: SqlType, data: Any) -> Vector:
    if isinstance(data, pa.ChunkedArray):
        data = data.combine_chunks()
    valid = None if data.null_count == 0 else mask_of(data.is_valid())
    return Vector(sql_type, data, valid)


def of_arrow(sql_type: SqlType, data: Any) -> Vector:
    """A vector of an Arrow array of the type's Arrow type, with decimals for DECIMAL."""
    dtype = _DTYPES.get(sql_type.base)
    if dtype is None and arrow_type(sql_type) is not None:
        return _array_vector(sql_type, data)
    if isinstance(data, pa.ChunkedArray):
        data = data.combine_chunks()
    if dtype is None:
        return of_values(sql_type, data.to_pylist())
    valid = None
    if data.null_count:
        valid = mask_of(data.is_valid())
        data = data.fill_null(False if sql_type.base is BaseType.BOOLEAN else 0)
    return Vector(sql_type, data.to_numpy(zero_copy_only=False), valid)


def of_values(sql_type: SqlType, values: Sequence[Value]) -> Vector:
    """A vector of Python's values. Raises NotExactError."""
    dtype = _DTYPES.get(sql_type.base)
    kind = arrow_type(sql_type) if dtype is None else None
    if kind is not None:
        try:
            return _array_vector(sql_type, pa.array(values, kind))
        except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
            raise NotExactError(str(error)) from error
    valid = None
    if any(value is None for value in values):
        valid = np.array([value is not None for value in values], np.bool_)
        if dtype is not None:
            values = [0 if value is None else value for value in values]
    if dtype is None:
        data = np.empty(len(values), object)
        data[:] = values
        return Vector(sql_type, data, valid)
    try:
        return Vector(sql_type, np.array(values, dtype), valid)
    except (OverflowError, ValueError, TypeError) as error:
        raise NotExactError(str(error)) from error


def vector_of(sql_type: SqlType, values: list[Value], doubt: Mask) -> Vector:
    """A vector of values; those that it cannot hold are NULL in it and in `doubt`."""
    try:
        return of_values(sql_type, values)
    except NotExactError:
        for at, value in enumerate(values):
            try:
                of_values(sql_type, [value])
            except NotExactError:
                values[at] = None
                doubt[at] = True
        return of_values(sql_type, values)


def constant(sql_type: SqlType, value: Value, size: int) -> Vector:
    """The same value everywhere. Raises NotExactError."""
    one = of_values(sql_type, [value])
    return one.take(np.zeros(size, np.int64))


def nulls_of(sql_type: SqlType, size: int) -> Vector:
    """NULL everywhere."""
    return constant(sql_type, None, size)


def struct_vector(sql_type: Struct, fields: Sequence[Vector], there: Mask | None) -> Vector:
    """Structs of the values of their fields; NULL beside `there`."""
    kind = arrow_type(sql_type)
    if kind is None:
        names = [field.name for field in sql_type.fields]
        rows = zip(*(vector.to_list() for vector in fields), strict=True)
        made: list[Value] = [dict(zip(names, row, strict=True)) for row in rows]
        if there is not None:
            made = [one if has else None for one, has in zip(made, there.tolist(), strict=True)]
        return of_values(sql_type, made)
    arrays = [vector.to_arrow() for vector in fields]
    mask = None if there is None else pa.array(~there)
    return _array_vector(sql_type, pa.StructArray.from_arrays(arrays, fields=list(kind), mask=mask))


def concatenated(vectors: Sequence[Vector]) -> Vector:
    """Vectors of one type behind each other."""
    if len(vectors) == 1:
        return vectors[0]
    first = vectors[0]
    if first.is_arrow:
        return _array_vector(first.type, pa.concat_arrays([vector.data for vector in vectors]))
    valid = None
    if any(vector.valid is not None for vector in vectors):
        valid = ~np.concatenate([vector.nulls() for vector in vectors])
    return Vector(first.type, np.concatenate([vector.data for vector in vectors]), valid)


def replaced(vector: Vector, places: Indexes, by: Vector) -> Vector:
    """The vector with other values at these places, which ascend."""
    size = len(vector)
    order = np.arange(size, dtype=np.int64)
    order[places] = size + np.arange(len(places), dtype=np.int64)
    return concatenated([vector, by]).take(order)


def bytes_of(texts: Any) -> Any:
    """The bytes of all texts of an Arrow array behind each other, as NumPy's."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return np.empty(0, np.uint8)
    ends = np.frombuffer(offsets, np.int32)[[texts.offset, texts.offset + len(texts)]]
    return np.frombuffer(data, np.uint8)[ends[0] : ends[1]]


def mask_of(array: Any) -> Mask:
    """An Arrow array of booleans without nulls as NumPy's."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    found: Mask = array.to_numpy(zero_copy_only=False).astype(np.bool_, copy=False)
    return found


def both_valid(*vectors: Vector) -> Mask | None:
    """Return where all vectors have values; None if that is everywhere."""
    valid: Mask | None = None
    for vector in vectors:
        if vector.valid is not None:
            valid = vector.valid if valid is None else valid & vector.valid
    return valid


def codes_of(vector: Vector) -> Indexes:
    """Numbers that are equal where values are equal as keys of stores."""
    if vector.is_text:
        indices = pc.dictionary_encode(vector.data).indices.fill_null(0)
        found: Indexes = indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return found
    data, base = vector.data, vector.type.base
    if base not in _DTYPES:
        numbers: dict[bytes, int] = {}
        listed = [
            numbers.setdefault(encode_key((value,)), len(numbers)) for value in vector.to_list()
        ]
        return np.array(listed, np.int64)
    if base is BaseType.DOUBLE:
        # There 0.0 and -0.0 differ, and every NaN is the same.
        data = np.where(np.isnan(data), np.nan, data).view(np.int64)
    _, codes = np.unique(data, return_inverse=True)
    return codes.astype(np.int64)


def combined(one: Indexes, other: Indexes) -> Indexes:
    """A number for each pair."""
    if not len(one):
        return one
    pairs: Indexes = one * (int(other.max()) + 1) + other
    if int(pairs.max()) > 4 * len(pairs) + 1_000:
        _, pairs = np.unique(pairs, return_inverse=True)
    return pairs.astype(np.int64)


def key_codes(keys: Sequence[Vector], size: int) -> Indexes:
    """Numbers of so many keys that are equal where keys of these columns are."""
    codes = np.zeros(size, np.int64)
    for key in keys:
        codes = combined(codes, codes_of(key))
    return codes


# --- what readers of bytes give, and writers of them take ------------------------------------


class Read(NamedTuple):
    """`columns` in the order of the part's; `is_row`: which records have a row at all."""

    columns: list[Vector]
    is_row: Mask
    doubt: Mask


Reader = Callable[[Any], Read]
"""Takes an Arrow array of bytes."""


class CheckedWriter(ABC):
    """Writes rows, after `doubt` was asked of them."""

    @abstractmethod
    def doubt(self, vectors: Sequence[Vector]) -> Mask | None:
        """Return which rows the row writer must write; None for none."""

    @abstractmethod
    def __call__(self, vectors: Sequence[Vector]) -> Any:
        """The bytes of rows; NULL for a bare NULL."""


def texts_of(data: Any) -> tuple[Any, Mask]:
    """Bytes as Arrow strings, and which are not UTF-8: those are NULL."""
    try:
        return data.cast(pa.string()), np.zeros(len(data), np.bool_)
    except pa.ArrowInvalid:
        bad = np.array([not _is_utf8(value) for value in data.to_pylist()], np.bool_)
        kept = pc.if_else(pa.array(bad), pa.scalar(None, pa.binary()), data)
        return kept.cast(pa.string()), bad


def _is_utf8(value: bytes | None) -> bool:
    try:
        _ = value is None or value.decode()
    except UnicodeDecodeError:
        return False
    return True


# --- texts of other values, as columns of STRING take them -----------------------------------


def whole_texts(vector: Vector) -> Any:
    """Those of whole numbers, as an array of Arrow."""
    return vector.to_arrow().cast(pa.string())


def truth_texts(vector: Vector) -> Any:
    """The same of booleans."""
    return pc.if_else(vector.to_arrow(), "true", "false")


def texts_of_wholes(numbers: Indexes, mine: Mask | None) -> Vector:
    """Those of whole numbers; NULL beside `mine`."""
    return text_vector(STRING, whole_texts(Vector(BIGINT, numbers, mine)))


def texts_of_doubles(numbers: Numbers, mine: Mask | None, text: Callable[[float], str]) -> Vector:
    """Those of numbers with a point; `text` makes one."""
    listed = numbers.tolist()
    there = [True] * len(listed) if mine is None else mine.tolist()
    values: list[Value] = [
        text(number) if has else None for number, has in zip(listed, there, strict=True)
    ]
    return of_values(STRING, values)


def texts_of_truths(truths: Mask, mine: Mask | None) -> Vector:
    """Those of booleans."""
    return text_vector(STRING, truth_texts(Vector(BOOLEAN, truths, mine)))


# --- columns that the row reader's functions read, beside others that are read at once -------

ReadRow = Callable[[bytes], Sequence[Value] | None]


def read_one_by_one(
    types: Sequence[SqlType], read_row: ReadRow, data: Any, certain: Mask, doubt: Mask
) -> list[Vector]:
    """The columns that `read_row` gives of each certain record; others are NULL. Doubts those that
    it cannot read."""
    rows: list[Sequence[Value]] = []
    nothing: Sequence[Value] = (None,) * len(types)
    pairs = zip(data.to_pylist(), certain.tolist(), strict=True)
    for place, (value, is_certain) in enumerate(pairs):
        row: Sequence[Value] | None = nothing
        if is_certain:
            try:
                row = read_row(value)
            except (MismatchError, FormatError, *READ_ERRORS):
                row = None
            doubt[place] |= row is None
        rows.append(nothing if row is None else row)
    listed = zip(*rows, strict=True) if rows else ([] for _ in types)
    return [
        vector_of(sql_type, list(values), doubt)
        for sql_type, values in zip(types, listed, strict=True)
    ]
