"""PartitionRouting: the partition of a change by fields of its row, and the hashes that choose it.

Hashes are Java's own, and Murmur's; bytes count as the ByteBuffers that Debezium's connectors
give. Source: io.debezium.transforms.partitions.PartitionRouting and io.debezium.util.MurmurHash3
(Debezium 3.3), whose constants are those of an early draft of MurmurHash3; the hashCode methods of
java.lang, java.math and java.util.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
)
from barnabas.connect.record import ConnectRecord, SourceRecord
from barnabas.connect.transforms.base import Transform
from barnabas.connect.transforms.debezium.envelope import (
    AFTER,
    BEFORE,
    OPERATION,
    DebeziumError,
    is_envelope,
    refused,
    required,
    typed,
)
from barnabas.java.hash import text_hash
from barnabas.schemas.data.errors import ConnectError, DataError, NullPointerError
from barnabas.schemas.data.logical import (
    DAY_MS,
    date_to_days,
    scale_of,
    time_to_ms,
    timestamp_to_ms,
)
from barnabas.schemas.data.schema import Field, Schema, Struct, Type

_FIELDS: Final = "partition.payload.fields"
_PARTITIONS: Final = "partition.topic.num"
_HASH: Final = "partition.hash.function"
_GROUP: Final = "partitions"
_INT32_MAX: Final = 0x7FFF_FFFF
_BITS_32: Final = 0xFFFF_FFFF
_BITS_64: Final = 0xFFFF_FFFF_FFFF_FFFF
_SEED: Final = 9001
_DOUBLE_NAN: Final = 0x7FF8_0000_0000_0000
_FLOAT_NAN: Final = 0x7FC0_0000


def _fields(name: str, value: Any) -> None:
    required(name, value)
    if "" in value:
        raise refused(name, value, "Empty string element(s) not permitted")


def _partitions(name: str, value: Any) -> None:
    if value is None:
        raise refused(name, value, "A value is required")
    if value <= 0:
        raise refused(name, value, "A positive, non-zero integer value is expected")


class PartitionRouting(Transform):
    """Chooses partitions of changes on their way into a topic."""

    definition: ClassVar[Definition] = Definition([
        Setting(_FIELDS, ConfigType.LIST, None, Importance.HIGH,
                "The fields that choose the partition, as change.name,source.table: `change` is "
                "the row before a delete, and the row after any other change. Fields that a "
                "change lacks, or that are null, do not count.", _GROUP, 1,
                display_name="List of payload fields to use for compute partition.",
                validator=_fields),
        Setting(_PARTITIONS, ConfigType.INT, None, Importance.HIGH,
                "Number of partitions of the topic.", _GROUP, 2,
                display_name="Number of partition configured for topic", validator=_partitions),
        Setting(_HASH, ConfigType.STRING, "java", Importance.LOW,
                "Hash function of the fields' values: java or murmur; java for any other text.",
                _GROUP, 3, display_name="Hash function"),
    ])  # fmt: skip

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


def java_hash(value: Any, schema: Schema | None) -> int:
    """The value's hashCode, without sign.

    A struct counts by its values alone: in Java it counts by its schema too, which has another
    hash in each process.
    """
    if value is None:
        return 0
    if isinstance(value, bool):
        return 1231 if value else 1237
    if isinstance(value, int):
        is_long = schema is None or schema.type is Type.INT64
        return _folded(value) if is_long else value & _BITS_32
    if isinstance(value, float):
        return _float_hash(value, schema)
    if isinstance(value, str):
        return text_hash(value)
    if isinstance(value, Decimal):
        return _decimal_hash(value)
    if isinstance(value, Struct):
        fields = value.schema.fields
        return _sequence(java_hash(v, f.schema) for f, v in zip(fields, value.values, strict=True))
    if isinstance(value, Mapping):
        keys, values = (schema.key_schema, schema.value_schema) if schema else (None, None)
        hashes = (java_hash(k, keys) ^ java_hash(v, values) for k, v in value.items())
        return sum(hashes) & _BITS_32
    if isinstance(value, list | tuple):
        items = schema.value_schema if schema else None
        return _sequence(java_hash(item, items) for item in value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _sequence(byte - 256 if byte > 127 else byte for byte in reversed(bytes(value)))
    return _folded(_moment_ms(value))


def murmur_hash(value: Any, schema: Schema | None) -> int:
    """Murmur's hash of a text's UTF-8, or of another value's hashCode; without sign."""
    if isinstance(value, str):
        return _murmur(value.encode("utf-8", "replace"))  # as in Java, half a pair becomes a ?
    return _murmur(java_hash(value, schema).to_bytes(4, "little"))


def _folded(value: int) -> int:
    return (value ^ (value & _BITS_64) >> 32) & _BITS_32


def _float_hash(value: float, schema: Schema | None) -> int:
    if schema is not None and schema.type is Type.FLOAT32:
        if value != value:
            return _FLOAT_NAN
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    if value != value:
        return _folded(_DOUBLE_NAN)
    return _folded(struct.unpack("<Q", struct.pack("<d", value))[0])


def _decimal_hash(value: Decimal) -> int:
    sign, digits, _ = value.as_tuple()
    whole = int("".join(map(str, digits)))
    result = 0
    for place in reversed(range(0, whole.bit_length(), 32)):
        result = result * 31 + (whole >> place & _BITS_32)
    return (31 * (-result if sign else result) + scale_of(value)) & _BITS_32


def _sequence(hashes: Any) -> int:
    result = 1
    for one in hashes:
        result = (31 * result + one) & _BITS_32
    return result


def _moment_ms(value: Any) -> int:
    if isinstance(value, datetime):
        return timestamp_to_ms(value)
    if isinstance(value, date):
        return date_to_days(value) * DAY_MS
    assert isinstance(value, time), f"no value of Connect's: {type(value)}"
    return time_to_ms(value)


def _murmur(data: bytes) -> int:
    """The upper half of the hash of 64 bits."""
    h1, h2 = 0x9368E53C2F6AF274 ^ _SEED, 0x586DCD208F7CD3FD ^ _SEED
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
    blocks = [struct.unpack_from("<QQ", data, at) for at in range(0, len(data) - 15, 16)]
    tail = data[len(blocks) * 16 :]
    if tail:
        blocks.append((_signed(tail[:8]), _signed(tail[8:])))
    for k1, k2 in blocks:
        k1 = _turned(k1 * c1 & _BITS_64, 23) * c2 & _BITS_64
        h1 = (h1 ^ k1) + h2 & _BITS_64
        h2 = _turned(h2, 41)
        k2 = _turned(k2 * c2 & _BITS_64, 23) * c1 & _BITS_64
        h2 = (h2 ^ k2) + h1 & _BITS_64
        h1, h2 = h1 * 3 + 0x52DCE729 & _BITS_64, h2 * 3 + 0x38495AB5 & _BITS_64
        c1, c2 = c1 * 5 + 0x7B7D159C & _BITS_64, c2 * 5 + 0x6BCE6396 & _BITS_64
    h2 ^= len(data)
    h1 = h1 + h2 & _BITS_64
    h2 = h2 + h1 & _BITS_64
    h1, h2 = _mixed(h1), _mixed(h2)
    return (h1 + h2 & _BITS_64) >> 32


def _signed(tail: bytes) -> int:
    """The bytes as a number, where each counts with its sign, as Java's bytes do."""
    number = 0
    for place, byte in enumerate(tail):
        number ^= (byte - 256 if byte > 127 else byte) << 8 * place
    return number & _BITS_64


def _turned(number: int, bits: int) -> int:
    return (number << bits | number >> 64 - bits) & _BITS_64


def _mixed(number: int) -> int:
    number = (number ^ number >> 33) * 0xFF51AFD7ED558CCD & _BITS_64
    number = (number ^ number >> 33) * 0xC4CEB9FE1A85EC53 & _BITS_64
    return number ^ number >> 33


_HASHES: Final = {"java": java_hash, "murmur": murmur_hash}
