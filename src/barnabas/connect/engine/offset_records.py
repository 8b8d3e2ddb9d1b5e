"""Offsets of sources as records of Connect's offset topic: JSON without schemas.

Source: OffsetUtils, OffsetStorageWriter, JsonConverter with schemas.enable=false (Kafka 4.3).
"""

from __future__ import annotations

import json

from barnabas.connect.record import JsonMap


def offset_key(connector: str, partition: JsonMap) -> bytes:
    """Return the key of a source partition."""
    return _json([connector, dict(partition)])


def offset_value(offset: JsonMap | None) -> bytes | None:
    """Return the value of an offset; None deletes it."""
    return None if offset is None else _json(dict(offset))


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
