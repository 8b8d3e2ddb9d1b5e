"""Functions that hide characters of a text: MASK, MASK_LEFT, MASK_RIGHT, MASK_KEEP_LEFT, ….

An upper-case letter becomes `X`, a lower-case one `x`, a decimal digit `n`, anything else `-`,
unless the call names other masks; a mask that is NULL leaves its characters as they are. Texts are
counted in UTF-16 units, so a character above U+FFFF gets two masks.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import TypeAlias

from barnabas.java.strings import from_units, to_units
from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.catalog import scalar

STRING = "STRING"

Masks: TypeAlias = tuple[str | None, str | None, str | None, str | None]
"""For upper-case letters, lower-case letters, digits, and all else; None keeps the character."""

_DEFAULT: Masks = ("X", "x", "n", "-")
_KINDS = {"Lu": 0, "Ll": 1, "Nd": 2}
_OTHER = 3

_MASKS = ", upper STRING, lower STRING, digit STRING, other STRING"
_PARAMETERS = {
    "input": "the text",
    "upper": "the mask of upper-case letters; NULL leaves them",
    "lower": "the mask of lower-case letters; NULL leaves them",
    "digit": "the mask of digits; NULL leaves them",
    "other": "the mask of other characters; NULL leaves them",
}


def _masked(units: str, masks: Masks) -> str:
    return "".join(
        [masks[_KINDS.get(unicodedata.category(unit), _OTHER)] or unit for unit in units]
    )


def _checked(masks: tuple[str | None, ...]) -> Masks:
    """The masks of a call: all four, or none for the usual ones."""
    if not masks:
        return _DEFAULT
    for mask in masks:
        if mask is not None and len(to_units(mask)) != 1:
            raise EvaluationError(
                f"Invalid mask character. Must be only single character, but was '{mask}'"
            )
    upper, lower, digit, other = masks
    return upper, lower, digit, other


@scalar(
    "mask",
    "(input STRING) -> STRING",
    f"(input STRING{_MASKS}) -> STRING",
    description="The text with a mask for each character: X for upper-case letters, x for "
    "lower-case ones, n for digits, - for all others, or those given.",
    category=STRING,
    parameters=_PARAMETERS,
)
def mask(text: str | None, *masks: str | None) -> str | None:
    checked = _checked(masks)
    return None if text is None else from_units(_masked(to_units(text), checked))


def _declare(name: str, description: str, count_of: str, split: Callable[[int, int], int]) -> None:
    """Declare one of the functions that mask a text on one side of a place.

    `split(size, count)` returns the place. Masked is what is before it for MASK_LEFT and
    MASK_KEEP_RIGHT, what lies after it for the two others.
    """
    masks_before = name in ("mask_left", "mask_keep_right")

    @scalar(
        name,
        "(input STRING, numChars INTEGER) -> STRING",
        f"(input STRING, numChars INTEGER{_MASKS}) -> STRING",
        description=description,
        category=STRING,
        parameters={**_PARAMETERS, "numChars": count_of},
    )
    def masked(text: str | None, count: int | None, *masks: str | None) -> str | None:
        checked = _checked(masks)
        if count is None or count < 0:
            raise EvaluationError(
                f"function {name} requires a non-negative number of characters to mask or skip"
            )
        if text is None:
            return None
        units = to_units(text)
        at = split(len(units), count)
        before, after = units[:at], units[at:]
        if masks_before:
            return from_units(_masked(before, checked) + after)
        return from_units(before + _masked(after, checked))


_declare(
    "mask_left",
    "The text with masks for its first characters.",
    "how many characters to mask at the start",
    lambda size, count: min(count, size),
)
_declare(
    "mask_right",
    "The text with masks for its last characters.",
    "how many characters to mask at the end",
    lambda size, count: max(size - count, 0),
)
_declare(
    "mask_keep_left",
    "The text with masks for all but its first characters.",
    "how many characters to keep at the start",
    lambda size, count: min(count, size),
)
_declare(
    "mask_keep_right",
    "The text with masks for all but its last characters.",
    "how many characters to keep at the end",
    lambda size, count: max(size - count, 0),
)
