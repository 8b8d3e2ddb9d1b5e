"""Functions of strings that need no positions: case, joining, splitting, choosing, trimming.

Several take BYTES as well. NULL gives NULL unless a description says otherwise.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from functools import partial

from barnabas.java.numbers import JAVA_SPACE
from barnabas.java.strings import from_units
from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.catalog import scalar

STRING = "STRING"
"""The category of these functions in SHOW FUNCTIONS."""
_scalar = partial(scalar, category=STRING, null_is_null=True)


@_scalar(
    "lcase",
    "(input STRING) -> STRING",
    description="The text in lower case.",
    parameters={"input": "the text"},
)
def lcase(text: str) -> str:
    return text.lower()


@_scalar(
    "ucase",
    "(input STRING) -> STRING",
    description="The text in upper case.",
    parameters={"input": "the text"},
)
def ucase(text: str) -> str:
    return text.upper()


_WORD = re.compile(r"\S+\s*", re.ASCII)


@_scalar(
    "initcap",
    "(str STRING) -> STRING",
    description="The text with the first letter of each word in upper case and all others in "
    "lower case. White space ends a word; that before the first word is dropped.",
    parameters={"str": "the text"},
)
def initcap(text: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in _WORD.findall(text.lower()))


@_scalar(
    "trim",
    "(input STRING) -> STRING",
    description="The text without white space and control characters at its ends.",
    parameters={"input": "the text"},
)
def trim(text: str) -> str:
    return text.strip(JAVA_SPACE)


@_scalar(
    "replace",
    "(str STRING, oldStr STRING, newStr STRING) -> STRING",
    description="The text with another one in place of each occurrence of a part.",
    parameters={
        "str": "the text",
        "oldStr": "the part to replace",
        "newStr": "what to put in its place",
    },
)
def replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new)


@scalar(
    "concat",
    "(inputs STRING...) -> STRING",
    description="All texts (or all bytes) one after another; NULLs are left out.",
    category=STRING,
    parameters={"inputs": "the texts to join"},
)
def concat(*texts: str | None) -> str:
    return "".join([text for text in texts if text is not None])


@scalar("concat", "(inputs BYTES...) -> BYTES", parameters={"inputs": "the bytes to join"})
def concat_bytes(*pieces: bytes | None) -> bytes:
    return b"".join([piece for piece in pieces if piece is not None])


@scalar(
    "concat_ws",
    "(inputs STRING...) -> STRING",
    description="All texts (or all bytes) but the first, with the first between them; NULLs "
    "are left out. NULL if the first is NULL.",
    category=STRING,
    parameters={"inputs": "the separator, then the texts to join"},
)
def concat_ws(*inputs: str | None) -> str | None:
    _want_two(inputs)
    separator, *texts = inputs
    return None if separator is None else separator.join([t for t in texts if t is not None])


@scalar(
    "concat_ws",
    "(inputs BYTES...) -> BYTES",
    parameters={"inputs": "the separator, then the bytes to join"},
)
def concat_ws_bytes(*inputs: bytes | None) -> bytes | None:
    _want_two(inputs)
    separator, *pieces = inputs
    return None if separator is None else separator.join([p for p in pieces if p is not None])


def _want_two(inputs: tuple[object, ...]) -> None:
    if len(inputs) < 2:
        raise EvaluationError("Function Concat_WS expects at least two input arguments.")


@_scalar(
    "split",
    "(string STRING, delimiter STRING) -> ARRAY<STRING>",
    description="The pieces of a text (or bytes) between delimiters, with the empty ones; each "
    "character (or byte) if the delimiter is empty.",
    variation="Splits a text.",
    parameters={"string": "the text to split", "delimiter": "what separates the pieces"},
)
def split(text: str, delimiter: str) -> list[str]:
    if delimiter:
        return text.split(delimiter)
    return list(text) or [""]


@_scalar(
    "split",
    "(bytes BYTES, delimiter BYTES) -> ARRAY<BYTES>",
    variation="Splits bytes.",
    parameters={"bytes": "the bytes to split", "delimiter": "what separates the pieces"},
)
def split_bytes(value: bytes, delimiter: bytes) -> list[bytes]:
    if delimiter:
        return value.split(delimiter)
    return [value[i : i + 1] for i in range(len(value))] or [b""]


@_scalar(
    "split_to_map",
    "(input STRING, entryDelimiter STRING, kvDelimiter STRING) -> MAP<STRING, STRING>",
    description="Parses a text into a map: `entryDelimiter` separates entries, `kvDelimiter` a "
    "key from its value. The last of several values for a key counts; entries without "
    "`kvDelimiter` are left out. NULL if a delimiter is empty, or both are the same.",
    parameters={
        "input": "the text",
        "entryDelimiter": "what separates entries",
        "kvDelimiter": "what separates a key from its value",
    },
)
def split_to_map(text: str, entry_delimiter: str, pair_delimiter: str) -> dict[str, str] | None:
    if not entry_delimiter or not pair_delimiter or entry_delimiter == pair_delimiter:
        return None
    pairs = (e.split(pair_delimiter) for e in text.split(entry_delimiter) if pair_delimiter in e)
    return {pair[0]: pair[1] for pair in pairs}


@scalar(
    "elt",
    "(n INTEGER, args STRING...) -> STRING",
    description="The n-th of the texts, counted from 1; NULL beyond the last. The inverse of "
    "FIELD.",
    category=STRING,
    parameters={"n": "which text", "args": "the texts"},
)
def elt(n: int | None, *texts: str | None) -> str | None:
    if n is None:
        raise EvaluationError("ELT needs a number that is not NULL.")
    return texts[n - 1] if 1 <= n <= len(texts) else None


@scalar(
    "field",
    "(str STRING, args STRING...) -> INTEGER",
    description="The position of a text among others, counted from 1; 0 if it is not one of "
    "them, or NULL. The inverse of ELT.",
    category=STRING,
    parameters={"str": "the text to look for", "args": "where to look"},
)
def field(text: str | None, *texts: str | None) -> int:
    return texts.index(text) + 1 if text is not None and text in texts else 0


@_scalar(
    "Chr",
    "(decimalCode INTEGER) -> STRING",
    description="The character of a code, or of the text of Java escapes like \\u004b.",
    parameters={"decimalCode": "the code point, in decimal"},
)
def character(code: int) -> str | None:
    return from_units(chr(code)) if 0 <= code <= 0x10FFFF else None


@_scalar(
    "Chr",
    "(utf16Code STRING) -> STRING",
    parameters={"utf16Code": "an escape of UTF-16 such as \\u004b, or two for one character"},
)
def character_of_escape(escape: str) -> str | None:
    if len(escape) < 6 or not escape.startswith("\\u"):
        return None
    return from_units(_ESCAPE.sub(_unescaped, escape))


_ESCAPE = re.compile(r"\\(?:u+\+?([0-9a-fA-F]{4})|([0-3]?[0-7]{1,2})|(.)|)", re.DOTALL)
_CONTROLS = {"b": "\b", "n": "\n", "t": "\t", "f": "\f", "r": "\r"}


def _unescaped(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    if match[2]:
        return chr(int(match[2], 8))
    if match[3] == "u":
        raise EvaluationError(f"not four hexadecimal digits after \\u: {match.string}")
    return _CONTROLS.get(match[3], match[3] or "")


make_uuid: Callable[[], uuid.UUID] = uuid.uuid4
"""Makes the random UUIDs; tests put a known one here."""


@scalar(
    "UUID",
    "() -> STRING",
    description="A universally unique identifier as text: a random one (version 4 of RFC 4122), "
    "or the one that 16 bytes hold.",
    category=STRING,
    is_volatile=True,
    variation="A random one.",
)
def random_uuid() -> str:
    return str(make_uuid())


@_scalar(
    "UUID",
    "(bytes BYTES) -> STRING",
    variation="The one that the bytes hold; NULL if they are not 16.",
)
def uuid_of_bytes(value: bytes) -> str | None:
    return str(uuid.UUID(bytes=value)) if len(value) == 16 else None
