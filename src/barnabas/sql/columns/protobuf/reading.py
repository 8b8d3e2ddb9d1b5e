"""Reads PROTOBUF and PROTOBUF_NOSR as vectors, each field of all records at once.

`messages.py` reads the wire format, and `values.py` makes vectors of the values. Columns with a
`map` within are read by the codec, record by record: its hash table decides the order of entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any, Final

import numpy as np
from google.protobuf.descriptor import Descriptor

from barnabas.schemas.converters.protobuf_writing import WRAPPER
from barnabas.schemas.data.schema import Schema, Type
from barnabas.schemas.errors import FormatError
from barnabas.schemas.protobuf.messages import MessageSchema, load
from barnabas.schemas.registry_client import StoredSchema
from barnabas.schemas.wire_format import decode_indexes
from barnabas.sql.columns.cursors import Cursors, payloads_of
from barnabas.sql.columns.protobuf.values import Shape, value_in_message
from barnabas.sql.columns.schema_groups import NoFormError, Root, SchemaGroups
from barnabas.sql.columns.vectors import Indexes, Read, Reader, Vector, mask_of, read_one_by_one
from barnabas.sql.formats.connect_data import UnreadableError, struct_readers
from barnabas.sql.formats.connect_data import reader as value_reader
from barnabas.sql.formats.connect_schema import sql_type_of
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.formats.protobuf import Nullables, message_reader, own_schema, schema_of
from barnabas.sql.formats.protobuf_data import from_message
from barnabas.sql.formats.registry_wire import READ_ERRORS
from barnabas.sql.schema import Column
from barnabas.sql.types import SqlType, Struct

_PATHS_MAX: Final = 64
"""So many messages of one schema are read in a batch."""
_SCHEMAS_MAX: Final = 256


def protobuf_reader(part: RecordPart) -> Reader:
    """Return what reads a part in PROTOBUF as vectors."""
    columns, nullables = tuple(part.columns), Nullables.of(part.properties)
    known: dict[int, MessageSchema] = {}

    def root(stored: StoredSchema, path: bytes) -> Root:
        loaded = known.get(stored.id)
        if loaded is None:
            if len(known) >= _SCHEMAS_MAX:
                known.clear()
            loaded = known[stored.id] = load(stored.text, dict(stored.references))
        message = loaded.message_at(decode_indexes(path)[0])
        connect = schema_of(loaded, message, nullables)
        return _root(columns, connect, message, loaded, nullables)

    return SchemaGroups(part, "PROTOBUF", root, _paths).read


def protobuf_nosr_reader(part: RecordPart) -> Reader | None:
    """Return what reads a part in PROTOBUF_NOSR as vectors; None if only the row reader can."""
    try:
        loaded, message, nullables = own_schema(part)
        connect = schema_of(loaded, message, nullables)
        if part.is_bare:
            root = _bare_root(part, connect, message)
        else:
            root = _root(tuple(part.columns), connect, message, loaded, nullables)
    except (NoFormError, UnreadableError, FormatError, *READ_ERRORS):
        return None

    def read(data: Any) -> Read:
        is_row = mask_of(data.is_valid())
        cursors = Cursors(*payloads_of(data))
        vectors = root(cursors)
        return Read(vectors, is_row, is_row & (cursors.odd | (cursors.at != cursors.ends)))

    return read


def _root(
    columns: Sequence[Column],
    connect: Schema,
    message: Descriptor,
    loaded: MessageSchema,
    nullables: Nullables,
) -> Root:
    """Raises NoFormError, UnreadableError, FormatError, READ_ERRORS."""
    target = sql_type_of(columns, wraps=True)
    assert isinstance(target, Struct)
    if WRAPPER in connect.parameters or connect.type is not Type.STRUCT:
        raise NoFormError
    names = [name for name, _ in struct_readers(target, connect, from_message)]
    targets = list(zip((column.type for column in columns), names, strict=True))
    try:
        return Shape(targets, connect, message).read
    except NoFormError:
        at_once = [_has_shape(one, connect, message) for one in targets]
        if not any(at_once):
            raise
    shape = Shape(list(compress(targets, at_once)), connect, message)
    others = [column for column, is_read in zip(columns, at_once, strict=True) if not is_read]
    read_row = message_reader(others, loaded, message, nullables)
    types = [column.type for column in others]

    def root(cursors: Cursors) -> list[Vector]:
        data = Cursors(cursors.payloads, cursors.at, cursors.ends).rest()
        read = iter(shape.read(cursors))
        beside = iter(read_one_by_one(types, read_row, data, ~cursors.odd, cursors.odd))
        return [next(read if is_read else beside) for is_read in at_once]

    return root


def _has_shape(target: tuple[SqlType, str | None], connect: Schema, message: Descriptor) -> bool:
    """Return whether a column is read at once."""
    try:
        Shape([target], connect, message)
    except (NoFormError, UnreadableError):
        return False
    return True


def _bare_root(part: RecordPart, connect: Schema, message: Descriptor) -> Root:
    (column,) = part.columns
    if WRAPPER not in connect.parameters:
        raise NoFormError
    value_reader(column.type, connect, from_message)
    take = value_in_message(column.type, connect, message)
    return lambda cursors: [take(cursors)]


def _paths(cursors: Cursors) -> list[tuple[Indexes, bytes]]:
    """The records of each message, whose path stands before the data; other records have none."""
    first = cursors.payloads[cursors.at]
    has_path = cursors.at < cursors.ends
    is_first = has_path & (first == 0)
    groups: list[tuple[Indexes, bytes]] = []
    widths = np.where(is_first, 1, 0)
    if is_first.any():
        groups.append((np.flatnonzero(is_first), b"\0"))
    others = has_path & ~is_first & (first % 2 == 0) & (first < 0x80)
    for count in np.unique(first[others]).tolist():
        width = 1 + count // 2
        places = np.flatnonzero(others & (first == count) & (cursors.at + width <= cursors.ends))
        indexes = cursors.payloads[cursors.at[places][:, None] + np.arange(width)]
        plain = (indexes < 0x80).all(axis=1)
        places, indexes = places[plain], indexes[plain]
        distinct, whose = np.unique(indexes, axis=0, return_inverse=True)
        for number, path in enumerate(distinct[: _PATHS_MAX - len(groups)]):
            mine = places[whose.reshape(-1) == number]
            groups.append((mine, path.tobytes()))
            widths[mine] = width
    cursors.at = cursors.at + widths
    return groups
