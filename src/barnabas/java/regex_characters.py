"""Characters in Java's regular expressions: escapes, classes such as `[a-z&&[^b]]`, and errors."""

from __future__ import annotations

import re
import unicodedata

from barnabas.java import character_sets as sets
from barnabas.java.character_sets import Ranges


class JavaError(ValueError):
    """A pattern is wrong, a group does not exist, or matching would take too long."""


class PatternError(JavaError):
    """The text is not a regular expression of Java's, or one that Python cannot express."""


_PROPERTY = re.compile(r"\{(\^?)([^}]*)\}|()([A-Za-z])")
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_SETS: dict[str, Ranges] = {
    "d": sets.DIGIT,
    "w": sets.WORD,
    "s": sets.SPACE,
    "h": sets.HORIZONTAL,
    "v": sets.VERTICAL,
}
_UNICODE_SETS = {"d": "IsDigit", "w": "IsWord", "s": "IsWhite_Space"}


class CharacterReader:
    """Reads a pattern once, from left to right; `flags` are those at the current position."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.flags: frozenset[str] = frozenset()

    def escaped(self) -> int | Ranges:
        """The character or the set of an escape, in a class or outside; the backslash is read."""
        letter = self.peek()
        self.at += 1
        if letter.lower() in _SETS:
            return self._letter_set(letter)
        if letter in "pP":
            return self._property(letter == "P")
        if letter in _CONTROLS:
            return ord(_CONTROLS[letter])
        if letter in "xu0cN":
            return self._code(letter)
        if letter.isascii() and letter.isalnum():
            raise self.error(f"Illegal/unsupported escape sequence \\{letter}")
        return ord(letter)

    def _letter_set(self, letter: str) -> Ranges:
        lower = letter.lower()
        ranges = _SETS[lower]
        if "U" in self.flags and lower in _UNICODE_SETS:
            ranges = sets.named(_UNICODE_SETS[lower]) or ranges
        return ranges if letter == lower else sets.complement(ranges)

    def _property(self, is_negated: bool) -> Ranges:
        match = _PROPERTY.match(self.text, self.at)
        if match is None:
            raise self.error("Illegal character property")
        self.at = match.end()
        name = match[2] or match[4] or ""
        ranges = sets.named(name)
        if ranges is None:
            raise self.error(f"Unknown character property name {{{name}}}")
        ranges = self.either_case(ranges)
        return sets.complement(ranges) if is_negated != bool(match[1]) else ranges

    def _code(self, kind: str) -> int:
        if kind == "c":
            self.at += 1
            return ord(self.text[self.at - 1 : self.at] or "\0") ^ 64
        if kind == "N":
            match = re.compile(r"\{([^}]+)\}").match(self.text, self.at)
            if match is None:
                raise self.error("Illegal character name escape sequence")
            self.at = match.end()
            try:
                return ord(unicodedata.lookup(match[1]))
            except KeyError:
                raise self.error(f"Unknown character name [{match[1]}]") from None
        pattern = {"x": r"([0-9a-fA-F]{2})|\{([0-9a-fA-F]+)\}", "u": r"([0-9a-fA-F]{4})"}
        match = re.compile(pattern.get(kind, r"([0-3][0-7]{2}|[0-7]{1,2})")).match(
            self.text, self.at
        )
        if match is None:
            raise self.error("Illegal escape of a character's code")
        self.at = match.end()
        code = int(match[match.lastindex or 1], 8 if kind == "0" else 16)
        if code > sets.LAST:
            raise self.error("Hexadecimal codepoint is too big")
        return self._joined(code)

    def _joined(self, code: int) -> int:
        """The character of two escapes if this is the first half of a pair."""
        low = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
        if 0xD800 <= code < 0xDC00 and (match := low.match(self.text, self.at)):
            self.at = match.end()
            return 0x10000 + ((code - 0xD800) << 10) + int(match[1], 16) - 0xDC00
        return code

    def character_class(self) -> Ranges:
        """The set of a class; its opening bracket is read."""
        is_negated = self.takes("^")
        operands: list[Ranges] = []
        ranges: list[tuple[int, int]] = []
        is_first = True
        while True:
            self.skip_comments()
            if self.takes("]"):
                if not is_first:
                    break
                ranges.append((ord("]"), ord("]")))
            elif self.takes("&&"):
                operands.append(sets.union(ranges))
                ranges = []
            else:
                ranges.extend(self._class_item())
            is_first = False
        operands.append(sets.union(ranges))
        result = operands[0]
        for operand in operands[1:]:
            # nothing after && is no restriction
            result = sets.intersection(result, operand) if operand else result
        result = self.either_case(result)
        return sets.complement(result) if is_negated else result

    def _class_item(self) -> Ranges:
        """A character, a range, a set or a class in a class."""
        if self.takes("["):
            return self.character_class()
        first = self._class_character()
        if not isinstance(first, int):
            return first
        self.skip_comments()
        following = self.text[self.at + 1 : self.at + 2]
        if not self.text.startswith("-", self.at) or following in ("]", "[", ""):
            return ((first, first),)
        self.at += 1
        self.skip_comments()
        last = self._class_character()
        if not isinstance(last, int) or last < first:
            raise self.error("Illegal character range")
        return ((first, last),)

    def _class_character(self) -> int | Ranges:
        if self.at >= len(self.text):
            raise self.error("Unclosed character class")
        if self.takes("\\"):
            return self.escaped()
        self.at += 1
        return ord(self.text[self.at - 1])

    def skip_comments(self) -> None:
        """Read over white space and comments, where flag x lets a pattern have them."""
        if "x" not in self.flags:
            return
        match = re.compile(r"(?:[ \t\n\x0b\f\r]|#[^\n\r]*)*").match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def peek(self) -> str:
        """The next character; raises PatternError at the end."""
        if self.at >= len(self.text):
            raise self.error("Unexpected internal error")
        return self.text[self.at]

    def peek_or_end(self) -> str:
        """The next character, or nothing at the end."""
        return self.text[self.at : self.at + 1]

    def takes(self, token: str) -> bool:
        """Return whether the token is here; then it is read."""
        is_next = self.text.startswith(token, self.at)
        self.at += len(token) if is_next else 0
        return is_next

    def expect(self, token: str) -> None:
        """Read the end of a group."""
        if not self.takes(token):
            raise self.error("Unclosed group")

    def error(self, message: str) -> PatternError:
        """The error, with the place."""
        return PatternError(f"{message} near index {self.at}: {self.text}")

    def either_case(self, ranges: Ranges) -> Ranges:
        """The set, with letters of the other case where flag i holds."""
        if "i" not in self.flags:
            return ranges
        return sets.with_other_case(ranges, is_unicode=not self.flags.isdisjoint("uU"))
