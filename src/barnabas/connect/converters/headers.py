"""Converters of headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from barnabas.connect.converters.base import Converter, HeaderConverter, SchemaAndValue
from barnabas.connect.converters.json import JsonConverter
from barnabas.connect.converters.primitives import (
    BooleanConverter,
    ByteArrayConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
    StringConverter,
)
from barnabas.schemas.data.builder import BYTES
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema
from barnabas.schemas.data.value_text import text_to_value, value_to_text


class ConverterOfHeaders(HeaderConverter):
    """Does for headers what `made_from` does for values."""

    made_from: ClassVar[type[Converter]]

    def __init__(self) -> None:
        self._converter = self.made_from()

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Take settings, without the prefix. Raises ConfigError."""
        self._converter.configure(settings, is_key=False)

    def from_connect(
        self, topic: str, header: str, schema: Schema | None, value: Any
    ) -> bytes | None:
        """Return the bytes of a header's value. Raises DataError."""
        return self._converter.from_connect(topic, schema, value)

    def to_connect(self, topic: str, header: str, data: bytes | None) -> SchemaAndValue:
        """Return what a header's bytes stand for. Raises DataError."""
        return self._converter.to_connect(topic, data)

    def close(self) -> None:
        """Close what it holds open."""
        self._converter.close()


def _for_headers(converter: type[Converter]) -> type[ConverterOfHeaders]:
    attributes = {"made_from": converter, "definition": converter.definition}
    attributes["__module__"] = __name__
    name = converter.__name__.replace("Converter", "HeaderConverter")
    return type(name, (ConverterOfHeaders,), attributes)


StringHeaderConverter = _for_headers(StringConverter)
JsonHeaderConverter = _for_headers(JsonConverter)
ByteArrayHeaderConverter = _for_headers(ByteArrayConverter)
BooleanHeaderConverter = _for_headers(BooleanConverter)
ShortHeaderConverter = _for_headers(ShortConverter)
IntegerHeaderConverter = _for_headers(IntegerConverter)
LongHeaderConverter = _for_headers(LongConverter)
FloatHeaderConverter = _for_headers(FloatConverter)
DoubleHeaderConverter = _for_headers(DoubleConverter)


class SimpleHeaderConverter(HeaderConverter):
    """Headers as texts from which their types can be found again: the worker's default.

    Source: org.apache.kafka.connect.storage.SimpleHeaderConverter (Kafka 4.3).
    """

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
