"""Patterns of java.time.format.DateTimeFormatter: `yyyy-MM-dd'T'HH:mm:ss.SSS[X]`.

Letters as documented by Java up to 15, with English texts: `B` (periods of the day) came later.
Weeks begin on Sunday, as in ksqlDB's locale. `Q`, `W` and `F` are read and then not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from barnabas.java.time.elements import (
    NUMBER_WIDTH_MAX,
    Element,
    Literal,
    Mismatch,
    Number,
    Optional,
    Padded,
    Reading,
    Sign,
    Text,
)
from barnabas.java.time.fields import Moment
from barnabas.java.time.zone_elements import LocalizedOffset, Offset, ZoneId, ZoneName

TWO_DIGIT_YEARS_FROM = 2000


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern, ready for use."""

    elements: Sequence[Element]

    def write(self, moment: Moment) -> str:
        """The moment as text; raises ValueError if it lacks a field of the pattern."""
        return "".join([element.write(moment) for element in self.elements])

    def read(self, text: str, *, ignore_case: bool) -> Reading:
        """The fields of the text; raises ValueError if it does not fit to its last character."""
        reading = Reading(text, ignore_case)
        position = 0
        try:
            for element in self.elements:
                position = element.read(reading, position)
        except Mismatch as mismatch:
            raise ValueError(
                f"Text '{text}' could not be parsed at index {mismatch.index}"
            ) from None
        if position < len(text):
            raise ValueError(
                f"Text '{text}' could not be parsed, unparsed text found at index {position}"
            )
        return reading


@lru_cache(maxsize=1000)
def pattern_of(text: str) -> Pattern:
    """The pattern of that text; raises ValueError if it is none."""
    return Pattern(_PatternReader(text).build())


class _PatternReader:
    """Reads the text of a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._stack: list[list[Element]] = [[]]
        self._leader = -1
        """Index, among the innermost elements, of the number that leaves digits to followers."""

    def build(self) -> list[Element]:
        while self._position < len(self._text):
            self._step(self._text[self._position])
        while len(self._stack) > 1:
            self._close_optional()
        return self._stack[0]

    def _step(self, character: str) -> None:
        if character.isascii() and character.isalpha():
            self._letters()
        elif character == "'":
            self._quoted()
        elif character == "[":
            self._position += 1
            self._leader = -1
            self._stack.append([])
        elif character == "]":
            if len(self._stack) == 1:
                raise ValueError("Pattern invalid as it contains ] without previous [")
            self._position += 1
            self._close_optional()
        elif character in "{}#":
            raise ValueError(f"Pattern includes reserved character: '{character}'")
        else:
            self._position += 1
            self._add(Literal(character))

    def _close_optional(self) -> None:
        elements = self._stack.pop()
        self._leader = -1
        if elements:
            self._add(Optional(elements))

    def _quoted(self) -> None:
        start = self._position
        position = start + 1
        while position < len(self._text):
            if self._text[position] == "'":
                if self._text[position + 1 : position + 2] != "'":
                    break
                position += 1
            position += 1
        if position >= len(self._text):
            raise ValueError(f"Pattern ends with an incomplete string literal: {self._text}")
        literal = self._text[start + 1 : position].replace("''", "'")
        self._position = position + 1
        self._add(Literal(literal or "'"))

    def _run(self) -> tuple[str, int]:
        letter = self._text[self._position]
        start = self._position
        while self._position < len(self._text) and self._text[self._position] == letter:
            self._position += 1
        return letter, self._position - start

    def _letters(self) -> None:
        letter, count = self._run()
        pad = 0
        if letter == "p":
            pad = count
            following = self._text[self._position : self._position + 1]
            if not (following.isascii() and following.isalpha()):
                raise ValueError(
                    f"Pad letter 'p' must be followed by valid pad pattern: {self._text}"
                )
            letter, count = self._run()
        make = _LETTERS.get(letter)
        if make is None:
            raise ValueError(f"Unknown pattern letter: {letter}")
        element = make(letter, count)
        self._add(Padded(element, pad) if pad else element)

    def _add(self, element: Element) -> None:
        elements = self._stack[-1]
        if not isinstance(element, Number):
            self._leader = -1
        elif self._leader >= 0:
            leader = elements[self._leader]
            assert isinstance(leader, Number)
            if element.is_fixed:
                elements[self._leader] = leader.followed_by(element.width_max)
                elements.append(element.as_follower())
                return
            elements[self._leader] = leader.as_follower()
            self._leader = len(elements)
        else:
            self._leader = len(elements)
        elements.append(element)


Make = Callable[[str, int], Element]


def _too_many(letter: str) -> ValueError:
    return ValueError(f"Too many pattern letters: {letter}")


def _year(name: str) -> Make:
    def make(letter: str, count: int) -> Element:
        if count == 2:
            return Number(name, 2, 2, Sign.NEVER, base=TWO_DIGIT_YEARS_FROM)
        if count > 19:
            raise _too_many(letter)
        return Number(name, count, sign=Sign.NORMAL if count < 4 else Sign.EXCEEDS_PAD)

    return make


def _number(name: str, count_max: int = 2) -> Make:
    """One letter: as many digits as needed; more: exactly so many."""

    def make(letter: str, count: int) -> Element:
        if count > count_max:
            raise _too_many(letter)
        return Number(name) if count == 1 else Number(name, count, count, Sign.NEVER)

    return make


def _long_number(name: str, width_max: int = NUMBER_WIDTH_MAX) -> Make:
    """One letter: as many digits as needed; more: at least so many."""

    def make(letter: str, count: int) -> Element:
        if count > width_max:
            raise _too_many(letter)
        return Number(name) if count == 1 else Number(name, count, width_max, Sign.NEVER)

    return make


def _number_or_text(name: str, number_name: str | None = None) -> Make:
    def make(letter: str, count: int) -> Element:
        if count <= 2:
            return _number(number_name or name)(letter, count)
        return _text(name)(letter, count)

    return make


def _text(name: str, styles: Sequence[str] = ("short", "short", "short", "full", "narrow")) -> Make:
    def make(letter: str, count: int) -> Element:
        if count > len(styles):
            raise _too_many(letter)
        return Text(name, styles[count - 1])

    return make


def _fraction(letter: str, count: int) -> Element:
    if count > 9:
        raise ValueError(f"The fraction must have from 0 to 9 digits: {letter * count}")
    return Number("NanoOfSecond", count, count, Sign.NEVER, is_fraction=True)


def _offset(forms: Sequence[tuple[str, str]]) -> Make:
    def make(letter: str, count: int) -> Element:
        if count > len(forms):
            raise _too_many(letter)
        return Offset(*forms[count - 1])

    return make


def _rfc_offset(letter: str, count: int) -> Element:
    if count == 4:
        return LocalizedOffset(is_full=True)
    if count > 5:
        raise _too_many(letter)
    return Offset("+HHMM", "+0000") if count < 4 else Offset("+HH:MM:ss", "Z")


def _localized_offset(letter: str, count: int) -> Element:
    if count not in (1, 4):
        raise ValueError(f"Pattern letter count must be 1 or 4: {letter}")
    return LocalizedOffset(is_full=count == 4)


def _zone_id(letter: str, count: int) -> Element:
    if count != 2:
        raise ValueError(f"Pattern letter count must be 2: {letter}")
    return ZoneId()


def _zone_name(letter: str, count: int) -> Element:
    if count > 4:
        raise _too_many(letter)
    return ZoneName(is_full=count == 4)


_LETTERS: dict[str, Make] = {
    "G": _text("Era"),
    "u": _year("Year"),
    "y": _year("YearOfEra"),
    "Y": _year("WeekBasedYear"),
    "Q": _number_or_text("QuarterOfYear"),
    "q": _number_or_text("QuarterOfYear"),
    "M": _number_or_text("MonthOfYear"),
    "L": _number_or_text("MonthOfYear"),
    "w": _number("WeekOfWeekBasedYear"),
    "W": _number("WeekOfMonth", 1),
    "D": _long_number("DayOfYear", 3),
    "d": _number("DayOfMonth"),
    "F": _number("AlignedDayOfWeekInMonth", 1),
    "E": _text("DayOfWeek"),
    "e": _number_or_text("DayOfWeek", "LocalizedDayOfWeek"),
    "c": _number_or_text("DayOfWeek", "LocalizedDayOfWeek"),
    "a": _text("AmPmOfDay", ("short",)),
    "h": _number("ClockHourOfAmPm"),
    "K": _number("HourOfAmPm"),
    "k": _number("ClockHourOfDay"),
    "H": _number("HourOfDay"),
    "m": _number("MinuteOfHour"),
    "s": _number("SecondOfMinute"),
    "S": _fraction,
    "A": _long_number("MilliOfDay"),
    "n": _long_number("NanoOfSecond"),
    "N": _long_number("NanoOfDay"),
    "V": _zone_id,
    "z": _zone_name,
    "v": _zone_name,
    "O": _localized_offset,
    "X": _offset(
        [("+HHmm", "Z"), ("+HHMM", "Z"), ("+HH:MM", "Z"), ("+HHMMss", "Z"), ("+HH:MM:ss", "Z")]
    ),
    "x": _offset(
        [
            ("+HHmm", "+00"),
            ("+HHMM", "+0000"),
            ("+HH:MM", "+00:00"),
            ("+HHMMss", "+0000"),
            ("+HH:MM:ss", "+00:00"),
        ]
    ),
    "Z": _rfc_offset,
}
