"""Records of Kafka's internal topics as plain values, for `barnabas log dump`."""

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.base.ids import Uuid, uuid_to_text
from barnabas.protocol.codec import decode
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.group_records import (
    GROUP_RECORDS,
    SHARE_GROUP_RECORDS,
    STREAMS_GROUP_RECORDS,
)
from barnabas.protocol.messages.metadata_records import METADATA_RECORDS
from barnabas.protocol.messages.share_state import SHARE_RECORDS
from barnabas.protocol.messages.transactions import TRANSACTION_RECORDS
from barnabas.protocol.records.control import control_type, decode_control
from barnabas.protocol.records.records import Record
from barnabas.protocol.schema import Message, Struct
from barnabas.protocol.varint import read_unsigned_varint
from barnabas.protocol.well_known import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)

Decoder = Callable[[Record], dict[str, Any]]
KEY_VERSION = 0

_COORDINATOR_TYPES: Mapping[str, Mapping[int, tuple[type[Message], type[Message]]]] = {
    CONSUMER_OFFSETS: {**GROUP_RECORDS, **SHARE_GROUP_RECORDS, **STREAMS_GROUP_RECORDS},
    TRANSACTION_STATE: TRANSACTION_RECORDS,
    SHARE_GROUP_STATE: SHARE_RECORDS,
}
"""Of each coordinator's topic: the messages of key and value, by the number in the key."""


def decoder_for(topic: str) -> Decoder | None:
    """Return the decoder of the records of `topic`; None for topics of users."""
    if topic == CLUSTER_METADATA:
        return decode_metadata
    if topic in _COORDINATOR_TYPES:
        return lambda record: decode_coordinator(topic, record)
    return None


def decode_metadata(record: Record) -> dict[str, Any]:
    """A record of the metadata log: its value is a frame version, a type, a version, a message.

    Raises DecodeError.
    """
    data = record.value or b""
    frame_version, position = read_unsigned_varint(data, 0)
    if frame_version != 1:
        raise DecodeError(f"metadata frame version {frame_version} is unknown")
    number, position = read_unsigned_varint(data, position)
    version, position = read_unsigned_varint(data, position)
    cls = METADATA_RECORDS.get(number)
    if cls is None:
        raise DecodeError(f"metadata record type {number} is unknown")
    message = _decode(cls, version, data[position:])
    return {"type": cls.__name__, "version": version, "value": to_plain(message)}


def decode_coordinator(topic: str, record: Record) -> dict[str, Any]:
    """A record of a coordinator's topic: its key names the type. Raises DecodeError."""
    key = record.key or b""
    number = int.from_bytes(key[:2], "big")
    classes = _COORDINATOR_TYPES[topic].get(number)
    if classes is None or len(key) < 2:
        raise DecodeError(f"record type {number} of {topic} is unknown")
    key_class, value_class = classes
    shown: dict[str, Any] = {
        "type": key_class.__name__.removesuffix("Key"),
        "key": to_plain(_decode(key_class, KEY_VERSION, key[2:])),
    }
    if record.value is None:
        return shown | {"value": None}
    version = int.from_bytes(record.value[:2], "big")
    message = _decode(value_class, version, record.value[2:])
    return shown | {"version": version, "value": to_plain(message)}


def decode_control_record(record: Record) -> dict[str, Any]:
    """A control record. Raises DecodeError."""
    kind = control_type(record)
    message = decode_control(record)
    shown: dict[str, Any] = {"control": "UNKNOWN" if kind is None else kind.name}
    if isinstance(message, Message):
        shown["value"] = to_plain(message)
    elif message is not None:
        shown["coordinator_epoch"] = message.coordinator_epoch
    return shown


def to_plain(value: Any) -> Any:
    """A message as dicts, lists and scalars; ids in Kafka's text form, other bytes in hex."""
    if isinstance(value, Struct):
        return {
            field.name: _uuid(getattr(value, field.name))
            if field.type.kind == "uuid"
            else [_uuid(entry) for entry in getattr(value, field.name) or ()]
            if field.type.element is not None and field.type.element.kind == "uuid"
            else to_plain(getattr(value, field.name))
            for field in value.SCHEMA.fields
        }
    if isinstance(value, list):
        return [to_plain(entry) for entry in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return value


def _uuid(value: bytes | None) -> str | None:
    return None if value is None else uuid_to_text(Uuid(bytes(value)))


def _decode(cls: type[Message], version: int, data: bytes) -> Message:
    if not cls.SCHEMA.versions.covers(version):
        raise DecodeError(f"{cls.__name__} has no version {version}")
    return decode(cls, version, data)
