"""Regular expressions in linear time: RE2 patterns made from those for Python's `re`.

`re` backtracks and holds the interpreter lock during that time: `(a+)+$` over thirty
letters takes minutes. RE2 follows all alternatives at once. It finds the same matches if it has the
same constructs; `linear` returns None for patterns with others (look-around, references, possessive
quantifiers). RE2 takes ten times as long for a short text, so `length_max` is the length up to
which `re` cannot take long either.

`$` is look-ahead in Java: it also matches before the last end of line. At the end of a pattern it
is replaced by an empty group, followed by the rest of the text. The group's position is the end of
the match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from re import _constants as ops
from re import _parser as parser
from typing import Any, Final

STEPS_HARMLESS: Final = 1_000_000
"""So many steps of `re` take a hundredth of a second."""
STEPS_MAX: Final = 1_000_000_000
"""The limit for patterns that RE2 does not support."""
_LENGTH_MAX: Final = 2**31
_REPEATS_MAX: Final = 1_000
"""RE2 refuses more."""
_MANY: Final = 16
_END_MARK: Final = "\ufdd0"
_LINE_ENDS: Final = "\r\n\x85\u2028\u2029"

Tree = Sequence[tuple[Any, Any]]


class NotLinearError(Exception):
    """RE2 lacks some of a pattern's constructs."""


@dataclass
class _Writer:
    """Writes a tree as RE2's text. `ending`: what `$` lets follow, None for nothing at all."""

    ending: str | None
    groups: list[int] = field(default_factory=list)
    """By number of a group in `re`, less one, its number in RE2."""
    ends: list[int] = field(default_factory=list)
    """The empty groups that stand at the end of a match."""
    is_ascii: bool = False
    """True if the text is right for ASCII only."""
    _count: int = 0

    def sequence(self, tree: Tree, *, is_last: bool) -> str:
        last = len(tree) - 1
        return "".join(
            self._item(op, value, is_last=is_last and at == last)
            for at, (op, value) in enumerate(tree)
        )

    def _item(self, op: Any, value: Any, *, is_last: bool) -> str:
        if op is ops.LITERAL:
            if chr(value) == _END_MARK:
                return self._end(is_last=is_last)
            return _code(value)
        if op is ops.NOT_LITERAL:
            return f"[^{_code(value)}]"
        if op is ops.ANY:
            raise NotLinearError  # the translation has none but in (?s:.)
        if op is ops.IN:
            return _class(value)
        if op is ops.BRANCH:
            branches = [self.sequence(branch, is_last=is_last) for branch in value[1]]
            return f"(?:{'|'.join(branches)})"
        if op is ops.SUBPATTERN:
            return self._group(value, is_last=is_last)
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT):
            return self._repeat(value, "" if op is ops.MAX_REPEAT else "?")
        if op is ops.AT:
            return self._place(value)
        if op is ops.FAILURE:
            return r"[^\x00-\x{10FFFF}]"
        raise NotLinearError

    def _end(self, *, is_last: bool) -> str:
        if self.ending is None:
            return r"\z"
        if not is_last:
            raise NotLinearError
        self._count += 1
        self.ends.append(self._count)
        return rf"()(?:\z|{self.ending}\z)"

    def _group(self, value: Any, *, is_last: bool) -> str:
        number, added, removed, inside = value
        if added == ops.SRE_FLAG_DOTALL and not removed and list(inside) == [(ops.ANY, None)]:
            return "(?s:.)"
        if added == ops.SRE_FLAG_UNICODE and list(inside) == [(ops.AT, ops.AT_BOUNDARY)]:
            self.is_ascii = True
            return r"\b"
        if added or removed:
            raise NotLinearError
        if number is None:
            return f"(?:{self.sequence(inside, is_last=is_last)})"
        self._count += 1
        self.groups.append(self._count)
        return f"({self.sequence(inside, is_last=False)})"

    def _repeat(self, value: Any, lazy: str) -> str:
        least, most, inside = value
        if least > _REPEATS_MAX or (most is not ops.MAXREPEAT and most > _REPEATS_MAX):
            raise NotLinearError
        if inside.getwidth()[0] == 0:
            raise NotLinearError  # what its groups hold is another matter in RE2
        text = self.sequence(inside, is_last=False)
        bounds = f"{{{least},{'' if most is ops.MAXREPEAT else most}}}"
        return f"(?:{text}){bounds}{lazy}"

    @staticmethod
    def _place(value: Any) -> str:
        if value is ops.AT_BEGINNING_STRING:
            return r"\A"
        if value is ops.AT_END_STRING:
            return r"\z"
        raise NotLinearError


def _code(code: int) -> str:
    if 0xD800 <= code < 0xE000:
        raise NotLinearError
    return f"\\x{{{code:x}}}"


def _class(items: Any) -> str:
    parts, negated = [], ""
    for op, value in items:
        if op is ops.NEGATE:
            negated = "^"
        elif op is ops.LITERAL:
            parts.append(_code(value))
        elif op is ops.RANGE:
            parts.append(_range(*value))
        else:
            raise NotLinearError
    return f"[{negated}{''.join(parts)}]"


def _range(first: int, last: int) -> str:
    """Surrogates are in no text that RE2 is given."""
    first = 0xE000 if 0xD800 <= first < 0xE000 else first
    last = 0xD7FF if 0xD800 <= last < 0xE000 else last
    if first > last:
        raise NotLinearError
    return f"{_code(first)}-{_code(last)}"


@dataclass(frozen=True)
class Linear:
    """A pattern for RE2, on UTF-8. `ending`: of the texts that it is for."""

    pattern: Any
    groups: Sequence[int]
    ends: Sequence[int]
    is_ascii: bool

    def search(self, data: bytes, at: int) -> list[tuple[int, int]] | None:
        """The spans of the whole match and of the groups; (-1, -1) for those that are in none."""
        match = self.pattern.search(data, at)
        if match is None:
            return None
        start, end = match.span()
        marks = [place for number in self.ends if (place := match.end(number)) >= 0]
        end = marks[0] if marks else end
        return [(start, end), *(match.span(number) for number in self.groups)]


def linear(text: str, line_end: str, ending: str | None) -> Linear | None:
    """RE2's pattern of a text for `re`; None where it has none.

    `line_end`: what stands for `$` in the text. `ending`: the end of line that the texts to be
    searched end with, None where they end with none.
    """
    if _END_MARK in text:
        return None
    import re2  # type: ignore[import-untyped]  # no stubs; few queries need it

    writer = _Writer(ending and "".join(_code(ord(character)) for character in ending))
    options = re2.Options()
    options.log_errors = False
    try:
        tree = parser.parse(text.replace(line_end, _END_MARK))
        written = writer.sequence(tree, is_last=True)
        pattern = re2.compile(written.encode(), options)
    except (NotLinearError, RecursionError, re2.error):
        return None
    return Linear(pattern, tuple(writer.groups), tuple(writer.ends), writer.is_ascii)


def ending_of(text: str) -> str | None:
    """The end of line that a text ends with."""
    if text.endswith("\r\n"):
        return "\r\n"
    return text[-1] if text and text[-1] in _LINE_ENDS else None


def length_max(text: str, steps: int) -> int:
    """Up to which length of texts `re` takes less than so many steps for a pattern, about.

    Repeats one behind the other multiply their lengths; ones within each other, or that can go
    more than one way, double with every character.
    """
    repeats, is_nested = _risk(parser.parse(text))
    if is_nested:
        return steps.bit_length()
    return _LENGTH_MAX if repeats == 0 else int(steps ** (1 / (repeats + 1)))


def repeats_nothing(text: str) -> bool:
    """Whether a part that may be empty is repeated: in RE2 its groups hold something else then."""
    return _repeats_nothing(parser.parse(text))


def _repeats_nothing(tree: Tree) -> bool:
    return any(
        (op in _REPEATS and value[1] > 1 and value[2].getwidth()[0] == 0)
        or any(_repeats_nothing(inside) for inside in _inner(op, value))
        for op, value in tree
    )


def _risk(tree: Tree) -> tuple[int, bool]:
    """Return the number of repeats, and whether one of them can match in more than one way."""
    repeats, is_nested = 0, False
    for op, value in tree:
        for inside in _inner(op, value):
            count, is_nested_inside = _risk(inside)
            if op in _REPEATS and value[1] > _MANY:
                is_nested = is_nested or count > 0 or _branches(inside)
            repeats += count
            is_nested = is_nested or is_nested_inside
        repeats += op in _REPEATS and value[0] != value[1]
    return repeats, is_nested


def _branches(tree: Tree) -> bool:
    return any(
        op is ops.BRANCH or any(_branches(inside) for inside in _inner(op, value))
        for op, value in tree
    )


_REPEATS: Final = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)


def _inner(op: Any, value: Any) -> Sequence[Tree]:
    """The trees within a part of a tree."""
    if op in _REPEATS:
        return (value[2],)
    if op is ops.BRANCH:
        return tuple(value[1])
    if op is ops.SUBPATTERN:
        return (value[3],)
    if op in (ops.ASSERT, ops.ASSERT_NOT):
        return (value[1],)
    if op is ops.ATOMIC_GROUP:
        return (value,)
    if op is ops.GROUPREF_EXISTS:
        return tuple(part for part in value[1:] if part is not None)
    return ()
