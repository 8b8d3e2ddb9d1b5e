"""Functions of regular expressions, which are Java's (`java_regex`)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from barnabas.java.regex import JavaPattern, compile_java, expand, find_all
from barnabas.java.regex_characters import PatternError
from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.catalog import scalar

REGULAR_EXPRESSION = "REGULAR EXPRESSION"
_scalar = partial(scalar, category=REGULAR_EXPRESSION, null_is_null=True)

_PARAMETERS = {
    "pattern": "the regular expression",
    "input": "the text",
    "group": "the number of the group whose text counts; 0, the whole match, if it is left out",
}


def _compiled(pattern: str) -> JavaPattern:
    try:
        return compile_java(pattern)
    except PatternError as error:
        raise EvaluationError(f"Invalid regular expression pattern: {pattern} ({error})") from None


def _check_group(group: int) -> None:
    if group < 0:
        raise EvaluationError(f"No group {group}")


@_scalar(
    "regexp_extract",
    "(pattern STRING, input STRING) -> STRING",
    "(pattern STRING, input STRING, group INTEGER) -> STRING",
    description="The first part of the text that the expression matches, or what a group of it "
    "matches there. NULL without a match.",
    parameters=_PARAMETERS,
)
def regexp_extract(pattern: str, text: str, group: int = 0) -> str | None:
    compiled = _compiled(pattern)
    if group > compiled.groups:
        return None
    match = compiled.over(text)(0)
    if match is None:
        return None
    _check_group(group)
    return match[group]


@_scalar(
    "regexp_extract_all",
    "(pattern STRING, input STRING) -> ARRAY<STRING>",
    "(pattern STRING, input STRING, group INTEGER) -> ARRAY<STRING>",
    description="All parts of the text that the expression matches, or what a group of it "
    "matches there. NULL if there is no such group.",
    parameters=_PARAMETERS,
)
def regexp_extract_all(pattern: str, text: str, group: int = 0) -> list[str | None] | None:
    compiled = _compiled(pattern)
    if group > compiled.groups:
        return None
    matches = list(find_all(compiled, text))
    if matches:
        _check_group(group)
    return [match[group] for match in matches]


@_scalar(
    "regexp_replace",
    "(str STRING, regexp STRING, newStr STRING) -> STRING",
    description="The text with another one in place of each match of the expression; $1 in it "
    "stands for what the first group matches.",
    parameters={
        "str": "the text",
        "regexp": "the regular expression",
        "newStr": "what to put in place of matches",
    },
)
def regexp_replace(text: str, pattern: str, new: str) -> str:
    pieces: list[str] = []
    start = 0
    compiled = _compiled(pattern)
    for match in find_all(compiled, text):
        pieces += (text[start : match.start()], expand(new, match, compiled))
        start = match.end()
    return "".join((*pieces, text[start:]))


@_scalar(
    "regexp_split_to_array",
    "(string STRING, regexp STRING) -> ARRAY<STRING>",
    description="The pieces of the text between matches of the expression, with the empty ones; "
    "its characters if the expression is empty.",
    parameters={"string": "the text", "regexp": "the regular expression"},
)
def regexp_split_to_array(text: str, pattern: str) -> list[str]:
    compiled = _compiled(pattern)
    if not pattern or compiled.is_empty_match:
        return split_as_java(text, compiled)
    return list(_split(text, compiled))


def split_as_java(text: str, pattern: JavaPattern) -> list[str]:
    """As Pattern.split: no empty piece before the first character, none at the end."""
    pieces: list[str] = []
    start = 0
    for match in find_all(pattern, text):
        if match.end() == 0:
            continue
        pieces.append(text[start : match.start()])
        start = match.end()
    if not pieces:
        return [text]
    pieces.append(text[start:])
    while pieces and not pieces[-1]:
        pieces.pop()
    return pieces


def _split(text: str, pattern: JavaPattern) -> Iterator[str]:
    """As Guava's Splitter: an empty match where a piece begins does not count."""
    start = position = 0
    search = pattern.over(text)
    while match := search(position) if position <= len(text) else None:
        if match.end() == start:
            position = start + 1
            continue
        yield text[start : match.start()]
        start = position = match.end()
    yield text[start:]
