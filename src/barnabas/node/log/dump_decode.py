"""Records of Kafka's internal topics as plain values, for `barnabas log dump`."""

from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

from barnabas.base.ids import Uuid, uuid_to_text
from barnabas.base.internal_topics import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from barnabas.protocol.codec import decode
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages import (
    group_records,
    metadata_records,
    share_group_records,
    share_records,
    streams_group_records,
    transaction_records,
)
from barnabas.protocol.records.control import control_type, decode_control
from barnabas.protocol.records.records import Record
from barnabas.protocol.schema import Message, Struct
from barnabas.protocol.varint import read_unsigned_varint

Decoder = Callable[[Record], dict[str, Any]]
KEY_VERSION = 0

_COORDINATOR_MODULES: Mapping[str, tuple[ModuleType, ...]] = {
    CONSUMER_OFFSETS: (group_records, share_group_records, streams_group_records),
    TRANSACTION_STATE: (transaction_records,),
    SHARE_GROUP_STATE: (share_records,),
}


def decoder_for(topic: str) -> Decoder | None:
    """What reads the records of `topic`; None for a topic of users."""
    if topic == CLUSTER_METADATA:
        return decode_metadata
    if topic in _COORDINATOR_MODULES:
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
    cls = _metadata_types().get(number)
    if cls is None:
        raise DecodeError(f"metadata record type {number} is unknown")
    message = _decode(cls, version, data[position:])
    return {"type": cls.__name__, "version": version, "value": to_plain(message)}


def decode_coordinator(topic: str, record: Record) -> dict[str, Any]:
    """A record of a coordinator's topic: its key names the type. Raises DecodeError."""
    key = record.key or b""
    number = int.from_bytes(key[:2], "big")
    classes = _coordinator_types(topic).get(number)
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


def _messages(module: ModuleType) -> list[type[Message]]:
    return [
        entry
        for entry in vars(module).values()
        if isinstance(entry, type)
        and issubclass(entry, Message)
        and entry.SCHEMA.api_key is not None
    ]


@cache
def _metadata_types() -> dict[int, type[Message]]:
    return {cls.SCHEMA.api_key or 0: cls for cls in _messages(metadata_records)}


@cache
def _coordinator_types(topic: str) -> dict[int, tuple[type[Message], type[Message]]]:
    types = {}
    for module in _COORDINATOR_MODULES[topic]:
        values = {cls.__name__: cls for cls in _messages(module)}
        for name, cls in values.items():
            if name.endswith("Key"):
                value_class = values[name.removesuffix("Key") + "Value"]
                types[cls.SCHEMA.api_key or 0] = (cls, value_class)
    return types
