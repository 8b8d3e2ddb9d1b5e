"""Functions between texts and bytes: ENCODE, TO_BYTES, FROM_BYTES, MD5, INT_FROM_BYTES, ….

ENCODE is lenient (Apache Commons Codec), TO_BYTES strict (java.util.Base64). A character that
ASCII lacks becomes `?`; bytes that are no text become U+FFFD.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct
from collections.abc import Callable
from functools import partial

from barnabas.java.strings import decode_utf8
from barnabas.sql.errors import EvaluationError
from barnabas.sql.functions.catalog import scalar

STRING = "STRING"
_scalar = partial(scalar, category=STRING, null_is_null=True)
CONVERSIONS = "CONVERSIONS"

_BASE64_LETTERS = re.compile(r"[^A-Za-z0-9+/]")
_STRICT_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?")
_HEX_PREFIXED = re.compile(r"0x.*")
_HEX_QUOTED = re.compile(r"[xX]'.*'")


def _from_hex(text: str) -> bytes:
    try:
        return binascii.unhexlify(text)
    except ValueError:  # binascii.Error, or characters beyond ASCII
        raise EvaluationError(f"not hexadecimal: {text}") from None


def _from_marked_hex(text: str) -> bytes:
    """The bytes of `4B`, `0x4B` (then also of an odd number of digits) or `X'4B'`."""
    if _HEX_PREFIXED.fullmatch(text):
        digits = text[2:]
        return _from_hex("0" + digits if len(digits) % 2 else digits)
    return _from_hex(text[2:-1] if _HEX_QUOTED.fullmatch(text) else text)


def _from_lenient_base64(text: str) -> bytes:
    """The bytes of base64 in either alphabet; what is not of the alphabet is skipped."""
    letters = text.partition("=")[0].replace("-", "+").replace("_", "/")
    letters = _BASE64_LETTERS.sub("", letters)
    if len(letters) % 4 == 1:  # six bits are no byte
        letters = letters[:-1]
    return base64.b64decode(letters + "=" * (-len(letters) % 4))


def _from_strict_base64(text: str) -> bytes:
    if not _STRICT_BASE64.fullmatch(text):
        raise EvaluationError(f"not base64: {text}")
    return base64.b64decode(text + "=" * (-len(text) % 4))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _ascii(text: str) -> bytes:
    return text.encode("ascii", "replace")


_DECODERS: dict[str, Callable[[str], bytes]] = {
    "hex": _from_marked_hex,
    "utf8": _utf8,
    "ascii": _ascii,
    "base64": _from_lenient_base64,
}
_ENCODERS: dict[str, Callable[[bytes], str]] = {
    "hex": bytes.hex,
    "utf8": decode_utf8,
    "ascii": lambda value: value.decode("ascii", "replace"),
    "base64": lambda value: base64.b64encode(value).decode("ascii"),
}
_STRICT_DECODERS = {**_DECODERS, "hex": _from_hex, "base64": _from_strict_base64}
_UPPER_ENCODERS: dict[str, Callable[[bytes], str]] = {
    **_ENCODERS,
    "hex": lambda value: value.hex().upper(),
}


@_scalar(
    "encode",
    "(str STRING, inputEncoding STRING, outputEncoding STRING) -> STRING",
    description="Converts the text of bytes from one encoding to another: hex, utf8, ascii or "
    "base64. Hexadecimal digits may be written as 0x… or X'…'.",
    parameters={
        "str": "the text",
        "inputEncoding": "the encoding that it has",
        "outputEncoding": "the encoding that it gets",
    },
)
def encode(text: str, source: str, target: str) -> str:
    source, target = source.lower(), target.lower()
    if source not in _DECODERS or target not in _ENCODERS or source == target:
        raise EvaluationError(
            "Supported input and output encodings are: hex, utf8, ascii and base64"
        )
    return _ENCODERS[target](_DECODERS[source](text))


@_scalar(
    "to_bytes",
    "(value STRING, encoding STRING) -> BYTES",
    description="Decodes a text into bytes, from an encoding: hex, utf8, ascii or base64.",
    parameters={"value": "the text", "encoding": "its encoding"},
)
def to_bytes(text: str, encoding: str) -> bytes:
    return _STRICT_DECODERS[_known(encoding)](text)


@_scalar(
    "from_bytes",
    "(value BYTES, encoding STRING) -> STRING",
    description="The text of bytes in an encoding: hex, utf8, ascii or base64.",
    parameters={"value": "the bytes", "encoding": "the encoding of the text"},
)
def from_bytes(value: bytes, encoding: str) -> str:
    return _UPPER_ENCODERS[_known(encoding)](value)


def _known(encoding: str) -> str:
    name = encoding.lower()
    if name not in _ENCODERS:
        raise EvaluationError(
            f"Unknown encoding type '{encoding}'. "
            "Supported formats are 'hex', 'utf8', 'ascii', and 'base64'."
        )
    return name


@_scalar(
    "md5",
    "(s STRING) -> STRING",
    description="The MD5 hash of a text's UTF-8, in hexadecimal digits.",
    parameters={"s": "the text"},
)
def md5(text: str) -> str:
    return hashlib.md5(_utf8(text), usedforsecurity=False).hexdigest()


def _declare_number(name: str, result: str, size: int, code: str) -> None:
    """Declare the function that reads a number of `size` bytes, which `struct` calls `code`."""
    readers = {"BIG_ENDIAN": struct.Struct(f">{code}"), "LITTLE_ENDIAN": struct.Struct(f"<{code}")}

    @scalar(
        name,
        f"(value BYTES) -> {result}",
        f"(value BYTES, byteOrder STRING) -> {result}",
        description=f"The {result} that {size} bytes hold, in the order BIG_ENDIAN or "
        "LITTLE_ENDIAN.",
        category=CONVERSIONS,
        parameters={"value": "the bytes", "byteOrder": "their order; BIG_ENDIAN if it is left out"},
    )
    def number(value: bytes | None, order: str | None = "BIG_ENDIAN") -> int | float | None:
        reader = readers.get(order.upper()) if order is not None else None
        if reader is None:
            raise EvaluationError(
                "Byte order must be BIG_ENDIAN or LITTLE_ENDIAN. "
                f"Unknown byte order '{'null' if order is None else order}'."
            )
        if value is None:
            return None
        if len(value) != size:
            raise EvaluationError(
                f"Number of bytes must be equal to {size}, but found {len(value)}"
            )
        unpacked: int | float = reader.unpack(value)[0]
        return unpacked


_declare_number("int_from_bytes", "INTEGER", 4, "i")
_declare_number("bigint_from_bytes", "BIGINT", 8, "q")
_declare_number("double_from_bytes", "DOUBLE", 8, "d")
