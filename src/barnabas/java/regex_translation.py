"""Java's regular expressions, translated to Python's.

Most of the two languages is the same text. What differs, and is translated:

    . $ ^        Java knows more ends of lines than \\n
    [a-z&&[^b]]  unions, intersections and POSIX names in classes: worked out to plain ranges
    \\p{…} \\h \\v \\R \\x{…} \\Q…\\E \\cX \\0n \\e \\z \\Z \\k<name>
    (?i) in the middle of a pattern, flags d, u, x, U; upper and lower case of ASCII without u
    \\d \\w \\s   ASCII without U, where Python's are Unicode's; \\b is Unicode's (as before JDK 19)
    (?<name>…), look-behind of different lengths: (?<=a{1,3}|bc)

Not supported, with an error: look-behind with groups or possessive quantifiers of different
lengths, blocks (\\p{InGreek}), scripts without a Latin name in `character_sets`, \\G and \\X. A
reference to a group that is not closed yet never matches.
"""

from __future__ import annotations

import re

from barnabas.java import character_sets as sets
from barnabas.java.character_sets import Ranges
from barnabas.java.regex_characters import CharacterReader, PatternError


def translate(pattern: str) -> str:
    """The text of the same pattern for Python's `re`; raises PatternError."""
    return _Translator(_unquoted(pattern)).whole()


def _unquoted(pattern: str) -> str:
    """The pattern with backslashes in place of \\Q…\\E."""
    return _QUOTED.sub(
        lambda match: match[0] if match[1] is None else _PUNCTUATION.sub(r"\\\g<0>", match[1]),
        pattern,
    )


_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|\Z)|\\.", re.DOTALL)
_PUNCTUATION = re.compile(r"[^a-zA-Z0-9\x80-\U0010ffff]")
_QUANTIFIER = re.compile(r"([*+?]|\{[0-9]+(?:,[0-9]*)?\})([+?]?)")
_FLAGS = re.compile(r"\(\?([idmsuxU]*)(?:-([idmsuxU]*))?([:)])")
_NAMED = re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>")


_FORMS_MAX = 256
"""Fixed lengths to which a look-behind may be taken apart."""
_NEVER = "(?:(?!))"
_ENDS = "\\r\\x85\\u2028\\u2029"  # of lines, without \n
LINE_END = rf"(?:\Z|(?=\r\n\Z|[{_ENDS}]\Z)|(?<!\r)(?=\n\Z))"
"""The translation of `$` without flags: before the last end of line, or at the end."""
_ANCHORS = {
    "A": r"(?:\A)",
    "z": r"(?:\Z)",
    "b": r"(?u:\b)",
    "B": r"(?:(?!(?u:\b)))",  # Python's \B does not match in an empty text
    "R": r"(?:\r\n|[\n\x0b\f\r\x85\u2028\u2029])",
}


class _Translator(CharacterReader):
    """Translates a pattern while it reads it."""

    def __init__(self, pattern: str) -> None:
        super().__init__(pattern)
        self._groups = 0
        self._closed: set[int] = set()
        self._names: dict[str, int] = {}
        self._is_behind = False
        """True if it reads the branches of a look-behind."""

    def whole(self) -> str:
        branches = self._branches()
        if self.at < len(self.text):
            raise PatternError(f"Unmatched closing ')' near index {self.at}: {self.text}")
        return "|".join(branches)

    def _branches(self) -> list[str]:
        branches = self._sequence()
        while self.takes("|"):
            branches += self._sequence()
        return branches

    def _sequence(self) -> list[str]:
        """The parts between two bars: one text, in a look-behind one for each length."""
        forms = [""]
        while True:
            self.skip_comments()
            if self.at >= len(self.text) or self.text[self.at] in "|)":
                return forms
            if flags := _FLAGS.match(self.text, self.at):
                endings = self._flag_group(flags)
            else:
                endings = self._quantified("" if self.text[self.at] == "{" else self._atom())
            forms = [form + ending for form in forms for ending in endings]
            if len(forms) > _FORMS_MAX:
                raise self.error("Look-behind group has too many lengths")

    def _quantified(self, atom: str) -> list[str]:
        """The atom with the quantifier that follows, if one does."""
        self.skip_comments()
        match = _QUANTIFIER.match(self.text, self.at)
        if match is None:
            if self.text.startswith("{", self.at):
                raise self.error("Illegal repetition")
            return [atom]
        self.at = match.end()
        if not atom:
            return [""]
        if match[2] == "+":  # Python's own possessive quantifiers lose groups (3.11)
            return [f"(?>{atom}{match[1]})"]
        if self._is_behind and (counts := _counts(match[1])) and not _captures(atom):
            return [atom * count for count in counts]
        return [atom + match[0]]

    def _flag_group(self, match: re.Match[str]) -> list[str]:
        """`(?i)` changes what follows in this group, `(?i:…)` what is inside."""
        self.at = match.end()
        before = self.flags
        self.flags = (before | set(match[1])) - set(match[2] or "")
        if match[3] == ")":
            return [""]
        is_behind, self._is_behind = self._is_behind, False
        inside = "|".join(self._branches())
        self.expect(")")
        self.flags, self._is_behind = before, is_behind
        return self._quantified(f"(?:{inside})")

    def _atom(self) -> str:
        character = self.text[self.at]
        self.at += 1
        match character:
            case "(":
                return self._group()
            case "[":
                return _class_text(self.character_class())
            case "\\":
                return self._escape()
            case ".":
                return self._dot()
            case "^":
                return f"(?:{self._line_start()})"
            case "$":
                return f"(?:{self._line_end('m' in self.flags)})"
            case "*" | "+" | "?":
                raise self.error(f"Dangling meta character '{character}'")
        return self._literal(ord(character))

    def _group(self) -> str:
        before = self.flags, self._is_behind
        self._is_behind = False
        named = _NAMED.match(self.text, self.at - 1)
        if named:
            self.at = named.end()
            if named[1] in self._names:
                raise self.error(f"Named capturing group <{named[1]}> is already defined")
            result = self._capturing(f"(?P<{named[1]}>", named[1])
        elif not self.text.startswith("?", self.at):
            result = self._capturing("(")
        else:
            result = self._special_group()
        self.flags, self._is_behind = before
        return result

    def _capturing(self, opening: str, name: str | None = None) -> str:
        self._groups += 1
        number = self._groups
        if name:
            self._names[name] = number
        inside = "|".join(self._branches())
        self.expect(")")
        self._closed.add(number)
        return f"{opening}{inside})"

    def _special_group(self) -> str:
        for opening in ("?<=", "?<!", "?:", "?=", "?!", "?>"):
            if self.text.startswith(opening, self.at):
                self.at += len(opening)
                self._is_behind = opening in ("?<=", "?<!")
                branches = self._branches()
                self.expect(")")
                return _special_text(opening, branches)
        raise self.error("Unknown group")

    def _dot(self) -> str:
        if "s" in self.flags:
            return "(?s:.)"
        return "[^\\n]" if "d" in self.flags else f"[^\\n{_ENDS}]"

    def _line_start(self) -> str:
        if "m" not in self.flags:
            return r"\A"
        if "d" in self.flags:
            return r"\A|(?<=\n)(?!\Z)"
        return r"\A|(?<=[\n\x85\u2028\u2029])(?!\Z)|(?<=\r)(?!\n|\Z)"

    def _line_end(self, is_multiline: bool) -> str:
        end = "" if is_multiline else r"\Z"
        if "d" in self.flags:
            return rf"\Z|(?=\n{end})"
        crlf = "" if is_multiline else r"\r\n\Z|"
        return rf"\Z|(?={crlf}[{_ENDS}]{end})|(?<!\r)(?=\n{end})"

    def _literal(self, code: int) -> str:
        if "i" in self.flags:
            ranges = self.either_case(((code, code),))
            if len(ranges) > 1 or ranges[0][0] != ranges[0][1]:
                return _class_text(ranges)
        return _character_text(code)

    def _escape(self) -> str:
        letter = self.peek()
        if letter in _ANCHORS:
            self.at += 1
            return _ANCHORS[letter]
        if letter == "Z":
            self.at += 1
            return f"(?:{self._line_end(False)})"
        if letter == "k":
            return self._named_reference()
        if letter in "123456789":
            return self._numbered_reference()
        escaped = self.escaped()
        return self._literal(escaped) if isinstance(escaped, int) else _class_text(escaped)

    def _named_reference(self) -> str:
        match = re.compile(r"k<([a-zA-Z][a-zA-Z0-9]*)>").match(self.text, self.at)
        if match is None:
            raise self.error("\\k is not followed by '<' for named capturing group")
        self.at = match.end()
        if match[1] not in self._names:
            raise self.error(f"named capturing group <{match[1]}> does not exist")
        return self._reference(self._names[match[1]])

    def _numbered_reference(self) -> str:
        """More digits belong to the number as long as there are so many groups."""
        number = int(self.text[self.at])
        self.at += 1
        while (digit := self.peek_or_end()) and digit in "0123456789":
            if number * 10 + int(digit) > self._groups:
                break
            number = number * 10 + int(digit)
            self.at += 1
        return self._reference(number)

    def _reference(self, number: int) -> str:
        if number not in self._closed:
            return _NEVER
        if "i" not in self.flags:
            return f"(?:\\{number})"
        return f"(?{'iu' if not self.flags.isdisjoint('uU') else 'ia'}:\\{number})"


def _counts(quantifier: str) -> range | None:
    """The number of times that a quantifier repeats its atom; None for any number."""
    if quantifier in "*+":
        return None
    least, comma, most = ("0", ",", "1") if quantifier == "?" else quantifier[1:-1].partition(",")
    if comma and not most:
        return None
    low, high = int(least), int(most or least)
    return range(low, high + 1) if low <= high < _FORMS_MAX else None


def _captures(atom: str) -> bool:
    """Return whether the atom has groups that capture, so that it cannot stand twice."""
    return atom.startswith("(") and re.compile(atom).groups > 0


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
