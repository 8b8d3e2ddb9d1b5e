"""What records of the snapshot and of the log have in common. Runs on executors."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from barnabas import __version__
from barnabas.connect.connectors.postgres.envelopes import SOURCE, TableRecords
from barnabas.connect.connectors.postgres.settings import PostgresSettings
from barnabas.connect.connectors.postgres.tables import Table
from barnabas.connect.record import Header, JsonMap, SourceRecord
from barnabas.schemas.data.builder import STRING
from barnabas.schemas.data.schema import Struct

_CONTEXT: Final = "__debezium.context."


@lru_cache(maxsize=1024)
def records_of(table: Table, settings: PostgresSettings) -> TableRecords:
    """The maker of a table's records; tables that were altered have another."""
    return TableRecords(
        table,
        settings.modes,
        settings.placeholder,
        fails_on_bad_values=settings.failure_handling == "fail",
    )


class RecordMaker:
    """What records of all tables have in common."""

    def __init__(self, settings: PostgresSettings, task: int) -> None:
        self.settings = settings
        # Settings are worked out here: each record would do it again.
        self._prefix, self._database = settings.topic_prefix, settings.database
        self.skipped = settings.skipped_operations
        self.partition: JsonMap = {"server": self._prefix}
        self._has_headers = settings.has_extended_headers
        self._context = [
            Header(f"{_CONTEXT}connectorLogicalName", STRING, self._prefix),
            Header(f"{_CONTEXT}taskId", STRING, str(task)),
            Header(f"{_CONTEXT}connectorName", STRING, "postgresql"),
        ]

    def headers(self, *first: Header) -> list[Header]:
        return [*first, *self._context] if self._has_headers else []

    def source(
        self,
        table: Table | None,
        time_us: int,
        snapshot: str,
        sequence: str,
        xid: int | None,
        lsn: int,
        xmin: int | None = None,
    ) -> Struct:
        schema, name = ("", "") if table is None else (table.schema, table.name)
        return Struct(
            SOURCE,
            [
                __version__,
                "postgresql",
                self._prefix,
                time_us // 1000,
                snapshot,
                self._database,
                sequence,
                time_us,
                time_us * 1000,
                schema,
                name,
                xid,
                lsn,
                xmin,
            ],
        )

    def record(
        self,
        records: TableRecords,
        op: str,
        before: Struct | None,
        after: Struct | None,
        source: Struct,
        offset: JsonMap,
        *headers: Header,
        block: Struct | None = None,
    ) -> SourceRecord:
        row = after if after is not None else before
        return SourceRecord(
            topic=records.table.topic,
            key_schema=records.key_schema,
            key=None if row is None else records.key(row),
            value_schema=records.envelope_schema,
            value=records.envelope(op, before, after, source, block),
            headers=self.headers(*headers),
            source_partition=self.partition,
            source_offset=offset,
        )
