"""The rules that end files, and when new records are worth reading. Pure.

The same records give the same files, however often they are read. Records of one topic's partition
go to as many open files as they have encoded partitions. All of them end together: when there are
`flush.size` records in them, when a record's time is `rotate.interval.ms` after the first's or its
directory is another one (where that setting is used), when a schema does not fit, or when
`partitioner.max.open.files` are open.

What ends files is in the records, and executors keep no open files from one micro-batch to the
next: records that did not fill a file are read again. So reading waits until `flush.size` records
can be there, until the schedule says so, or, where records' times end files, for a while that grows
with what reading costs.

Source: io.confluent.connect.s3.TopicPartitionWriter.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from enum import StrEnum
from typing import Any, Final

from barnabas.connect.connectors.base import SinkRange
from barnabas.connect.connectors.storage.partitioners import Partitioner
from barnabas.connect.connectors.storage.time_path import next_by_day
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data.errors import SchemaProjectorError
from barnabas.schemas.data.projection import project
from barnabas.schemas.data.schema import Schema, Type

# The rule for a record whose file was begun with another version of its schema.
#
# Source: io.confluent.connect.storage.schema.StorageSchemaCompatibility.

_NUMBERS = [Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64]
RECORDS_PER_BATCH: Final = 500_000
_PAUSE_MIN_MS: Final = 1000
_COST_FACTOR: Final = 4
"""Reading again takes at most a fifth of the time."""
_ARRIVALS_MAX: Final = 1000


class Compatibility(StrEnum):
    """`schema.compatibility`: NONE ends a file at each change; the others project where they can.

    BACKWARD and FULL write all with the newest schema, FORWARD with the oldest.
    """

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"
    FULL = "FULL"

    def needs_new_file(self, schema: Schema | None, current: Schema | None) -> bool:
        """Return whether a record's schema does not fit the file's. Raises SchemaProjectorError."""
        if schema is current:
            return False
        if schema is None or current is None:
            raise SchemaProjectorError(
                "Switch between schema-based and schema-less data is not supported"
            )
        if self is Compatibility.NONE:
            return schema != current
        if schema.version is None or current.version is None:
            raise SchemaProjectorError(f"Schema version required for {self.name} compatibility")
        if schema == current:
            return False
        if _is_incompatible(schema, current):
            return True
        if self is Compatibility.FORWARD:
            return schema.version < current.version
        return schema.version > current.version

    def projected(self, schema: Schema | None, value: Any, current: Schema | None) -> Any:
        """Return the value as the file's schema wants it. Raises SchemaProjectorError."""
        if self is Compatibility.NONE or schema is current or schema is None or current is None:
            return value
        return value if schema == current else project(schema, value, current)


def _is_incompatible(schema: Schema, current: Schema) -> bool:
    if schema.type is not current.type and not _is_promotable(schema.type, current.type):
        return True
    if schema.name != current.name or dict(schema.parameters) != dict(current.parameters):
        return True
    if schema.optional and not current.optional and current.default is None:
        return True
    if schema.type is Type.STRUCT:
        return _fields_incompatible(schema, current)
    parts = (
        (schema.key_schema, current.key_schema),
        (schema.value_schema, current.value_schema),
    )
    return any(a is not None and b is not None and _is_incompatible(a, b) for a, b in parts)


def _fields_incompatible(schema: Schema, current: Schema) -> bool:
    for one in schema.fields:
        other = current.field(one.name)
        if other is not None and _is_incompatible(one.schema, other.schema):
            return True
    return any(
        schema.field(field.name) is None
        and not field.schema.optional
        and field.schema.default is None
        for field in current.fields
    )


def _is_promotable(source: Type, target: Type) -> bool:
    if source not in _NUMBERS or target not in _NUMBERS:
        return False
    return _NUMBERS.index(source) <= _NUMBERS.index(target)


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
    """The outcome of a record: whether all files end before it, where it goes and as what."""

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


@dataclass(slots=True)
class FileRange(SinkRange):
    """A range to cut into files; `is_last` ends them with the range.

    `arrivals` says when records were first seen: those below each offset not later than its ms.
    """

    is_last: bool = False
    arrivals: list[tuple[int, int]] = field(default_factory=list)

    def seen_ms(self, offset: int) -> int:
        """Return when the record at an offset was first seen."""
        place = bisect_right(self.arrivals, offset, key=lambda one: one[0])
        return self.arrivals[min(place, len(self.arrivals) - 1)][1]


@dataclass(slots=True, frozen=True)
class Pace:
    """The settings that say when to read."""

    flush_size: int
    has_timed_files: bool
    """True if a record's time may end files before `flush_size`."""
    schedule_ms: int = -1
    zone: tzinfo | None = None


@dataclass(slots=True)
class Progress:
    """The progress of a partition. Offsets below `done` are in files; `available` are there."""

    pace: Pace
    done: int
    available: int
    now_ms: int
    records_open: int = 0
    """Records behind `done` that did not fill a file when they were last read."""
    tried: int = -1
    next_try_ms: int = 0
    cost_ms: int = 0
    must_end: bool = False
    """Another task has written the file that begins at `done`; it ended before `limit`."""
    limit: int | None = None
    scheduled_ms: int = field(init=False)
    arrivals: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scheduled_ms = self._next_schedule(self.now_ms)
        self.arrivals.append((self.available, self.now_ms))

    def see(self, available: int, now_ms: int) -> None:
        """Records up to an offset are there now."""
        if available > self.available:
            if len(self.arrivals) >= _ARRIVALS_MAX:
                # Two that follow each other become one, all along: times get coarser with age.
                self.arrivals = self.arrivals[1::2]
            self.arrivals.append((available, now_ms))
            self.available = available

    def plan(self, topic: str, partition: int, now_ms: int) -> FileRange | None:
        """Return what to read now."""
        if self.must_end:
            return self._plan_end(topic, partition)
        is_last = 0 <= self.scheduled_ms <= now_ms
        if is_last:
            self.scheduled_ms = self._next_schedule(now_ms)
        if self.available <= self.done:
            return None
        if not is_last and not self._is_worth_it(now_ms):
            return None
        end = min(self.available, max(self.done, self.tried) + self._most())
        if is_last and end < self.available:
            is_last = False
            self.scheduled_ms = now_ms
        return FileRange(topic, partition, self.done, end, is_last, list(self.arrivals))

    def failed(self, where: SinkRange) -> None:
        """A range was not written; what was due still is."""
        if isinstance(where, FileRange) and where.is_last:
            self.scheduled_ms = 0

    def finished(self, done: int, tried: int, records_open: int, cost_ms: int) -> None:
        """A range up to `tried` was read; what is below `done` is in files."""
        if done > self.done:
            self.must_end = False
        self.done = done
        self.tried = tried
        self.records_open = records_open
        self.cost_ms = cost_ms
        self.arrivals = [one for one in self.arrivals if one[0] > done] or self.arrivals[-1:]

    def ended_elsewhere(self, limit: int | None) -> None:
        """The file that begins at `done` is there, and ended by other records than was wanted.

        It ends before `limit` at the latest, and where that is None, at a record that ends files.
        """
        self.must_end, self.limit = True, limit
        self.tried = -1

    def _plan_end(self, topic: str, partition: int) -> FileRange | None:
        """Read what the file holds that another task has written, as soon as it is there."""
        behind = max(self.done, self.tried)
        wanted = behind + 1 if self.limit is None else self.limit
        if self.available < wanted:
            return None
        end = min(self.limit or self.available, behind + self._most())
        return FileRange(topic, partition, self.done, end, end == self.limit, list(self.arrivals))

    def _is_worth_it(self, now_ms: int) -> bool:
        behind = max(self.done, self.tried)
        if self.available - behind + self.records_open >= self.pace.flush_size:
            return True
        if not self.pace.has_timed_files or self.available <= behind or now_ms < self.next_try_ms:
            return False
        self.next_try_ms = now_ms + max(_PAUSE_MIN_MS, _COST_FACTOR * self.cost_ms)
        return True

    def _most(self) -> int:
        """Whole files where the offsets have no gaps."""
        size = self.pace.flush_size
        return max(size, RECORDS_PER_BATCH // size * size)

    def _next_schedule(self, now_ms: int) -> int:
        if self.pace.schedule_ms <= 0 or self.pace.zone is None:
            return -1
        return next_by_day(now_ms, self.pace.schedule_ms, self.pace.zone)
