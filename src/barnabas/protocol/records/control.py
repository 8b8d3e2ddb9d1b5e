"""Control batches: what brokers and controllers write between the records of their clients.

The key names the type, (version i16 = 0, type i16), and the value is a message of that type:
the end of a transaction (KIP-98), a change of the quorum's leader (KIP-595), head and foot of a
snapshot (KIP-630), the KRaft version and the voters (KIP-853). Consumers skip them all.
Source: Kafka's ControlRecordType, ControlRecordUtils and EndTransactionMarker.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import Final

from barnabas.base.disk import Buffer
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages.quorum import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from barnabas.protocol.records.batch import (
    CONTROL_MASK,
    HEADER_SIZE_BYTES,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TRANSACTIONAL_MASK,
    BatchHeader,
    CorruptBatchError,
)
from barnabas.protocol.records.own_batch import encode_own_batch
from barnabas.protocol.records.records import Record, encode_batch

TRANSACTION_VERSION_2: Final = 2
"""From this `transaction.version` on each end of a transaction raises the epoch (KIP-890)."""

_KEY = Struct(">hh")
_END_TXN_VALUE = Struct(">hi")
_END_TXN_RECORD = Struct(">7sH3siB")
_unpack_end_txn = _END_TXN_RECORD.unpack_from
_END_TXN_START: Final = b"\x20\0\0\0\x08\0\0"
"""The record's length, attributes and deltas; the key's length and version."""
_END_TXN_BETWEEN: Final = b"\x0c\0\0"
"""The value's length and version."""
_END_TXN_ATTRIBUTES: Final = TRANSACTIONAL_MASK | CONTROL_MASK
_END_TXN_SIZE_BYTES: Final = HEADER_SIZE_BYTES + _END_TXN_RECORD.size


class ControlType(IntEnum):
    """The type of a control record."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


@dataclass(slots=True)
class EndTxn:
    """The end of a producer's transaction, decided by the coordinator of `coordinator_epoch`."""

    is_commit: bool
    coordinator_epoch: int


ControlMessage = (
    EndTxn
    | LeaderChangeMessage
    | SnapshotHeaderRecord
    | SnapshotFooterRecord
    | KRaftVersionRecord
    | VotersRecord
)

_MESSAGES: Final = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
_TYPES: Final = {message: control_type for control_type, message in _MESSAGES.items()}
_LATEST_VERSIONS: Final = {ControlType.LEADER_CHANGE: 1}


def encode_control_batch(
    messages: Sequence[ControlMessage],
    *,
    timestamp_ms: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
) -> bytearray:
    """One control batch of `messages`, each encoded in the version that its `version` says.

    Producer id and epoch are those of the transaction that an EndTxn ends; the batch is then
    transactional. Raises ValueError for an EndTxn without them.
    """
    is_transactional = any(isinstance(message, EndTxn) for message in messages)
    if is_transactional and producer_id < 0:
        raise ValueError("the end of a transaction needs its producer id")
    return encode_batch(
        [_encode_record(message, timestamp_ms) for message in messages],
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=is_transactional,
        is_control=True,
    )


def encode_end_txn(
    *,
    is_commit: bool,
    coordinator_epoch: int,
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """The batch that ends a producer's transaction in one partition: a commit or abort marker."""
    if producer_id < 0:
        raise ValueError("the end of a transaction needs its producer id")
    record = _encode_record(EndTxn(is_commit, coordinator_epoch), timestamp_ms)
    assert record.key is not None
    return encode_own_batch(
        ((record.key, record.value),),
        timestamp_ms,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def read_end_txn(header: BatchHeader, buffer: Buffer, position: int) -> EndTxn | None:
    """The marker in the batch at `position`, if it is of the form that is written today.

    Of none else; its timestamp is the batch's base timestamp then.
    """
    if header.attributes != _END_TXN_ATTRIBUTES or header.size_bytes != _END_TXN_SIZE_BYTES:
        return None
    start, kind, between, epoch, end = _unpack_end_txn(buffer, position + HEADER_SIZE_BYTES)
    if (
        start != _END_TXN_START
        or between != _END_TXN_BETWEEN
        or end
        or kind > ControlType.COMMIT
        or header.record_count != 1
    ):
        return None
    return EndTxn(kind == ControlType.COMMIT, epoch)


def control_type(record: Record) -> ControlType | None:
    """The type in a control record's key; None for one that a later Kafka may have added.

    Raises CorruptBatchError for a key that is missing, too short or of a negative version.
    """
    if record.key is None or len(record.key) < _KEY.size:
        raise CorruptBatchError(f"control record {record.offset} has no type in its key")
    version, number = _KEY.unpack_from(record.key)
    if version < 0:
        raise CorruptBatchError(f"control record {record.offset} has version {version}")
    return ControlType(number) if 0 <= number < len(ControlType) else None


def decode_control(record: Record) -> ControlMessage | None:
    """The message of a control record; None for a type that is not known.

    Raises CorruptBatchError as `control_type` does, and DecodeError for a malformed value.
    """
    kind = control_type(record)
    if kind is None:
        return None
    value = record.value
    if value is None or len(value) < 2:
        raise CorruptBatchError(f"control record {record.offset} has no value")
    version = int.from_bytes(value[:2], "big", signed=True)
    if version < 0:
        raise CorruptBatchError(f"control record {record.offset} has value version {version}")
    if kind in (ControlType.COMMIT, ControlType.ABORT):
        if len(value) < _END_TXN_VALUE.size:
            raise CorruptBatchError(f"control record {record.offset} has no coordinator epoch")
        return EndTxn(kind is ControlType.COMMIT, _END_TXN_VALUE.unpack_from(value)[1])
    message: ControlMessage = decode(
        _MESSAGES[kind], min(version, _LATEST_VERSIONS.get(kind, 0)), value
    )
    return message


def _encode_record(message: ControlMessage, timestamp_ms: int) -> Record:
    if isinstance(message, EndTxn):
        kind = ControlType.COMMIT if message.is_commit else ControlType.ABORT
        value = _END_TXN_VALUE.pack(0, message.coordinator_epoch)
    else:
        kind = _TYPES[type(message)]
        value = encode(message, message.version)
    return Record(timestamp=timestamp_ms, key=_KEY.pack(0, kind), value=value)
