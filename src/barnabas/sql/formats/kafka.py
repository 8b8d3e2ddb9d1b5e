"""The formats KAFKA, a bare value as Kafka's own serialisers write it, and NONE, nothing at all."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

from barnabas.schemas.errors import FormatError
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.format import (
    Deserializer,
    Format,
    RecordPart,
    Serializer,
    check_count,
    check_properties,
    columns_text,
    topic_of,
)
from barnabas.sql.runtime.records import Row
from barnabas.sql.schema import Column
from barnabas.sql.types import BaseType, Value

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_DOUBLE = struct.Struct(">d")

_ENCODERS: dict[BaseType, Callable[[Value], bytes]] = {
    BaseType.INTEGER: _INT.pack,
    BaseType.BIGINT: _LONG.pack,
    BaseType.DOUBLE: _DOUBLE.pack,
    BaseType.STRING: str.encode,
    BaseType.BYTES: bytes,
}
_DECODERS: dict[BaseType, Callable[[bytes], Value]] = {
    BaseType.INTEGER: lambda data: _INT.unpack(data)[0],
    BaseType.BIGINT: lambda data: _LONG.unpack(data)[0],
    BaseType.DOUBLE: lambda data: _DOUBLE.unpack(data)[0],
    BaseType.STRING: lambda data: data.decode("utf-8", "replace"),
    BaseType.BYTES: bytes,
}


class KafkaFormat(Format):
    """One column: INTEGER, BIGINT, DOUBLE (big endian), STRING (UTF-8) or BYTES."""

    name = "KAFKA"
    can_wrap = False
    can_unwrap = True

    def check(self, columns: Sequence[Column], properties: Mapping[str, str]) -> None:
        check_properties(self.name, properties, self.properties)
        if len(columns) > 1:
            raise AnalysisError(
                f"The 'KAFKA' format only supports a single field. Got: {columns_text(columns)}"
            )
        if columns and columns[0].type.base not in _ENCODERS:
            raise AnalysisError(
                f"The 'KAFKA' format does not support type '{columns[0].type.base.value}'"
            )

    def serializer(self, part: RecordPart) -> Serializer:
        if not part.columns:
            return _nothing
        encode = _ENCODERS[part.columns[0].type.base]
        subject = part.subject

        def serialize(row: Row | None) -> bytes | None:
            if row is None:
                return None
            check_count(1, row, subject)
            if row[0] is None:
                return None
            try:
                return encode(row[0])
            except (struct.error, TypeError, ValueError) as error:
                raise FormatError(
                    f"Error serializing KAFKA message to topic: {topic_of(subject)}. {error}"
                ) from error

        return serialize

    def deserializer(self, part: RecordPart) -> Deserializer:
        if not part.columns:
            return _no_row
        decode = _DECODERS[part.columns[0].type.base]

        def deserialize(data: bytes | None) -> Row | None:
            if data is None:
                return None
            try:
                return [decode(data)]
            except struct.error as error:
                raise FormatError(
                    f"Error deserializing KAFKA message from topic: {topic_of(part.subject)}: "
                    f"the data has {len(data)} bytes"
                ) from error

        return deserialize


class NoneFormat(Format):
    """No columns: nothing is written, and what is there is not read."""

    name = "NONE"
    can_wrap = False
    can_unwrap = False

    def check(self, columns: Sequence[Column], properties: Mapping[str, str]) -> None:
        check_properties(self.name, properties, self.properties)
        if columns:
            raise AnalysisError(
                "The 'NONE' format can only be used when no columns are defined. "
                f"Got: {columns_text(columns)}"
            )

    def serializer(self, part: RecordPart) -> Serializer:
        return _nothing

    def deserializer(self, part: RecordPart) -> Deserializer:
        return _no_row


def _nothing(row: Row | None) -> bytes | None:
    return None


def _no_row(data: bytes | None) -> Row | None:
    return None
