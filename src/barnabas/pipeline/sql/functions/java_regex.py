"""Java's regular expressions, translated to Python's.

Most of the two languages is the same text. What differs, and is translated:

    . $ ^        Java knows more ends of lines than \\n
    [a-z&&[^b]]  unions, intersections and POSIX names in classes: worked out to plain ranges
    \\p{…} \\h \\v \\R \\x{…} \\Q…\\E \\cX \\0n \\e \\z \\Z \\k<name>
    (?i) in the middle of a pattern, flags d, u, x, U; upper and lower case of ASCII without u
    \\d \\w \\s   ASCII without U, where Python's are Unicode's; \\b is Unicode's (as before JDK 19)
    (?<name>…), look-behind with alternatives of different lengths

Not supported, with an error: look-behind of other varying lengths, blocks (\\p{InGreek}), scripts
without a Latin name in `character_sets`, \\G and \\X. A reference to a group that is not closed yet
never matches.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from barnabas.pipeline.sql.errors import EvaluationError
from barnabas.pipeline.sql.functions import character_sets as sets
from barnabas.pipeline.sql.functions.character_sets import Ranges


class PatternError(EvaluationError):
    """The text is no regular expression of Java's, or one that Python cannot express."""


@lru_cache(maxsize=512)
def compile_java(pattern: str) -> re.Pattern[str]:
    """The pattern for Python's `re`; raises PatternError."""
    try:
        return re.compile(_Translator(_unquoted(pattern)).whole())
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(f"{error}: {pattern}") from None


def find_all(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The matches that repeated calls of Java's find() give, from left to right.

    After an empty match Java goes on one character later; Python would look for a longer one there.
    """
    at = 0
    while at <= len(text) and (found := pattern.search(text, at)):
        yield found
        at = found.end() + (found.start() == found.end())


def expand(template: str, match: re.Match[str]) -> str:
    """The replacement that `$1`, `${name}` and backslashes in the template tell."""
    if "$" not in template and "\\" not in template:
        return template
    return _REFERENCE.sub(lambda found: _referenced(found, match), template)


_REFERENCE = re.compile(r"\\(.)|\$\{([a-zA-Z][a-zA-Z0-9]*)\}|\$([0-9]+)|\\|\$", re.DOTALL)


def _referenced(found: re.Match[str], match: re.Match[str]) -> str:
    if found[1] is not None:
        return found[1]
    if found[2] is not None:
        if found[2] not in match.re.groupindex:
            raise EvaluationError(f"No group with name {{{found[2]}}}")
        return match[found[2]] or ""
    if found[3] is None:
        raise EvaluationError(f"Illegal group reference in {found.string}")
    digits = found[3]  # as many of them as name a group; the first must
    size = next((n for n in range(len(digits), 1, -1) if int(digits[:n]) <= match.re.groups), 1)
    if int(digits[:size]) > match.re.groups:
        raise EvaluationError(f"No group {digits[:size]}")
    return (match[int(digits[:size])] or "") + digits[size:]


def _unquoted(pattern: str) -> str:
    """The pattern with backslashes in place of \\Q…\\E."""
    return _QUOTED.sub(
        lambda match: match[0] if match[1] is None else _PUNCTUATION.sub(r"\\\g<0>", match[1]),
        pattern,
    )


_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|\Z)|\\.", re.DOTALL)
_PUNCTUATION = re.compile(r"[^a-zA-Z0-9\x80-\U0010ffff]")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})[+?]?")
_FLAGS = re.compile(r"\(\?([idmsuxU]*)(?:-([idmsuxU]*))?([:)])")
_NAMED = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")
_PROPERTY = re.compile(r"\{(\^?)([^}]*)\}|()([A-Za-z])")

_NEVER = "(?:(?!))"
_ENDS = "\\r\\x85\\u2028\\u2029"  # of lines, without \n
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_SETS: dict[str, Ranges] = {
    "d": sets.DIGIT,
    "w": sets.WORD,
    "s": sets.SPACE,
    "h": sets.HORIZONTAL,
    "v": sets.VERTICAL,
}
_UNICODE_SETS = {"d": "IsDigit", "w": "IsWord", "s": "IsWhite_Space"}
_ANCHORS = {
    "A": r"(?:\A)",
    "z": r"(?:\Z)",
    "b": r"(?u:\b)",
    "B": r"(?u:\B)",
    "R": r"(?:\r\n|[\n\x0b\f\r\x85\u2028\u2029])",
}


class _Translator:
    """Reads a pattern once, from left to right."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._flags: frozenset[str] = frozenset()
        self._groups = 0
        self._closed: set[int] = set()
        self._names: dict[str, int] = {}

    def whole(self) -> str:
        branches = self._branches()
        if self._at < len(self._text):
            raise PatternError(f"Unmatched closing ')' near index {self._at}: {self._text}")
        return "|".join(branches)

    def _branches(self) -> list[str]:
        branches = [self._sequence()]
        while self._takes("|"):
            branches.append(self._sequence())
        return branches

    def _sequence(self) -> str:
        parts: list[str] = []
        while True:
            self._skip_comments()
            if self._at >= len(self._text) or self._text[self._at] in "|)":
                return "".join(parts)
            if flags := _FLAGS.match(self._text, self._at):
                parts.append(self._flag_group(flags))
                continue
            atom = "" if self._text[self._at] == "{" else self._atom()
            parts.append(atom + self._quantifier(atom))

    def _quantifier(self, atom: str) -> str:
        self._skip_comments()
        found = _QUANTIFIER.match(self._text, self._at)
        if found is None:
            if self._text.startswith("{", self._at):
                raise self._error("Illegal repetition")
            return ""
        self._at = found.end()
        return found[0] if atom else ""

    def _flag_group(self, found: re.Match[str]) -> str:
        """`(?i)` changes what follows in this group, `(?i:…)` what is inside."""
        self._at = found.end()
        before = self._flags
        self._flags = (before | set(found[1])) - set(found[2] or "")
        if found[3] == ")":
            return ""
        inside = "|".join(self._branches())
        self._expect(")")
        self._flags = before
        atom = f"(?:{inside})"
        return atom + self._quantifier(atom)

    def _atom(self) -> str:
        character = self._text[self._at]
        self._at += 1
        match character:
            case "(":
                return self._group()
            case "[":
                return _class_text(self._class())
            case "\\":
                return self._escape()
            case ".":
                return self._dot()
            case "^":
                return f"(?:{self._line_start()})"
            case "$":
                return f"(?:{self._line_end('m' in self._flags)})"
            case "*" | "+" | "?":
                raise self._error(f"Dangling meta character '{character}'")
        return self._literal(ord(character))

    def _group(self) -> str:
        before = self._flags
        named = _NAMED.match(self._text, self._at - 1)
        if named:
            self._at = named.end()
            if named[1] in self._names:
                raise self._error(f"Named capturing group <{named[1]}> is already defined")
            result = self._capturing(f"(?P<{named[1]}>", named[1])
        elif not self._text.startswith("?", self._at):
            result = self._capturing("(")
        else:
            result = self._special_group()
        self._flags = before
        return result

    def _capturing(self, opening: str, name: str | None = None) -> str:
        self._groups += 1
        number = self._groups
        if name:
            self._names[name] = number
        inside = "|".join(self._branches())
        self._expect(")")
        self._closed.add(number)
        return f"{opening}{inside})"

    def _special_group(self) -> str:
        for opening in ("?<=", "?<!", "?:", "?=", "?!", "?>"):
            if self._text.startswith(opening, self._at):
                self._at += len(opening)
                branches = self._branches()
                self._expect(")")
                return _special_text(opening, branches)
        raise self._error("Unknown group")

    def _dot(self) -> str:
        if "s" in self._flags:
            return "(?s:.)"
        return "[^\\n]" if "d" in self._flags else f"[^\\n{_ENDS}]"

    def _line_start(self) -> str:
        if "m" not in self._flags:
            return r"\A"
        if "d" in self._flags:
            return r"\A|(?<=\n)(?!\Z)"
        return r"\A|(?<=[\n\x85\u2028\u2029])(?!\Z)|(?<=\r)(?!\n|\Z)"

    def _line_end(self, is_multiline: bool) -> str:
        end = "" if is_multiline else r"\Z"
        if "d" in self._flags:
            return rf"\Z|(?=\n{end})"
        crlf = "" if is_multiline else r"\r\n\Z|"
        return rf"\Z|(?={crlf}[{_ENDS}]{end})|(?<!\r)(?=\n{end})"

    def _literal(self, code: int) -> str:
        if "i" in self._flags:
            ranges = self._either_case(((code, code),))
            if len(ranges) > 1 or ranges[0][0] != ranges[0][1]:
                return _class_text(ranges)
        return _character_text(code)

    def _either_case(self, ranges: Ranges) -> Ranges:
        if "i" not in self._flags:
            return ranges
        return sets.with_other_case(ranges, is_unicode=not self._flags.isdisjoint("uU"))

    def _escape(self) -> str:
        letter = self._peek()
        if letter in _ANCHORS:
            self._at += 1
            return _ANCHORS[letter]
        if letter == "Z":
            self._at += 1
            return f"(?:{self._line_end(False)})"
        if letter == "k":
            return self._named_reference()
        if letter in "123456789":
            return self._numbered_reference()
        found = self._escaped()
        return self._literal(found) if isinstance(found, int) else _class_text(found)

    def _named_reference(self) -> str:
        found = re.compile(r"k<([a-zA-Z][a-zA-Z0-9]*)>").match(self._text, self._at)
        if found is None:
            raise self._error("\\k is not followed by '<' for named capturing group")
        self._at = found.end()
        if found[1] not in self._names:
            raise self._error(f"named capturing group <{found[1]}> does not exist")
        return self._reference(self._names[found[1]])

    def _numbered_reference(self) -> str:
        """More digits belong to the number as long as there are so many groups."""
        number = int(self._text[self._at])
        self._at += 1
        while (digit := self._peek_or_end()) and digit in "0123456789":
            if number * 10 + int(digit) > self._groups:
                break
            number = number * 10 + int(digit)
            self._at += 1
        return self._reference(number)

    def _reference(self, number: int) -> str:
        if number not in self._closed:
            return _NEVER
        if "i" not in self._flags:
            return f"(?:\\{number})"
        return f"(?{'iu' if not self._flags.isdisjoint('uU') else 'ia'}:\\{number})"

    def _escaped(self) -> int | Ranges:
        """The character or the set of an escape, in a class or outside; the backslash is read."""
        letter = self._peek()
        self._at += 1
        if letter.lower() in _SETS:
            return self._letter_set(letter)
        if letter in "pP":
            return self._property(letter == "P")
        if letter in _CONTROLS:
            return ord(_CONTROLS[letter])
        if letter in "xu0cN":
            return self._code(letter)
        if letter.isascii() and letter.isalnum():
            raise self._error(f"Illegal/unsupported escape sequence \\{letter}")
        return ord(letter)

    def _letter_set(self, letter: str) -> Ranges:
        lower = letter.lower()
        ranges = _SETS[lower]
        if "U" in self._flags and lower in _UNICODE_SETS:
            ranges = sets.named(_UNICODE_SETS[lower]) or ranges
        return ranges if letter == lower else sets.complement(ranges)

    def _property(self, is_negated: bool) -> Ranges:
        found = _PROPERTY.match(self._text, self._at)
        if found is None:
            raise self._error("Illegal character property")
        self._at = found.end()
        name = found[2] or found[4] or ""
        ranges = sets.named(name)
        if ranges is None:
            raise self._error(f"Unknown character property name {{{name}}}")
        ranges = self._either_case(ranges)
        return sets.complement(ranges) if is_negated != bool(found[1]) else ranges

    def _code(self, kind: str) -> int:
        if kind == "c":
            self._at += 1
            return ord(self._text[self._at - 1 : self._at] or "\0") ^ 64
        if kind == "N":
            found = re.compile(r"\{([^}]+)\}").match(self._text, self._at)
            if found is None:
                raise self._error("Illegal character name escape sequence")
            self._at = found.end()
            try:
                return ord(unicodedata.lookup(found[1]))
            except KeyError:
                raise self._error(f"Unknown character name [{found[1]}]") from None
        pattern = {"x": r"([0-9a-fA-F]{2})|\{([0-9a-fA-F]+)\}", "u": r"([0-9a-fA-F]{4})"}
        found = re.compile(pattern.get(kind, r"([0-3][0-7]{2}|[0-7]{1,2})")).match(
            self._text, self._at
        )
        if found is None:
            raise self._error("Illegal escape of a character's code")
        self._at = found.end()
        code = int(found[found.lastindex or 1], 8 if kind == "0" else 16)
        if code > sets.LAST:
            raise self._error("Hexadecimal codepoint is too big")
        return self._joined(code)

    def _joined(self, code: int) -> int:
        """The character of two escapes if this is the first half of a pair."""
        low = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
        if 0xD800 <= code < 0xDC00 and (found := low.match(self._text, self._at)):
            self._at = found.end()
            return 0x10000 + ((code - 0xD800) << 10) + int(found[1], 16) - 0xDC00
        return code

    def _class(self) -> Ranges:
        """The set of a class; its opening bracket is read."""
        is_negated = self._takes("^")
        operands: list[Ranges] = []
        ranges: list[tuple[int, int]] = []
        is_first = True
        while True:
            self._skip_comments()
            if self._takes("]"):
                if not is_first:
                    break
                ranges.append((ord("]"), ord("]")))
            elif self._takes("&&"):
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
        result = self._either_case(result)
        return sets.complement(result) if is_negated else result

    def _class_item(self) -> Ranges:
        """A character, a range, a set or a class in a class."""
        if self._takes("["):
            return self._class()
        first = self._class_character()
        if not isinstance(first, int):
            return first
        self._skip_comments()
        following = self._text[self._at + 1 : self._at + 2]
        if not self._text.startswith("-", self._at) or following in ("]", "[", ""):
            return ((first, first),)
        self._at += 1
        self._skip_comments()
        last = self._class_character()
        if not isinstance(last, int) or last < first:
            raise self._error("Illegal character range")
        return ((first, last),)

    def _class_character(self) -> int | Ranges:
        if self._at >= len(self._text):
            raise self._error("Unclosed character class")
        if self._takes("\\"):
            return self._escaped()
        self._at += 1
        return ord(self._text[self._at - 1])

    def _skip_comments(self) -> None:
        """Read over white space and comments, where flag x lets a pattern have them."""
        if "x" not in self._flags:
            return
        found = re.compile(r"(?:[ \t\n\x0b\f\r]|#[^\n\r]*)*").match(self._text, self._at)
        assert found is not None
        self._at = found.end()

    def _peek(self) -> str:
        if self._at >= len(self._text):
            raise self._error("Unexpected internal error")
        return self._text[self._at]

    def _peek_or_end(self) -> str:
        return self._text[self._at : self._at + 1]

    def _takes(self, token: str) -> bool:
        found = self._text.startswith(token, self._at)
        self._at += len(token) if found else 0
        return found

    def _expect(self, token: str) -> None:
        if not self._takes(token):
            raise self._error("Unclosed group")

    def _error(self, message: str) -> PatternError:
        return PatternError(f"{message} near index {self._at}: {self._text}")


def _special_text(opening: str, branches: list[str]) -> str:
    """A group that captures nothing. Python wants each branch of a look-behind to have its own."""
    if opening == "?<=" and len(branches) > 1:
        return "(?:" + "|".join(f"(?<={branch})" for branch in branches) + ")"
    if opening == "?<!" and len(branches) > 1:
        return "(?:" + "".join(f"(?<!{branch})" for branch in branches) + ")"
    text = f"({opening}{'|'.join(branches)})"
    return text if opening in ("?:", "?>") else f"(?:{text})"  # so that it can be repeated


def _character_text(code: int) -> str:
    character = chr(code)
    return character if character.isalnum() or code > 127 else "\\" + character


def _class_text(ranges: Ranges) -> str:
    if not ranges:
        return _NEVER
    if ranges == ((0, sets.LAST),):
        return "(?s:.)"
    parts = [
        _escaped_code(first) if first == last else f"{_escaped_code(first)}-{_escaped_code(last)}"
        for first, last in ranges
    ]
    return f"[{''.join(parts)}]"


def _escaped_code(code: int) -> str:
    return f"\\U{code:08x}"
