"""Functions of positions and lengths in texts and bytes: LEN, SUBSTRING, INSTR, LPAD, RPAD.

Texts are counted in UTF-16 units (`utf16`), positions from 1.
"""

from __future__ import annotations

from functools import partial
from typing import AnyStr

from barnabas.java.strings import from_units, to_units, unit_count
from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.catalog import scalar

STRING = "STRING"
_scalar = partial(scalar, category=STRING, null_is_null=True)


@_scalar(
    "len",
    "(input STRING) -> INTEGER",
    description="The length of a text (in UTF-16 units) or of bytes.",
    parameters={"input": "the text"},
)
def text_length(text: str) -> int:
    return unit_count(text)


@_scalar(
    "len",
    "(input BYTES) -> INTEGER",
    parameters={"input": "the bytes"},
)
def bytes_length(value: bytes) -> int:
    return len(value)


_POSITION = "where to start, counted from 1, or from the end if negative"


@_scalar(
    "substring",
    "(str STRING, pos INTEGER) -> STRING",
    "(str STRING, pos INTEGER, length INTEGER) -> STRING",
    description="A part of a text or of bytes.",
    variation="The part of a text from a position on, of the given length or to the end.",
    parameters={"str": "the text", "pos": _POSITION, "length": "how long the part is"},
)
def substring(text: str, position: int, count: int | None = None) -> str:
    units = to_units(text)
    start, end = _bounds(len(units), position, count)
    part = units[start:end]
    return part if units is text else from_units(part)


@_scalar(
    "substring",
    "(bytes BYTES, pos INTEGER) -> BYTES",
    "(bytes BYTES, pos INTEGER, length INTEGER) -> BYTES",
    variation="The part of bytes from a position on, of the given length or to the end.",
    parameters={"bytes": "the bytes", "pos": _POSITION, "length": "how long the part is"},
)
def substring_bytes(value: bytes, position: int, count: int | None = None) -> bytes:
    start, end = _bounds(len(value), position, count)
    return value[start:end]


def _bounds(size: int, position: int, count: int | None) -> tuple[int, int]:
    start = max(size + position, 0) if position < 0 else max(min(position - 1, size), 0)
    return start, size if count is None else max(start + count, start)


@scalar(
    "instr",
    "(str STRING, substring STRING) -> INTEGER",
    "(str STRING, substring STRING, position INTEGER) -> INTEGER",
    "(str STRING, substring STRING, position INTEGER, occurrence INTEGER) -> INTEGER",
    description="The position of a text in another one, counted from 1; 0 if it is not there, or "
    "either is NULL. The search starts at `position`, and goes backwards from the end if that is "
    "negative; `occurrence` selects one of several occurrences.",
    category=STRING,
)
def instr(
    text: str | None, part: str | None, position: int | None = 1, occurrence: int | None = 1
) -> int:
    if position is None or occurrence is None:
        raise EvaluationError("INSTR needs a position and an occurrence that are not NULL.")
    if text is None or part is None:
        return 0
    units, part = to_units(text), to_units(part)
    if abs(position) > len(units):
        return 0
    if position >= 0:
        place = _occurrence(units[position - 1 :], part, occurrence)
        return place + position if place >= 0 else 0
    place = _occurrence(units[::-1][-position - 1 :], part[::-1], occurrence)
    return len(units) + position - place - len(part) + 2 if place >= 0 else 0


def _occurrence(text: str, part: str, occurrence: int) -> int:
    """Return where the part occurs for the n-th time (occurrences may overlap), or -1."""
    if occurrence <= 0:
        return -1
    if not part:
        return 0
    place = -1
    for _ in range(occurrence):
        place = text.find(part, place + 1)
        if place < 0:
            break
    return place


def _padding_parameters(what: str) -> dict[str, str]:
    return {
        "input": f"the {what} to pad",
        "targetLen": "how long the result is",
        "padding": "what to pad with",
    }


_WHOLE = (
    "The input is cut to the length if it is longer. NULL if the padding is empty or the length "
    "negative."
)


@_scalar(
    "LPad",
    "(input STRING, targetLen INTEGER, padding STRING) -> STRING",
    description=f"A text (or bytes) padded on the left to a length. {_WHOLE}",
    parameters=_padding_parameters("text"),
)
def lpad(text: str, target: int, padding: str) -> str | None:
    units, fill = to_units(text), to_units(padding)
    if target < 0 or not fill:
        return None
    return from_units((_fill(fill, target - len(units)) + units)[:target])


@_scalar(
    "LPad",
    "(input BYTES, targetLen INTEGER, padding BYTES) -> BYTES",
    parameters=_padding_parameters("bytes"),
)
def lpad_bytes(value: bytes, target: int, padding: bytes) -> bytes | None:
    if target < 0 or not padding:
        return None
    return (_fill(padding, target - len(value)) + value)[:target]


@_scalar(
    "RPad",
    "(input STRING, targetLen INTEGER, padding STRING) -> STRING",
    description=f"A text (or bytes) padded on the right to a length. {_WHOLE}",
    parameters=_padding_parameters("text"),
)
def rpad(text: str, target: int, padding: str) -> str | None:
    units, fill = to_units(text), to_units(padding)
    if target < 0 or not fill:
        return None
    return from_units((units + _fill(fill, target - len(units)))[:target])


@_scalar(
    "RPad",
    "(input BYTES, targetLen INTEGER, padding BYTES) -> BYTES",
    parameters=_padding_parameters("bytes"),
)
def rpad_bytes(value: bytes, target: int, padding: bytes) -> bytes | None:
    if target < 0 or not padding:
        return None
    return (value + _fill(padding, target - len(value)))[:target]


_PADDING_MAX = 1 << 26
"""More padding than that would be larger than any record; it fails."""


def _fill(padding: AnyStr, size: int) -> AnyStr:
    """As much padding as fills the size, cut at its end."""
    if size > _PADDING_MAX:
        raise EvaluationError(f"Padding of {size} is longer than {_PADDING_MAX}.")
    return (padding * (size // len(padding) + 1))[:size] if size > 0 else padding[:0]
