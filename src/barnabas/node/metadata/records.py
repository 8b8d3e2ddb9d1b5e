"""Metadata records and their frame: `frame version, type, record version, payload`.

The three numbers are unsigned varints; the payload is the message in that version.
Source: Kafka's MetadataRecordSerde and AbstractApiMessageSerde.
"""

from typing import Any, Final, NamedTuple

from barnabas.base.disk import Buffer
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages import metadata_records as messages
from barnabas.protocol.varint import read_unsigned_varint, write_unsigned_varint

FRAME_VERSION: Final = 1

RECORD_TYPES: Final[dict[int, type]] = {
    0: messages.RegisterBrokerRecord,
    1: messages.UnregisterBrokerRecord,
    2: messages.TopicRecord,
    3: messages.PartitionRecord,
    4: messages.ConfigRecord,
    5: messages.PartitionChangeRecord,
    7: messages.FenceBrokerRecord,
    8: messages.UnfenceBrokerRecord,
    9: messages.RemoveTopicRecord,
    10: messages.DelegationTokenRecord,
    11: messages.UserScramCredentialRecord,
    12: messages.FeatureLevelRecord,
    14: messages.ClientQuotaRecord,
    15: messages.ProducerIdsRecord,
    17: messages.BrokerRegistrationChangeRecord,
    18: messages.AccessControlEntryRecord,
    19: messages.RemoveAccessControlEntryRecord,
    20: messages.NoOpRecord,
    21: messages.ZkMigrationStateRecord,
    22: messages.RemoveUserScramCredentialRecord,
    23: messages.BeginTransactionRecord,
    24: messages.EndTransactionRecord,
    25: messages.AbortTransactionRecord,
    26: messages.RemoveDelegationTokenRecord,
    27: messages.RegisterControllerRecord,
    28: messages.ClearElrRecord,
}
"""Kafka's record type numbers (MetadataRecordType)."""

_TYPE_IDS: Final[dict[type, int]] = {cls: number for number, cls in RECORD_TYPES.items()}


class MetadataRecord(NamedTuple):
    """A message of the metadata log and the version it is written in."""

    message: Any
    version: int = 0


def encode_record(record: MetadataRecord) -> bytes:
    """The value of one record of the metadata log."""
    out = bytearray()
    write_unsigned_varint(out, FRAME_VERSION)
    write_unsigned_varint(out, _TYPE_IDS[type(record.message)])
    write_unsigned_varint(out, record.version)
    out += encode(record.message, record.version)
    return bytes(out)


def decode_record(value: Buffer) -> MetadataRecord:
    """Read the value of one record of the metadata log.

    Raises DecodeError for another frame version, an unknown record type (a newer
    `metadata.version` wrote it) or a payload that does not fit its version.
    """
    frame_version, position = read_unsigned_varint(value, 0)
    if frame_version != FRAME_VERSION:
        raise DecodeError(f"metadata frame version {frame_version} is unknown")
    type_id, position = read_unsigned_varint(value, position)
    version, position = read_unsigned_varint(value, position)
    cls = RECORD_TYPES.get(type_id)
    if cls is None:
        raise DecodeError(f"metadata record type {type_id} is unknown")
    return MetadataRecord(decode(cls, version, memoryview(value)[position:]), version)
