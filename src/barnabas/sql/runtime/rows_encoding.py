"""Rows and state values as bytes, and keys of stores as bytes whose order is that of the keys.

A value is one byte that names the layout, then the value in MessagePack; decimals and whole numbers
beyond 64 bits are extensions that hold their text. Tuples come back as lists. The same value gives
the same bytes: a foreign-key join compares hashes of them.

A key is a sequence of parts, each with a byte for its kind; kinds sort None, False, True, numbers,
text, bytes, lists, dicts. `bench/sql_runtime.py` measures both.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final

import msgpack  # type: ignore[import-untyped]  # it has no types

from barnabas.java.hash import murmur2

_LAYOUT: Final = b"\x01"
_DECIMAL: Final = 1
_WHOLE: Final = 2
"""Codes of extensions."""
_SURROGATES: Final = "surrogatepass"
"""Texts may hold half of a character, as Java's do."""


class EncodingError(Exception):
    """Bytes are not what this module wrote, or a value is of no SQL type."""


def pack(value: Any) -> bytes:
    """The bytes of a value of None, bool, int, float, str, bytes, Decimal, list, tuple, dict."""
    try:
        data: bytes = msgpack.packb(value, default=_extension, unicode_errors=_SURROGATES)
    except ValueError as error:  # nested too deeply
        raise EncodingError(f"cannot write a value: {error}") from error
    return _LAYOUT + data


def unpack(data: bytes) -> Any:
    """The value that `pack` was given."""
    if data[:1] != _LAYOUT:
        raise EncodingError(f"unknown layout of a value: {data[:1]!r}")
    try:
        return msgpack.unpackb(
            memoryview(data)[1:],
            ext_hook=_extended,
            strict_map_key=False,
            unicode_errors=_SURROGATES,
        )
    except (ValueError, ArithmeticError) as error:
        raise EncodingError(f"cannot read a value of {len(data)} bytes: {error}") from error


def _extension(value: Any) -> msgpack.ExtType:
    if isinstance(value, Decimal):
        return msgpack.ExtType(_DECIMAL, str(value).encode())
    if isinstance(value, int):
        return msgpack.ExtType(_WHOLE, str(value).encode())
    raise EncodingError(f"{type(value).__name__} is not a SQL value")


def _extended(code: int, data: bytes) -> Any:
    if code == _DECIMAL:
        return Decimal(data.decode())
    if code == _WHOLE:
        return int(data)
    raise EncodingError(f"unknown extension {code} in a value")


# --- keys ------------------------------------------------------------------------------------

_NONE: Final = 0x01
_FALSE: Final = 0x02
_TRUE: Final = 0x03
_INTEGER: Final = 0x04
_FLOAT: Final = 0x05
_DECIMAL_NEGATIVE: Final = 0x06
_DECIMAL_ZERO: Final = 0x07
_DECIMAL_POSITIVE: Final = 0x08
_TEXT: Final = 0x09
_BYTES: Final = 0x0A
_LIST: Final = 0x0B
_DICT: Final = 0x0C
_END: Final = b"\x00"
"""Ends text, bytes, lists and dicts; less than any kind, so that a prefix sorts first."""

_SIGN: Final = 1 << 63
_ALL: Final = (1 << 64) - 1
_pack_long: Final = struct.Struct(">BQ").pack
_read_long: Final = struct.Struct(">Q").unpack_from
_read_longs: Final = struct.Struct(">BQBQ").unpack_from
_pack_double: Final = struct.Struct(">d").pack


def encode_key(key: Iterable[Any]) -> bytes:
    """The bytes of a key; they compare as keys do, part by part, and a prefix comes first."""
    parts: list[bytes] = []
    for part in key:
        kind = type(part)
        if kind is int:
            if not -_SIGN <= part < _SIGN:
                raise EncodingError(f"{part} is out of the range of BIGINT")
            parts.append(_pack_long(_INTEGER, part + _SIGN))
        elif kind is str:
            parts.append(b"\x09" + _escaped(part.encode("utf-8", "surrogatepass")))
        else:
            parts.append(_encode_other(part))
    return b"".join(parts)


def encode_keys(keys: Sequence[tuple[Any, ...]]) -> list[bytes]:
    """The same of many keys, which have equally many parts: a part of all of them at a time."""
    columns = [_encode_parts(parts) for parts in zip(*keys, strict=True)]
    if not columns:
        return [b""] * len(keys)
    return columns[0] if len(columns) == 1 else list(map(b"".join, zip(*columns, strict=True)))


def _encode_parts(parts: Sequence[Any]) -> list[bytes]:
    kinds = set(map(type, parts))
    if kinds == {int}:
        with suppress(struct.error):  # beyond BIGINT, as is said below
            return [_pack_long(_INTEGER, part + _SIGN) for part in parts]
    elif kinds == {str}:
        texts = "\x00".join(parts).encode("utf-8", "surrogatepass").split(b"\x00")
        if len(texts) == len(parts):  # none has a zero in it
            return [b"\x09" + text + _END for text in texts]
    return [encode_key((part,)) for part in parts]


def encode_number(number: int) -> bytes:
    """The bytes of a whole number as a part of a key."""
    return _pack_long(_INTEGER, number + _SIGN)


def decode_numbers(data: bytes, position: int) -> tuple[int, int]:
    """The two whole numbers that are the parts of a key from that byte on."""
    _, first, _, second = _read_longs(data, position)
    return first - _SIGN, second - _SIGN


def _escaped(data: bytes) -> bytes:
    return (data.replace(b"\x00", b"\x00\xff") if b"\x00" in data else data) + _END


def _encode_other(part: Any) -> bytes:
    if part is None:
        return b"\x01"
    if isinstance(part, bool):
        return b"\x03" if part else b"\x02"
    if isinstance(part, float):
        return b"\x05" + _encode_float(part)
    if isinstance(part, bytes):
        return b"\x0a" + _escaped(part)
    if isinstance(part, Decimal):
        return _encode_decimal(part)
    if isinstance(part, list | tuple):
        return b"\x0b" + encode_key(part) + _END
    if isinstance(part, dict):
        return b"\x0c" + encode_key(item for pair in part.items() for item in pair) + _END
    raise EncodingError(f"{type(part).__name__} cannot be part of a key")


def _encode_float(value: float) -> bytes:
    """IEEE 754 bits, turned so that they sort; every NaN is the same key, as in Java."""
    if value != value:
        value = math.nan
    (bits,) = _read_long(_pack_double(value))
    return int((bits ^ _ALL) if bits & _SIGN else (bits | _SIGN)).to_bytes(8, "big")


def _encode_decimal(value: Decimal) -> bytes:
    """Kind by sign, the exponent of the first digit, the digits, then the scale.

    1.0 and 1.00 are different keys that stand next to each other.
    """
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise EncodingError(f"{value} cannot be part of a key")
    scale = struct.pack(">H", exponent + 0x8000)
    significant = "".join(map(str, digits)).lstrip("0")
    if not significant:
        return bytes((_DECIMAL_ZERO,)) + scale
    body = struct.pack(">H", len(significant) + exponent + 0x8000) + (
        significant.rstrip("0").encode() + _END
    )
    if sign:
        return bytes((_DECIMAL_NEGATIVE,)) + bytes(byte ^ 0xFF for byte in body) + scale
    return bytes((_DECIMAL_POSITIVE,)) + body + scale


def decode_key(data: bytes) -> tuple[Any, ...]:
    """The parts that `encode_key` was given; lists and tuples both come back as lists."""
    parts: list[Any] = []
    position = 0
    while position < len(data):
        part, position = _decode_part(data, position)
        parts.append(part)
    return tuple(parts)


def _decode_part(data: bytes, position: int) -> tuple[Any, int]:
    try:
        return _DECODERS[data[position]](data, position + 1)
    except (KeyError, IndexError, struct.error) as error:
        raise EncodingError(f"no key at byte {position} of {data!r}") from error


def _decode_integer(data: bytes, position: int) -> tuple[int, int]:
    return _read_long(data, position)[0] - _SIGN, position + 8


def _decode_float(data: bytes, position: int) -> tuple[float, int]:
    (bits,) = _read_long(data, position)
    bits = (bits ^ _SIGN) if bits & _SIGN else (bits ^ _ALL)
    return struct.unpack(">d", bits.to_bytes(8, "big"))[0], position + 8


def _decode_escaped(data: bytes, position: int) -> tuple[bytes, int]:
    end = data.index(0, position) if 0 in data[position:] else -1
    while end >= 0 and data[end + 1 : end + 2] == b"\xff":
        end = data.find(0, end + 1)
    if end < 0:
        raise EncodingError(f"text without an end in {data!r}")
    return data[position:end].replace(b"\x00\xff", b"\x00"), end + 1


def _decode_text(data: bytes, position: int) -> tuple[str, int]:
    body, position = _decode_escaped(data, position)
    return body.decode("utf-8", "surrogatepass"), position


def _decode_list(data: bytes, position: int) -> tuple[list[Any], int]:
    items = []
    while data[position]:
        item, position = _decode_part(data, position)
        items.append(item)
    return items, position + 1


def _decode_dict(data: bytes, position: int) -> tuple[dict[Any, Any], int]:
    items, position = _decode_list(data, position)
    return dict(zip(items[::2], items[1::2], strict=True)), position


def _decode_zero(data: bytes, position: int) -> tuple[Decimal, int]:
    (scale,) = struct.unpack_from(">H", data, position)
    return Decimal((0, (0,), scale - 0x8000)), position + 2


def _decode_decimal(data: bytes, position: int, flip: int, end: int) -> tuple[Decimal, int]:
    stop = data.index(end, position + 2)
    first = int.from_bytes(bytes(b ^ flip for b in data[position : position + 2]), "big") - 0x8000
    digits = bytes(byte ^ flip for byte in data[position + 2 : stop]).decode()
    (scale,) = struct.unpack_from(">H", data, stop + 1)
    exponent = scale - 0x8000
    return (
        Decimal(
            (int(flip != 0), tuple(map(int, digits.ljust(first - exponent, "0"))), exponent),
        ),
        stop + 3,
    )


_DECODERS: dict[int, Callable[[bytes, int], tuple[Any, int]]] = {
    _NONE: lambda data, position: (None, position),
    _FALSE: lambda data, position: (False, position),
    _TRUE: lambda data, position: (True, position),
    _INTEGER: _decode_integer,
    _FLOAT: _decode_float,
    _DECIMAL_NEGATIVE: lambda data, position: _decode_decimal(data, position, 0xFF, 0xFF),
    _DECIMAL_ZERO: _decode_zero,
    _DECIMAL_POSITIVE: lambda data, position: _decode_decimal(data, position, 0, 0),
    _TEXT: _decode_text,
    _BYTES: _decode_escaped,
    _LIST: _decode_list,
    _DICT: _decode_dict,
}


# --- partitions ------------------------------------------------------------------------------


def partition_of(key: Iterable[Any], partitions: int) -> int:
    """The partition of a key: murmur2 of its bytes, as Kafka's producer chooses it."""
    return (murmur2(encode_key(key)) & 0x7FFFFFFF) % partitions
