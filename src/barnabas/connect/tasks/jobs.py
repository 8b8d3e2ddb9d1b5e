"""A micro-batch on an executor: one split of a source, or one range of a sink.

These run both in the worker's process (local engine) and in Spark's Python workers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any

from barnabas.connect.connectors.base import SinkRange, SinkWriter, SourceReader
from barnabas.connect.errors.tolerance import ErrorCounts, java_class
from barnabas.connect.record import (
    JsonMap,
    RawRecord,
    SinkColumn,
    SinkRecord,
    SourceColumn,
    SourceRecord,
)
from barnabas.connect.tasks.flow import SinkFlow, SourceFlow
from barnabas.connect.tasks.transport import Output, Transport
from barnabas.schemas.data.errors import ConnectError, DataError

_log = logging.getLogger(__name__)
Pair = tuple[JsonMap, JsonMap]
"""A source partition and an offset of it."""


@dataclass(slots=True)
class SplitDone:
    """The result of a source's split: the new offset of each source partition, and figures."""

    offsets: list[tuple[JsonMap, JsonMap]] = field(default_factory=list)
    topics: set[str] = field(default_factory=set)
    polled: int = 0
    written: int = 0
    seconds: float = 0.0
    counts: ErrorCounts = field(default_factory=ErrorCounts)
    receipts: Any = None
    """The reader's own; whole once the output is flushed."""
    prepared: Sequence[Any] = ()
    """Of exactly once on executors: the transaction that is left open."""


@dataclass(slots=True)
class RangeDone:
    """The outcome of one range of a sink."""

    message: Any = None
    read: int = 0
    sent: int = 0
    seconds: float = 0.0
    counts: ErrorCounts = field(default_factory=ErrorCounts)


def run_split(
    reader: SourceReader,
    split: Any,
    flow: SourceFlow,
    output: Output,
    watch: Callable[[Iterator[SourceRecord]], Iterator[SourceRecord]] | None = None,
) -> SplitDone:
    """Send the records of a split; they are not written before `output` is flushed.

    `watch` is what they pass first: it goes on with one when the one before was sent or left out.
    """
    began = time.monotonic()
    done = SplitDone()
    flow.counts.__init__()  # type: ignore[misc]  # figures of this split alone
    receipts = done.receipts = reader.receipts(split)
    plain = reader.read_bytes(split) if flow.is_plain and watch is None else None
    columns = None
    if flow.takes_columns and watch is None and receipts is None:
        columns = reader.read_columns(split)
    if plain is not None:
        _send_bytes(plain, output, done)
    elif columns is not None:
        done.offsets = _send_columns(columns, flow, output, done)
    else:
        records = _read(reader, split, flow) if flow.unmasked else reader.read(split)
        offsets = _send_records(records if watch is None else watch(records), flow, output, done)
        done.offsets = list(offsets.values())
    done.seconds = time.monotonic() - began
    done.counts.add(flow.counts)
    return done


def _read(reader: SourceReader, split: Any, flow: SourceFlow) -> Iterator[SourceRecord]:
    try:
        yield from reader.read(split)
    except DataError as error:
        raise flow.unmasked.without_text(error)  # noqa: B904  # it has the causes that may be seen


def _send_bytes(records: Iterator[RawRecord], output: Output, done: SplitDone) -> None:
    send, topics, receipts = output.send, done.topics, done.receipts
    for bare in records:
        send(bare, None if receipts is None else partial(receipts.written, bare))
        topics.add(bare.topic)
        done.written += 1
    done.polled = done.written


def _send_records(
    records: Iterator[SourceRecord], flow: SourceFlow, output: Output, done: SplitDone
) -> dict[str, Pair]:
    """Return the last offset of each source partition."""
    convert, send, topics, receipts = flow.convert, output.send, done.topics, done.receipts
    last: dict[str, Pair] = {}
    partition: JsonMap | None = None
    key = ""
    for record in records:
        done.polled += 1
        if record.source_partition is not partition:
            partition = record.source_partition
            key = partition_key(partition)
        last[key] = partition, record.source_offset
        raw = convert(record)
        if raw is not None:
            send(raw, None if receipts is None else partial(receipts.written, record))
            topics.add(raw.topic)
            done.written += 1
    return last


def _send_columns(
    columns: Iterator[SourceColumn], flow: SourceFlow, output: Output, done: SplitDone
) -> list[Pair]:
    """Return the last offset of each source partition."""
    last: dict[str, Pair] = {}
    for column in columns:
        values = flow.convert_column(column)
        if values is None:
            last |= _send_records(column.records(), flow, output, done)
            continue
        output.send_values(column.topic, values, column.timestamp_ms)
        last[partition_key(column.source_partition)] = column.source_partition, column.end
        done.topics.add(column.topic)
        done.polled += len(values)
        done.written += len(values)
    return list(last.values())


def partition_key(partition: JsonMap) -> str:
    """Return a text that equal source partitions share."""
    return repr(sorted(partition.items()))


def settle(
    output: Output, flow: SourceFlow, stopping: Event, *, is_transaction: bool = False
) -> int:
    """Wait until what was sent is written; returns how many records could not be.

    Raises ConnectError where that is not tolerated; in a transaction it never is, as brokers commit
    none that lacks a record.
    """
    failed = output.flush(stopping)
    for raw, error in failed:
        if is_transaction or not flow.tolerance.policy.tolerates_all:
            raise ConnectError(f"Unrecoverable exception from producer send callback: {error}")
        _log.warning("skipping a record for topic %s: %s", raw.topic, error)
    return len(failed)


def run_range(
    writer: SinkWriter, where: SinkRange, transport: Transport, flow: SinkFlow, stopping: Event
) -> RangeDone:
    """Write a range into the other system, and its dead letters to their topic."""
    began = time.monotonic()
    done = RangeDone()
    flow.counts.__init__()  # type: ignore[misc]  # figures of this range alone

    def raw_records() -> Iterator[RawRecord]:
        for raw in transport.read(where):
            done.read += 1
            yield raw

    def records() -> Generator[SinkRecord, None, None]:
        for record in flow.convert(raw_records()):
            done.sent += 1
            yield record

    def columns() -> Generator[SinkColumn, None, None]:
        for raw in transport.read_columns(where):
            done.read += len(raw.values)
            column = flow.convert_column(where.topic, raw)
            if column is not None:
                done.sent += len(column.values)
                yield column
                continue
            for record in flow.convert(raw.records()):
                done.sent += 1
                yield SinkColumn(record.value_schema, (record.value,))

    writer.report = lambda record, error: flow.report(writer, record, error)
    has_columns = type(writer).write_columns is not SinkWriter.write_columns
    given: Generator[Any, None, None]
    try:
        if has_columns and flow.takes_columns:
            given = columns()
            done.message = writer.write_columns(given, where)
        else:
            given = records()
            done.message = writer.write(given, where)
        for _ in given:  # what a writer leaves unread is written by nobody
            raise ConnectError(
                f"{java_class(writer)} did not write all records of {where.topic}-{where.partition}"
            )
    finally:
        writer.report = None
        given.close()
    if flow.tolerance.policy.dead_letter_topic and flow.counts.dead_letters:
        failed = transport.dead_letters().flush(stopping)
        flow.counts.dead_letter_failures += len(failed)
        for raw, error in failed:
            _log.error(
                "Could not produce message to dead letter queue. topic=%s: %s", raw.topic, error
            )
    done.seconds = time.monotonic() - began
    done.counts.add(flow.counts)
    return done


def merged_offsets(
    done: Sequence[SplitDone], more: Sequence[tuple[JsonMap, JsonMap]]
) -> list[tuple[JsonMap, JsonMap]]:
    """Return the last offset of each source partition; `more` wins."""
    last: dict[str, tuple[JsonMap, JsonMap]] = {}
    for pairs in (*(one.offsets for one in done), more):
        for partition, offset in pairs:
            last[partition_key(partition)] = partition, offset
    return list(last.values())
