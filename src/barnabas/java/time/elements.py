"""Elements of a pattern: each writes its part of a moment and reads it from a text.

Reading raises Mismatch with the index where the text goes wrong. A number that other numbers follow
directly (`yyyyMMdd`) leaves them their digits: `Number.following` is how many.
Source: the documented behaviour of java.time.format.DateTimeFormatter, strict parsing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Protocol

from barnabas.java.time.fields import TEXTS, Moment, get_field
from barnabas.java.time.zones import Zone

NUMBER_WIDTH_MAX = 19
_DIGITS = frozenset("0123456789")


class Mismatch(Exception):  # noqa: N818
    """The text does not fit the pattern from that index on."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


@dataclass(slots=True)
class Reading:
    """A text being read, and what was found so far."""

    text: str
    ignore_case: bool
    fields: dict[str, int] = field(default_factory=dict)
    zone: Zone | None = None

    def put(self, name: str, value: int, index: int) -> None:
        """Note a field; a second value of the same field must be the same."""
        if self.fields.setdefault(name, value) != value:
            raise Mismatch(index)

    def starts_with(self, expected: str, position: int) -> bool:
        """Return whether that text stands at the position."""
        part = self.text[position : position + len(expected)]
        if part == expected:
            return True
        return self.ignore_case and part.casefold() == expected.casefold()


class Element(Protocol):
    """One part of a pattern."""

    def write(self, moment: Moment) -> str:
        """The text; raises ValueError if the moment lacks the field."""
        ...

    def read(self, reading: Reading, position: int) -> int:
        """Note what stands at the position; returns where it ends. Raises Mismatch."""
        ...


@dataclass(frozen=True, slots=True)
class Literal:
    """Literal text."""

    text: str

    def write(self, moment: Moment) -> str:
        return self.text

    def read(self, reading: Reading, position: int) -> int:
        if not reading.starts_with(self.text, position):
            raise Mismatch(position)
        return position + len(self.text)


class Sign(Enum):
    """When a number has a sign."""

    NORMAL = "minus only"
    NEVER = "never"
    EXCEEDS_PAD = "plus, where there are more digits than the least"


@dataclass(frozen=True, slots=True)
class Number:
    """A field as digits."""

    name: str
    width_min: int = 1
    width_max: int = NUMBER_WIDTH_MAX
    sign: Sign = Sign.NORMAL
    base: int | None = None
    """Two digits stand for the years from this one on."""
    is_fraction: bool = False
    """Digits of the second's fraction."""
    following: int = 0
    """Digits of the numbers that follow directly; -1: this one follows, with its exact width."""

    @property
    def is_fixed(self) -> bool:
        """True if it always has the same number of digits."""
        return self.width_min == self.width_max and self.sign is Sign.NEVER

    def followed_by(self, width: int) -> Number:
        return replace(self, following=self.following + width)

    def as_follower(self) -> Number:
        return replace(self, following=-1)

    def write(self, moment: Moment) -> str:
        value = get_field(moment, self.name)
        if self.is_fraction:
            return f"{value:09}"[: self.width_min].ljust(self.width_min, "0")
        if self.base is not None:
            return f"{abs(value) % 100:02}"
        digits = str(abs(value))
        if len(digits) > self.width_max:
            raise ValueError(
                f"Field {self.name} cannot be printed as the value {value} exceeds "
                f"the maximum print width of {self.width_max}"
            )
        sign = "-" if value < 0 else ""
        if self.sign is Sign.EXCEEDS_PAD and value >= 0 and len(digits) > self.width_min:
            sign = "+"
        if value < 0 and self.sign is Sign.NEVER:
            raise ValueError(
                f"Field {self.name} cannot be printed as the value {value} cannot be negative "
                "according to the SignStyle"
            )
        return sign + digits.rjust(self.width_min, "0")

    def read(self, reading: Reading, position: int) -> int:
        start, sign = self._sign(reading.text, position)
        end = self._end(reading.text, start)
        digits = reading.text[start:end]
        value = int(digits)
        if sign == "-" and value == 0:
            raise Mismatch(start - 1)
        if self.sign is Sign.EXCEEDS_PAD and sign != "-":
            self._check_plus(sign, start, digits)
        if self.is_fraction:
            value = int(digits[:9].ljust(9, "0"))
        elif self.base is not None and len(digits) == 2:
            value = self.base + (value - self.base) % 100
        reading.put(self.name, -value if sign == "-" else value, position)
        return end

    def _check_plus(self, sign: str, start: int, digits: str) -> None:
        """A plus stands where there are more digits than the least, and only there."""
        if (sign == "+") != (len(digits) > self.width_min):
            raise Mismatch(start - len(sign))

    def _sign(self, text: str, position: int) -> tuple[int, str]:
        sign = text[position : position + 1]
        if sign not in ("+", "-"):
            return position, ""
        if self.sign is not Sign.EXCEEDS_PAD and (sign == "+" or self.sign is Sign.NEVER):
            raise Mismatch(position)
        return position + 1, sign

    def _end(self, text: str, start: int) -> int:
        width_max = self.width_max + max(self.following, 0)
        end = start
        limit = min(start + width_max, len(text))
        while end < limit and text[end] in _DIGITS:
            end += 1
        if self.following > 0:
            end = start + min(max(self.width_min, end - start - self.following), end - start)
        if end - start < self.width_min:
            raise Mismatch(start)
        return end


@dataclass(frozen=True, slots=True)
class Text:
    """A field as a word: a month, a day of the week, AM or PM."""

    name: str
    style: str

    def write(self, moment: Moment) -> str:
        return TEXTS[self.name, self.style][get_field(moment, self.name)]

    def read(self, reading: Reading, position: int) -> int:
        # ksqlDB reads timestamps in a locale whose full names are the short ones.
        styles = ("full", "short") if self.style == "full" else (self.style,)
        for style in styles:
            for text, value in _WORDS.get((self.name, style), ()):
                if reading.starts_with(text, position):
                    reading.put(self.name, value, position)
                    return position + len(text)
        raise Mismatch(position)


_WORDS = {
    key: sorted(
        ((text, value) for value, text in texts.items() if [*texts.values()].count(text) == 1),
        key=lambda entry: -len(entry[0]),
    )
    for key, texts in TEXTS.items()
}
"""Words to read, those that mean one thing, the longest first."""


@dataclass(frozen=True, slots=True)
class Padded:
    """Another element, with spaces before it up to a width."""

    element: Element
    width: int

    def write(self, moment: Moment) -> str:
        text = self.element.write(moment)
        if len(text) > self.width:
            raise ValueError(
                f"Cannot print as output of {len(text)} characters "
                f"exceeds pad width of {self.width}"
            )
        return text.rjust(self.width)

    def read(self, reading: Reading, position: int) -> int:
        end = position + self.width
        if end > len(reading.text):
            raise Mismatch(position)
        start = position
        while start < end and reading.text[start] == " ":
            start += 1
        inner = Reading(reading.text[:end], reading.ignore_case, reading.fields, reading.zone)
        stop = self.element.read(inner, start)
        reading.zone = inner.zone
        if stop != end:
            raise Mismatch(position + start)
        return stop


@dataclass(frozen=True, slots=True)
class Optional:
    """Elements that may be left out: when writing a point in time that lacks one of their
    fields."""

    elements: Sequence[Element]

    def write(self, moment: Moment) -> str:
        try:
            return "".join(element.write(moment) for element in self.elements)
        except ValueError:
            return ""

    def read(self, reading: Reading, position: int) -> int:
        fields, zone = dict(reading.fields), reading.zone
        try:
            end = position
            for element in self.elements:
                end = element.read(reading, end)
        except Mismatch:
            reading.fields, reading.zone = fields, zone
            return position
        return end
