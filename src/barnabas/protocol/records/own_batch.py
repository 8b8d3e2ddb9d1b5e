"""Batches that a broker builds from its own records, mostly of one: `encode_batch` for these.

A coordinator writes such a batch for each request, uncompressed, without headers, all of one
timestamp. The general `records.encode_batch` costs several times as much.
"""

from collections.abc import Sequence
from struct import Struct

from barnabas.base.checksum import crc32c
from barnabas.protocol.records.batch import (
    ATTRIBUTES_POSITION,
    CONTROL_MASK,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_MASK,
)
from barnabas.protocol.records.uniform import encode_varint

KeyValue = tuple[bytes, bytes | None]
"""A record's key and value; None is a tombstone."""

SHORT_MAX = 256
_VARINTS = tuple(map(encode_varint, range(SHORT_MAX)))
_pack_start = Struct(">qiibI").pack
_pack_rest = Struct(">hiqqqhii").pack
_REST_OVERHEAD_BYTES = ATTRIBUTES_POSITION - LOG_OVERHEAD_BYTES
"""The fields between the length field and the attributes."""


def encode_own_batch(
    records: Sequence[KeyValue],
    timestamp_ms: int,
    *,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytearray:
    """The batch that `encode_batch` makes of the same records, each of `timestamp_ms`.

    There must be a record.
    """
    count = len(records)
    parts = [b""]
    for delta, (key, value) in enumerate(records):
        if value is None:
            body = b"\0\0%b%b%b\x01\0" % (_varint(delta), _varint(len(key)), key)
        else:
            body = b"\0\0%b%b%b%b%b\0" % (
                _varint(delta),
                _varint(len(key)),
                key,
                _varint(len(value)),
                value,
            )
        parts += (_varint(len(body)), body)
    parts[0] = _pack_rest(
        (TRANSACTIONAL_MASK if is_transactional else 0) | (CONTROL_MASK if is_control else 0),
        count - 1,
        timestamp_ms,
        timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    return seal_batch(b"".join(parts), partition_leader_epoch)


def seal_batch(rest: bytes, partition_leader_epoch: int) -> bytearray:
    """The batch whose bytes from its attributes on are `rest`, at offset 0."""
    size_bytes = len(rest) + _REST_OVERHEAD_BYTES
    batch = bytearray(_pack_start(0, size_bytes, partition_leader_epoch, MAGIC, crc32c(rest)))
    batch += rest
    return batch


def _varint(value: int) -> bytes:
    return _VARINTS[value] if value < SHORT_MAX else encode_varint(value)
