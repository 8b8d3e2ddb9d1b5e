"""Reading Avro in a registry's framing, each value with the schema that it was written with."""

from __future__ import annotations

import io
import json
from typing import Any, Final, cast

from fastavro import parse_schema, schemaless_reader

from barnabas.pipeline.registry_schemas import FRAME_BYTES, RegistrySchemas, schema_id_of

_UNREADABLE: Final = (EOFError, IndexError, MemoryError, OverflowError, ValueError)
"""What fastavro raises where the bytes are not of the schema."""


class AvroValues:
    """A reader for one thread."""

    def __init__(self, registry: RegistrySchemas) -> None:
        self._registry = registry
        self._parsed: dict[int, Any] = {}

    def read(self, value: bytes | None) -> dict[str, Any] | None:
        """Return a record; None for no value, or one that cannot be read.

        Raises RegistryUnavailableError.
        """
        schema_id = None if value is None else schema_id_of(value)
        if value is None or schema_id is None:
            return None
        if schema_id not in self._parsed:
            text = self._registry.avro_of(schema_id)
            if text is None:
                return None
            self._parsed[schema_id] = parse_schema(json.loads(text))
        try:
            source = io.BytesIO(value[FRAME_BYTES:])
            read = schemaless_reader(source, self._parsed[schema_id], None)
        except _UNREADABLE:
            return None
        return cast(dict[str, Any], read) if isinstance(read, dict) else None
