"""Events and effects of an incremental snapshot (pure).

Source: Debezium's documentation, "Incremental snapshots" and "Notifications".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.java.object_stream import Key

# Tables to read, and progress.


@dataclass(slots=True, frozen=True, eq=False)
class Wanted:
    """A table (schema.table) to be read: rows that fulfil the condition, in the key's order.

    An empty surrogate key stands for the key of the table's records.
    """

    table: str
    condition: str = ""
    surrogate_key: str = ""


@dataclass(slots=True, frozen=True)
class SnapshotProgress:
    """The stored progress: the tables to read, the position in the first one, and its end.

    `correlation_id` is the id of the last signal that asked; `key_classes` are Java's.
    """

    tables: tuple[Wanted, ...] = ()
    done: Key | None = None
    last: Key | None = None
    key_classes: tuple[str, ...] = ()
    correlation_id: str | None = None
    is_paused: bool = False

    @property
    def is_running(self) -> bool:
        return bool(self.tables)


# Events.


@dataclass(slots=True, frozen=True)
class Begun:
    """Reading begins from what is stored."""


@dataclass(slots=True, frozen=True)
class Asked:
    """A signal asks for tables."""

    id: str
    tables: tuple[Wanted, ...]


@dataclass(slots=True, frozen=True)
class StopAsked:
    """A signal asks to leave out tables whose names match; without patterns all."""

    patterns: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class PauseAsked:
    """A signal asks to pause."""


@dataclass(slots=True, frozen=True)
class ResumeAsked:
    """A signal asks to resume."""


@dataclass(slots=True, frozen=True)
class LastFound:
    """The greatest key of the first table; None: it has no rows. Answers `FindLast`."""

    last: Key | None
    key_classes: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class ChunkRead:
    """Rows, each after what the log names it by, and the key of the last. Answers `ReadChunk`."""

    rows: Sequence[tuple[Key, Any]] = field(repr=False)
    end: Key | None


@dataclass(slots=True, frozen=True)
class ReadFailed:
    """The first table cannot be read; `status` is Debezium's. Answers both."""

    status: str


@dataclass(slots=True, frozen=True)
class MarkRead:
    """The log has the second mark of a chunk."""

    chunk: str


@dataclass(slots=True, frozen=True)
class Changed:
    """The log has changes of rows, by all names that they had and have."""

    table: str
    keys: tuple[Key, ...]


@dataclass(slots=True, frozen=True)
class Emptied:
    """The log has a truncation."""

    table: str


@dataclass(slots=True, frozen=True)
class Altered:
    """The log has a change that does not identify its rows, or the table has other columns."""

    table: str


Event = (
    Begun | Asked | StopAsked | PauseAsked | ResumeAsked | LastFound | ChunkRead | ReadFailed
    | MarkRead | Changed | Emptied | Altered
)  # fmt: skip


# Effects.


@dataclass(slots=True, frozen=True)
class WriteOpenMark:
    """Write the first mark of a chunk."""

    chunk: str


@dataclass(slots=True, frozen=True)
class WriteCloseMark:
    """Write the second mark of a chunk."""

    chunk: str


@dataclass(slots=True, frozen=True)
class FindLast:
    """Find a table's greatest key."""

    wanted: Wanted


@dataclass(slots=True, frozen=True)
class ReadChunk:
    """Read rows after a key, up to another."""

    wanted: Wanted
    after: Key | None
    last: Key


@dataclass(slots=True, frozen=True)
class Emit:
    """Write rows."""

    rows: Sequence[Any] = field(repr=False)


@dataclass(slots=True, frozen=True)
class Notify:
    """Send a notification."""

    status: str
    correlation_id: str | None
    data: tuple[tuple[str, str], ...] = ()


Effect = WriteOpenMark | WriteCloseMark | FindLast | ReadChunk | Emit | Notify

STARTED: Final = "STARTED"
PAUSED: Final = "PAUSED"
RESUMED: Final = "RESUMED"
ABORTED: Final = "ABORTED"
IN_PROGRESS: Final = "IN_PROGRESS"
TABLE_SCAN_COMPLETED: Final = "TABLE_SCAN_COMPLETED"
COMPLETED: Final = "COMPLETED"
EMPTY: Final = "EMPTY"
SUCCEEDED: Final = "SUCCEEDED"
NO_PRIMARY_KEY: Final = "NO_PRIMARY_KEY"
SQL_EXCEPTION: Final = "SQL_EXCEPTION"
UNKNOWN_SCHEMA: Final = "UNKNOWN_SCHEMA"
