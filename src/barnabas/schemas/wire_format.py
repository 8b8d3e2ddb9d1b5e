"""The identity of a schema in bytes: the wire format of Confluent's serialisers.

    key or value   0, the schema's id (4 bytes), the data
    key or value   1, the schema's GUID (16 bytes), the data
    header         the same 5 or 17 bytes, and of Protobuf the message; key or value is the data

Data of a Protobuf schema begin with the path of their message in its file, zigzag varints: the
number of indexes, then the indexes; the first message of the file is a single 0.

The broker checks the same format with a separate scanner (`node/broker/schemas/wire_format.py`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from barnabas.protocol.varint import write_unsigned_varint

ID_MAGIC: Final = 0
"""The first byte of data that name their schema by its id."""
GUID_MAGIC: Final = 1
PREFIX_BYTES: Final = 5
"""The size of the prefix of data whose schema has an id: the first byte, then the id."""
KEY_HEADER: Final = "__key_schema_id"
VALUE_HEADER: Final = "__value_schema_id"
UNKNOWN_MAGIC: Final = "Unknown magic byte!"
"""Confluent's words for data that name no schema."""
_GUID_BYTES: Final = 17
_INDEXES_MAX: Final = 64
_PREFIX: Final = struct.Struct(">bI")


def prefix_of(schema_id: int) -> bytes:
    """The prefix of data of the schema."""
    return _PREFIX.pack(ID_MAGIC, schema_id)


def schema_id_of(data: bytes) -> int | None:
    """The id that data begin with; None where they do not begin with one."""
    if len(data) < PREFIX_BYTES or data[0] != ID_MAGIC:
        return None
    schema_id: int = _PREFIX.unpack_from(data)[1]
    return schema_id


def taken_apart(
    data: bytes, headers: Sequence[tuple[str, bytes | None]], *, is_key: bool
) -> tuple[int | UUID, bytes]:
    """The id or GUID that a key or value names in a header or itself, and its data.

    Raises ValueError where it names none.
    """
    if not headers and len(data) >= PREFIX_BYTES and data[0] == ID_MAGIC:
        return _PREFIX.unpack_from(data)[1], data[PREFIX_BYTES:]
    wanted = KEY_HEADER if is_key else VALUE_HEADER
    named = None
    for name, value in headers:  # of several the last counts
        if name == wanted:
            named = value
    if named is None:
        return _named(data)
    schema, indexes = _named(named)
    return schema, indexes + data


def _named(data: bytes) -> tuple[int | UUID, bytes]:
    schema_id = schema_id_of(data)
    if schema_id is not None:
        return schema_id, data[PREFIX_BYTES:]
    if len(data) < _GUID_BYTES or data[0] != GUID_MAGIC:
        raise ValueError(UNKNOWN_MAGIC)
    return UUID(bytes=data[1:_GUID_BYTES]), data[_GUID_BYTES:]


def encode_indexes(indexes: Sequence[int]) -> bytes:
    """The path of a message before its data."""
    if list(indexes) == [0]:
        return b"\0"
    made = bytearray()
    for number in (len(indexes), *indexes):
        write_unsigned_varint(made, number << 1)  # zigzag
    return bytes(made)


def decode_indexes(data: bytes) -> tuple[list[int], int]:
    """The path of a message, and where its data begin. Raises ValueError, IndexError."""
    count, place = _unzigzag(data, 0)
    if count == 0:
        return [0], place
    if not 0 < count <= _INDEXES_MAX:
        raise ValueError("the data's path to their message is too long")
    indexes = []
    for _ in range(count):
        index, place = _unzigzag(data, place)
        indexes.append(index)
    return indexes, place


def _unzigzag(data: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[place]
        place += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return (number >> 1) ^ -(number & 1), place
        shift += 7
        if shift > 31:
            raise ValueError("a number is too long")
