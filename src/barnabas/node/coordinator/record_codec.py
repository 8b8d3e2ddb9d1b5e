"""Records of the internal topics to bytes and back.

A key begins with the number of its record type, a value with its version (int16 each), and the
message follows. Source: Kafka's CoordinatorRecordSerde.
"""

import logging
from collections.abc import Mapping, Sequence

from barnabas.base.disk import Buffer
from barnabas.node.coordinator.decision import CoordinatorRecord, Shard
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.batch import CorruptBatchError, check_crc, iterate_headers
from barnabas.protocol.records.control import EndTxn, decode_control
from barnabas.protocol.records.own_batch import KeyValue
from barnabas.protocol.records.records import Record, decode_records
from barnabas.protocol.schema import Message

RecordTypes = Mapping[int, tuple[type[Message], type[Message]]]
"""Record type to the classes of its key and value."""

KEY_VERSION = 0
"""Every key has had one layout; a new one would be a new record type."""
RECORD_OVERHEAD_BYTES = 32
"""More than the lengths, deltas and attributes around a key and a value take."""


class SelfEncoding(CoordinatorRecord):
    """A record of a kind that is written so often that it makes its bytes without messages."""

    __slots__ = ()

    def encoded(self) -> KeyValue:
        """Key and value as `encode_record` would encode them. Raises EncodeError."""
        return _encode_messages(self)


def encode_record(record: CoordinatorRecord) -> KeyValue:
    """Key and value as encoded in a batch. Raises EncodeError for what is out of bounds."""
    if isinstance(record, SelfEncoding):
        return record.encoded()
    return _encode_messages(record)


def _encode_messages(record: CoordinatorRecord) -> KeyValue:
    value = None if record.value is None else encode_value(record.value, record.value_version)
    return encode_key(record.key), value


def encode_key(key: Message) -> bytes:
    """A key as encoded in a record. Raises EncodeError for a message out of its bounds."""
    key_type = type(key).SCHEMA.api_key
    assert key_type is not None, f"{type(key).__name__} is not a key of a record"
    return key_type.to_bytes(2, "big") + encode(key, KEY_VERSION)


def encode_value(value: Message, version: int) -> bytes:
    """A value as encoded in a record. Raises EncodeError for a message out of its bounds."""
    return version.to_bytes(2, "big") + encode(value, version)


def decode_record(record: Record, types: RecordTypes) -> CoordinatorRecord | None:
    """The record of an internal topic; None for a type that is not among `types`.

    Raises DecodeError for a key or value that is missing, malformed or of an unknown version.
    """
    key = record.key
    if key is None or len(key) < 2:
        raise DecodeError(f"record {record.offset} has no record type in its key")
    classes = types.get(int.from_bytes(key[:2], "big", signed=True))
    if classes is None:
        return None
    key_class, value_class = classes
    key_message = decode(key_class, KEY_VERSION, key[2:])
    value = record.value
    if value is None:
        return CoordinatorRecord(key_message, None)
    if len(value) < 2:
        raise DecodeError(f"record {record.offset} has a value without a version")
    version = int.from_bytes(value[:2], "big", signed=True)
    if not value_class.SCHEMA.versions.covers(version):
        raise DecodeError(f"record {record.offset}: {value_class.__name__} version {version}")
    return CoordinatorRecord(key_message, decode(value_class, version, value[2:]), version)


def chunk_records(records: Sequence[KeyValue], size_bytes_max: int) -> list[list[KeyValue]]:
    """Split records, in order, into runs that fit a batch each; a huge one stands alone."""
    chunks: list[list[KeyValue]] = []
    room = 0
    for record in records:
        size = record_size_bytes(record)
        if not chunks or size > room:
            chunks.append([])
            room = size_bytes_max
        chunks[-1].append(record)
        room -= size
    return chunks


def record_size_bytes(record: KeyValue) -> int:
    """An upper bound of what the record takes in a batch."""
    key, value = record
    return len(key) + len(value or b"") + RECORD_OVERHEAD_BYTES


# -- replay at load: the batches of a partition into its shard
#
# Source: Kafka's CoordinatorLoaderImpl.


telemetry = logging.getLogger(__name__)


def replay_batches(data: Buffer, shard: Shard, types: RecordTypes) -> int:
    """Replay whole batches; return the offset after the last of them.

    A record of an unknown type, from a later version, is left out with a warning. Raises
    DecodeError for what is malformed, and CorruptBatchError for damage. What the disk of this
    node has garbled would otherwise pass for what was written, while other replicas know better;
    Kafka's loader does not look.
    """
    end_offset = 0
    for position, header in iterate_headers(data):
        end_offset = header.next_offset
        if not check_crc(data, position, header):
            raise CorruptBatchError(f"the batch at offset {header.base_offset} is damaged")
        for record in decode_records(data, position):
            if header.is_control:
                marker = decode_control(record)
                if isinstance(marker, EndTxn):
                    shard.replay_end_transaction(header.producer_id, marker.is_commit)
                continue
            decoded = decode_record(record, types)
            if decoded is None:
                telemetry.warning("record %d has an unknown type", record.offset)
                continue
            shard.replay(record.offset, header.producer_id, decoded)
    return end_offset
