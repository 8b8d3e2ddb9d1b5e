"""The schema that a record names, by the wire format of Confluent's serialisers.

A key or value begins with 0 and the schema's id in four bytes, or with 1 and its GUID in sixteen.
Newer serialisers put the same bytes into a header of the record instead; a header comes first, as
in the deserialisers. Here such bytes are an *identity*; no schema is looked at.

The records of a batch mostly name very few schemas, so `scan_batch` collects the distinct ones, and
which record named what is asked (`identities_of`) only where one of them is to be refused.
"""

from typing import Final, NamedTuple
from uuid import UUID

from barnabas.protocol.records.records import Record
from barnabas.protocol.records.walk import NULL, VARINT_BYTES_MAX, BadRecordError, read_varint

KEY_HEADER: Final = "__key_schema_id"
VALUE_HEADER: Final = "__value_schema_id"
HEADERS_MARK: Final = b"_schema_id"
"""In both names. Where a batch does not hold it, no record of it has such a header."""
ID_MAGIC: Final = 0
GUID_MAGIC: Final = 1
ID_SIZE_BYTES: Final = 5
GUID_SIZE_BYTES: Final = 17
ID_LENGTH_VARINT: Final = 2 * ID_SIZE_BYTES
NO_IDENTITY: Final = b""


class Identities(NamedTuple):
    """The distinct beginnings of keys and values that are not null, five bytes at most."""

    keys: set[bytes]
    values: set[bytes]


def schema_of(identity: bytes) -> int | UUID | None:
    """The id or GUID that an identity holds, or None. Ids begin at 1."""
    if len(identity) == ID_SIZE_BYTES and identity[0] == ID_MAGIC:
        schema_id = int.from_bytes(identity[1:], "big", signed=True)
        return schema_id if schema_id > 0 else None
    if len(identity) == GUID_SIZE_BYTES and identity[0] == GUID_MAGIC:
        return UUID(bytes=identity[1:])
    return None


def identities_of(record: Record) -> tuple[bytes | None, bytes | None]:
    """What key and value name; None for a null, NO_IDENTITY where nothing is named."""
    return (
        _identity(record.key, record, KEY_HEADER),
        _identity(record.value, record, VALUE_HEADER),
    )


def _identity(payload: bytes | None, record: Record, header_name: str) -> bytes | None:
    if payload is None:
        return None
    found = next((value for name, value in reversed(record.headers) if name == header_name), None)
    source = payload if found is None else found
    size = GUID_SIZE_BYTES if source[:1] == b"\x01" else ID_SIZE_BYTES
    identity = source[:size]
    return identity if schema_of(identity) is not None else NO_IDENTITY


def scan_batch(  # noqa: C901  # one loop: a call would cost as much as half of a record
    data: bytes, count: int, *, keys: bool, values: bool
) -> Identities | None:
    """The distinct identities of keys and values, of those that are asked for.

    `data` is what follows a batch's header, uncompressed. None: the records must be decoded,
    because some name a schema in a header or by its GUID. `data` need not be well-formed: what
    `check_structure` accepts is read as that reads it, anything else in any way. Raises
    BadRecordError or IndexError.
    """
    if HEADERS_MARK in data:
        return None
    found_keys: set[bytes] = set()
    found_values: set[bytes] = set()
    at = 0
    for index in range(count):
        size = data[at]
        at += 1
        if size >= 0x80:
            more = data[at]
            if more < 0x80:
                size = size & 0x7F | more << 7
                at += 1
            else:
                size, at = _read_raw(data, at - 1, index)
        next_at = at + (size >> 1)
        at += 1  # attributes
        while data[at] >= 0x80:
            at += 1  # timestamp delta
        at += 1
        while data[at] >= 0x80:
            at += 1  # offset delta
        key_size = data[at + 1]
        at += 2
        if key_size != NULL:
            if key_size >= 0x80:
                key_size, at = _read_raw(data, at - 1, index)
            if keys:
                end = at + (ID_SIZE_BYTES if key_size >= ID_LENGTH_VARINT else key_size >> 1)
                found_keys.add(data[at:end])
            at += key_size >> 1
        if values:
            value_size = data[at]
            at += 1
            if value_size != NULL:
                if value_size >= 0x80:
                    value_size, at = _read_raw(data, at - 1, index)
                end = at + (ID_SIZE_BYTES if value_size >= ID_LENGTH_VARINT else value_size >> 1)
                found_values.add(data[at:end])
        at = next_at
    for identity in (*found_keys, *found_values):
        if identity[:1] == b"\x01":
            return None
    return Identities(found_keys, found_values)


def _read_raw(data: bytes, position: int, index: int) -> tuple[int, int]:
    """A length as its varint has it, and the position after it."""
    value, position = read_varint(data, position, index, VARINT_BYTES_MAX)
    if value < 0:
        raise BadRecordError(index, f"has a length of {value}")
    return value << 1, position
