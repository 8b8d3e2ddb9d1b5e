"""Where files end. The same records give the same files, however often they are read: pure.

Records of one topic's partition go to as many open files as they have encoded partitions. All of
them end together: when there are `flush.size` records in them, when a record's time is
`rotate.interval.ms` after the first's or its directory is another one (where that setting is used),
when a schema does not fit, or when `partitioner.max.open.files` are open.

Source: io.confluent.connect.s3.TopicPartitionWriter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.connect.connectors.storage.compatibility import Compatibility
from barnabas.connect.connectors.storage.partitioners import Partitioner
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data.schema import Schema

TOMBSTONE = "tombstone"


@dataclass(slots=True, frozen=True)
class CutRules:
    """The settings that say where files end. -1 switches a rule off."""

    flush_size: int
    rotate_interval_ms: int = -1
    compatibility: Compatibility = Compatibility.NONE
    files_max: int = -1
    cuts_at_new_directory: bool = True
    tombstone_directory: str | None = None
    """Where records without a value go; None where they are not written."""

    @staticmethod
    def of(values: Mapping[str, Any]) -> CutRules:
        """Take them from parsed settings."""
        writes = str(values["behavior.on.null.values"]).lower() == "write"
        return CutRules(
            flush_size=int(values["flush.size"]),
            rotate_interval_ms=int(values["rotate.interval.ms"]),
            compatibility=Compatibility(str(values["schema.compatibility"]).upper()),
            files_max=int(values["partitioner.max.open.files"]),
            cuts_at_new_directory=bool(values["rotate.file.on.partition.change"]),
            tombstone_directory=str(values["tombstone.encoded.partition"]) if writes else None,
        )


@dataclass(slots=True)
class Placed:
    """What becomes of a record: whether all files end before it, where it goes and as what."""

    directory: str
    value: Any
    schema: Schema | None
    cuts_before: bool


@dataclass(slots=True)
class Cutter:
    """Follows the records of one topic's partition from the start of a file.

    For each record: `place`, then `written` or `refused`; `written` says whether all files end
    behind it, and `cut` that they have.
    """

    rules: CutRules
    partitioner: Partitioner
    records: int = 0
    _schemas: dict[str, Schema | None] = field(default_factory=dict)
    _filled: set[str] = field(default_factory=set)
    _directory: str | None = None
    _first_ms: int | None = None

    def place(self, record: SinkRecord, now_ms: int) -> Placed:
        """Decide on a record. Raises DataError, SchemaProjectorError."""
        rules = self.rules
        is_tombstone = record.value is None and rules.tombstone_directory is not None
        time_ms = None if is_tombstone else self.partitioner.time_ms(record, now_ms)
        directory = (
            rules.tombstone_directory or TOMBSTONE
            if is_tombstone
            else self.partitioner.encode(record, now_ms)
        )
        cuts = self.records > 0 and self._ends_before(record, directory, time_ms)
        if cuts:
            self.cut()
        if self._first_ms is None:
            self._first_ms = time_ms
        schema = self._schemas.setdefault(directory, record.value_schema)
        value = rules.compatibility.projected(record.value_schema, record.value, schema)
        return Placed(directory, value, schema, cuts)

    def refused(self, directory: str) -> None:
        """A record did not fit into a file: it is as if it had not been there."""
        if directory not in self._filled:
            self._schemas.pop(directory, None)
        if not self.records:
            self._first_ms = None

    def written(self, directory: str) -> bool:
        """A record is in a file of that directory; whether all files end behind it."""
        self.records += 1
        self._filled.add(directory)
        self._directory = directory
        return self.records >= self.rules.flush_size

    def cut(self) -> None:
        """All files have ended."""
        self.records = 0
        self._schemas.clear()
        self._filled.clear()
        self._first_ms = None
        self._directory = None

    def _ends_before(self, record: SinkRecord, directory: str, time_ms: int | None) -> bool:
        rules = self.rules
        is_new = directory not in self._schemas
        if not is_new:
            current, schema = self._schemas[directory], record.value_schema
            if (current is None) != (schema is None):
                return True
            if rules.compatibility.needs_new_file(schema, current):
                return True
        if rules.rotate_interval_ms > 0 and self.partitioner.is_timed:
            if (
                time_ms is not None
                and self._first_ms is not None
                and time_ms - self._first_ms >= rules.rotate_interval_ms
            ):
                return True
            tombstones = rules.tombstone_directory
            if (
                rules.cuts_at_new_directory
                and directory != self._directory
                and (tombstones is None or tombstones not in (directory, self._directory))
            ):
                return True
        return is_new and rules.files_max > 0 and len(self._schemas) >= rules.files_max
