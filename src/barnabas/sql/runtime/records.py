"""The records that flow between the steps of a running plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from barnabas.sql.types import Value

Row = list[Value] | tuple[Value, ...]
"""Values of columns, in a schema's order."""


class WindowBounds(NamedTuple):
    """A window of time: from `start_ms` on, before `end_ms` (sessions: up to and with it)."""

    start_ms: int
    end_ms: int


@dataclass(slots=True)
class Record:
    """One event, or one change of a table's row.

    `key`: the values of the key's columns, or None where the record has no key.
    `value`: those of the value's columns, or None (of a table: the row is deleted).
    `old_value`: for tables, the row before this change, where the step keeps it.
    """

    key: Row | None
    value: Row | None
    timestamp_ms: int
    window: WindowBounds | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int = 0
    offset: int = 0
    old_value: Row | None = None
