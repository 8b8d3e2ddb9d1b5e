"""Records of topics, as bytes, to records of a plan and back, through the formats."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from barnabas.java.numbers import LONG_MAX
from barnabas.schemas.errors import FormatError
from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.formats.catalog import format_named, is_wrapped, key_wrapping, value_wrapping
from barnabas.sql.formats.format import Deserializer, Format, RecordPart, Serializer
from barnabas.sql.plan.steps import (
    FormatChoice,
    StreamSink,
    StreamSource,
    TableSink,
    TableSource,
    WindowInfo,
)
from barnabas.sql.processing_log import UnreadableError, UnwritableError
from barnabas.sql.runtime.evaluation import Log
from barnabas.sql.runtime.records import Record, Row, WindowBounds
from barnabas.sql.schema import Column, Part
from barnabas.sql.syntax.tree import WindowKind


@dataclass(slots=True)
class TopicRecord:
    """A record as a topic holds it. `partition` is None where nobody has chosen one."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    offset: int = 0


Step = StreamSource | TableSource | StreamSink | TableSink
ReadKey = Callable[[bytes | None], tuple[Row | None, WindowBounds | None]]
WriteKey = Callable[[Row | None, WindowBounds | None], bytes | None]


class TopicReader:
    """Reads the records of a source's topic; those that cannot be read go to the log."""

    def __init__(
        self, step: StreamSource | TableSource, schemas: SchemaStore | None, log: Log
    ) -> None:
        self._step = step
        self._log = log
        format_, part = value_part(step, schemas)
        self._read_value = format_.deserializer(part)
        format_, part = key_part(step, schemas)
        self._read_key = key_reader(format_.deserializer(part), step.window)

    def read(self, record: TopicRecord) -> Record | None:
        """The record, or None if it is left out. Raises FormatError if it may be good later."""
        found = self.try_read(record)
        if isinstance(found, UnreadableError):
            self.note(found)
            return None
        return found

    def try_read(self, record: TopicRecord) -> Record | UnreadableError:
        """The record, or why it is left out. Raises FormatError if it may be good later."""
        target = "key"
        try:
            key, window = self._read_key(record.key)
            target = "value"
            value = self._read_value(record.value)
        except FormatError as error:
            if error.retriable:
                raise
            data = record.key if target == "key" else record.value
            return UnreadableError(target, self._step.topic, data, error)
        return Record(
            key,
            value,
            record.timestamp_ms,
            window,
            record.headers,
            record.partition or 0,
            record.offset,
        )

    def note(self, unreadable: UnreadableError) -> None:
        """Tell the log about a record that is left out."""
        self._log(f"Failed to deserialize a record of {self._step.topic}", None, unreadable)


class TopicWriter:
    """Writes records for a sink's topic; those that cannot be written go to the log."""

    def __init__(
        self,
        step: StreamSink | TableSink,
        window: WindowInfo | None,
        schemas: SchemaStore | None,
        log: Log,
    ) -> None:
        self._step = step
        self._log = log
        format_, part = value_part(step, schemas)
        self._write_value = format_.serializer(part)
        self._write_key = _key_writer(step, window, schemas)

    def write(self, record: Record) -> TopicRecord | None:
        """The record as bytes, or None if it is left out."""
        target = "key"
        try:
            key = self._write_key(record.key, record.window)
            target = "value"
            value = self._write_value(record.value)
        except FormatError as error:
            if error.retriable:
                raise
            row = record.key if target == "key" else record.value
            unwritable = UnwritableError(target, self._step.topic, error)
            self._log(f"Failed to serialize a record for {self._step.topic}", row, unwritable)
            return None
        return TopicRecord(key, value, record.timestamp_ms, record.headers)


def value_part(step: Step, schemas: SchemaStore | None) -> tuple[Format, RecordPart]:
    """The format of the topic's values, and what it writes or reads."""
    return part_of(step.topic, Part.VALUE, step.formats.value, step.schema.value, schemas)


def key_part(step: Step, schemas: SchemaStore | None) -> tuple[Format, RecordPart]:
    """The format of the topic's keys, and what it writes or reads."""
    return part_of(step.topic, Part.KEY, step.formats.key, step.schema.key, schemas)


def part_of(
    topic: str,
    part: Part,
    choice: FormatChoice,
    columns: Sequence[Column],
    schemas: SchemaStore | None,
) -> tuple[Format, RecordPart]:
    """The format of a topic's keys or values, and what it writes or reads."""
    format_ = format_named(choice.name)
    if part is Part.KEY:
        wrapping = key_wrapping(format_, columns)
    else:
        wrapping = value_wrapping(format_, columns, choice.wraps_single)
    wraps, subject = is_wrapped(format_, wrapping), f"{topic}-{part.value.lower()}"
    return format_, RecordPart(columns, choice.properties, subject, schemas, wraps)


def key_reader(deserialize: Deserializer, window: WindowInfo | None) -> ReadKey:
    """Reads keys, with their windows where they have any; NULL where there are no bytes."""
    if window is None:
        return lambda data: (deserialize(data), None)
    windowed = windowed_deserializer(
        deserialize, size_ms=window.size_ms, session=window.kind is WindowKind.SESSION
    )
    return lambda data: windowed(data) or (None, None)


def _key_writer(
    step: StreamSink | TableSink, window: WindowInfo | None, schemas: SchemaStore | None
) -> WriteKey:
    format_, part = key_part(step, schemas)
    serialize = format_.serializer(part)
    if window is None:
        return lambda key, _: serialize(key)
    windowed = windowed_serializer(serialize, session=window.kind is WindowKind.SESSION)
    return lambda key, bounds: None if key is None or bounds is None else windowed(key, bounds)


# -- keys of windowed results: the key's bytes, then the window's bounds, as Kafka Streams has them
#
#     time window   key, start (8 bytes)           the end is known from the window's size
#     session       key, end (8), start (8)        the end belongs to the session
#
# Both are milliseconds, big endian. ksqlDB's hopping and tumbling windows are time windows.


_START = struct.Struct(">q")
_END_START = struct.Struct(">qq")

WindowedSerializer = Callable[[Row | None, WindowBounds], bytes]
WindowedDeserializer = Callable[[bytes | None], tuple[Row | None, WindowBounds] | None]


def windowed_serializer(inner: Serializer, *, session: bool) -> WindowedSerializer:
    """Keys with windows to bytes."""

    def serialize_time(key: Row | None, window: WindowBounds) -> bytes:
        return (inner(key) or b"") + _START.pack(window.start_ms)

    def serialize_session(key: Row | None, window: WindowBounds) -> bytes:
        return (inner(key) or b"") + _END_START.pack(window.end_ms, window.start_ms)

    return serialize_session if session else serialize_time


def windowed_deserializer(
    inner: Deserializer, *, size_ms: int | None, session: bool
) -> WindowedDeserializer:
    """Bytes to keys with windows.

    `size_ms`: of time windows; where it is not known they have no end, as in Kafka Streams.
    Raises FormatError for bytes without bounds.
    """

    def deserialize_time(data: bytes | None) -> tuple[Row | None, WindowBounds] | None:
        if not data:
            return None
        key, (start_ms,) = _cut(data, _START)
        end_ms = LONG_MAX if size_ms is None else min(start_ms + size_ms, LONG_MAX)
        return inner(key), WindowBounds(start_ms, end_ms)

    def deserialize_session(data: bytes | None) -> tuple[Row | None, WindowBounds] | None:
        if not data:
            return None
        key, (end_ms, start_ms) = _cut(data, _END_START)
        return inner(key), WindowBounds(start_ms, end_ms)

    return deserialize_session if session else deserialize_time


def _cut(data: bytes, bounds: struct.Struct) -> tuple[bytes, tuple[int, ...]]:
    if len(data) < bounds.size:
        raise FormatError(
            f"The key has {len(data)} bytes, too few for the bounds of a window ({bounds.size})"
        )
    return data[: -bounds.size], bounds.unpack(data[-bounds.size :])
