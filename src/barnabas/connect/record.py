"""Records on their way from a source to a topic, and from a topic to a sink."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from barnabas.schemas.data.schema import Schema

# Records as topics have them: bytes, before converters read them and after they wrote them.


@dataclass(slots=True, kw_only=True)
class RawRecord:
    """A record of a topic. To be written: `offset` is -1, `partition` None lets the key decide."""

    topic: str
    partition: int | None = None
    key: bytes | None = None
    value: bytes | None = None
    timestamp_ms: int | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    offset: int = -1
    timestamp_type: str = "CreateTime"


JsonMap = Mapping[str, Any]
"""An object of JSON: a partition or an offset of a source."""


@dataclass(slots=True)
class Header:
    """A header: its value is Connect's data."""

    key: str
    schema: Schema | None
    value: Any


@dataclass(slots=True, kw_only=True)
class ConnectRecord:
    """The records that transforms work on, in both directions. `timestamp_ms` None means none."""

    topic: str
    partition: int | None = None
    key_schema: Schema | None = None
    key: Any = None
    value_schema: Schema | None = None
    value: Any = None
    timestamp_ms: int | None = None
    headers: list[Header] = field(default_factory=list)

    def copied(self) -> Self:
        """A mutable copy with its own list of headers.

        By hand: dataclasses.replace takes five times as long, and transforms copy each record.
        """
        copy = object.__new__(type(self))
        copy.topic = self.topic
        copy.partition = self.partition
        copy.key_schema = self.key_schema
        copy.key = self.key
        copy.value_schema = self.value_schema
        copy.value = self.value
        copy.timestamp_ms = self.timestamp_ms
        copy.headers = self.headers[:]
        return copy

    def with_key(self, schema: Schema | None, key: Any) -> Self:
        """A copy with that key."""
        copy = self.copied()
        copy.key_schema, copy.key = schema, key
        return copy

    def with_value(self, schema: Schema | None, value: Any) -> Self:
        """A copy with that value."""
        copy = self.copied()
        copy.value_schema, copy.value = schema, value
        return copy


@dataclass(slots=True, kw_only=True)
class SourceRecord(ConnectRecord):
    """A record from another system.

    `source_partition` names what it was read from, `source_offset` where reading goes on after it;
    both are JSON objects, stored in the worker's offset topic once the record is written.
    """

    source_partition: JsonMap
    source_offset: JsonMap

    def copied(self) -> Self:
        """A copy that may be changed."""
        copy = ConnectRecord.copied(self)
        copy.source_partition = self.source_partition
        copy.source_offset = self.source_offset
        return copy


@dataclass(slots=True, kw_only=True)
class SinkRecord(ConnectRecord):
    """A record of a topic. `timestamp_type` is NoTimestampType, CreateTime or LogAppendTime.

    Transforms may change topic and partition; the `original_` ones stay (KIP-793).
    """

    offset: int
    timestamp_type: str = "CreateTime"
    original_topic: str
    original_partition: int
    original_offset: int
    raw: RawRecord | None = field(default=None, repr=False, compare=False)
    """As it is in its topic; dead letters are made of it."""

    def copied(self) -> Self:
        """A copy that may be changed."""
        copy = ConnectRecord.copied(self)
        copy.offset = self.offset
        copy.timestamp_type = self.timestamp_type
        copy.original_topic = self.original_topic
        copy.original_partition = self.original_partition
        copy.original_offset = self.original_offset
        copy.raw = self.raw
        return copy


# Offsets of sources as the offset topic and its file have them: JSON without schemas.
#
# Source: OffsetUtils, OffsetStorageWriter, JsonConverter with schemas.enable=false (Kafka 4.3).


def json_bytes(value: Any) -> bytes:
    """Return JSON in Connect's form: no spaces, text as it is."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def offset_key(connector: str, partition: JsonMap) -> bytes:
    """Return the key of a source partition."""
    return json_bytes([connector, dict(partition)])


def offset_value(offset: JsonMap | None) -> bytes | None:
    """Return the value of an offset; None deletes it."""
    return None if offset is None else json_bytes(dict(offset))


def partition_text(partition: JsonMap) -> str:
    """Return a text that is the same in each order of a partition's fields."""
    return json.dumps(partition, sort_keys=True)


# Many records at once, where they have little more than a value.


@dataclass(slots=True)
class SourceColumn:
    """Records of a source, in order, that differ in their values and offsets alone."""

    topic: str
    schema: Schema | None
    values: Sequence[Any]
    timestamp_ms: int | None
    source_partition: JsonMap
    offsets: Callable[[], Iterable[JsonMap]]
    """Returns the offset of each record."""
    end: JsonMap
    """The offset of the last record."""

    def records(self) -> Iterator[SourceRecord]:
        """Yield the records."""
        for value, offset in zip(self.values, self.offsets(), strict=True):
            yield SourceRecord(
                source_partition=self.source_partition,
                source_offset=offset,
                topic=self.topic,
                value_schema=self.schema,
                value=value,
                timestamp_ms=self.timestamp_ms,
            )


@dataclass(slots=True)
class RawColumn:
    """Records of one partition of a topic, in order; `records` returns them one by one."""

    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    has_headers: bool
    records: Callable[[], Iterable[RawRecord]]


@dataclass(slots=True)
class SinkColumn:
    """Values of records for a sink, in order."""

    schema: Schema | None
    values: Sequence[Any]
