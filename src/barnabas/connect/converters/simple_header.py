"""Headers as texts from which their types can be told again: the worker's default.

Source: org.apache.kafka.connect.storage.SimpleHeaderConverter (Kafka 4.3).
"""

from __future__ import annotations

from typing import Any

from barnabas.connect.converters.base import HeaderConverter, SchemaAndValue
from barnabas.schemas.data.builder import BYTES
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema
from barnabas.schemas.data.value_text import text_to_value, value_to_text


class SimpleHeaderConverter(HeaderConverter):
    """Headers as readable texts."""

    def from_connect(
        self, topic: str, header: str, schema: Schema | None, value: Any
    ) -> bytes | None:
        """Return the bytes of a header's text. Raises DataError."""
        if value is None:
            return None
        text = value if type(value) is str else value_to_text(value, schema)
        return text.encode("utf-8", "replace")

    def to_connect(self, topic: str, header: str, data: bytes | None) -> SchemaAndValue:
        """Return what a header's text stands for; what cannot be read stays bytes."""
        if data is None:
            return None, None
        try:
            return text_to_value(data.decode("utf-8", "replace"))
        except (DataError, ValueError):
            return BYTES, data
