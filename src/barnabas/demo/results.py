"""Reading records of the result topics: what SQL statements write, and the Python pipeline."""

from __future__ import annotations

import io
import json
from typing import Any, Final, cast

from fastavro import parse_schema, schemaless_reader

from barnabas.demo.topics import (
    ACTIVITY_PER_MINUTE,
    AVAILABILITY_WINDOW_MS,
    ENERGY_PER_MINUTE,
    MINUTE_MS,
    STATION_AVAILABILITY,
)
from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.wire_format import PREFIX_BYTES, schema_id_of

WINDOWED: Final = {
    STATION_AVAILABILITY: ("station_id", AVAILABILITY_WINDOW_MS),
    ENERGY_PER_MINUTE: ("city", MINUTE_MS),
    ACTIVITY_PER_MINUTE: ("kind", MINUTE_MS),
}
"""Tables of SQL: the column in the key, and the windows' size."""

_WINDOW_BYTES: Final = 8
_UNREADABLE: Final = (EOFError, IndexError, MemoryError, OverflowError, ValueError)
"""The errors that fastavro raises for bytes that do not match the schema."""


class AvroValues:
    """Reads Avro in a registry's framing, each value with the schema that it was written with.

    For one thread.
    """

    def __init__(self, registry: RegistryClient) -> None:
        self._registry = registry
        self._parsed: dict[int, Any] = {}

    def read(self, value: bytes | None) -> dict[str, Any] | None:
        """Return a record; None for no value, or one that cannot be read.

        Raises RegistryError.
        """
        schema_id = None if value is None else schema_id_of(value)
        if value is None or schema_id is None:
            return None
        if schema_id not in self._parsed:
            text = self._registry.resolved_avro(schema_id)
            if text is None:
                return None
            self._parsed[schema_id] = parse_schema(json.loads(text))
        try:
            source = io.BytesIO(value[PREFIX_BYTES:])
            read = schemaless_reader(source, self._parsed[schema_id], None)
        except _UNREADABLE:
            return None
        return cast(dict[str, Any], read) if isinstance(read, dict) else None


def read_row(topic: str, key: bytes, value: bytes, values: AvroValues) -> dict[str, Any] | None:
    """Return a row of a result topic, all columns in lower case; None if it cannot be read.

    A key of a windowed table is the text of its column and the window's start in eight bytes.
    Raises RegistryError.
    """
    windowed = WINDOWED.get(topic)
    if windowed is None:
        try:
            row = json.loads(value)
        except ValueError:
            return None
        return row if isinstance(row, dict) else None
    read = values.read(value)
    if read is None or len(key) <= _WINDOW_BYTES:
        return None
    column, size_ms = windowed
    start_ms = int.from_bytes(key[-_WINDOW_BYTES:], "big")
    return {
        column: key[:-_WINDOW_BYTES].decode(errors="replace"),
        "window_start_ms": start_ms,
        "window_end_ms": start_ms + size_ms,
        **{name.lower(): value for name, value in read.items()},
    }
