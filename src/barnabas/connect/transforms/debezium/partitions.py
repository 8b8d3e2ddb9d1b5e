"""PartitionRouting: the partition of a change by fields of its row.

Source: io.debezium.transforms.partitions.PartitionRouting (Debezium 3.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
)
from barnabas.connect.record import ConnectRecord, SourceRecord
from barnabas.connect.transforms.debezium.envelope import (
    AFTER,
    BEFORE,
    OPERATION,
    DebeziumError,
    is_envelope,
    refused,
    typed,
)
from barnabas.connect.transforms.debezium.hashes import java_hash, murmur_hash
from barnabas.connect.transforms.sides import PlainTransform
from barnabas.schemas.data.errors import ConnectError, DataError, NullPointerError
from barnabas.schemas.data.schema import Field, Struct, Type

_FIELDS: Final = "partition.payload.fields"
_PARTITIONS: Final = "partition.topic.num"
_HASH: Final = "partition.hash.function"
_GROUP: Final = "partitions"
_INT32_MAX: Final = 0x7FFF_FFFF
_HASHES: Final = {"java": java_hash, "murmur": murmur_hash}


def _fields(name: str, value: Any) -> None:
    if not value:
        raise refused(name, value, "A value is required")
    if "" in value:
        raise refused(name, value, "Empty string element(s) not permitted")


def _partitions(name: str, value: Any) -> None:
    if value is None:
        raise refused(name, value, "A value is required")
    if value <= 0:
        raise refused(name, value, "A positive, non-zero integer value is expected")


class PartitionRouting(PlainTransform):
    """Chooses partitions of changes on their way into a topic."""

    definition: ClassVar[Definition] = Definition(
        [
            Setting(
                _FIELDS,
                ConfigType.LIST,
                None,
                Importance.HIGH,
                "The fields that choose the partition, as change.name,source.table: `change` is "
                "the row before a delete, and the row after any other change. Fields that a "
                "change lacks, or that are null, do not count.",
                _GROUP,
                1,
                display_name="List of payload fields to use for compute partition.",
                validator=_fields,
            ),
            Setting(
                _PARTITIONS,
                ConfigType.INT,
                None,
                Importance.HIGH,
                "Number of partitions of the topic.",
                _GROUP,
                2,
                display_name="Number of partition configured for topic",
                validator=_partitions,
            ),
            Setting(
                _HASH,
                ConfigType.STRING,
                "java",
                Importance.LOW,
                "Hash function of the fields' values: java or murmur; java for any other text.",
                _GROUP,
                3,
                display_name="Hash function",
            ),
        ]
    )

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._paths = [
            [step.strip() for step in path.rstrip(".").split(".")] for path in parsed[_FIELDS]
        ]
        self._partitions: int = parsed[_PARTITIONS]
        self._hash = _HASHES.get((parsed[_HASH] or "").strip().lower(), java_hash)

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the change with its partition. Raises DebeziumError."""
        envelope = record.value
        if envelope is None or not is_envelope(record):
            return record
        if not isinstance(record, SourceRecord):
            raise DebeziumError("Unprocessable message: a sink's record has its partition")
        try:
            total = self._total(envelope)
        except ConnectError as error:
            raise DebeziumError(f"Unprocessable message: {error}") from error
        if total is None:
            return record
        copy = record.copied()
        rest = total & _INT32_MAX
        copy.partition = 0 if rest == _INT32_MAX else rest % self._partitions
        return copy

    def _total(self, envelope: Struct) -> int | None:
        """The sum of the fields' hashes; None for a record that keeps its partition."""
        operation = None
        if envelope.schema.field(OPERATION) is not None:
            operation = (typed(envelope, OPERATION, Type.STRING) or "").lower()
        if operation in ("t", "m"):  # a truncation or a message
            return None
        hashes = [
            self._hash(value, field.schema)
            for field, value in (_found(envelope, path, operation) for path in self._paths)
            if value is not None and field is not None
        ]
        return sum(hashes) if hashes else None


def _found(envelope: Struct, path: list[str], operation: str | None) -> tuple[Field | None, Any]:
    """The field that the path leads to, with its value."""
    struct = envelope
    try:
        for step in path[:-1]:
            if step == "change":
                typed(envelope, OPERATION, Type.STRING)
                step = BEFORE if operation == "d" else AFTER
            struct = typed(struct, step, Type.STRUCT)
            if struct is None:
                raise NullPointerError(f"{step} is null")
        return struct.schema.field(path[-1]), struct.get(path[-1])
    except DataError:  # there is no such field
        return None, None
