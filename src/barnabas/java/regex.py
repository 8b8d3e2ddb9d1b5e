"""Java's regular expressions: compiled, searched and used for replacements as Java does.

`regex_translation` translates them to Python's patterns, and documents differences and gaps.
`regex_linear` searches long texts, for which Python's engine may take forever.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Protocol

from barnabas.java.regex_characters import JavaError, PatternError
from barnabas.java.regex_linear import (
    STEPS_HARMLESS,
    STEPS_MAX,
    Linear,
    ending_of,
    length_max,
    linear,
)
from barnabas.java.regex_translation import LINE_END, translate


class Match(Protocol):
    """The result of a search: the part of re.Match that is used here."""

    def start(self) -> int: ...

    def end(self) -> int: ...

    def __getitem__(self, group: int | str, /) -> str | None: ...


Search = Callable[[int], Match | None]
"""Finds the first match that begins there or later."""


class JavaPattern:
    """A pattern. `groups`: the number of its groups; `names`: the numbers of named groups."""

    def __init__(self, java: str) -> None:
        self.java = java
        self._pattern = re.compile(translate(java))
        self._linear: dict[str | None, Linear | None] = {}
        self.groups = self._pattern.groups
        self.names: Mapping[str, int] = self._pattern.groupindex

    @cached_property
    def is_empty_match(self) -> bool:
        """True if it matches the empty text."""
        return self._pattern.fullmatch("") is not None

    def matches(self, text: str) -> bool:
        """Return whether it matches the whole text: a short one, such as the name of a topic."""
        return self._pattern.fullmatch(text) is not None

    @cached_property
    def _harmless_length(self) -> int:
        return length_max(self._pattern.pattern, STEPS_HARMLESS)

    def over(self, text: str) -> Search:
        """Return the search over a text. Raises JavaError if it might take for ever."""
        if len(text) > self._harmless_length:
            search = self._linear_for(ending_of(text))
            if search is not None and (text.isascii() or not search.is_ascii):
                try:
                    return _LinearSearch(search, text, self.names)
                except UnicodeEncodeError:  # half a character: RE2 takes whole ones
                    pass
            if len(text) > length_max(self._pattern.pattern, STEPS_MAX):
                raise JavaError(
                    f"{len(text)} characters may take this regular expression for ever: {self.java}"
                )
        pattern = self._pattern
        return lambda at: pattern.search(text, at)

    def _linear_for(self, ending: str | None) -> Linear | None:
        if ending not in self._linear:
            self._linear[ending] = linear(self._pattern.pattern, LINE_END, ending)
        return self._linear[ending]


class _LinearSearch:
    """Searches a text as UTF-8, from left to right."""

    def __init__(self, pattern: Linear, text: str, names: Mapping[str, int]) -> None:
        self._pattern = pattern
        self._data = text.encode()
        self._names = names
        self._is_ascii = text.isascii()
        self._text = text
        self._place = self._byte = 0

    def __call__(self, at: int) -> Match | None:
        spans = self._pattern.search(self._data, self._byte_of(at))
        return None if spans is None else _LinearMatch(self._data, spans, self)

    def _byte_of(self, at: int) -> int:
        if self._is_ascii:
            return at
        if at >= self._place:
            self._byte += len(self._text[self._place : at].encode())
        else:
            self._byte = len(self._text[:at].encode())
        self._place = at
        return self._byte

    def place_of(self, byte: int) -> int:
        """The character that begins at a byte."""
        if self._is_ascii:
            return byte
        if byte >= self._byte:
            return self._place + len(self._data[self._byte : byte].decode())
        return len(self._data[:byte].decode())

    def number_of(self, group: int | str) -> int:
        return self._names[group] if isinstance(group, str) else group


class _LinearMatch:
    def __init__(self, data: bytes, spans: list[tuple[int, int]], search: _LinearSearch) -> None:
        self._data, self._spans, self._search = data, spans, search
        self._start = search.place_of(spans[0][0])
        self._end = search.place_of(spans[0][1])

    def start(self) -> int:
        return self._start

    def end(self) -> int:
        return self._end

    def __getitem__(self, group: int | str, /) -> str | None:
        start, end = self._spans[self._search.number_of(group)]
        return None if start < 0 else self._data[start:end].decode()


@lru_cache(maxsize=512)
def compile_java(pattern: str) -> JavaPattern:
    """The pattern; raises PatternError."""
    try:
        return JavaPattern(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(f"{error}: {pattern}") from None


def find_all(pattern: JavaPattern, text: str) -> Iterator[Match]:
    """The matches that repeated calls of Java's find() give, from left to right.

    After an empty match Java goes on one character later; Python would look for a longer one there.
    """
    at, search = 0, pattern.over(text)
    while at <= len(text) and (match := search(at)):
        yield match
        at = match.end() + (match.start() == match.end())


def expand(template: str, match: Match, pattern: JavaPattern) -> str:
    """The replacement that `$1`, `${name}` and backslashes in the template tell."""
    if "$" not in template and "\\" not in template:
        return template
    return _REFERENCE.sub(lambda matched: _referenced(matched, match, pattern), template)


_REFERENCE = re.compile(r"\\(.)|\$\{([a-zA-Z][a-zA-Z0-9]*)\}|\$([0-9]+)|\\|\$", re.DOTALL)


def _referenced(matched: re.Match[str], match: Match, pattern: JavaPattern) -> str:
    if matched[1] is not None:
        return matched[1]
    if matched[2] is not None:
        if matched[2] not in pattern.names:
            raise JavaError(f"No group with name {{{matched[2]}}}")
        return match[matched[2]] or ""
    if matched[3] is None:
        raise JavaError(f"Illegal group reference in {matched.string}")
    digits = matched[3]  # as many of them as name a group; the first must
    size = next((n for n in range(len(digits), 1, -1) if int(digits[:n]) <= pattern.groups), 1)
    if int(digits[:size]) > pattern.groups:
        raise JavaError(f"No group {digits[:size]}")
    return (match[int(digits[:size])] or "") + digits[size:]
