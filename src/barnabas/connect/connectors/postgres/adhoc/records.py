"""Records of chunks' rows and of notifications. Runs on executors.

Source: the events of Debezium's PostgreSQL connector; Debezium's documentation, "Notifications".
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from barnabas.connect.connectors.postgres.adhoc.items import ChunkRows, Note
from barnabas.connect.connectors.postgres.records import RecordMaker, records_of
from barnabas.connect.record import JsonMap, SourceRecord
from barnabas.schemas.data.builder import (
    INT64,
    STRING,
    map_of,
    optional,
    struct_of,
)
from barnabas.schemas.data.schema import Struct

INCREMENTAL: Final = "incremental"
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


def chunk_records(
    maker: RecordMaker,
    chunk: ChunkRows,
    sequence: str,
    xid: int | None,
    lsn: int,
    xmin: int | None,
    offset: JsonMap,
) -> Iterator[SourceRecord]:
    """Yield the records of rows that no change has made superfluous."""
    records = records_of(chunk.table, maker.settings)
    for row in chunk.rows:
        now_us = time.time_ns() // 1000
        source = maker.source(chunk.table, now_us, INCREMENTAL, sequence, xid, lsn, xmin)
        yield maker.record(records, "r", None, records.row(row), source, offset)


def note_record(maker: RecordMaker, note: Note, offset: JsonMap) -> SourceRecord:
    """Return the record of a notification."""
    return SourceRecord(
        topic=maker.settings["notification.sink.topic.name"],
        key_schema=NOTE_KEY,
        key=Struct(NOTE_KEY, [note.id]),
        value_schema=NOTE_VALUE,
        value=Struct(NOTE_VALUE, [note.id, note.status, note.kind, note.data, note.time_ms]),
        source_partition=maker.partition,
        source_offset=offset,
    )
