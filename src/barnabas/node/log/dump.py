"""Dump of the files of a log directory, entry by entry, for `barnabas log dump`.

An entry is a dict of plain values (for `--json`); `render` makes a line of it. Damage is an
entry too (`"kind": "damage"`), and what comes after it in that file is not shown: a file is
dumped as it is, never changed. Source: Kafka's DumpLogSegments reports the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from barnabas.base.disk import Disk
from barnabas.base.ids import TopicPartition, Uuid, uuid_to_text
from barnabas.node.log.batch_walk import stream_batches
from barnabas.node.log.checkpoints import read_epochs, read_offsets, read_topic_id
from barnabas.node.log.errors import CorruptFileError
from barnabas.node.log.index.offset_index import ENTRY as OFFSET_ENTRY
from barnabas.node.log.index.time_index import ENTRY as TIME_ENTRY
from barnabas.node.log.index.txn_index import read_aborted
from barnabas.node.log.names import (
    CLEAN_SHUTDOWN_FILE,
    INDEX_SUFFIX,
    KRAFT_SNAPSHOT_SUFFIX,
    LEADER_EPOCH_FILE,
    LOG_SUFFIX,
    META_PROPERTIES_FILE,
    OFFSET_DIGITS,
    PARTITION_METADATA_FILE,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    parse_directory_name,
)
from barnabas.node.log.producers.snapshot import parse_snapshot
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
from barnabas.protocol.records.batch import CODEC_MASK, BatchHeader, Codec, check_crc
from barnabas.protocol.records.control import control_type, decode_control
from barnabas.protocol.records.records import Record, decode_records
from barnabas.protocol.schema import Message, Struct
from barnabas.protocol.varint import read_unsigned_varint
from barnabas.protocol.well_known import (
    CLUSTER_METADATA,
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)

OFFSETS_SUFFIX = "-offset-checkpoint"

Entry = dict[str, Any]
Entries = Iterator[Entry]


def dump_path(disk: Disk, path: str, *, records: bool = False, decode: bool = True) -> Entries:
    """The entries of a file, or of all files in a directory, each file announced by an entry.

    `records` shows the records of batches too; with `decode` those of Kafka's own topics are
    shown by what they mean. Raises OSError.
    """
    if disk.is_dir(path):
        for name in disk.list(path):
            child = f"{path.rstrip('/')}/{name}"
            if disk.is_dir(child):
                if parse_directory_name(name) is not None:
                    yield from dump_path(disk, child, records=records, decode=decode)
            elif _reader(name) is not None:
                yield from dump_file(disk, child, records=records, decode=decode)
    else:
        yield from dump_file(disk, path, records=records, decode=decode)


def dump_file(disk: Disk, path: str, *, records: bool = False, decode: bool = True) -> Entries:
    """The entries of one file, which its name tells the kind of. Raises OSError."""
    yield {"kind": "file", "path": path, "size_bytes": disk.open(path).size()}
    reader = _reader(os.path.basename(path))
    if reader is None:
        yield {"kind": "damage", "problem": "the name is of no file that a log directory holds"}
        return
    try:
        if reader is _dump_batches:
            yield from _dump_batches(disk, path, records=records, decode=decode)
        else:
            yield from reader(disk, path)
    except (CorruptFileError, DecodeError) as error:
        yield {"kind": "damage", "problem": str(error)}


def _reader(name: str) -> Callable[..., Entries] | None:
    suffix = os.path.splitext(name)[1]
    if suffix == KRAFT_SNAPSHOT_SUFFIX:
        return _dump_batches  # bootstrap.checkpoint too
    if name[:OFFSET_DIGITS].isdigit() and suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if name.endswith(OFFSETS_SUFFIX):
        return _dump_offsets
    return _BY_NAME.get(name)


def topic_partition_of(path: str) -> TopicPartition | None:
    """The partition whose log a file belongs to, by its directory's name."""
    return parse_directory_name(os.path.basename(os.path.dirname(os.path.abspath(path))))


def _dump_batches(disk: Disk, path: str, *, records: bool, decode: bool) -> Entries:
    decoder = _decoder_of(path) if decode else None
    file = disk.open(path)
    for position, header, buffer, at in stream_batches(file, 0, file.size()):
        is_valid = check_crc(buffer, at, header)
        yield _show_batch(position, header, is_valid)
        if records and is_valid:
            for record in decode_records(buffer, at):
                yield _show_record(record, header, decoder)


def _decoder_of(path: str) -> Decoder | None:
    if path.endswith(KRAFT_SNAPSHOT_SUFFIX):
        return decoder_for(CLUSTER_METADATA)
    topic_partition = topic_partition_of(path)
    return None if topic_partition is None else decoder_for(topic_partition.topic)


def _show_batch(position: int, header: BatchHeader, is_valid: bool) -> Entry:
    codec = header.attributes & CODEC_MASK
    return {
        "kind": "batch",
        "position": position,
        "size_bytes": header.size_bytes,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.record_count,
        "leader_epoch": header.partition_leader_epoch,
        "codec": Codec(codec).name.lower() if codec < len(Codec) else str(codec),
        "timestamp_type": header.timestamp_type.name.lower(),
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "delete_horizon_ms": header.delete_horizon_ms,
        "crc": header.crc,
        "is_valid": is_valid,
    }


def _show_record(record: Record, header: BatchHeader, decoder: Decoder | None) -> Entry:
    entry: Entry = {"kind": "record", "offset": record.offset, "timestamp": record.timestamp}
    reader = decode_control_record if header.is_control else decoder
    if reader is not None:
        try:
            return entry | reader(record)
        except DecodeError as error:
            entry["problem"] = str(error)
    entry["key"] = _text(record.key)
    entry["value"] = _text(record.value)
    if record.headers:
        entry["headers"] = [[name, _text(value)] for name, value in record.headers]
    return entry


def _text(data: bytes | None) -> str | None:
    """Bytes to be read: as text where they are, else in hex after `0x`."""
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "0x" + data.hex()
    return text if text.isprintable() else "0x" + data.hex()


def _dump_offset_index(disk: Disk, path: str) -> Entries:
    base_offset = _base_offset(path)
    data = disk.read(path)
    for relative, position in OFFSET_ENTRY.iter_unpack(_whole(data, OFFSET_ENTRY.size)):
        yield {"kind": "offset_entry", "offset": base_offset + relative, "position": position}
    _check_size(data, OFFSET_ENTRY.size)


def _dump_time_index(disk: Disk, path: str) -> Entries:
    base_offset = _base_offset(path)
    data = disk.read(path)
    for timestamp, relative in TIME_ENTRY.iter_unpack(_whole(data, TIME_ENTRY.size)):
        yield {"kind": "time_entry", "timestamp": timestamp, "offset": base_offset + relative}
    _check_size(data, TIME_ENTRY.size)


def _check_size(data: bytes, entry_size: int) -> None:
    if len(data) % entry_size:
        raise CorruptFileError(f"{len(data)} bytes are not a multiple of {entry_size}")


def _whole(data: bytes, entry_size: int) -> bytes:
    return data[: len(data) // entry_size * entry_size]


def _base_offset(path: str) -> int:
    return int(os.path.basename(path)[:OFFSET_DIGITS])


def _dump_txn_index(disk: Disk, path: str) -> Entries:
    for aborted in read_aborted(disk, path):
        yield {"kind": "aborted_transaction", **aborted._asdict()}


def _dump_snapshot(disk: Disk, path: str) -> Entries:
    for entry in parse_snapshot(disk.read(path)):
        yield {
            "kind": "producer",
            "producer_id": entry.producer_id,
            "epoch": entry.epoch,
            "coordinator_epoch": entry.coordinator_epoch,
            "last_timestamp": entry.last_timestamp,
            "txn_first_offset": entry.txn_first_offset,
            "last_sequence": entry.last_sequence,
            "last_offset": entry.last_offset,
            "offset_delta": entry.last_offset_delta,
        }


def _dump_offsets(disk: Disk, path: str) -> Entries:
    for (topic, partition), offset in read_offsets(disk, path).items():
        yield {"kind": "offset", "topic": topic, "partition": partition, "offset": offset}


def _dump_epochs(disk: Disk, path: str) -> Entries:
    for epoch, start_offset in read_epochs(disk, os.path.dirname(path)):
        yield {"kind": "epoch", "epoch": epoch, "start_offset": start_offset}


def _dump_topic_id(disk: Disk, path: str) -> Entries:
    topic_id = read_topic_id(disk, os.path.dirname(path))
    yield {"kind": "topic_id", "topic_id": None if topic_id is None else uuid_to_text(topic_id)}


def _dump_json(disk: Disk, path: str) -> Entries:
    try:
        yield {"kind": "content", **json.loads(disk.read(path))}
    except (ValueError, TypeError) as error:
        raise CorruptFileError(f"{path} is not JSON: {error}") from error


def _dump_lines(disk: Disk, path: str) -> Entries:
    for line in disk.read(path).decode("latin-1").splitlines():
        if line and not line.startswith("#"):
            yield {"kind": "line", "text": line}


_BY_SUFFIX: dict[str, Callable[..., Entries]] = {
    LOG_SUFFIX: _dump_batches,
    INDEX_SUFFIX: _dump_offset_index,
    TIME_INDEX_SUFFIX: _dump_time_index,
    TXN_INDEX_SUFFIX: _dump_txn_index,
    SNAPSHOT_SUFFIX: _dump_snapshot,
}
_BY_NAME: dict[str, Callable[..., Entries]] = {
    LEADER_EPOCH_FILE: _dump_epochs,
    PARTITION_METADATA_FILE: _dump_topic_id,
    CLEAN_SHUTDOWN_FILE: _dump_json,
    "quorum-state": _dump_json,
    META_PROPERTIES_FILE: _dump_lines,
}


def render(entry: Entry) -> str:
    """One line for people; files have no indent, records the deepest."""
    kind = entry["kind"]
    if kind == "file":
        return f"{entry['path']} ({entry['size_bytes']} bytes)"
    if kind == "damage":
        return f"  DAMAGED: {entry['problem']}"
    if kind == "batch":
        return _render_batch(entry)
    fields = " ".join(
        f"{name}={_render_value(value)}" for name, value in entry.items() if name != "kind"
    )
    return f"      {fields}" if kind == "record" else f"  {kind.replace('_', ' ')}: {fields}"


def _render_batch(entry: Entry) -> str:
    words = [
        f"  batch: offsets={entry['base_offset']}..{entry['last_offset']}",
        f"count={entry['count']}",
        f"position={entry['position']}",
        f"size={entry['size_bytes']}",
        f"epoch={entry['leader_epoch']}",
        f"codec={entry['codec']}",
        f"{entry['timestamp_type']}={entry['max_timestamp']}",
    ]
    if entry["producer_id"] >= 0:
        words.append(
            f"producer={entry['producer_id']}/{entry['producer_epoch']} "
            f"sequences={entry['base_sequence']}..{entry['last_sequence']}"
        )
    words += [word for word in ("transactional", "control") if entry[f"is_{word}"]]
    if not entry["is_valid"]:
        words.append("BAD CRC")
    return " ".join(words)


def _render_value(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "null" if value is None else str(value)


# -- records of Kafka's internal topics as plain values, for `barnabas log dump`


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
