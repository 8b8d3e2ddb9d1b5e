"""The messages of PostgreSQL's output plugin pgoutput, protocol version 1.

A row's values are None (null), UNCHANGED (a value stored out of line that the change did not touch,
so that the log lacks it) or text in UTF-8.

Source: PostgreSQL's documentation, "Logical Replication Message Formats".
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from barnabas.connect.cdc.tables import UNCHANGED, Row, RowChange

POSTGRES_EPOCH_US: Final = 946_684_800_000_000
"""2000-01-01, from which the log counts microseconds, in those of Unix."""


BEGIN, COMMIT, RELATION = ord("B"), ord("C"), ord("R")
INSERT, UPDATE, DELETE, TRUNCATE, MESSAGE = (ord(kind) for kind in "IUDTM")
CHANGES: Final = frozenset((INSERT, UPDATE, DELETE, TRUNCATE, MESSAGE))
"""Messages that are counted in a transaction, to find the place in it again."""
ROW_CHANGES: Final = frozenset((INSERT, UPDATE, DELETE))

_BEGIN: Final = Struct(">xQqI")
_COMMIT: Final = Struct(">xBQQq")
_RELATION_ID: Final = Struct(">xI")
_COUNT: Final = Struct(">H")
_SIZE: Final = Struct(">I")
_RELATION_COLUMN: Final = Struct(">Ii")
_MESSAGE: Final = Struct(">xBQ")


@dataclass(slots=True, frozen=True)
class Begin:
    """`commit_lsn` is where the transaction's commit record starts; `time_us` since 1970."""

    commit_lsn: int
    time_us: int
    xid: int


@dataclass(slots=True, frozen=True)
class RelationColumn:
    """A column as the log knows it."""

    name: str
    type_oid: int
    modifier: int
    is_key: bool


@dataclass(slots=True, frozen=True)
class Relation:
    """A table as the log knows it; sent before its first change and after it was altered."""

    id: int
    schema: str
    table: str
    replica_identity: str
    columns: tuple[RelationColumn, ...]


@dataclass(slots=True, frozen=True)
class LogicalMessage:
    """A message of pg_logical_emit_message."""

    is_transactional: bool
    lsn: int
    prefix: str
    content: bytes


def begin(data: bytes) -> Begin:
    """Read a Begin."""
    lsn, time_us, xid = _BEGIN.unpack_from(data)
    return Begin(lsn, time_us + POSTGRES_EPOCH_US, xid)


def commit_end(data: bytes) -> int:
    """Return where a Commit's record ends in the log."""
    _flags, _lsn, end, _time = _COMMIT.unpack_from(data)
    return int(end)


def relation_id(data: bytes) -> int:
    """Return the table that an insert, update, delete or Relation is about."""
    return int(_RELATION_ID.unpack_from(data)[0])


def relation(data: bytes) -> Relation:
    """Read a Relation."""
    schema, at = _text(data, 5)
    table, at = _text(data, at)
    identity = chr(data[at])
    (count,) = _COUNT.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        flags = data[at]
        name, at = _text(data, at + 1)
        oid, modifier = _RELATION_COLUMN.unpack_from(data, at)
        at += 8
        columns.append(RelationColumn(name, oid, modifier, bool(flags & 1)))
    return Relation(relation_id(data), schema or "pg_catalog", table, identity, tuple(columns))


def row_change(data: bytes) -> RowChange:
    """Read an insert, update or delete."""
    if not has_old_row(data):
        return RowChange(None, _row(data, 6)[0])
    old, at = _row(data, 6)
    new = _row(data, at + 1)[0] if data[0] == UPDATE else None
    return RowChange(old, new, data[5] == ord("K"))


def has_old_row(data: bytes) -> bool:
    """Return whether an insert, update or delete has the row before it."""
    return data[0] != INSERT and data[5] != ord("N")


def truncated(data: bytes) -> list[int]:
    """Return the tables that a Truncate is about."""
    (count,) = _SIZE.unpack_from(data, 1)
    return [_SIZE.unpack_from(data, 6 + 4 * place)[0] for place in range(count)]


def message(data: bytes) -> LogicalMessage:
    """Read a logical message."""
    flags, lsn = _MESSAGE.unpack_from(data)
    prefix, at = _text(data, 10)
    (size,) = _SIZE.unpack_from(data, at)
    return LogicalMessage(bool(flags & 1), lsn, prefix, data[at + 4 : at + 4 + size])


def _row(data: bytes, at: int) -> tuple[Row, int]:
    (count,) = _COUNT.unpack_from(data, at)
    at += 2
    values: list[Any] = []
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind == 116:  # t, text
            (size,) = _SIZE.unpack_from(data, at)
            at += 4
            values.append(data[at : at + size])
            at += size
        elif kind == 110:  # n, null
            values.append(None)
        else:  # u, unchanged
            values.append(UNCHANGED)
    return values, at


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1
