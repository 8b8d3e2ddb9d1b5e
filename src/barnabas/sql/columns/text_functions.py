"""Functions of texts for whole columns.

Arrow counts characters, Java UTF-16 units, and Arrow's upper and lower case are not Java's: if a
text is not ASCII, or has a character of two units, the row engine's function computes its value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.java.numbers import JAVA_SPACE
from barnabas.sql import types
from barnabas.sql.columns.frames import Frame
from barnabas.sql.columns.vectors import Mask, Vector, mask_of, text_vector
from barnabas.sql.functions import positions, strings
from barnabas.sql.types import Value

_ABOVE: Final = "[\\x{10000}-\\x{10ffff}]"
"""Characters of two units."""
Form = Callable[[Frame, Sequence[Vector]], Vector]
"""Takes the vectors of all arguments."""
Literals = Sequence[tuple[bool, Value]]
"""Of each argument whether it is a literal, and its value then."""


def _patched(made: Any, data: Any, odd: Mask, function: Callable[..., Value], kind: Any) -> Any:
    """What Arrow made of texts, with the row engine's values where they are odd."""
    if not odd.any():
        return made
    values = [function(text) for text in data.filter(pa.array(odd)).to_pylist()]
    return pc.replace_with_mask(made, pa.array(odd), pa.array(values, kind))


def not_ascii(data: Any) -> Mask:
    """Return which texts have other characters than those of ASCII."""
    return ~mask_of(pc.string_is_ascii(data).fill_null(True))


def _has_above(data: Any) -> Mask:
    odd = not_ascii(data)
    if odd.any():
        odd &= mask_of(pc.match_substring_regex(data, _ABOVE).fill_null(False))
    return odd


def _in_case(arrow: Callable[[Any], Any], function: Callable[[str], str]) -> Form:
    def form(_frame: Frame, vectors: Sequence[Vector]) -> Vector:
        data = vectors[0].data
        made = _patched(arrow(data), data, not_ascii(data), function, pa.string())
        return text_vector(types.STRING, made)

    return form


lower: Final = _in_case(pc.ascii_lower, strings.lcase)
upper: Final = _in_case(pc.ascii_upper, strings.ucase)


def trimmed(_frame: Frame, vectors: Sequence[Vector]) -> Vector:
    """TRIM: without the characters that Java's String.trim removes."""
    return text_vector(types.STRING, pc.utf8_trim(vectors[0].data, characters=JAVA_SPACE))


def length(_frame: Frame, vectors: Sequence[Vector]) -> Vector:
    """LEN: the number of UTF-16 units."""
    data = vectors[0].data
    counts = pc.utf8_length(data)
    if _has_above(data).any():
        counts = pc.add(counts, pc.count_substring_regex(data, _ABOVE))
    numbers = counts.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return Vector(types.INTEGER, numbers, vectors[0].valid)


def _filled(vectors: Sequence[Vector], word: str) -> list[Any]:
    return [v.data if v.valid is None else v.data.fill_null(word) for v in vectors]


def concatenated_texts(_frame: Frame, vectors: Sequence[Vector]) -> Vector:
    """CONCAT: NULLs are left out."""
    return text_vector(types.STRING, pc.binary_join_element_wise(*_filled(vectors, ""), ""))


def joined_texts(_frame: Frame, vectors: Sequence[Vector]) -> Vector:
    """`+`: NULL is the word null."""
    return text_vector(types.STRING, pc.binary_join_element_wise(*_filled(vectors, "null"), ""))


def concatenated_with(literals: Literals) -> Form | None:
    """CONCAT_WS with a literal between the others; NULLs are left out."""
    is_literal, separator = literals[0]
    if not is_literal or separator is None or len(literals) < 2:
        return None

    def form(_frame: Frame, vectors: Sequence[Vector]) -> Vector:
        data = [vector.data for vector in vectors[1:]]
        made = pc.binary_join_element_wise(*data, separator, null_handling="skip")
        return text_vector(types.STRING, made)

    return form


def replaced_texts(literals: Literals) -> Form | None:
    """REPLACE of a literal by another one."""
    old, new = literals[1][1], literals[2][1]
    if not (isinstance(old, str) and isinstance(new, str) and old):
        return None
    return lambda _, vectors: text_vector(
        types.STRING, pc.replace_substring(vectors[0].data, old, new)
    )


def part_of_texts(literals: Literals) -> Form | None:
    """SUBSTRING from a literal position on, as long as a literal says."""
    given = [value for is_literal, value in literals[1:] if is_literal]
    if len(given) < len(literals) - 1 or not all(isinstance(value, int) for value in given):
        return None
    position: Any = given[0]
    count: Any = given[1] if len(given) > 1 else None
    if count is not None:
        count = max(count, 0)
    start = position if position < 0 else max(position - 1, 0)
    stop = None if count is None else start + count
    if stop is not None and start < 0 <= stop:
        stop = None

    def of_one(text: str) -> Value:
        return positions.substring(text, position, count)

    def form(_frame: Frame, vectors: Sequence[Vector]) -> Vector:
        data = vectors[0].data
        odd = _has_above(data)
        if position < 0 and count is not None:
            # The part begins before the text, and so do its characters count.
            sizes = pc.utf8_length(data).fill_null(0).to_numpy(zero_copy_only=False)
            odd |= (sizes < -position) & mask_of(data.is_valid())
        if count == 0:
            made = pc.if_else(data.is_valid(), "", pa.scalar(None, pa.string()))
        else:
            made = pc.utf8_slice_codeunits(data, start, stop)
        return text_vector(types.STRING, _patched(made, data, odd, of_one, pa.string()))

    return form


def position_in_texts(literals: Literals) -> Form | None:
    """INSTR of a literal: from 1, or 0 if it is not there; never NULL."""
    part = literals[1][1]
    if len(literals) != 2 or not isinstance(part, str) or not part:
        return None

    def of_one(text: str) -> Value:
        return positions.instr(text, part)

    def form(_frame: Frame, vectors: Sequence[Vector]) -> Vector:
        data = vectors[0].data
        found = pc.add(pc.find_substring(data, part).fill_null(-1), 1)
        made = _patched(found.cast(pa.int64()), data, not_ascii(data), of_one, pa.int64())
        return Vector(types.INTEGER, made.to_numpy(zero_copy_only=False))

    return form


# --- LIKE ------------------------------------------------------------------------------------

_LINE_END: Final = "[\\n\\r\\x{85}\\x{2028}\\x{2029}]"


def like(pattern: str, escape: str | None, matches: Callable[[str], bool]) -> Form | None:
    """A pattern of one piece of text with `%` before it, behind it or on both sides; None for
    others. Only within a line does `%` stand for anything. NULL is doubted."""
    piece = pattern.strip("%")
    begins, ends = pattern[:1] != "%", pattern[-1:] != "%"
    if not piece or "%" in piece or "_" in piece or (escape is not None and escape in pattern):
        return None
    if len(pattern) != len(piece) + (not begins) + (not ends):
        return None

    def holds(data: Any) -> Any:
        if begins and ends:
            return pc.equal(data, piece)
        if begins:
            return pc.starts_with(data, piece)
        return pc.ends_with(data, piece) if ends else pc.match_substring(data, piece)

    def form(frame: Frame, vectors: Sequence[Vector]) -> Vector:
        (vector,) = vectors
        if vector.valid is not None:
            frame.doubt |= ~vector.valid
        odd = mask_of(pc.match_substring_regex(vector.data, _LINE_END).fill_null(False))
        found = _patched(holds(vector.data).fill_null(False), vector.data, odd, matches, pa.bool_())
        return Vector(types.BOOLEAN, mask_of(found))

    return form
