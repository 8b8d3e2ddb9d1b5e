"""Connect's data in Protobuf, as io.confluent.connect.protobuf.ProtobufConverter translates them.

Left out: plain values written without a struct, Confluent's variants, and the sum types that all
formats have in common.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError, EncodeError

from barnabas.schemas.converters.base import Reading, SchemaFormat, Writing
from barnabas.schemas.converters.protobuf_reading import ProtobufReading
from barnabas.schemas.converters.protobuf_writing import ProtobufOptions, ProtobufText, to_message
from barnabas.schemas.data.cache import Cache
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema
from barnabas.schemas.protobuf.messages import MessageSchema, indexes_of, load, message_class
from barnabas.schemas.registry_client import StoredSchema
from barnabas.schemas.schema import SchemaFault
from barnabas.schemas.wire_format import decode_indexes, encode_indexes


class ProtobufFormat(SchemaFormat):
    """Protobuf's messages."""

    schema_type, title = "PROTOBUF", "Protobuf"

    def __init__(self, options: ProtobufOptions) -> None:
        self._options = options

    def writing(self, schema: Schema | None, target: StoredSchema | None = None) -> Writing:
        assert schema is not None
        text = ProtobufText(self._options).of(schema)
        loaded = _loaded(target or StoredSchema(-1, "PROTOBUF", text, ()))
        message = loaded.message(None)
        prefix, build = encode_indexes(indexes_of(message)), message_class(message)
        convert = to_message(schema, self._options)

        def write(value: Any) -> bytes:
            try:
                return prefix + bytes(build(**convert(value)).SerializeToString())
            except (ValueError, TypeError, EncodeError) as error:
                raise DataError(f"The value does not fit its Protobuf schema: {error}") from error

        return Writing(text, message.full_name, write)

    def reading(self, stored: StoredSchema) -> Reading:
        """The schema of the first message; data of others have schemas of their own."""
        loaded = _loaded(stored)
        reading = ProtobufReading(loaded, self._options)

        def made(path: tuple[int, ...]) -> tuple[Schema, Any, Any]:
            message = loaded.message_at(list(path))
            schema, convert = reading.root(message)
            return schema, convert, message_class(message).FromString

        by_path: Cache[tuple[int, ...], tuple[Schema, Any, Any]] = Cache(made)

        def read(data: bytes) -> Any:
            path, start = decode_indexes(data)
            _, convert, parse = by_path(tuple(path))
            try:
                return convert(parse(data[start:]))
            except DecodeError as error:
                raise ValueError(str(error)) from error

        def schema_of(data: bytes) -> Schema:
            return by_path(tuple(decode_indexes(data)[0]))[0]

        return Reading(by_path((0,))[0], read, schema_of)


def _loaded(stored: StoredSchema) -> MessageSchema:
    try:
        return load(stored.text, dict(stored.references))
    except SchemaFault as error:
        raise DataError(str(error)) from error
