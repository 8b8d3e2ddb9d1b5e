"""Records on their way from a source to a topic, and from a topic to a sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.pipeline.connect.data.schema import Schema
from barnabas.pipeline.connect.raw import RawRecord

JsonMap = Mapping[str, Any]
"""What JSON can hold: partitions and offsets of sources."""


@dataclass(slots=True)
class Header:
    """A header: its value is Connect's data."""

    key: str
    schema: Schema | None
    value: Any


@dataclass(slots=True, kw_only=True)
class ConnectRecord:
    """What transforms work on, whichever way a record goes. `timestamp_ms` None means none."""

    topic: str
    partition: int | None = None
    key_schema: Schema | None = None
    key: Any = None
    value_schema: Schema | None = None
    value: Any = None
    timestamp_ms: int | None = None
    headers: list[Header] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class SourceRecord(ConnectRecord):
    """A record from another system.

    `source_partition` names what it was read from, `source_offset` where reading goes on after it;
    both are JSON objects, stored in the worker's offset topic once the record is written.
    """

    source_partition: JsonMap
    source_offset: JsonMap


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
