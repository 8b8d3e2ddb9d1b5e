"""What is reported about snapshots.

Source: Debezium's documentation, "Notifications".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.schemas.data.builder import INT64, STRING, map_of, optional, struct_of
from barnabas.schemas.data.schema import Struct

INCREMENTAL_SNAPSHOT: Final = "Incremental Snapshot"
NOTE_KEY: Final = struct_of(
    {"id": STRING}, name="io.debezium.connector.common.NotificationKey", version=1
)
NOTE_VALUE: Final = struct_of(
    {
        "id": STRING,
        "type": STRING,
        "aggregate_type": STRING,
        "additional_data": optional(map_of(STRING, STRING)),
        "timestamp": INT64,
    },
    name="io.debezium.connector.common.Notification",
    version=1,
)


@dataclass(slots=True, frozen=True)
class Note:
    """A notification."""

    id: str
    kind: str
    status: str
    data: dict[str, str]
    time_ms: int


def note_value(note: Note) -> Struct:
    """Return the value of a notification's record."""
    return Struct(NOTE_VALUE, [note.id, note.status, note.kind, note.data, note.time_ms])
