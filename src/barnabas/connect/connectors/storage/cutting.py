"""The rules that end files. The same records give the same files, however often they are read:
pure.

Records of one topic's partition go to as many open files as they have encoded partitions. All of
them end together: when there are `flush.size` records in them, when a record's time is
`rotate.interval.ms` after the first's or its directory is another one (where that setting is used),
when a schema does not fit, or when `partitioner.max.open.files` are open.

Source: io.confluent.connect.s3.TopicPartitionWriter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from barnabas.connect.connectors.storage.partitioners import Partitioner
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data.errors import SchemaProjectorError
from barnabas.schemas.data.projection import project
from barnabas.schemas.data.schema import Schema, Type

# The rule for a record whose file was begun with another version of its schema.
#
# Source: io.confluent.connect.storage.schema.StorageSchemaCompatibility.

_NUMBERS = [Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64]


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
