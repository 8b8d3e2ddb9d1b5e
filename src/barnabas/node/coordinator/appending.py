"""Append the records of a decision to the log, then replay them.

An `Entry` is the runtime's state of one partition, with the steps that wait for its commits.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from barnabas.base.disk import Buffer
from barnabas.node.coordinator.decision import (
    CoordinatorRecord,
    Decision,
    Moment,
    Shard,
    Transactional,
    Waiter,
)
from barnabas.node.coordinator.partition_writer import (
    CoordinatorWriteError,
    PartitionWriter,
    coordinator_error,
)
from barnabas.node.coordinator.record_codec import chunk_records, encode_record, record_size_bytes
from barnabas.node.log.producers.verification import AppendTerms
from barnabas.node.loop.promise import Promise
from barnabas.protocol.errors import EncodeError, ErrorCode
from barnabas.protocol.records.batch import HEADER_SIZE_BYTES, NO_PRODUCER_ID
from barnabas.protocol.records.own_batch import KeyValue, encode_own_batch

S = TypeVar("S", bound=Shard)
T = TypeVar("T", contravariant=True)

telemetry = logging.getLogger(__name__)


@dataclass(slots=True)
class Pending:
    """A step whose outcome waits for a commit."""

    end_offset: int
    deadline_ms: int
    response: Any = None
    on_error: Callable[[ErrorCode], Any] | None = None
    waiter: Waiter | None = None
    continuation: Any = None
    promise: Promise[Any] | None = None
    is_done: bool = False
    outcome: Any = None


@dataclass(slots=True)
class Parked:
    """A request that a shard will answer by a later decision."""

    partition: int
    promise: Promise[Any]
    on_error: Callable[[ErrorCode], Any]


@dataclass(slots=True)
class Entry(Generic[S]):
    """One partition: its shard, once loaded, and the steps that wait for commits, in order."""

    partition: int
    leader_epoch: int
    shard: S
    error: ErrorCode | None = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    """Why requests are refused; None when the shard is active."""
    source: Iterator[Buffer] | None = None
    end_offset: int = 0
    committed_offset: int = 0
    pending: deque[Pending] = field(default_factory=deque)

    @property
    def is_settled(self) -> bool:
        """True if all that the shard's state rests on is committed."""
        return self.committed_offset >= self.end_offset


class EncodedStep(Protocol[T]):
    """A step of a shard that makes its batch itself, without records in between.

    It must have the same effect as the step would as a decision: the same bytes, the same state.
    """

    size_bytes_bound: int
    """The size that `runtime.run` would compare with the partition's largest batch."""

    def is_allowed(self, shard: T, now: Moment) -> bool:
        """Whether the shard takes the step; if not, nothing has changed but signs of life."""

    def encode(self, timestamp_ms: int, leader_epoch: int) -> bytearray:
        """The one batch of the step, outside transactions."""

    def replay(self, shard: T, end_offset: int) -> None:
        """Apply the batch, whose records are the last before `end_offset`."""


def write(writer: PartitionWriter, entry: Entry[S], decision: Decision, now: Moment) -> ErrorCode:
    """Append the records, as one batch or several, and replay what was appended."""
    try:
        size_max = writer.batch_size_bytes_max(entry.partition)
        encoded = [encode_record(record) for record in decision.records]
    except CoordinatorWriteError as failure:  # its directory went offline, before we heard
        telemetry.warning("cannot append to partition %d: %s", entry.partition, failure)
        return coordinator_error(failure.error)
    except EncodeError as failure:
        telemetry.error("partition %d: %s", entry.partition, failure)
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if decision.is_atomic:
        if HEADER_SIZE_BYTES + sum(map(record_size_bytes, encoded)) > size_max:
            return coordinator_error(ErrorCode.RECORD_LIST_TOO_LARGE)
        return _append(
            writer,
            entry,
            encoded,
            decision.records if decision.replays else None,
            decision.transactional,
            now.wall_ms,
        )
    chunks = chunk_records(encoded, size_max - HEADER_SIZE_BYTES)
    written = 0
    for chunk in chunks:
        records = decision.records[written : written + len(chunk)]
        error = _append(
            writer,
            entry,
            chunk,
            records if decision.replays else None,
            decision.transactional,
            now.wall_ms,
        )
        if error:
            return error
        written += len(chunk)
    return ErrorCode.NONE


def write_encoded(
    writer: PartitionWriter, entry: Entry[S], step: EncodedStep[S], now: Moment
) -> bool | None:
    """Append and replay the batch of a step; whether it is committed already.

    None: the log does not take it, and nothing has changed.
    """
    batch = step.encode(now.wall_ms, entry.leader_epoch)
    try:
        end_offset, is_committed = writer.append_plain(
            entry.partition, batch, step.size_bytes_bound
        )
    except CoordinatorWriteError:
        return None
    entry.end_offset = end_offset
    step.replay(entry.shard, end_offset)
    return is_committed


def _append(
    writer: PartitionWriter,
    entry: Entry[S],
    encoded: list[KeyValue],
    records: list[CoordinatorRecord] | None,
    producer: Transactional | None,
    timestamp_ms: int,
) -> ErrorCode:
    producer_id, terms = NO_PRODUCER_ID, None
    if producer is None:
        batch = encode_own_batch(encoded, timestamp_ms, partition_leader_epoch=entry.leader_epoch)
    else:
        producer_id = producer.producer_id
        terms = AppendTerms(producer.verification)
        batch = encode_own_batch(
            encoded,
            timestamp_ms,
            partition_leader_epoch=entry.leader_epoch,
            producer_id=producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )
    try:
        entry.end_offset = writer.append(entry.partition, batch, terms)
    except CoordinatorWriteError as failure:
        telemetry.warning("cannot append to partition %d: %s", entry.partition, failure)
        return coordinator_error(failure.error)
    if records is not None:
        base_offset = entry.end_offset - len(records)
        for offset, record in enumerate(records, base_offset):
            entry.shard.replay(offset, producer_id, record)
    return ErrorCode.NONE
