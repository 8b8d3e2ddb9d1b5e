"""Helpers that compiled codecs call where straight-line code would be too long."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from struct import Struct as Packer
from typing import Any, NoReturn

from barnabas.base.disk import Buffer
from barnabas.protocol.errors import DecodeError, EncodeError
from barnabas.protocol.varint import UINT32_MAX

TAG_MAX = 2**31 - 1
REQUEST_ELEMENTS_MAX = 500_000
"""Of all arrays of a request together: what the reassignment of 100,000 partitions needs.

Each costs time of the loop, and more memory than it has bytes, before anybody asks who sends it.
"""
REQUEST_NAMES_MAX = 100_000
"""Of those elements, the ones that name something by a text or an id, as topics and groups do.

Each costs several times what another costs: who may ask for it is looked up, a refusal is noted,
and the answer says its name again.
"""
UNKNOWN_TAGS_MAX = 1000
"""Tagged fields that a struct may have and that nobody knows."""
STRING_SIZE_MAX = 0x7FFF
SHORT_ARRAY_MAX = 16

Write = Callable[[Buffer], None]
TaggedFields = list[tuple[int, bytes]]


def varint_rest(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Read on after the first byte of an unsigned varint, which promised more.

    Returns (value, position after it). Raises IndexError at the end of the buffer, which the
    caller of the compiled code turns into DecodeError.
    """
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > UINT32_MAX:
                break
            return value, position
    raise DecodeError("a length or tag does not fit 32 bits")


def read_tag(buffer: Buffer, position: int, end: int) -> tuple[int, int, int]:
    """Read the head of a tagged field. Returns (tag, position of its bytes, their end)."""
    tag = buffer[position]
    position += 1
    if tag > 127:
        tag, position = varint_rest(buffer, position, tag)
        if tag > TAG_MAX:
            raise DecodeError(f"{tag} is not a tag")
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = varint_rest(buffer, position, size)
    if size > end - position:
        raise truncated("a tagged field", size, end - position)
    return tag, position, position + size


def unknown_tags(
    buffer: Buffer, position: int, end: int, count: int
) -> tuple[TaggedFields | None, int]:
    """Read `count` tagged fields of a struct that declares none. Returns them and the end."""
    if count > 127:
        count, position = varint_rest(buffer, position, count)
        if count > UNKNOWN_TAGS_MAX:
            raise DecodeError(f"a struct has {count} tagged fields")
    tags: TaggedFields = []
    for _ in range(count):
        tag, position, field_end = read_tag(buffer, position, end)
        tags.append((tag, bytes(buffer[position:field_end])))
        position = field_end
    return tags, position


def vector_reader(code: str, size: int) -> Callable[[Buffer, int, int], list[Any]]:
    """A reader of `count` fixed-width values; the caller has compared count with what remains."""
    short = [Packer(f">{count}{code}").unpack_from for count in range(SHORT_ARRAY_MAX)]

    def read(buffer: Buffer, position: int, count: int) -> list[Any]:
        if count < SHORT_ARRAY_MAX:
            return list(short[count](buffer, position))
        return list(Packer(f">{count}{code}").unpack_from(buffer, position))

    return read


def read_uuids(buffer: Buffer, position: int, count: int) -> list[bytes]:
    """`count` uuids; the caller has compared count with what remains."""
    data = bytes(buffer[position : position + 16 * count])
    return [data[start : start + 16] for start in range(0, 16 * count, 16)]


def pack_vector(code: str, values: Sequence[Any]) -> bytes:
    """Fixed-width values one after the other."""
    return Packer(f">{len(values)}{code}").pack(*values)


def pack_uuids(values: Iterable[bytes]) -> bytes:
    """Uuids one after the other."""
    for value in values:
        check_uuid(value)
    return b"".join(values)


def uvarint(value: int) -> bytes:
    """An unsigned varint."""
    if value > UINT32_MAX:
        raise EncodeError(f"{value} does not fit a varint")
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


SMALL_VARINTS = [bytes((value,)) for value in range(128)]


def string_length(length_plus_one: int) -> bytes:
    """The compact length of a string that is longer than 126 bytes."""
    if length_plus_one > STRING_SIZE_MAX + 1:
        raise EncodeError(f"a string of {length_plus_one - 1} bytes is longer than 32767")
    return uvarint(length_plus_one)


def write_tags(write: Write, known: TaggedFields, unknown: TaggedFields | None) -> None:
    """Write the tagged fields of a struct in the order of their tags."""
    fields = known
    if unknown:
        fields = sorted(known + unknown, key=_tag)
        for (tag, _), (following, _) in pairwise(fields):
            if tag == following:
                raise EncodeError(f"tag {tag} is given twice")
    write(uvarint(len(fields)))
    for tag, data in fields:
        write(uvarint(tag))
        write(uvarint(len(data)))
        write(data)


def _tag(field: tuple[int, bytes]) -> int:
    return field[0]


def truncated(what: str, wanted: int, remaining: int) -> DecodeError:
    """The error for a length that exceeds what remains."""
    return DecodeError(f"{what}: {wanted} bytes wanted, {remaining} remain")


def beyond_limit(what: str) -> DecodeError:
    """The error for a request with more elements than one may have."""
    return DecodeError(f"{what}: a request has {REQUEST_ELEMENTS_MAX} elements at most")


def too_many_names(what: str) -> DecodeError:
    """The error for a request that names more than one may."""
    return DecodeError(f"{what}: a request names {REQUEST_NAMES_MAX} things at most")


def too_many(what: str, count: int, remaining: int) -> DecodeError:
    """The error for a count that what remains cannot hold."""
    return DecodeError(f"{what}: {count} elements cannot fit in {remaining} bytes")


def not_null(what: str) -> DecodeError:
    """The error for a null that the version does not allow."""
    return DecodeError(f"{what} must not be null")


def too_long(what: str, size: int) -> DecodeError:
    """The error for a string longer than Kafka allows."""
    return DecodeError(f"{what}: a string of {size} bytes is longer than {STRING_SIZE_MAX}")


def tag_size(what: str, size: int, used: int) -> DecodeError:
    """The error for a tagged field that does not use exactly its bytes."""
    return DecodeError(f"{what}: {size} bytes given, {used} used")


def not_in_version(what: str, version: int) -> NoReturn:
    """Raise for a field that holds something and that the version lacks."""
    raise EncodeError(f"version {version} cannot carry {what}")


def null_given(what: str) -> NoReturn:
    """Raise for a None that the version cannot carry."""
    raise EncodeError(f"{what} must not be None")


def check_uuid(value: bytes) -> None:
    """Raise unless `value` has sixteen bytes; `struct` would pad or cut it silently."""
    if len(value) != 16:
        raise EncodeError(f"a uuid has 16 bytes, not {len(value)}")
