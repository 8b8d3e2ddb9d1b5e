"""The file of `offset.storage.file.filename`: how far sources have come, in standalone mode.

It is Java's serialization of a HashMap of byte arrays, as Kafka's worker writes it: a file of
Kafka's is taken over, and Kafka takes over ours. Keys and values are those of the offset topic:
`["connector",{source partition}]` and the source offset's JSON object.

    AC ED 00 05                          the stream's header
    73 72 "java.util.HashMap" …          an object and its class: fields loadFactor, threshold
    3F400000 threshold                   their values
    77 08 capacity size                  a block of data: two whole numbers
    75 72 "[B" … / 75 71 handle          an array of bytes, its class in full or by handle
    length bytes                         … key, value, key, value …
    78                                   the end

Source: the Java Object Serialization Specification, protocol version 2; FileOffsetBackingStore.
"""

from __future__ import annotations

import json
import os
import struct
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from barnabas.connect.record import JsonMap, offset_key, offset_value, partition_text
from barnabas.schemas.data.errors import ConnectError, DataError

_STREAM: Final = b"\xac\xed\x00\x05"
_HASH_MAP: Final = (
    b"sr\x00\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16`\xd1\x03\x00\x02"
    b"F\x00\nloadFactorI\x00\tthresholdxp"
)
_BYTES_CLASS: Final = b"ur\x00\x02[B\xac\xf3\x17\xf8\x06\x08T\xe0\x02\x00\x00xp"
_BYTES_AGAIN: Final = b"uq\x00~\x00"
_NULL: Final = b"p"
_LOAD: Final = struct.Struct(">fI")
_SIZES: Final = struct.Struct(">2sII")
_LENGTH: Final = struct.Struct(">I")
_ENTRIES_MAX: Final = 10_000_000


class OffsetFile:
    """The offsets of all connectors of a standalone worker; each write is on disk at its end."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._raw: dict[bytes, bytes | None] = {}

    def load(self) -> None:
        """Read the file if there is one. Raises ConnectError if it is not such a file."""
        try:
            with open(self._path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return
        except OSError as error:
            raise ConnectError(f"cannot read the offsets in {self._path}: {error}") from error
        if data:
            self._raw = decode(data, self._path)

    def reader(self, connector: str) -> FileOffsets:
        """Return the reader of a connector's offsets."""
        return FileOffsets(self, connector)

    def all(self, connector: str) -> list[tuple[JsonMap, JsonMap]]:
        """Return a connector's offsets."""
        with self._lock:
            entries = list(self._raw.items())
        pairs: list[tuple[JsonMap, JsonMap]] = []
        for key, value in entries:
            owner, partition = _read_key(key)
            if owner == connector and partition is not None and value is not None:
                offset = json.loads(value)
                if isinstance(offset, dict):
                    pairs.append((partition, offset))
        return pairs

    def put(self, connector: str, offsets: Sequence[tuple[JsonMap, JsonMap | None]]) -> None:
        """Store offsets; None deletes. Raises ConnectError."""
        if not offsets:
            return
        with self._lock:
            held = {
                partition_text(partition): key
                for key in self._raw
                for owner, partition in [_read_key(key)]
                if owner == connector and partition is not None
            }
            for partition, offset in offsets:
                try:
                    key = held.get(partition_text(partition)) or offset_key(connector, partition)
                    value = offset_value(offset)
                except TypeError as error:
                    raise DataError(f"offsets must be JSON: {error}") from error
                if value is None:
                    self._raw.pop(key, None)
                else:
                    self._raw[key] = value
            self._write(encode(self._raw))

    def _write(self, data: bytes) -> None:
        new = self._path + ".new"
        try:
            with open(new, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self._path)
        except OSError as error:
            raise ConnectError(f"cannot write the offsets to {self._path}: {error}") from error


class FileOffsets:
    """An `OffsetReader`."""

    def __init__(self, file: OffsetFile, connector: str) -> None:
        self._file, self._connector = file, connector

    def offset(self, partition: JsonMap) -> JsonMap | None:
        """See OffsetReader."""
        wanted = partition_text(partition)
        for held, offset in self._file.all(self._connector):
            if partition_text(held) == wanted:
                return offset
        return None

    def all(self) -> Sequence[tuple[JsonMap, JsonMap]]:
        """See OffsetReader."""
        return self._file.all(self._connector)


def encode(entries: Mapping[bytes, bytes | None]) -> bytes:
    """Return the file of a map."""
    capacity = 16
    while len(entries) > capacity * 3 // 4:
        capacity *= 2
    parts = [_STREAM, _HASH_MAP, _LOAD.pack(0.75, capacity * 3 // 4)]
    parts.append(_SIZES.pack(b"w\x08", capacity, len(entries)))
    is_first = True
    for item in (item for pair in entries.items() for item in pair):
        if item is None:
            parts.append(_NULL)
            continue
        # Handles count what was written: 0 the class of maps, 1 its string, 2 the map, 3 "[B".
        parts.append(_BYTES_CLASS if is_first else _BYTES_AGAIN + b"\x02")
        parts.append(_LENGTH.pack(len(item)) + item)
        is_first = False
    return b"".join((*parts, b"x"))


def decode(data: bytes, path: str) -> dict[bytes, bytes | None]:
    """Return the map of a file. Raises ConnectError."""
    try:
        return _decode(data)
    except (struct.error, ValueError) as error:
        raise ConnectError(f"{path} is not a file of offsets of Kafka Connect: {error}") from error


def _decode(data: bytes) -> dict[bytes, bytes | None]:
    at = _expect(data, 0, _STREAM)
    at = _expect(data, at, _HASH_MAP)
    at += _LOAD.size
    tag, _, count = _SIZES.unpack_from(data, at)
    if tag != b"w\x08" or count > _ENTRIES_MAX:
        raise ValueError(f"unexpected data at byte {at}")
    at += _SIZES.size
    entries: dict[bytes, bytes | None] = {}
    for _ in range(count):
        key, at = _read_bytes(data, at)
        value, at = _read_bytes(data, at)
        entries[key or b""] = value
    _expect(data, at, b"x")
    return entries


def _read_bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    if data[at : at + 1] == _NULL:
        return None, at + 1
    if data.startswith(_BYTES_CLASS, at):
        at += len(_BYTES_CLASS)
    else:
        at = _expect(data, at, _BYTES_AGAIN) + 1
    (length,) = _LENGTH.unpack_from(data, at)
    at += _LENGTH.size
    if at + length > len(data):
        raise ValueError("it ends early")
    return data[at : at + length], at + length


def _expect(data: bytes, at: int, expected: bytes) -> int:
    if not data.startswith(expected, at):
        raise ValueError(f"unexpected data at byte {at}")
    return at + len(expected)


def _read_key(key: bytes) -> tuple[str | None, JsonMap | None]:
    try:
        parts: Any = json.loads(key)
    except ValueError:
        return None, None
    if not isinstance(parts, list) or len(parts) != 2 or not isinstance(parts[1], dict):
        return None, None
    return parts[0], parts[1]
