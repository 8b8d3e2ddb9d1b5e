"""Keys and values of records, decoded for people: by a registry's schema, as JSON, text or bytes.

A value that cannot be decoded is shown as bytes, with the reason.
"""

from __future__ import annotations

import base64
import io
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from barnabas.console.services.needles import names_of
from barnabas.schemas.errors import RegistryError
from barnabas.schemas.registry_client import RegistryClient, StoredSchema
from barnabas.schemas.wire_format import (
    GUID_MAGIC,
    ID_MAGIC,
    KEY_HEADER,
    PREFIX_BYTES,
    VALUE_HEADER,
    decode_indexes,
    prefix_of,
    taken_apart,
)

SHOWN_BYTES_MAX: Final = 32 * 1024
"""Bytes of an undecoded key or value that are shown."""
FAILURE_KEPT_S: Final = 10.0
"""A schema that the registry did not give is asked for again after this time."""
MASK: Final = "•••"

Headers = Sequence[tuple[str, bytes | None]]
Reader = Callable[[bytes], Any]


@dataclass(frozen=True, slots=True)
class Decoded:
    """A key or value. `value` is what JSON can say, and a text for `text` and `bytes`."""

    form: str
    """`null`, `avro`, `json-schema`, `protobuf`, `json`, `text` or `bytes`."""
    value: Any
    size: int
    schema: str | None = None
    """The id or GUID of its schema."""
    reason: str | None = None
    """Why it is shown as bytes."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A schema: what reads its data, and the names of its fields if a search may use them."""

    form: str
    read: Reader
    names: tuple[bytes, ...] | None = None


class _UnreadableError(Exception):
    """Data cannot be decoded; the message says why."""


class Decoder:
    """Decodes for many threads; schemas are asked for once."""

    def __init__(self, registry: RegistryClient | None) -> None:
        self._registry = registry
        self._readers: dict[int | UUID, _Known] = {}
        self._by_head: dict[bytes, _Known] = {}
        """Those of ids, by the bytes that data begin with."""
        self._failed: dict[int | UUID, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def decode(self, data: bytes | None, headers: Headers = (), *, is_key: bool) -> Decoded:
        """A key or value."""
        if data is None:
            return Decoded("null", None, 0)
        if self._may_have_schema(data, headers, is_key=is_key):
            try:
                return self._by_schema(data, headers, is_key=is_key)
            except _UnreadableError as error:
                return replace(plain(data), reason=str(error))
        return plain(data)

    def value(self, data: bytes | None, headers: Headers, *, is_key: bool) -> Any:
        """Return what an expression sees of a key or value: as `decode`, without the rest."""
        if data is None:
            return None
        if not headers and (known := self._by_head.get(data[:PREFIX_BYTES])) is not None:
            try:
                return known.read(data[PREFIX_BYTES:])
            except Exception:  # noqa: BLE001  data of others; shown as bytes
                return plain(data).value
        return self.decode(data, headers, is_key=is_key).value

    def names(self, data: bytes) -> tuple[bytes, ...] | None:
        """The names of fields of data with a schema; None if not all its texts are in the bytes.

        See `needles.py`. None too where headers may name the schema, or it is not known yet.
        """
        known = self._by_head.get(data[:PREFIX_BYTES])
        return None if known is None else known.names

    @staticmethod
    def _may_have_schema(data: bytes, headers: Headers, *, is_key: bool) -> bool:
        if len(data) > 4 and data[0] in (ID_MAGIC, GUID_MAGIC):
            return True
        wanted = KEY_HEADER if is_key else VALUE_HEADER
        return any(name == wanted for name, _ in headers)

    def _by_schema(self, data: bytes, headers: Headers, *, is_key: bool) -> Decoded:
        try:
            name, payload = taken_apart(data, headers, is_key=is_key)
        except ValueError as error:
            raise _UnreadableError(str(error)) from error
        known = self._reader(name)
        try:
            value = known.read(payload)
        except Exception as error:
            reason = f"the bytes do not fit schema {name}: {_said(error)}"
            raise _UnreadableError(reason) from error
        return Decoded(known.form, value, len(data), str(name))

    def _reader(self, name: int | UUID) -> _Known:
        known = self._readers.get(name)
        if known is not None:
            return known
        with self._lock:
            known = self._readers.get(name)
            if known is not None:
                return known
            failed = self._failed.get(name)
            if failed is not None and time.monotonic() - failed[0] < FAILURE_KEPT_S:
                raise _UnreadableError(failed[1])
            try:
                found = self._readers[name] = self._made(name)
                if isinstance(name, int):
                    self._by_head[prefix_of(name)] = found
            except Exception as error:
                reason = _said(error)
                self._failed[name] = time.monotonic(), reason
                raise _UnreadableError(reason) from error
            return found

    def _made(self, name: int | UUID) -> _Known:
        registry = self._registry
        if registry is None:
            raise _UnreadableError(f"it names schema {name}, and no schema registry is configured")
        stored = registry.by_guid(name) if isinstance(name, UUID) else registry.by_id(name)
        if stored.type == "PROTOBUF":
            return _Known("protobuf", _protobuf_reader(stored))
        if stored.type == "JSON":
            return _Known("json-schema", json.loads)
        text: str | None = stored.text
        if stored.references and isinstance(name, int):
            text = registry.resolved_avro(name)
        if text is None:
            raise RegistryError(f"Schema {name} is not in the schema registry")
        return _Known("avro", _avro_reader(text), names_of(json.loads(text)))


def _avro_reader(text: str) -> Reader:
    from fastavro import parse_schema, schemaless_reader

    parsed: Any = parse_schema(json.loads(text))

    def read(data: bytes) -> Any:
        source = io.BytesIO(data)
        found = schemaless_reader(source, parsed, None)
        if source.tell() != len(data):
            raise ValueError(f"{len(data) - source.tell()} bytes are left over")
        return found

    return read


def _protobuf_reader(stored: StoredSchema) -> Reader:
    from google.protobuf.json_format import MessageToDict

    from barnabas.schemas.protobuf.messages import load, message_class

    schema = load(stored.text, dict(stored.references))
    classes: dict[tuple[int, ...], Any] = {}

    def read(data: bytes) -> Any:
        indexes, start = decode_indexes(data)
        made = classes.get(tuple(indexes))
        if made is None:
            made = classes[tuple(indexes)] = message_class(schema.message_at(indexes))
        return MessageToDict(
            made.FromString(data[start:]),
            preserving_proto_field_name=True,
            descriptor_pool=schema.file.pool,
        )

    return read


def plain(data: bytes) -> Decoded:
    """Data without a schema: JSON, else text, else bytes as hexadecimal digits."""
    size = len(data)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        reason = f"not text: byte {error.start} is not UTF-8"
        return Decoded("bytes", data[:SHOWN_BYTES_MAX].hex(" "), size, reason=reason)
    if text[:1] in ("{", "["):
        try:
            return Decoded("json", json.loads(text), size)
        except (ValueError, RecursionError):
            pass
    if any(ord(one) < 32 and one not in "\t\r\n" for one in text):
        reason = "not text: it has control characters"
        return Decoded("bytes", data[:SHOWN_BYTES_MAX].hex(" "), size, reason=reason)
    return Decoded("text", text, size)


def to_json(value: Any) -> Any:
    """A decoded value with what JSON lacks put as texts: bytes, decimals, times."""
    if isinstance(value, dict):
        return {str(name): to_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(one) for one in value]
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return value if -(2**53) < value < 2**53 else str(value)
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, bytes):
        try:
            return value.decode("ascii")
        except UnicodeDecodeError:
            return "base64:" + base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    isoformat = getattr(value, "isoformat", None)
    return isoformat() if isoformat is not None else str(value)


def masked(value: Any, fields: Sequence[str], path: str = "") -> Any:
    """A decoded value in which fields are masked: names (`email`) or paths (`card.number`)."""
    if isinstance(value, Mapping):
        made = {}
        for name, inner in value.items():
            place = f"{path}.{name}" if path else str(name)
            hidden = name in fields or place in fields
            made[name] = MASK if hidden and inner is not None else masked(inner, fields, place)
        return made
    if isinstance(value, list):
        return [masked(one, fields, path) for one in value]
    return value


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
