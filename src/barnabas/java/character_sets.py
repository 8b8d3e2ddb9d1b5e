"""Sets of characters for Java's regular expressions: ranges of code points, and those with names.

A set is a tuple of ranges (first, last), ascending, that neither overlap nor touch.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]

LAST = 0x10FFFF


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The set of all characters in any of the ranges."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """All other characters."""
    result = []
    start = 0
    for first, last in ranges:
        if first > start:
            result.append((start, first - 1))
        start = last + 1
    if start <= LAST:
        result.append((start, LAST))
    return tuple(result)


def intersection(left: Ranges, right: Ranges) -> Ranges:
    """The characters in both sets."""
    return complement(union((*complement(left), *complement(right))))


def of(characters: str) -> Ranges:
    """The set of the characters of a text."""
    return union((ord(c), ord(c)) for c in characters)


def with_other_case(ranges: Ranges, *, is_unicode: bool) -> Ranges:
    """The set with both forms of all its letters, upper and lower case (of ASCII, or all)."""
    pairs = _case_pairs() if is_unicode else _ascii_case_pairs()
    extra = [(b, b) for a, b in pairs if _has(ranges, a)]
    return union((*ranges, *extra)) if extra else ranges


def _has(ranges: Ranges, code: int) -> bool:
    return any(first <= code <= last for first, last in ranges)


@cache
def _ascii_case_pairs() -> tuple[tuple[int, int], ...]:
    lower = [(code, code - 32) for code in range(ord("a"), ord("z") + 1)]
    return tuple(lower + [(b, a) for a, b in lower])


@cache
def _case_pairs() -> tuple[tuple[int, int], ...]:
    pairs = set()
    for code in range(LAST + 1):
        character = chr(code)
        for other in (character.lower(), character.upper()):
            if len(other) == 1 and other != character:
                pairs |= {(code, ord(other)), (ord(other), code)}
    return tuple(sorted(pairs))


DIGIT = of("0123456789")
WORD = union([(48, 57), (65, 90), (95, 95), (97, 122)])
SPACE = of(" \t\n\x0b\f\r")
HORIZONTAL = union([*of(" \t\xa0\u1680\u180e\u202f\u205f\u3000"), (0x2000, 0x200A)])
VERTICAL = of("\n\x0b\f\r\x85\u2028\u2029")

_POSIX: dict[str, Ranges] = {
    "Lower": ((97, 122),),
    "Upper": ((65, 90),),
    "ASCII": ((0, 127),),
    "Alpha": ((65, 90), (97, 122)),
    "Digit": DIGIT,
    "Alnum": ((48, 57), (65, 90), (97, 122)),
    "Punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "Graph": ((33, 126),),
    "Print": ((32, 126),),
    "Blank": of(" \t"),
    "Cntrl": ((0, 31), (127, 127)),
    "XDigit": ((48, 57), (65, 70), (97, 102)),
    "Space": SPACE,
    "L1": ((0, 255),),
    "ALL": ((0, LAST),),
}

_CATEGORIES_OF = {
    "ALPHABETIC": ("L", "Nl"),
    "LETTER": ("L",),
    "IDEOGRAPHIC": ("Nl", "Lo"),
    "UPPERCASE": ("Lu",),
    "LOWERCASE": ("Ll",),
    "TITLECASE": ("Lt",),
    "PUNCTUATION": ("P",),
    "CONTROL": ("Cc",),
    "DIGIT": ("Nd",),
    "ALNUM": ("L", "Nd"),
    "WORD": ("L", "M", "Nd", "Pc"),
}
"""Unicode's properties, by the categories that make them up (nearly: the lists of exceptions that
Unicode keeps besides are not in Python)."""

_JAVA = {
    "javaLowerCase": ("Ll",),
    "javaUpperCase": ("Lu",),
    "javaTitleCase": ("Lt",),
    "javaDigit": ("Nd",),
    "javaLetter": ("L",),
    "javaAlphabetic": ("L", "Nl"),
    "javaLetterOrDigit": ("L", "Nd"),
    "javaISOControl": ("Cc",),
    "javaSpaceChar": ("Z",),
}

_SCRIPTS = {
    "LATIN": ("LATIN ", "FULLWIDTH LATIN "),
    "GREEK": ("GREEK ",),
    "CYRILLIC": ("CYRILLIC ",),
    "ARABIC": ("ARABIC ",),
    "HEBREW": ("HEBREW ",),
    "THAI": ("THAI ",),
    "DEVANAGARI": ("DEVANAGARI ",),
    "HIRAGANA": ("HIRAGANA ",),
    "KATAKANA": ("KATAKANA ",),
    "HANGUL": ("HANGUL ",),
    "HAN": ("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH", "CJK RADICAL", "KANGXI "),
}
"""Scripts, by how the names of their letters begin."""


@cache
def named(name: str) -> Ranges | None:
    """The set that `\\p{name}` stands for, or None if it is not known."""
    if name in _POSIX:
        return _POSIX[name]
    if name in _JAVA:
        return of_categories(*_JAVA[name])
    if name == "javaWhitespace":
        return _java_whitespace()
    key, separator, value = name.partition("=")
    if separator:
        if key.lower() in ("gc", "general_category"):
            return _category(value)
        return _script(value) if key.lower() in ("sc", "script") else None
    if name.startswith("Is"):
        return _property(name[2:])
    return _category(name)


def _java_whitespace() -> Ranges:
    spaces = intersection(of_categories("Z"), complement(of("\xa0\u2007\u202f")))
    return union([*spaces, (9, 13), (28, 31)])


def _property(name: str) -> Ranges | None:
    upper = name.upper()
    if upper in _CATEGORIES_OF:
        return of_categories(*_CATEGORIES_OF[upper])
    if upper in ("WHITE_SPACE", "WHITESPACE"):
        return union([*of_categories("Z"), *of("\t\n\x0b\f\r\x85")])
    return _category(name) or _script(name)


def _category(name: str) -> Ranges | None:
    if name == "LC":
        return of_categories("Lu", "Ll", "Lt")
    if name == "LD":
        return of_categories("L", "Nd")
    return of_categories(name) or None


def of_categories(*names: str) -> Ranges:
    """The characters of Unicode's categories: `Lu`, or `L` for all whose names begin so."""
    table = _by_category()
    return union(
        ranges
        for category, members in table.items()
        if any(category == name or (len(name) == 1 and category[0] == name) for name in names)
        for ranges in members
    )


@cache
def _by_category() -> dict[str, Ranges]:
    """The characters of each category; takes a moment to make."""
    by_category: dict[str, list[tuple[int, int]]] = {}
    start, current = 0, unicodedata.category("\0")
    for code in range(1, LAST + 1):
        category = unicodedata.category(chr(code))
        if category != current:
            by_category.setdefault(current, []).append((start, code - 1))
            start, current = code, category
    by_category.setdefault(current, []).append((start, LAST))
    return {category: tuple(ranges) for category, ranges in by_category.items()}


def _script(name: str) -> Ranges | None:
    prefixes = _SCRIPTS.get(name.upper())
    if prefixes is None:
        return None
    return union(
        (code, code)
        for code in range(LAST + 1)
        if unicodedata.name(chr(code), "").startswith(prefixes)
    )
