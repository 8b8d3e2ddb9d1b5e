"""encode, encode_parts, decode and decode_at: the codecs behind their cache."""

import struct
from typing import TypeVar, cast

from barnabas.base.disk import Buffer
from barnabas.protocol.codec import decoder, encoder
from barnabas.protocol.errors import DecodeError, EncodeError
from barnabas.protocol.schema import Message

M = TypeVar("M", bound=Message)

_ENCODERS: dict[tuple[type[Message], int], encoder.Run] = {}
_DECODERS: dict[tuple[type[Message], int], decoder.Run] = {}


def encode(message: Message, version: int) -> bytes:
    """The bytes of a message.

    Raises EncodeError where the version lacks a field that is set and not ignorable, or where a
    value does not fit its type.
    """
    out: list[Buffer] = []
    _run_encoder(message, version, out, [])
    return b"".join(out)


def encode_parts(message: Message, version: int) -> list[Buffer]:
    """The bytes of a message, in which each `records` value is a separate part, uncopied.

    Such a value is asked for nothing but its `len()`, so it may stand for bytes that are
    elsewhere. The parts between are joined. Raises EncodeError as `encode` does.
    """
    out: list[Buffer] = []
    marks: list[int] = []
    _run_encoder(message, version, out, marks)
    if not marks:
        return [b"".join(out)]
    parts: list[Buffer] = []
    start = 0
    for mark in marks:
        if mark > start:
            parts.append(b"".join(out[start:mark]))
        parts.append(out[mark])
        start = mark + 1
    if start < len(out):
        parts.append(b"".join(out[start:]))
    return parts


def decode(cls: type[M], version: int, buffer: Buffer) -> M:
    """The message that fills `buffer`. Raises DecodeError, also for bytes left over.

    `records` values are views into `buffer`; everything else is copied out of it.
    """
    message, end = decode_at(cls, version, buffer, 0)
    if end != len(buffer):
        raise DecodeError(f"{cls.__name__}: {len(buffer) - end} bytes are left over")
    return message


def decode_at(cls: type[M], version: int, buffer: Buffer, position: int) -> tuple[M, int]:
    """The message that begins at `position`, and the position after it. Raises DecodeError."""
    run = _DECODERS.get((cls, version)) or _decoder(cls, version)
    try:
        return cast("tuple[M, int]", run(buffer, position, len(buffer)))
    except DecodeError:
        raise
    except (struct.error, IndexError) as error:
        raise DecodeError(f"{cls.__name__} version {version}: the bytes end early") from error
    except UnicodeDecodeError as error:
        raise DecodeError(f"{cls.__name__} version {version}: {error.reason}") from error


def _run_encoder(message: Message, version: int, out: list[Buffer], marks: list[int]) -> None:
    cls = type(message)
    run = _ENCODERS.get((cls, version)) or _encoder(cls, version)
    try:
        run(message, out, marks)
    except EncodeError:
        raise
    except (struct.error, AttributeError, TypeError, UnicodeEncodeError) as error:
        raise EncodeError(f"{cls.__name__} version {version}: {error}") from error


def _encoder(cls: type[Message], version: int) -> encoder.Run:
    if not cls.SCHEMA.versions.covers(version):
        raise EncodeError(f"{cls.__name__} has no version {version}")
    run = _ENCODERS[cls, version] = encoder.compile_encoder(cls, version)
    return run


def _decoder(cls: type[Message], version: int) -> decoder.Run:
    if not cls.SCHEMA.versions.covers(version):
        raise DecodeError(f"{cls.__name__} has no version {version}")
    run = _DECODERS[cls, version] = decoder.compile_decoder(cls, version)
    return run
