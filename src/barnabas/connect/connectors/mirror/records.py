"""The records of MirrorMaker's internal topics: offset syncs, checkpoints, heartbeats.

Source: OffsetSync, Checkpoint, Heartbeat (Kafka 4.3); strings are two bytes of length and UTF-8.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from barnabas.connect.connectors.base import TopicPartition
from barnabas.connect.record import JsonMap, SourceRecord
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema, Type

_BYTES: Final = Schema(Type.BYTES)
_VERSION: Final = 0
_SHORT: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_TWO_LONGS: Final = struct.Struct(">qq")


@dataclass(slots=True, frozen=True)
class OffsetSync:
    """An offset of a source's partition, and that of the same record in the target."""

    place: TopicPartition
    upstream: int
    downstream: int

    @property
    def key(self) -> bytes:
        """Return the record's key."""
        return _text(self.place[0]) + _INT.pack(self.place[1])

    @property
    def value(self) -> bytes:
        """Return the record's value."""
        return _TWO_LONGS.pack(self.upstream, self.downstream)

    @staticmethod
    def read(key: bytes, value: bytes) -> OffsetSync:
        """Return what a record says. Raises DataError."""
        try:
            topic, at = _read_text(key, 0)
            (number,) = _INT.unpack_from(key, at)
            return OffsetSync((topic, number), *_TWO_LONGS.unpack_from(value, 0))
        except (struct.error, UnicodeDecodeError) as error:
            raise DataError(f"no offset sync: {error}") from error


@dataclass(slots=True, frozen=True)
class Checkpoint:
    """A group's offset in a partition of the target (`place`), translated from the source's."""

    group: str
    place: TopicPartition
    upstream: int
    downstream: int
    metadata: str = ""

    @property
    def key(self) -> bytes:
        """Return the record's key."""
        return _text(self.group) + _text(self.place[0]) + _INT.pack(self.place[1])

    @property
    def value(self) -> bytes:
        """Return the record's value."""
        offsets = _TWO_LONGS.pack(self.upstream, self.downstream)
        return _SHORT.pack(_VERSION) + offsets + _text(self.metadata)

    @staticmethod
    def read(key: bytes, value: bytes) -> Checkpoint:
        """Return what a record says. Raises DataError."""
        try:
            _check_version(value)
            upstream, downstream = _TWO_LONGS.unpack_from(value, 2)
            metadata, _ = _read_text(value, 18)
            group, at = _read_text(key, 0)
            topic, at = _read_text(key, at)
            (number,) = _INT.unpack_from(key, at)
            return Checkpoint(group, (topic, number), upstream, downstream, metadata)
        except (struct.error, UnicodeDecodeError) as error:
            raise DataError(f"no checkpoint: {error}") from error


@dataclass(slots=True, frozen=True)
class Heartbeat:
    """That a flow from one cluster to another was alive."""

    source: str
    target: str
    timestamp_ms: int

    @property
    def key(self) -> bytes:
        """Return the record's key."""
        return _text(self.source) + _text(self.target)

    @property
    def value(self) -> bytes:
        """Return the record's value."""
        return _SHORT.pack(_VERSION) + _LONG.pack(self.timestamp_ms)

    @staticmethod
    def read(key: bytes, value: bytes) -> Heartbeat:
        """Return what a record says. Raises DataError."""
        try:
            _check_version(value)
            (timestamp_ms,) = _LONG.unpack_from(value, 2)
            source, at = _read_text(key, 0)
            target, _ = _read_text(key, at)
            return Heartbeat(source, target, timestamp_ms)
        except (struct.error, UnicodeDecodeError) as error:
            raise DataError(f"no heartbeat: {error}") from error


def record_of(
    content: Checkpoint | Heartbeat, topic: str, source_partition: JsonMap, timestamp_ms: int
) -> SourceRecord:
    """Return the record of a checkpoint or heartbeat. Its source offset is 0, as in Kafka."""
    return SourceRecord(
        source_partition=source_partition,
        source_offset={"offset": 0},
        topic=topic,
        partition=0,
        key_schema=_BYTES,
        key=content.key,
        value_schema=_BYTES,
        value=content.value,
        timestamp_ms=timestamp_ms,
    )


def _text(text: str) -> bytes:
    data = text.encode()
    return _SHORT.pack(len(data)) + data


def _read_text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _SHORT.unpack_from(data, at)
    end = at + 2 + length
    if length < 0 or end > len(data):
        raise struct.error(f"a string of {length} bytes at {at} of {len(data)}")
    return data[at + 2 : end].decode(), end


def _check_version(value: bytes) -> None:
    (version,) = _SHORT.unpack_from(value, 0)
    if version != _VERSION:
        raise DataError(f"version {version} is not known")
