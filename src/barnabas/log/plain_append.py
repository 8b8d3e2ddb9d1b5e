"""The short way into a log, for the batch that nearly every append is.

A client's single batch that needs no rewriting, from a producer that is known and goes on where
it was (or from one without an id), into a segment that has room: all that it must be is asked at
once, in one function without a call that could be saved. Whatever else it may be (the first of
its producer, a duplicate, wrong, in need of a new segment) takes the general way, which knows the
reasons. So nothing is decided here, and nothing is changed before everything has been asked.

`python -m bench.log_append` shows the gain.
"""

from struct import Struct
from typing import TYPE_CHECKING, Final

from crc32c import crc32c

from barnabas.log.config import LONG_MAX, LogConfig
from barnabas.log.log_state import LogState
from barnabas.log.producers.entry import ProducedBatch
from barnabas.log.segment import (
    RELATIVE_OFFSET_MAX,
    Segment,
    size_without_full_indexes,
)
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.batch import (
    ATTRIBUTES_POSITION,
    HEADER,
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    SEQUENCE_MAX,
    TRANSACTIONAL_MASK,
    Codec,
    TimestampType,
)
from barnabas.protocol.records.records import RECORDS_PER_BATCH_MAX, check_structure

if TYPE_CHECKING:
    from barnabas.log.producers.entry import ProducerEntry

REFUSED: Final = -1
_unpack_header = HEADER.unpack_from
_pack_overhead = Struct(">qii").pack_into
_new_tuple = tuple.__new__


class PlainLimits:
    """What an append to a segment must keep to, by the topic's configuration, to be plain."""

    __slots__ = (
        "attributes",
        "batch_size_max_bytes",
        "config",
        "index_interval_bytes",
        "keys_required",
        "last_offset_max",
        "segment_size_max_bytes",
        "span_max_ms",
        "timestamp_after_max_ms",
    )

    def __init__(self, config: LogConfig, segment: Segment, segment_ms: int) -> None:
        self.config = config
        codecs = tuple(Codec) if config.codec is None else (config.codec,)
        is_open = (
            config.timestamp_type is TimestampType.CREATE_TIME
            and config.message_timestamp_before_max_ms == LONG_MAX
        )
        self.attributes = (
            frozenset(int(codec) | flag for codec in codecs for flag in (0, TRANSACTIONAL_MASK))
            if is_open
            else frozenset()
        )
        """Those that no broker needs to change: everything but codec and transaction is unset."""
        self.batch_size_max_bytes = min(config.max_message_bytes, config.segment_bytes)
        self.keys_required = config.is_compacted
        self.timestamp_after_max_ms = config.message_timestamp_after_max_ms
        self.index_interval_bytes = config.index_interval_bytes
        self.last_offset_max = segment.base_offset + RELATIVE_OFFSET_MAX
        self.span_max_ms = segment_ms
        """From the segment's first timestamp to a batch's greatest."""
        self.segment_size_max_bytes = min(
            config.segment_bytes,
            size_without_full_indexes(config.index_entries_max, config.index_interval_bytes),
        )


class PlainAppendLog(LogState):
    """The short way of the writing side."""

    __slots__ = ()

    def append_plain(
        self, data: memoryview, limits: PlainLimits, leader_epoch: int, now_ms: int
    ) -> int:
        """Append `data` if nothing about it is out of the ordinary; returns its first offset.

        REFUSED: it takes the general way, and nothing has changed. Raises LogDirFailure.
        """
        size = len(data)
        if size < HEADER_SIZE_BYTES:
            return REFUSED
        (
            base_offset,
            batch_length,
            _,
            magic,
            crc,
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        ) = _unpack_header(data)
        segment = self.active
        first_timestamp = segment.first_timestamp
        first_offset = self.log_end_offset
        last_offset = first_offset + last_offset_delta
        if (
            magic != MAGIC
            or base_offset
            or batch_length + LOG_OVERHEAD_BYTES != size
            or size > limits.batch_size_max_bytes
            or attributes not in limits.attributes
            or not 0 < count <= RECORDS_PER_BATCH_MAX
            or last_offset_delta != count - 1
            or not base_timestamp <= max_timestamp <= now_ms + limits.timestamp_after_max_ms
            or not 0 < segment.size_bytes <= limits.segment_size_max_bytes - size
            or last_offset > limits.last_offset_max
            or first_timestamp is None
            or first_timestamp < 0
            or max_timestamp - first_timestamp > limits.span_max_ms
            or leader_epoch != self.epochs.latest_epoch
        ):
            return REFUSED
        entry: ProducerEntry | None = None
        if producer_id >= 0:
            entry = self.producers.producers.get(producer_id)
            if (
                entry is None
                or producer_epoch != entry.epoch
                or base_sequence < 0
                or not entry.batches
                or base_sequence != entry.batches[-1][0] + 1
                or (entry.txn_first_offset >= 0) is not (attributes >= TRANSACTIONAL_MASK)
            ):
                return REFUSED
        if crc32c(data[ATTRIBUTES_POSITION:]) != crc:
            return REFUSED
        try:
            check_structure(data, attributes, count, keys_required=limits.keys_required)
        except DecodeError:
            return REFUSED
        _pack_overhead(data, 0, first_offset, batch_length, leader_epoch)
        try:
            segment.append(
                data, size, last_offset, max_timestamp, last_offset, limits.index_interval_bytes
            )
        except OSError as error:
            raise self.fail(error) from error
        self.log_end_offset = next_offset = last_offset + 1
        if entry is not None:
            entry.add_batch(
                _new_tuple(
                    ProducedBatch,
                    (
                        (base_sequence + last_offset_delta) & SEQUENCE_MAX,
                        last_offset,
                        last_offset_delta,
                        max_timestamp,
                    ),
                )
            )
        self.tail.append(data, next_offset)
        return first_offset
