"""Converters of one plain value: texts, bytes, numbers and booleans.

Source: org.apache.kafka.connect.storage.StringConverter and org.apache.kafka.connect.converters
(Kafka 4.3).
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
    Width,
)
from barnabas.connect.converters.base import (
    CONVERTER_TYPE,
    Converter,
    RawHeaders,
    SchemaAndValue,
    parse,
)
from barnabas.connect.record import SinkColumn
from barnabas.schemas.data.builder import (
    OPTIONAL_BOOLEAN,
    OPTIONAL_BYTES,
    OPTIONAL_FLOAT32,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT16,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
)
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema, Type, java_class
from barnabas.schemas.data.text import java_text

_TEXTS: Final = frozenset((str, type(None)))


class StringConverter(Converter):
    """Any value as its text; bytes as a text."""

    definition: ClassVar[Definition] = Definition(
        [
            CONVERTER_TYPE,
            Setting(
                "converter.encoding",
                ConfigType.STRING,
                default="UTF-8",
                importance=Importance.HIGH,
                doc="The character set of texts, by Java's name.",
                width=Width.MEDIUM,
                display_name="Encoding",
            ),
        ]
    )

    def __init__(self) -> None:
        self._encoding = "utf-8"

    def configure(self, settings: Mapping[str, Any], *, is_key: bool) -> None:
        """Take settings, without the prefix. Raises ConfigError."""
        parsed = parse(self.definition, settings, "key" if is_key else "value")
        self._encoding = parsed["converter.encoding"]

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the bytes of the value's text. Raises DataError."""
        if value is None:
            return None
        text = value if type(value) is str else java_text(value, schema)
        try:
            # As Java: a question mark for what the character set lacks.
            return text.encode(self._encoding, "replace")
        except LookupError as error:
            raise DataError("Failed to serialize to a string: ") from error

    def to_connect(
        self, topic: str, data: bytes | None, headers: RawHeaders = ()
    ) -> SchemaAndValue:
        """Return the text. Raises DataError."""
        if data is None:
            return OPTIONAL_STRING, None
        try:
            return OPTIONAL_STRING, codecs.decode(data, self._encoding, "replace")
        except LookupError as error:
            raise DataError("Failed to deserialize string: ") from error

    def from_column(
        self, topic: str, schema: Schema | None, values: Sequence[Any]
    ) -> list[bytes | None]:
        """Return the bytes of many texts. Raises DataError."""
        if not set(map(type, values)) <= _TEXTS:
            return super().from_column(topic, schema, values)
        encoding = self._encoding
        try:
            return [None if one is None else one.encode(encoding, "replace") for one in values]
        except LookupError as error:
            raise DataError("Failed to serialize to a string: ") from error

    def to_column(self, topic: str, data: Sequence[bytes | None]) -> SinkColumn:
        """Return many texts. Raises DataError."""
        decode, encoding = codecs.decode, self._encoding
        try:
            texts = [None if one is None else decode(one, encoding, "replace") for one in data]
        except LookupError as error:
            raise DataError("Failed to deserialize string: ") from error
        return SinkColumn(OPTIONAL_STRING, texts)


class ByteArrayConverter(Converter):
    """Bytes as they are."""

    definition: ClassVar[Definition] = Definition([CONVERTER_TYPE])

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the value. Raises DataError if it is not bytes."""
        if schema is not None and schema.type is not Type.BYTES:
            raise DataError(f"Invalid schema type for ByteArrayConverter: {schema.type.name}")
        if value is None or type(value) is bytes:
            return value
        if not isinstance(value, (bytearray, memoryview)):
            raise DataError(
                f"ByteArrayConverter is not compatible with objects of type {java_class(value)}"
            )
        return bytes(value)

    def to_connect(
        self, topic: str, data: bytes | None, headers: RawHeaders = ()
    ) -> SchemaAndValue:
        """Return the bytes."""
        return OPTIONAL_BYTES, data


class BooleanConverter(Converter):
    """A byte, 1 or 0."""

    definition: ClassVar[Definition] = Definition([CONVERTER_TYPE])

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the byte. Raises DataError."""
        if schema is not None and schema.type is not Type.BOOLEAN:
            raise DataError(f"Invalid schema type for BooleanConverter: {schema.type.name}")
        if value is None:
            return None
        if not isinstance(value, bool):
            raise DataError(
                f"BooleanConverter is not compatible with objects of type {java_class(value)}"
            )
        return b"\x01" if value else b"\x00"

    def to_connect(
        self, topic: str, data: bytes | None, headers: RawHeaders = ()
    ) -> SchemaAndValue:
        """Return the boolean. Raises DataError for another byte."""
        if data is None:
            return OPTIONAL_BOOLEAN, None
        if data not in (b"\x00", b"\x01"):
            raise DataError("Failed to deserialize boolean: ")
        return OPTIONAL_BOOLEAN, data == b"\x01"


class NumberConverter(Converter):
    """Numbers of one width, big-endian."""

    definition: ClassVar[Definition] = Definition([CONVERTER_TYPE])
    type_name: ClassVar[str]
    schema: ClassVar[Schema]
    layout: ClassVar[struct.Struct]

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the number's bytes. Raises DataError for what is no such number."""
        if value is None:
            return None
        is_float = self.schema.type in (Type.FLOAT32, Type.FLOAT64)
        if type(value) is (float if is_float else int):
            try:
                return self.layout.pack(value)
            except OverflowError:
                return self.layout.pack(float("inf") if value > 0 else float("-inf"))
            except struct.error:
                pass
        raise DataError(f"Failed to serialize to {self.type_name} (was {java_class(value)}): ")

    def to_connect(
        self, topic: str, data: bytes | None, headers: RawHeaders = ()
    ) -> SchemaAndValue:
        """Return the number. Raises DataError for another count of bytes."""
        if data is None:
            return self.schema, None
        try:
            return self.schema, self.layout.unpack(data)[0]
        except struct.error as error:
            raise DataError(f"Failed to deserialize {self.type_name}: ") from error


class ShortConverter(NumberConverter):
    """16 bits."""

    type_name, schema, layout = "short", OPTIONAL_INT16, struct.Struct(">h")


class IntegerConverter(NumberConverter):
    """32 bits."""

    type_name, schema, layout = "integer", OPTIONAL_INT32, struct.Struct(">i")


class LongConverter(NumberConverter):
    """64 bits."""

    type_name, schema, layout = "long", OPTIONAL_INT64, struct.Struct(">q")


class FloatConverter(NumberConverter):
    """32 bits, binary floating point."""

    type_name, schema, layout = "float", OPTIONAL_FLOAT32, struct.Struct(">f")


class DoubleConverter(NumberConverter):
    """64 bits, binary floating point."""

    type_name, schema, layout = "double", OPTIONAL_FLOAT64, struct.Struct(">d")
