"""The short way into a log, for the batch that nearly every append is.

A client's batch that needs no rewriting, from a producer that is known and goes on where it was
(or from one without an id), into a segment that has room: all that it must be is asked at once, in
one function without a call that could be saved. Several that arrived together are written
together. Any other batch (the first of its producer, a duplicate, an invalid one, one that needs a
new segment) takes the general path, which knows the reasons. So nothing is decided here, and
nothing of a batch is changed before everything has been asked of it.

`python -m bench.log_append` shows the gain.
"""

from collections.abc import Iterable
from struct import Struct
from typing import TYPE_CHECKING
from zlib import crc32

from barnabas.base.checksum import crc32c
from barnabas.node.log.log_state import LogState
from barnabas.node.log.producers.entry import ProducedBatch
from barnabas.node.log.segment import PlainLimits
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.batch import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    HEADER,
    HEADER_SIZE_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    SEQUENCE_MAX,
    TRANSACTIONAL_MASK,
)
from barnabas.protocol.records.records import RECORDS_PER_BATCH_MAX, check_structure
from barnabas.protocol.records.uniform import is_uniform

if TYPE_CHECKING:
    from barnabas.node.log.producers.entry import ProducerEntry

_unpack_header = HEADER.unpack_from
_pack_overhead = Struct(">qii").pack_into
_new_tuple = tuple.__new__
NOT_APPENDED = -1


def append_plain(  # noqa: C901  # one function, since each call costs as much as a check
    log: LogState,
    batches: Iterable[memoryview],
    leader_epoch: int,
    now_ms: int,
    *,
    are_decompressed: bool = False,
) -> list[int]:
    """Append `batches` up to the first about which something is out of the ordinary.

    `are_decompressed`: the CRC and the records of those that are compressed are known to be good.

    Returns the first offsets of those that were appended, by one write. The next one is for
    the general way, or begins another call if its producer is another; of it, and of what
    follows, nothing has changed. The log must be online. Raises LogDirFailure.
    """
    segment = log.active
    limits = segment.plain_limits
    if limits is None or limits.config is not log.config:
        limits = _make_limits(log)
    first_timestamp = segment.first_timestamp
    if (
        first_timestamp is None
        or first_timestamp < 0
        or segment.size_bytes <= 0
        or leader_epoch != log.epochs.latest_epoch
    ):
        return []
    timestamp_max = min(
        now_ms + limits.timestamp_after_max_ms, first_timestamp + limits.span_max_ms
    )
    room = limits.segment_size_max_bytes - segment.size_bytes
    next_offset = log.log_end_offset
    entry: ProducerEntry | None = None
    known_id: int | None = None
    expected_sequence = NO_SEQUENCE
    size_bytes = 0
    greatest_timestamp = greatest_offset = NO_TIMESTAMP
    buffers: list[memoryview] = []
    first_offsets: list[int] = []
    next_offsets: list[int] = []
    produced: list[ProducedBatch] = []
    for data in batches:
        size = len(data)
        if size < HEADER_SIZE_BYTES:
            break
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
        if (
            magic != MAGIC
            or base_offset
            or batch_length + LOG_OVERHEAD_BYTES != size
            or size > limits.batch_size_max_bytes
            or size_bytes + size > room
            or attributes not in limits.attributes
            or not 0 < count <= RECORDS_PER_BATCH_MAX
            or last_offset_delta != count - 1
            or next_offset + last_offset_delta > limits.last_offset_max
            or not base_timestamp <= max_timestamp <= timestamp_max
        ):
            break
        if producer_id != known_id:
            if first_offsets:
                break
            known_id = producer_id
            if producer_id >= 0:
                entry = log.producers.producers.get(producer_id)
                if entry is None or not entry.batches:
                    break
                expected_sequence = entry.batches[-1][0] + 1
        if entry is not None:
            if (
                producer_epoch != entry.epoch
                or base_sequence < 0
                or base_sequence != expected_sequence
                or (entry.txn_first_offset >= 0) is not (attributes >= TRANSACTIONAL_MASK)
            ):
                break
            expected_sequence = ((base_sequence + last_offset_delta) & SEQUENCE_MAX) + 1
        if not (are_decompressed and attributes & CODEC_MASK):
            if crc32c(data[ATTRIBUTES_POSITION:]) != crc:
                break
            if attributes & CODEC_MASK or not is_uniform(
                bytes(data[HEADER_SIZE_BYTES:]), count, keys_required=limits.keys_required
            ):
                try:
                    check_structure(data, attributes, count, keys_required=limits.keys_required)
                except DecodeError:
                    break
        _pack_overhead(data, 0, next_offset, batch_length, leader_epoch)
        buffers.append(data)
        first_offsets.append(next_offset)
        next_offset += count
        next_offsets.append(next_offset)
        size_bytes += size
        if max_timestamp > greatest_timestamp:
            greatest_timestamp = max_timestamp
            greatest_offset = next_offset - 1
        if entry is not None:
            produced.append(
                _new_tuple(
                    ProducedBatch,
                    (expected_sequence - 1, next_offset - 1, last_offset_delta, max_timestamp),
                )
            )
    if not first_offsets:
        return first_offsets
    try:
        segment.append(
            buffers,
            size_bytes,
            next_offset - 1,
            greatest_timestamp,
            greatest_offset,
            limits.index_interval_bytes,
        )
    except OSError as error:
        raise log.fail(error) from error
    log.log_end_offset = next_offset
    if entry is not None:
        entry.add_batches(produced)
    log.tail.extend(buffers, next_offsets)
    return first_offsets


def append_own(
    log: LogState, data: bytearray | memoryview, leader_epoch: int, *, keep_tail: bool = True
) -> int:
    """Append one plain batch that this node made itself: no producer, not compressed.

    Returns its offset, or -1 for what is for the general way; nothing has changed then. The
    log must be online. Without `keep_tail` it is not kept in memory for those who read the
    end of the log: few do where nobody follows. Raises LogDirFailure.
    """
    segment = log.active
    limits = segment.plain_limits
    if limits is None or limits.config is not log.config:
        limits = _make_limits(log)
    first_timestamp = segment.first_timestamp
    size = len(data)
    if first_timestamp is None or first_timestamp < 0 or size < HEADER_SIZE_BYTES:
        return NOT_APPENDED
    (
        _,
        batch_length,
        _,
        magic,
        _,
        attributes,
        last_offset_delta,
        _,
        timestamp,
        producer_id,
        _,
        _,
        _,
    ) = _unpack_header(data)
    offset = log.log_end_offset
    last_offset = offset + last_offset_delta
    position = segment.size_bytes
    if (
        producer_id >= 0
        or attributes
        or magic != MAGIC
        or batch_length + LOG_OVERHEAD_BYTES != size
        or size > limits.batch_size_max_bytes
        or position <= 0
        or position + size > limits.segment_size_max_bytes
        or last_offset > limits.last_offset_max
        or timestamp - first_timestamp > limits.span_max_ms
        or leader_epoch != log.epochs.latest_epoch
    ):
        return NOT_APPENDED
    _pack_overhead(data, 0, offset, batch_length, leader_epoch)
    try:
        segment.append(
            (data,), size, last_offset, timestamp, last_offset, limits.index_interval_bytes
        )
    except OSError as error:
        raise log.fail(error) from error
    log.log_end_offset = last_offset + 1
    if keep_tail:
        log.tail.append(data, last_offset + 1)
    else:
        log.tail.skip_to(last_offset + 1)
    return offset


def _make_limits(log: LogState) -> PlainLimits:
    limits = PlainLimits(log.config, log.active.base_offset, segment_ms(log))
    log.active.plain_limits = limits
    return limits


def segment_ms(log: LogState) -> int:
    """segment.ms less a part of segment.jitter.ms, so that logs do not all roll at once."""
    config = log.config
    if not config.segment_jitter_ms:
        return config.segment_ms
    seed = crc32(f"{log.topic_partition} {log.active.base_offset}".encode())
    return config.segment_ms - seed % min(config.segment_jitter_ms, config.segment_ms)
